"""Asking an IDE whether it answers, and connecting to it. Used by runtimes and by the busy probes."""

import asyncio
import socket

from codehub.runtimes.base import Address
from codehub.system import connect as safely


async def connect(address: Address) -> socket.socket:
    """A connected, non-blocking socket; raises OSError."""
    if address.socket is not None:
        return await safely.to_socket(address.socket)
    return await safely.to_port(address.host or "", address.port or 0)


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
