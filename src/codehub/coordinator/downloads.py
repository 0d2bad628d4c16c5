"""Serves homes as files to the API, on a Unix socket that only the API's account may use.

The API has no right to read homes; the coordinator has. Who may have which home is decided by the API before it asks.
A request is one line of JSON, the answer one line of JSON and then frames: a length of four bytes and as many bytes; a
length of nothing is the good end, and a connection that ends without it is a download that failed. One connection is
one download: when it is closed, or nobody reads on, the work stops.
"""

import asyncio
import contextlib
import json
import os
import pathlib
from collections.abc import AsyncGenerator, AsyncIterator
from dataclasses import dataclass

from codehub import ids, logs
from codehub.archives import download
from codehub.archives.objects import ObjectStore
from codehub.errors import CodeHubError, NotFoundError, UnavailableError
from codehub.runtimes.base import Runtime
from codehub.supervisor.privileges import Account

log = logs.get()
REQUEST_SECONDS = 10.0
LONGEST_REQUEST = 4096
FORMS = ("tar.gz", "tar.zst")


@dataclass(frozen=True)
class Order:
    workspace_id: str
    archive_key: str | None  # None: the home itself
    form: str

    @classmethod
    def parse(cls, line: bytes) -> "Order":
        try:
            order = cls(**json.loads(line))
        except (ValueError, TypeError) as e:
            raise NotFoundError("this is not an order for a download") from e
        ours = order.archive_key is None or str(order.archive_key).startswith(f"{order.workspace_id}/")
        if not ids.is_label(str(order.workspace_id)) or not ours or order.form not in FORMS:
            raise NotFoundError("there is no such download")
        return order


class Downloads:
    def __init__(self, runtime: Runtime, objects: ObjectStore, at_once: int) -> None:
        self._runtime = runtime
        self._objects = objects
        self._places = asyncio.Semaphore(at_once)
        self._under_way: set[asyncio.Task[None]] = set()

    async def pieces(self, order: Order) -> AsyncGenerator[bytes, None]:
        gzip = order.form == "tar.gz"
        if order.archive_key is not None:
            source = download.of_archive(self._objects, order.archive_key, gzip=gzip)
        else:
            volume = (await self._runtime.volumes([order.workspace_id])).get(order.workspace_id)
            if volume is None or volume.parked:
                raise UnavailableError("its files are on their way somewhere else: try again in a moment")
            source = download.of_home(self._runtime.volume_path(order.workspace_id), gzip=gzip)
        async with contextlib.aclosing(source) as chunks:
            async for chunk in chunks:
                yield chunk

    @contextlib.asynccontextmanager
    async def serving(self, socket: pathlib.Path, account: Account | None) -> AsyncIterator[None]:
        """Whoever leads listens; a former leader's socket is replaced."""
        await asyncio.to_thread(_make_folder, socket.parent, account)
        server = await asyncio.start_unix_server(self._serve, socket, limit=LONGEST_REQUEST)
        await asyncio.to_thread(_give, socket, account)
        try:
            yield
        finally:
            server.close()
            for task in self._under_way:
                task.cancel()
            await asyncio.gather(*self._under_way, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Until the work is done or the other side has gone, whichever comes first."""
        working = asyncio.create_task(self._answer(reader, writer), name="download")
        self._under_way.add(working)
        try:
            with contextlib.suppress(asyncio.CancelledError, ConnectionError):
                await working
        finally:
            self._under_way.discard(working)
            writer.close()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(REQUEST_SECONDS):
                order = Order.parse(await reader.readline())
            if self._places.locked():
                raise UnavailableError("too many downloads at once: try again in a moment")
            async with self._places:
                await self._send_while_there(order, reader, writer)
        except CodeHubError as e:
            writer.write(_line(error=e.code, status=e.status, detail=e.detail))
        except (TimeoutError, ValueError):
            log.warning("An order for a download did not arrive")

    async def _send_while_there(self, order: Order, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """The other side says nothing more; an end of its stream means that it has gone."""
        sending, leaving = asyncio.create_task(self._send(order, writer)), asyncio.create_task(reader.read())
        try:
            await asyncio.wait({sending, leaving}, return_when=asyncio.FIRST_COMPLETED)
            if sending.done():
                sending.result()
        finally:
            for task in (sending, leaving):
                task.cancel()
            await asyncio.gather(sending, leaving, return_exceptions=True)

    async def _send(self, order: Order, writer: asyncio.StreamWriter) -> None:
        begun = False
        async with contextlib.aclosing(self.pieces(order)) as pieces:
            try:
                async for piece in pieces:
                    if not begun:
                        writer.write(_line(ok=True))
                        begun = True
                    writer.write(len(piece).to_bytes(4, "big"))
                    writer.write(piece)
                    await writer.drain()
            except CodeHubError as e:
                if not begun:
                    raise
                log.warning("A download failed in the middle", workspace=order.workspace_id, error=e.detail)
                raise ConnectionAbortedError from e
        writer.write(bytes(4))
        await writer.drain()


def _line(**values: object) -> bytes:
    return json.dumps(values).encode() + b"\n"


def _make_folder(folder: pathlib.Path, account: Account | None) -> None:
    if not folder.is_dir():
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        _give(folder, account, mode=0o700)


def _give(path: pathlib.Path, account: Account | None, mode: int = 0o600) -> None:
    path.chmod(mode)
    if account:
        os.chown(path, account.uid, account.gid)
