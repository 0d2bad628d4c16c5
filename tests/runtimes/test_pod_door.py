"""What the relay of a pod passes on between the platform and an IDE."""

import asyncio
import pathlib
import ssl
from collections.abc import AsyncIterator

import pytest

from codehub.runtimes.containers.door import Door, Order
from codehub.system import doors

ANSWER = b"HTTP/1.0 200 OK\r\n\r\n" + b"as long as it comes " * 50_000


@pytest.fixture
async def through(tmp_path: pathlib.Path) -> AsyncIterator[tuple[int, ssl.SSLContext]]:
    """To an IDE whose answers end with the connection."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(ANSWER)
        await writer.drain()
        writer.close()

    keys = doors.Doors("a key of the tests' own")
    name = keys.new()
    for file, content in zip((doors.CERTIFICATE, doors.KEY), keys.pair(name), strict=True):
        (tmp_path / file).write_bytes(content)
    ide = await asyncio.start_server(answer, "127.0.0.1", 0)
    relay = Door(Order(target=f"tcp:{ide.sockets[0].getsockname()[1]}"))
    server = await asyncio.start_server(relay.pass_on, "127.0.0.1", 0, ssl=doors.serving(tmp_path))
    yield server.sockets[0].getsockname()[1], keys.client(name)
    server.close()
    ide.close()


async def test_where_an_ide_ends_a_connection_it_ends_for_the_platform_too(
    through: tuple[int, ssl.SSLContext],
) -> None:
    port, tls = through
    reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=tls)
    writer.write(b"GET / HTTP/1.0\r\n\r\n")
    async with asyncio.timeout(30):
        assert await reader.read() == ANSWER
    writer.close()
