"""Shows logs to the API where only the coordinator may read them: on an engine, whose socket is as good as root.

At a door of the leader's. A request is one line of JSON, the answer is the log, until one of
the two goes. Who may see which log is decided by the API before it asks.
"""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator

from codehub import ids, logs
from codehub.coordinator.leader_doors import LOGS, Doors, Serve
from codehub.errors import UnavailableError
from codehub.runtimes.base import Logs, RuntimeFailureError

log = logs.get()
REQUEST_SECONDS = 10.0
LONGEST_TAIL = 8 << 20
PIECE = 1 << 16


def door(source: Logs) -> Serve:
    """Of the leader's doors, this one (`coordinator.leader_doors`)."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await _answer(source, reader, writer)

    return serve


async def _answer(source: Logs, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        async with asyncio.timeout(REQUEST_SECONDS):
            wanted = json.loads(await reader.readline())
        id_, tail = str(wanted["workspace_id"]), min(int(wanted["tail_bytes"]), LONGEST_TAIL)
        if not ids.is_label(id_):
            return
    except (TimeoutError, ValueError, KeyError, TypeError, OSError):
        log.warning("A request for a log did not arrive")
        return
    sending = asyncio.create_task(_send(source, writer, id_, tail, follow=bool(wanted["follow"])))
    leaving = asyncio.create_task(reader.read())  # the other side says nothing more: an end means that it has gone
    try:
        await asyncio.wait({sending, leaving}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in (sending, leaving):
            task.cancel()
        await asyncio.gather(sending, leaving, return_exceptions=True)


async def _send(source: Logs, writer: asyncio.StreamWriter, id_: str, tail: int, *, follow: bool) -> None:
    with contextlib.suppress(RuntimeFailureError, ConnectionError):  # the API shows what there is
        async for piece in source.logs(id_, tail_bytes=tail, follow=follow):
            writer.write(piece)
            await writer.drain()


class LogClient:
    """The API's end."""

    def __init__(self, doors: Doors) -> None:
        self._doors = doors

    async def logs(self, workspace_id: str, *, tail_bytes: int = 65536, follow: bool = False) -> AsyncIterator[bytes]:
        """Nothing while no coordinator answers: a page shows what there is."""
        try:
            reader, writer = await self._doors.open(LOGS)
        except UnavailableError:
            return
        try:
            wanted = {"workspace_id": workspace_id, "tail_bytes": tail_bytes, "follow": follow}
            writer.write(json.dumps(wanted).encode() + b"\n")
            while piece := await reader.read(PIECE):
                yield piece
        except OSError:  # it has gone, or would not have us
            return
        finally:
            writer.close()
