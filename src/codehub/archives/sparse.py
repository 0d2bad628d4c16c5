"""Files with holes: where their data is, and GNU's map of it (pax format 1.0). For `pack` and `unpack`."""

import errno
import os
from array import array
from collections.abc import Callable, Iterator
from typing import TypeAlias

from codehub.archives.format import BLOCK, padding
from codehub.archives.model import ArchiveCorruptedError

# A map is held in memory, 16 bytes an extent. A file in more pieces is archived with its smallest holes filled.
MAX_EXTENTS = 500_000
_LINES_AT_A_TIME = 10_000

Extents: TypeAlias = "array[int]"  # offset, length, offset, length, …


def extents(fd: int, size: int, most: int = MAX_EXTENTS) -> Extents:
    """Where the file has data, in order."""
    smallest_hole = 1
    while True:
        found = _scan(fd, size, smallest_hole, most)
        if found is not None:
            return found
        smallest_hole = max(4096, smallest_hole * 8)


def _scan(fd: int, size: int, smallest_hole: int, most: int) -> "Extents | None":
    found: Extents = array("q")
    position = 0
    while position < size:
        try:
            start = os.lseek(fd, position, os.SEEK_DATA)
            end = min(os.lseek(fd, start, os.SEEK_HOLE), size)
        except OSError as e:
            if e.errno == errno.ENXIO:  # nothing but a hole is left; or it has just been made shorter
                break
            raise
        if start >= end:
            break
        if found and start - (found[-2] + found[-1]) < smallest_hole:
            found[-1] = end - found[-2]
        else:
            found.extend((start, end - start))
            if len(found) > 2 * most:
                return None
        position = end
    return found


def data_bytes(found: Extents) -> int:
    return sum(found[1::2])


def write_map(found: Extents, size: int) -> bytes:
    """The map as it goes before the data: a count, then offset and length of each piece, one number a line."""
    # GNU tar learns the length of a file that ends with a hole from an empty last piece.
    pieces = found if found and found[-2] + found[-1] == size else found + array("q", (size, 0))
    numbers = memoryview(pieces)
    parts = [b"%d\n" % (len(pieces) // 2)]
    for first in range(0, len(numbers), _LINES_AT_A_TIME):
        lines = numbers[first : first + _LINES_AT_A_TIME]
        parts.append(b"%d\n" * len(lines) % tuple(lines))
    text = b"".join(parts)
    return text + padding(len(text))


def read_map(take: Callable[[int], bytes], real_size: int) -> tuple[Extents, int]:
    """The map, from an archive that may lie; and how many bytes of the entry it took."""
    lines = _numbers(take)
    count = next(lines)[0]
    if count > MAX_EXTENTS + 1:
        raise ArchiveCorruptedError("a sparse file has too many pieces")
    found: Extents = array("q")
    position = used = 0
    for _ in range(count):
        offset, _ = next(lines)
        length, used = next(lines)
        if offset < position or offset + length > real_size:
            raise ArchiveCorruptedError("the pieces of a sparse file overlap or lie outside of it")
        found.extend((offset, length))
        position = offset + length
    return found, used or BLOCK


def _numbers(take: Callable[[int], bytes]) -> Iterator[tuple[int, int]]:
    """Each number of a map with the bytes taken so far."""
    rest, used = b"", 0
    while True:
        *lines, rest = (rest + take(BLOCK)).split(b"\n")
        used += BLOCK
        if len(rest) > BLOCK:
            rest = rest.rstrip(b"\0")
        for line in lines:
            if not line.isdigit() or len(line) > 19:
                raise ArchiveCorruptedError("the map of a sparse file cannot be read")
            yield int(line), used
