"""Connecting to an IDE, safely: its user owns the socket's directory, and could put anything in the socket's place.

A link there, to another workspace's socket or to the database's, would make the client that connects reach it instead.
So the socket is opened without following links, looked at, and connected to by the descriptor. Used by
`runtimes.connect` and by the proxy.
"""

import asyncio
import os
import socket
import stat


async def to_port(host: str, port: int) -> socket.socket:
    """A connected, non-blocking socket; raises OSError."""
    found = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
    return await _connected(asyncio.get_running_loop(), found, (host, port))


async def to_socket(path: str) -> socket.socket:
    held = os.open(path, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        if not stat.S_ISSOCK(os.fstat(held).st_mode):
            raise ConnectionRefusedError(f"{path} is not a socket")
        where = f"/proc/self/fd/{held}"
        return await _connected(asyncio.get_running_loop(), socket.socket(socket.AF_UNIX), where)
    finally:
        os.close(held)


async def _connected(loop: asyncio.AbstractEventLoop, new: socket.socket, where: object) -> socket.socket:
    new.setblocking(False)
    try:
        await loop.sock_connect(new, where)  # type: ignore[arg-type]
    except BaseException:
        new.close()
        raise
    return new
