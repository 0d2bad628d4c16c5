"""A way to the test database that can be cut: a Unix socket that passes everything on, until it is told not to."""

import asyncio
import contextlib
import pathlib
import tempfile
from collections.abc import AsyncIterator
from urllib.parse import parse_qs, urlsplit

NAME = ".s.PGSQL.5432"


class Relay:
    def __init__(self, target: str, folder: str) -> None:
        self._target = target
        self._path = f"{folder}/{NAME}"
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    async def mend(self) -> None:
        self._server = await asyncio.start_unix_server(self._pass_on, self._path)

    async def cut(self) -> None:
        """Every connection ends, and there are no new ones: what a stopped server looks like."""
        if self._server:
            self._server.close()
            pathlib.Path(self._path).unlink(missing_ok=True)
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _pass_on(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        back, forth = await asyncio.open_unix_connection(self._target)
        for source, sink in ((reader, forth), (back, writer)):
            task = asyncio.create_task(_copy(source, sink))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)


async def _copy(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
    try:
        while data := await source.read(65536):
            sink.write(data)
            await sink.drain()
    except ConnectionError:
        pass
    finally:
        sink.transport.abort()


@contextlib.asynccontextmanager
async def relayed(database_url: str) -> AsyncIterator[tuple[str, Relay]]:
    """(URL of the same database by way of the relay, the relay)."""
    (host,) = parse_qs(urlsplit(database_url).query)["host"]
    with tempfile.TemporaryDirectory(prefix="relay-") as folder:
        relay = Relay(f"{host}/{NAME}", folder)
        await relay.mend()
        yield database_url.replace(host, folder), relay
        await relay.cut()
