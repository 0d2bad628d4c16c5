"""Just enough of RFC 6455 to know where a frame ends, so that a close frame can be put between two. Pure.

`tunnel` follows what browsers get with it, and `activity` messages whose content it does not read.
"""

REASON_BYTES = 123  # a control frame carries 125, two of them for the code


def close_frame(code: int, reason: str) -> bytes:
    """As a server sends it: unmasked."""
    text = reason.encode()[:REASON_BYTES].decode(errors="ignore").encode()
    return bytes([0x88, 2 + len(text)]) + code.to_bytes(2, "big") + text


def _whole_size(second: int) -> int:
    mask, short = (4 if second & 0x80 else 0), second & 0x7F
    return 2 + mask + short if short < 126 else -4 - mask if short == 126 else 0


# By its second byte, the size of a whole frame. Below 0: that of its header, and two bytes say how much follows; 0:
# eight bytes do. Nearly every piece that comes is one whole frame, and to see that costs a fifth of reading headers.
WHOLE_SIZE = tuple(map(_whole_size, range(256)))
SHORTEST = 4  # bytes of a piece that may be looked up: it has those two


class Boundary:
    """Follows a stream of frames, whatever pieces it comes in."""

    __slots__ = ("_header", "left")

    def __init__(self) -> None:
        self.left = 0  # bytes of the frame at hand still to come; below 0 when not even its header is complete
        self._header = b""

    @property
    def reached(self) -> bool:
        return self.left == 0

    def follow(self, data: bytes) -> None:
        size, left = len(data), self.left
        if left == 0 and size >= SHORTEST:
            whole = WHOLE_SIZE[data[1]]
            if whole < 0:
                whole = (data[2] << 8 | data[3]) - whole
            if whole == size:
                return
        self.walk(data)

    def walk(self, data: bytes) -> list[int]:
        """The same for any piece. Returns the first bytes of the frames that begin in it."""
        if self.left < 0:
            data, self._header, self.left = self._header + data, b"", 0
        at, size, found = self.left, len(data), list[int]()
        while at < size:
            length = frame_size(data, at)
            if length == 0:
                self._header, self.left = data[at:], -1
                return found
            found.append(data[at])
            at += length
        self.left = at - size
        return found

    def finish(self, data: bytes) -> bytes:
        """What of these bytes belongs to the frame at hand, and nothing of the next one."""
        if self._header:
            size = frame_size(self._header + data, 0)
            mine = data[: size - len(self._header)] if size else data
        else:
            mine = data[: self.left]
        self.follow(mine)
        return mine


def frame_size(data: bytes, at: int) -> int:
    """Of the whole frame that begins there; 0 when its header is not complete."""
    have = len(data) - at
    if have < 2:
        return 0
    short = data[at + 1]
    mask = 4 if short & 0x80 else 0
    short &= 0x7F
    if short < 126:
        return 2 + mask + short
    extended = 2 if short == 126 else 8
    if have < 2 + extended:
        return 0
    return 2 + extended + mask + int.from_bytes(data[at + 2 : at + 2 + extended], "big")
