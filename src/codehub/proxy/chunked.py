"""Chunked bodies, both ways: a strict reader, and the one way in which chunks are written. Pure."""

import re

from codehub.proxy.framing import UNREADABLE, RefusalError, read_field
from codehub.proxy.model import Field

_EXTENSION = rb"""(?:;[!#$%&'*+\-.^_`|~0-9A-Za-z]+(?:=(?:[!#$%&'*+\-.^_`|~0-9A-Za-z]+|"[\t !#-\[\]-~\x80-\xff]*"))?)"""
SIZE_LINE = re.compile(rb"([0-9A-Fa-f]{1,15})" + _EXTENSION + rb"*")
SIZE_LINE_BYTES = 256
TRAILER_BYTES = 8 * 1024
LAST = b"0\r\n\r\n"
# Trailers that would change what was already decided about the message, RFC 9110 6.5.1.
NOT_IN_TRAILERS = {b"host", b"content-length", b"transfer-encoding", b"connection", b"upgrade", b"te", b"trailer"}
NOT_IN_TRAILERS |= {b"authorization", b"cookie", b"set-cookie", b"content-type", b"content-encoding", b"expect"}
NOT_IN_TRAILERS |= {b"keep-alive", b"proxy-connection", b"proxy-authorization", b"proxy-authenticate", b"forwarded"}
NOT_IN_TRAILERS |= {
    b"content-range",
    b"location",
    b"origin",
    b"x-real-ip",
    b"clear-site-data",
    b"service-worker-allowed",
}
NOT_IN_TRAILERS |= {b"strict-transport-security", b"cache-control", b"max-forwards", b"range", b"date", b"age", b"vary"}


def chunk(data: bytes) -> list[bytes]:
    """In parts, for `writelines`: the data is not copied."""
    return [b"%x\r\n" % len(data), data, b"\r\n"]


def end(trailers: list[Field]) -> bytes:
    if not trailers:
        return LAST
    kept = [field.line + b"\r\n" for field in trailers if _may_trail(field.guard)]
    return b"0\r\n%b\r\n" % b"".join(kept)


def _may_trail(name: bytes) -> bool:
    return name not in NOT_IN_TRAILERS and not name.startswith((b"x-forwarded-", b"sec-"))


class Reader:
    """Takes bytes as they come, gives the data in them. After `done`, `rest` is what follows the body."""

    __slots__ = ("_clean", "_kept", "_left", "done", "rest", "trailers")

    def __init__(self) -> None:
        self._kept = b""  # the beginning of a line, or of the trailers
        self._clean = 0  # so much of it has no end in it, and nothing unreadable
        self._left = 0  # of the chunk at hand, with the line end after it
        self.done = False
        self.rest = b""
        self.trailers: list[Field] = []

    def feed(self, data: bytes) -> bytes:
        """The data among these bytes, of however many chunks."""
        size = len(data)
        if not self._kept and self._left > size + 1:  # the middle of a large chunk: nothing to look at
            self._left -= size
            return data
        if self._kept:
            data, self._kept = self._kept + data, b""
        pieces: list[bytes] = []
        at = 0
        while at < len(data) and not self.done:
            at = self._chunk_data(data, at, pieces) if self._left else self._size_line(data, at)
            if not self._kept:
                self._clean = 0
        if self.done:
            self.rest = data[at:]
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def _chunk_data(self, data: bytes, at: int, pieces: list[bytes]) -> int:
        stop = at + self._left - 2  # where the chunk's data ends
        if at < stop:
            piece = data[at:stop]
            pieces.append(piece)
            self._left -= len(piece)
            return at + len(piece)
        line_end = data[at : at + self._left]
        if not b"\r\n"[-self._left :].startswith(line_end):
            raise RefusalError(400, "A chunk is not as long as it says.")
        self._left -= len(line_end)
        return at + len(line_end)

    def _size_line(self, data: bytes, at: int) -> int:
        stop = data.find(b"\r\n", at, at + SIZE_LINE_BYTES)
        if stop < 0:
            return self._keep(data, at, SIZE_LINE_BYTES)
        line = SIZE_LINE.fullmatch(data, at, stop)
        if line is None:
            raise RefusalError(400, "A chunk's size is not valid.")
        size = int(line[1], 16)
        if size:
            self._left = size + 2
            return stop + 2
        return self._trailers(data, at, stop)

    def _trailers(self, data: bytes, at: int, start: int) -> int:
        """`start` is where the line end of the last size line is, so that no trailers look like some."""
        # What was kept was searched already.
        stop = data.find(b"\r\n\r\n", max(start, at + self._clean - 3), start + TRAILER_BYTES)
        if stop < 0:
            return self._keep(data, at, TRAILER_BYTES)
        lines = data[start:stop].split(b"\r\n")[1:]
        self.trailers = [read_field(line) for line in lines]
        self.done = True
        return stop + 4

    def _keep(self, data: bytes, at: int, most: int) -> int:
        self._kept = kept = data[at:]
        if len(kept) > most or UNREADABLE.search(kept, max(self._clean - 1, 0)):
            raise RefusalError(400, "The chunks are not valid.")
        self._clean = len(kept)
        return len(data)
