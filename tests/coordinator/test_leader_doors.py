"""The leader's port for APIs elsewhere, whoever breaks off."""

import asyncio
import os
import socket
from typing import Any

from codehub import peers
from codehub.coordinator import leader_doors
from tests.roles_apart import KEY, free_port


def break_off(port: int) -> None:
    """Says who it is, and then nonsense below TLS."""
    with socket.create_connection(("127.0.0.1", port)) as below:
        raw = os.dup(below.fileno())
        try:
            with peers.of(KEY).client.wrap_socket(below) as connection:
                connection.sendall(b"echo\n")
                connection.recv(1)
                os.write(raw, b"nonsense" * 100)
                connection.recv(1)
        except OSError:
            pass
        finally:
            os.close(raw)


async def test_one_who_breaks_off_in_the_middle_is_no_mistake_of_ours() -> None:
    mistakes: list[dict[str, Any]] = []
    ended = asyncio.Event()

    async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            writer.write(b"x")
            await reader.read()
        finally:
            ended.set()

    asyncio.get_running_loop().set_exception_handler(lambda _, context: mistakes.append(context))
    port = free_port()
    async with leader_doors.at_address({"echo": echo}, f"127.0.0.1:{port}", peers.of(KEY)):
        await asyncio.to_thread(break_off, port)
        await asyncio.wait_for(ended.wait(), 60)
        await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert mistakes == []
