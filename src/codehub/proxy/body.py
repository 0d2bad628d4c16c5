"""A request's body on its way to the upstream, framed anew. `downstream` feeds it and learns what follows it."""

import asyncio

from codehub.proxy import chunked


class LengthBody:
    """Announced by Content-Length: bytes are passed on as they are, and counted."""

    __slots__ = ("_left",)

    def __init__(self, length: int) -> None:
        self._left = length

    @property
    def done(self) -> bool:
        return self._left == 0

    def pass_on(self, data: bytes, upstream: asyncio.Transport) -> bytes:
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

    def pass_on(self, data: bytes, upstream: asyncio.Transport) -> bytes:
        found = self._reader.feed(data)
        if found:
            upstream.writelines(chunked.chunk(found))
        if self._reader.done:
            upstream.write(chunked.end(self._reader.trailers))
        return self._reader.rest


Body = LengthBody | ChunkedBody
