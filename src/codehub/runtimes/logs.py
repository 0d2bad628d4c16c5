"""Reading a workspace's log: its end, and what comes. The shepherd writes it (`shepherd.log_files`)."""

import os
import pathlib
from collections.abc import AsyncIterator

from codehub.clock import Clock
from codehub.runtimes.shepherd.log_files import CURRENT, PREVIOUS

POLL_SECONDS = 0.2
PIECE = 1 << 16


def tail(folder: pathlib.Path, size: int) -> bytes:
    """The last bytes of both files together."""
    current = _end_of(folder / CURRENT, size)
    return _end_of(folder / PREVIOUS, size - len(current)) + current if len(current) < size else current


def _end_of(path: pathlib.Path, size: int) -> bytes:
    try:
        with path.open("rb") as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - size))
            return file.read(size)
    except FileNotFoundError:
        return b""


async def follow(folder: pathlib.Path, clock: Clock, tail_bytes: int) -> AsyncIterator[bytes]:
    """The end, then everything new, for ever. Reads on in a file that was rotated away before it opens the next."""
    current = _Reader(folder, tail_bytes)
    if first := current.beginning():
        yield first
    while True:
        if piece := current.read():
            yield piece
        else:
            await clock.sleep(POLL_SECONDS)


class _Reader:
    def __init__(self, folder: pathlib.Path, tail_bytes: int) -> None:
        self._folder = folder
        self._tail = tail_bytes
        self._file: int | None = None

    def beginning(self) -> bytes:
        self._open()
        if self._file is None:
            return b""
        size = os.fstat(self._file).st_size
        os.lseek(self._file, max(0, size - self._tail), os.SEEK_SET)
        older = _end_of(self._folder / PREVIOUS, self._tail - size) if size < self._tail else b""
        return older + os.read(self._file, self._tail)

    def read(self) -> bytes:
        if self._file is None:
            self._open()
        if self._file is None:
            return b""
        if piece := os.read(self._file, PIECE):
            return piece
        if not self._is_current():
            os.close(self._file)
            self._open()
        return b""

    def _open(self) -> None:
        try:
            self._file = os.open(self._folder / CURRENT, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
        except FileNotFoundError:
            self._file = None

    def _is_current(self) -> bool:
        try:
            named = (self._folder / CURRENT).stat().st_ino
        except FileNotFoundError:
            return True
        return self._file is None or named == os.fstat(self._file).st_ino

    def __del__(self) -> None:
        if self._file is not None:
            os.close(self._file)
