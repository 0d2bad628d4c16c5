"""How a role that runs alone answers probes, whoever else is on its port."""

import asyncio
import socket
from collections.abc import AsyncIterator

import pytest

from codehub.health import AT_ONCE, Health


@pytest.fixture
async def port() -> AsyncIterator[int]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        async with Health([]).serving([listener]):
            yield listener.getsockname()[1]


async def asked(port: int) -> bytes:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(b"GET /healthz HTTP/1.1\r\n\r\n")
        return await reader.read()
    finally:
        writer.close()


async def test_those_who_connect_and_say_nothing_keep_no_probe_out(port: int) -> None:
    silent = [await asyncio.open_connection("127.0.0.1", port) for _ in range(3 * AT_ONCE)]
    assert (await asked(port)).startswith(b"HTTP/1.1 200 ")
    for _, writer in silent:
        writer.close()
