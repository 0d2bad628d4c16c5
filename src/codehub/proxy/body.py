"""A request's body on its way to the upstream, framed anew. `downstream` feeds it and learns what follows it."""

from collections.abc import Iterable
from typing import Protocol

from codehub.proxy import chunked


class Sink(Protocol):
    """Where a body goes: an upstream's transport, or `Waiting`."""

    def write(self, data: bytes, /) -> None: ...

    def writelines(self, parts: Iterable[bytes], /) -> None: ...


class Waiting:
    """In an upstream's place until there is one: the beginning of a body, framed for it."""

    __slots__ = ("pieces",)

    def __init__(self) -> None:
        self.pieces = bytearray()

    @property
    def size(self) -> int:
        return len(self.pieces)

    def write(self, data: bytes) -> None:
        self.pieces += data

    def writelines(self, parts: Iterable[bytes]) -> None:
        for part in parts:
            self.pieces += part


class LengthBody:
    """Announced by Content-Length: bytes are passed on as they are, and counted."""

    __slots__ = ("_left",)

    def __init__(self, length: int) -> None:
        self._left = length

    @property
    def done(self) -> bool:
        return self._left == 0

    def pass_on(self, data: bytes, upstream: Sink) -> bytes:
        """Returns what follows the body."""
        size = len(data)
        if size <= self._left:
            self._left -= size
            upstream.write(data)
            return b""
        upstream.write(data[: self._left])
        rest = data[self._left :]
        self._left = 0
        return rest


class ChunkedBody:
    """Read strictly, and written as new chunks: no size line or extension of the client's reaches the upstream."""

    __slots__ = ("_reader",)

    def __init__(self) -> None:
        self._reader = chunked.Reader()

    @property
    def done(self) -> bool:
        return self._reader.done

    def pass_on(self, data: bytes, upstream: Sink) -> bytes:
        found = self._reader.feed(data)
        if found:
            upstream.writelines(chunked.chunk(found))
        if self._reader.done:
            upstream.write(chunked.end(self._reader.trailers))
        return self._reader.rest


Body = LengthBody | ChunkedBody
