"""Streams on one connection: what a container prints, by descriptor, and what it is given. Pure but for the reading.

Output is framed as the Docker engine does it: descriptor, three zeros, length, content. Input, which that engine leaves
as it is, is framed where the connection itself cannot say that there is no more (TLS): length and content, an empty one
at the end.
"""

import asyncio
from collections.abc import AsyncIterator
from typing import Protocol

STDOUT, STDERR, END = 1, 2, 3  # END: how it went, as JSON
HEADER = 8
LENGTH = 4
LONGEST = 16 << 20  # a text, as that of a request
LARGEST_FRAME = 1 << 20  # many wait to be read


class Reader(Protocol):
    async def readexactly(self, n: int, /) -> bytes: ...


def frame(descriptor: int, content: bytes | memoryview) -> bytes:
    return bytes([descriptor, 0, 0, 0]) + len(content).to_bytes(4, "big") + content


async def frames(reader: Reader) -> AsyncIterator[tuple[int, bytes]]:
    """A container's two streams in one. Raises ValueError at a length that nothing of ours sends."""
    while True:
        try:
            head = await reader.readexactly(HEADER)
            size = int.from_bytes(head[4:], "big")
            if size > LARGEST_FRAME:
                raise ValueError(f"a frame of {size} bytes")
            yield head[0], await reader.readexactly(size)
        except asyncio.IncompleteReadError:
            return


def piece(content: bytes | memoryview) -> bytes:
    return len(content).to_bytes(LENGTH, "big") + content


async def read_piece(reader: asyncio.StreamReader) -> bytes:
    """Empty: there is no more. Raises EOFError when the other end has gone."""
    size = int.from_bytes(await reader.readexactly(LENGTH), "big")
    if size > LONGEST:
        raise EOFError("too long")
    return await reader.readexactly(size) if size else b""
