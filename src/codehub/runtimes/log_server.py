"""Shows logs to the API where only the coordinator may read them: on an engine, whose socket is as good as root.

On a Unix socket that only the API's account may use. A request is one line of JSON, the answer is the log, until one of
the two goes. Who may see which log is decided by the API before it asks.
"""

import asyncio
import contextlib
import json
import os
import pathlib
from collections.abc import AsyncIterator

from codehub import ids, logs
from codehub.runtimes.base import Logs, RuntimeFailureError
from codehub.system.privileges import Account

log = logs.get()
REQUEST_SECONDS = 10.0
LONGEST_REQUEST = 4096
LONGEST_TAIL = 8 << 20
PIECE = 1 << 16


@contextlib.asynccontextmanager
async def serving(source: Logs, socket: pathlib.Path, account: Account | None) -> AsyncIterator[None]:
    """The leader listens; a former leader's socket is replaced."""
    under_way: set[asyncio.Task[None]] = set()

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task  # noqa: S101 (we are in one)
        under_way.add(task)
        try:
            await _answer(source, reader, writer)
        finally:
            under_way.discard(task)
            writer.close()

    await asyncio.to_thread(_make_folder, socket.parent, account)
    server = await asyncio.start_unix_server(answer, socket, limit=LONGEST_REQUEST)
    await asyncio.to_thread(_give, socket, account, 0o600)
    try:
        yield
    finally:
        server.close()
        for task in list(under_way):
            task.cancel()
        await asyncio.gather(*under_way, return_exceptions=True)


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


def _make_folder(folder: pathlib.Path, account: Account | None) -> None:
    if not folder.is_dir():
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        _give(folder, account, 0o700)


def _give(path: pathlib.Path, account: Account | None, mode: int) -> None:
    path.chmod(mode)
    if account:
        os.chown(path, account.uid, account.gid)


class LogClient:
    """The API's end."""

    def __init__(self, socket: pathlib.Path) -> None:
        self._socket = str(socket)

    async def logs(self, workspace_id: str, *, tail_bytes: int = 65536, follow: bool = False) -> AsyncIterator[bytes]:
        """Nothing while no coordinator answers: a page shows what there is."""
        try:
            reader, writer = await asyncio.open_unix_connection(self._socket)
        except OSError:
            return
        try:
            wanted = {"workspace_id": workspace_id, "tail_bytes": tail_bytes, "follow": follow}
            writer.write(json.dumps(wanted).encode() + b"\n")
            while piece := await reader.read(PIECE):
                yield piece
        except ConnectionError:
            return
        finally:
            writer.close()
