"""Archives on a disk go past the kernel's memory: whatever their size, what is read is what was written."""

import errno
import fcntl
import os
import random
import tempfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

from codehub.archives import direct
from codehub.archives.model import ObjectStoreError
from codehub.archives.objects import ObjectStore, open_store

BLOCK, KEY = direct.BLOCK, "w/op/1/home.tar.zst"
SIZES = [0, 1, 4095, 4096, BLOCK - 1, BLOCK, BLOCK + 1, 2 * BLOCK, 3 * BLOCK + 12_345]


@pytest.fixture(params=["/var/tmp", "/dev/shm"], ids=["on a disk", "in memory"])
def store(request: pytest.FixtureRequest) -> Iterator[ObjectStore]:
    with tempfile.TemporaryDirectory(dir=request.param) as folder:
        yield open_store(f"file://{folder}")


def some(size: int) -> bytes:
    return random.Random(size).randbytes(size)


async def in_pieces(content: bytes) -> AsyncIterator[memoryview]:
    """Each of them good until the next, as a worker's are."""
    buffer, position, dice = bytearray(1 << 20), 0, random.Random(7)
    while position < len(content):
        piece = content[position : position + dice.randint(1, len(buffer))]
        buffer[: len(piece)] = piece
        position += len(piece)
        yield memoryview(buffer)[: len(piece)]


async def read(store: ObjectStore) -> bytes:
    return b"".join([bytes(piece) async for piece in store.stream(KEY)])


@pytest.mark.parametrize("size", SIZES)
async def test_what_is_read_is_what_was_written(store: ObjectStore, size: int) -> None:
    content = some(size)
    await store.put_stream(KEY, in_pieces(content))
    assert await read(store) == content


@pytest.mark.parametrize("refused", ["open", "fcntl", "write", "preadv"])
async def test_a_file_system_that_cannot_gets_it_the_usual_way(
    store: ObjectStore, monkeypatch: pytest.MonkeyPatch, refused: str
) -> None:
    """Some say so when a file is opened, some when the flag is set, and some not before they should."""
    where = fcntl if refused == "fcntl" else os
    real, times = getattr(where, refused), 0

    def refuse(first: Any, *rest: object, **named: object) -> object:
        nonlocal times
        flags = rest[-1] if refused in {"open", "fcntl"} else fcntl.fcntl(first, fcntl.F_GETFL)
        if isinstance(flags, int) and flags & os.O_DIRECT and not (refused == "fcntl" and rest[0] != fcntl.F_SETFL):
            times += 1
            raise OSError(errno.EINVAL, "cannot")
        return real(first, *rest, **named)

    monkeypatch.setattr(where, refused, refuse)
    content = some(2 * BLOCK + 5)
    await store.put_stream(KEY, in_pieces(content))
    assert await read(store) == content
    assert times  # twice, where two blocks are read at a time


async def test_one_that_is_cut_off_while_it_is_read_is_not_taken_for_whole(store: ObjectStore) -> None:
    await store.put_stream(KEY, in_pieces(some(3 * BLOCK)))
    pieces = store.stream(KEY)
    assert len(await anext(pieces)) == BLOCK
    os.truncate(Path(store._root, KEY), 2 * BLOCK + 100)  # type: ignore[attr-defined]
    with pytest.raises(ObjectStoreError, match="came short"):
        _ = [piece async for piece in pieces]


async def test_who_stops_reading_leaves_nothing_open(store: ObjectStore) -> None:
    await store.put_stream(KEY, in_pieces(some(3 * BLOCK)))
    pieces = store.stream(KEY)
    await anext(pieces)
    await pieces.aclose()
    open_now = [fd.resolve() for fd in Path("/proc/self/fd").iterdir()]
    assert not any(str(path).endswith(KEY) for path in open_now)
