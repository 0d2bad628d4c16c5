"""Tar archives, read from their beginning to their end in bounded pieces. For `archive`.

Not by the library's `tarfile`, whose patterns take time by the square of a header's length: an archive comes from a
browser. Headers of ustar, GNU tar (long names) and POSIX (`path` and `size`) are understood; what they say of owners,
times and rights is of no interest here.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

BLOCK = 512
LONGEST_HEADER = 64 * 1024  # of what comes before a file: its long name, attributes that some programs add
EMPTY = bytes(BLOCK)


class Stream(Protocol):
    def read(self, size: int, /) -> bytes: ...


class TarError(Exception):
    """It is no tar archive, or ends too early."""


@dataclass(frozen=True)
class Entry:
    name: bytes
    kind: str  # `file`, `folder`, `link`, `other`
    size: int


KINDS = {b"0": "file", b"\0": "file", b"7": "file", b"5": "folder", b"1": "link", b"2": "link"}


def entries(stream: Stream) -> Iterator[Entry]:
    """Each, with the stream at its content: whoever takes one reads all of it (`skip`) before the next."""
    name: bytes | None = None
    size: int | None = None
    while (head := _exactly(stream, BLOCK, or_end=True)) and head != EMPTY:
        _check(head)
        kind, length = head[156:157], _number(head[124:136])
        if kind in b"xgLK":
            said = _padded(stream, length, LONGEST_HEADER)
            if kind == b"L":
                name = said.rstrip(b"\0")
            elif kind == b"x":
                told = _attributes(said)
                name = told.get(b"path", name)
                size = _decimal(told[b"size"]) if b"size" in told else size
            continue
        yield Entry(name or _name(head), KINDS.get(kind, "other"), length if size is None else size)
        name = size = None


def skip(stream: Stream, left: int) -> None:
    """To the end of a block, after so many bytes that were not read."""
    while left > 0:
        left -= len(_exactly(stream, min(left, 1024 * BLOCK)))


def _name(head: bytes) -> bytes:
    name, prefix = _text(head[:100]), _text(head[345:500]) if head[257:263] == b"ustar\0" else b""
    return prefix + b"/" + name if prefix else name


def _text(field: bytes) -> bytes:
    return field.partition(b"\0")[0]


def _check(head: bytes) -> None:
    """The sum of its bytes, with its own place as spaces: what other files do not have by chance."""
    if sum(head[:148]) + sum(head[156:]) + 8 * ord(" ") != _number(head[148:156]):
        raise TarError("no header of a tar archive")


def _number(field: bytes) -> int:
    if field[0] & 0x80:  # GNU: as bytes, for what is too large for digits
        return int.from_bytes(field[1:], "big")
    return _decimal(field.strip(b" \0") or b"0", 8)


def _decimal(text: bytes, base: int = 10) -> int:
    if not text.isdigit() or len(text) > 20:
        raise TarError("a number that is none")
    try:
        return int(text, base)
    except ValueError as error:
        raise TarError("a number that is none") from error


def _attributes(text: bytes) -> dict[bytes, bytes]:
    """POSIX: lines of `length name=value`, where a value may have line ends of its own."""
    found, at = {}, 0
    while at < len(text):
        digits = text[at : at + 20].partition(b" ")[0]
        end = at + _decimal(digits)
        if not at + len(digits) < end <= len(text):
            raise TarError("an attribute that is longer than its header")
        name, _, value = text[at + len(digits) + 1 : end - 1].partition(b"=")
        found[name] = value
        at = end
    return found


def _padded(stream: Stream, length: int, most: int) -> bytes:
    if length > most:
        raise TarError("a header that is too long")
    return _exactly(stream, length + -length % BLOCK)[:length]


def _exactly(stream: Stream, length: int, *, or_end: bool = False) -> bytes:
    found = b""
    while len(found) < length and (piece := stream.read(length - len(found))):
        found += piece
    if len(found) < length and not (or_end and not found):
        raise TarError("it ends too early")
    return found
