"""Just enough of RFC 6455 to know where a frame ends, so that a close frame can be put between two. Pure."""

REASON_BYTES = 123  # a control frame carries 125, two of them for the code


def close_frame(code: int, reason: str) -> bytes:
    """As a server sends it: unmasked."""
    text = reason.encode()[:REASON_BYTES].decode(errors="ignore").encode()
    return bytes([0x88, 2 + len(text)]) + code.to_bytes(2, "big") + text


class Boundary:
    """Follows a stream of frames. `left` bytes of the frame at hand are still to come; the header may be incomplete."""

    __slots__ = ("_header", "left")

    def __init__(self) -> None:
        self.left = 0
        self._header = b""

    @property
    def reached(self) -> bool:
        return self.left == 0 and not self._header

    def follow(self, data: bytes) -> None:
        size = len(data)
        if self.left >= size:
            self.left -= size
            return
        if 1 < size < 128 and data[1] + 2 == size and not (self.left or self._header):
            return  # one whole small frame, as nearly always
        if self._header:
            data, self._header = self._header + data, b""
            size = len(data)
        at = self.left
        while at < size:
            length = frame_size(data, at)
            if length == 0:
                self._header = data[at:]
                self.left = 0
                return
            at += length
        self.left = at - size

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
