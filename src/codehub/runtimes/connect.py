"""Connecting to an IDE, safely: its user owns the socket's directory, and could put anything in the socket's place.

A link there, to another workspace's socket or to the database's, would make whoever connects reach it in their stead.
So the socket is opened without following links, looked at, and connected to by the descriptor. Used by `answers`
here and by the proxy.
"""

import asyncio
import os
import socket
import stat

from codehub.runtimes.base import Address


async def connect(address: Address) -> socket.socket:
    """A connected, non-blocking socket; raises OSError."""
    if address.socket is not None:
        return await to_socket(address.socket)
    found = socket.socket(socket.AF_INET6 if ":" in (address.host or "") else socket.AF_INET)
    return await _connected(asyncio.get_running_loop(), found, (address.host, address.port))


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


async def status_of(address: Address, path: str) -> int:
    """The HTTP status of one GET; raises OSError or ValueError when there is none."""
    reader, writer = await asyncio.open_connection(sock=await connect(address))
    try:
        writer.write(f"GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode("latin-1"))
        line = await reader.readline()
        return int(line.split(None, 2)[1])
    except IndexError:
        raise ValueError("not an HTTP answer") from None
    finally:
        writer.close()
