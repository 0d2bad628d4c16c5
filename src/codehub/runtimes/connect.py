"""Asking an IDE whether it answers, and connecting to it. Used by runtimes and by the busy probes."""

import asyncio
from typing import TYPE_CHECKING

from codehub.runtimes.base import Address
from codehub.system import connect as safely

if TYPE_CHECKING:
    from codehub.system.doors import Doors

LIMIT = 1 << 16


async def opened(
    address: Address, doors: "Doors | None" = None, limit: int = LIMIT
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Raises OSError. `doors`: the keys, where IDEs are on other machines."""
    host, port = address.host or "", address.port or 0
    if address.key is not None:
        if doors is None:
            raise ConnectionRefusedError("there is no key for this address")
        return await asyncio.open_connection(host, port, ssl=doors.client(address.key), limit=limit)
    connected = safely.to_port(host, port) if address.socket is None else safely.to_socket(address.socket)
    return await asyncio.open_connection(sock=await connected, limit=limit)


async def status_of(address: Address, path: str, doors: "Doors | None" = None) -> int:
    """The HTTP status of one GET; raises OSError or ValueError when there is none."""
    reader, writer = await opened(address, doors)
    try:
        writer.write(f"GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode("latin-1"))
        line = await reader.readline()
        return int(line.split(None, 2)[1])
    except IndexError:
        raise ValueError("not an HTTP answer") from None
    finally:
        writer.close()
