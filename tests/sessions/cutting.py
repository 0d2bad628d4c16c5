"""A way to the test database that breaks at a chosen point: before the server gets a message, or before its answer."""

import asyncio
import contextlib
import tempfile
from collections.abc import AsyncIterator
from urllib.parse import parse_qs, urlsplit

NAME = ".s.PGSQL.5432"
ENDING = b"SFATAL\0VFATAL\0C57P01\0Mterminating connection due to administrator command\0\0"


class CuttingRelay:
    """Passes everything on. Armed with n, it ends the connection at the n-th flight of messages from then on.

    A flight is what a client sends before it waits for the answer: a statement, a BEGIN, a COMMIT.
    """

    def __init__(self, target: str) -> None:
        self._target = target
        self._left: int | None = None
        self._answered = False
        self.cut = False
        self._clients: list[asyncio.StreamWriter] = []

    def announce_end(self) -> None:
        """To every client, what a server says that ends a connection; the end itself takes its time."""
        for client in [c for c in self._clients if not c.is_closing()]:
            client.write(b"E" + (4 + len(ENDING)).to_bytes(4) + ENDING)

    def end(self) -> None:
        for client in self._clients:
            client.transport.abort()

    def arm(self, flight: int, *, answered: bool) -> None:
        """`answered`: the server has done it, and its answer is lost."""
        self._left, self._answered, self.cut = flight, answered, False

    def disarm(self) -> None:
        self._left = None

    async def accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._clients.append(writer)
        back, forth = await asyncio.open_unix_connection(self._target)
        lost = asyncio.Event()  # the next answer is not passed on
        ways = {
            asyncio.create_task(self._to_server(reader, forth, lost)),
            asyncio.create_task(_to_client(back, writer, lost)),
        }
        await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        for way in ways:
            way.cancel()
        for side in (writer, forth):
            side.transport.abort()

    async def _to_server(self, source: asyncio.StreamReader, sink: asyncio.StreamWriter, lost: asyncio.Event) -> None:
        while data := await source.read(1_000_000):
            if self._counts_to_its_end():
                if not self._answered:
                    return
                lost.set()
            sink.write(data)

    def _counts_to_its_end(self) -> bool:
        if self._left is None:
            return False
        self._left -= 1
        self.cut = self.cut or self._left == 0
        return self._left == 0


async def _to_client(source: asyncio.StreamReader, sink: asyncio.StreamWriter, lost: asyncio.Event) -> None:
    while (data := await source.read(1_000_000)) and not lost.is_set():
        sink.write(data)


@contextlib.asynccontextmanager
async def cutting(database_url: str) -> AsyncIterator[tuple[str, CuttingRelay]]:
    """(URL of the same database by way of the relay, the relay)."""
    (host,) = parse_qs(urlsplit(database_url).query)["host"]
    with tempfile.TemporaryDirectory(prefix="relay-") as folder:
        relay = CuttingRelay(f"{host}/{NAME}")
        server = await asyncio.start_unix_server(relay.accept, f"{folder}/{NAME}")
        try:
            yield database_url.replace(host, folder), relay
        finally:
            server.close()
            relay.end()
