"""Follows one direction of a WebSocket from the side, and reads no more of it than its reader wants. Pure.

Made by `profiles` for every tunnel that is opened, two each. What passes is never held up or changed. The cost grows
with frames, not with their bytes: of a payload only what the reader asks for is unmasked and looked at.
"""

from typing import Protocol

CONTINUATION, CONTROL = 0x0, 0x8  # operation codes; control frames have the high bit
COMPRESSED = 0x70  # reserved bits: what they mean was agreed in the handshake, and we did not


class Reader(Protocol):
    """`wants` bytes of the payload to come are handed to `take`; the others pass by."""

    wants: int

    def begins(self) -> None:
        """A data message."""
        ...

    def control(self) -> None:
        """A ping, pong or close."""
        ...

    def unreadable(self) -> None:
        """A data message in a form that only the two ends understand."""
        ...

    def take(self, payload: bytes) -> None: ...

    def pass_by(self, count: int) -> int:
        """How many of so many bytes pass before it wants some again."""
        ...


class Follower:
    """Knows where frames begin, whatever pieces the stream comes in."""

    __slots__ = ("_header", "_left", "_mask", "_message", "_offset", "_readable", "_reader")

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self._header = b""
        self._left = 0  # bytes of the payload at hand that are still to come
        self._mask = b""
        self._offset = 0  # in the payload, for the mask
        self._readable = False  # the payload at hand is for the reader
        self._message = False  # the data message at hand is; control frames may come in its middle

    def follow(self, data: bytes) -> None:
        at, size = 0, len(data)
        if self._header:
            data, self._header = self._header + data, b""
            size = len(data)
        while at < size:
            if self._left:
                at = self._payload(data, at, size)
                continue
            begins = self._frame(data, at, size)
            if begins == 0:
                self._header = data[at:]
                return
            at = begins

    def _frame(self, data: bytes, at: int, size: int) -> int:
        """Where the payload of the frame that begins here begins; 0 when its header is not complete."""
        if size - at < 2:
            return 0
        first, second = data[at], data[at + 1]
        length = second & 0x7F
        at += 2
        if length >= 126:
            extended = 2 if length == 126 else 8
            if size - at < extended:
                return 0
            length = int.from_bytes(data[at : at + extended], "big")
            at += extended
        if second & 0x80:
            if size - at < 4:
                return 0
            self._mask = data[at : at + 4]
            at += 4
        else:
            self._mask = b""
        self._left, self._offset = length, 0
        self._announce(first)
        return at

    def _announce(self, first: int) -> None:
        code = first & 0x0F
        if code & CONTROL:
            self._readable = False
            self._reader.control()
            return
        if code != CONTINUATION:
            self._message = not first & COMPRESSED
            if self._message:
                self._reader.begins()
            else:
                self._reader.unreadable()
        self._readable = self._message

    def _payload(self, data: bytes, at: int, size: int) -> int:
        """Hand over, or let pass, what there is of the payload at hand."""
        count = min(self._left, size - at)
        if self._readable:
            reader = self._reader
            if reader.wants:
                count = min(count, reader.wants)
                reader.take(self._unmasked(data[at : at + count]))
            else:
                count = reader.pass_by(count)
        self._left -= count
        self._offset += count
        return at + count

    def _unmasked(self, piece: bytes) -> bytes:
        if not self._mask:
            return piece
        size, shift = len(piece), self._offset & 3
        mask = (self._mask[shift:] + self._mask * (size // 4 + 1))[:size]
        return (int.from_bytes(piece, "big") ^ int.from_bytes(mask, "big")).to_bytes(size, "big")
