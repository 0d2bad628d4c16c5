"""Reading a workspace's log: its end, and what comes. The shepherd writes it (`shepherd.log_files`).

In a pod the folder is the IDE's as well, and who reads has files that the IDE may not see: only what is a file there is
read, never what a link leads to, and nothing that could be waited for.
"""

import errno
import os
import pathlib
import stat
from collections.abc import AsyncIterator

from codehub.clock import Clock
from codehub.runtimes.shepherd.log_files import CURRENT, PREVIOUS

POLL_SECONDS = 0.2
PIECE = 1 << 16


def tail(folder: pathlib.Path, size: int) -> bytes:
    """The last bytes of both files together."""
    current = _end_of(folder / CURRENT, size)
    return _end_of(folder / PREVIOUS, size - len(current)) + current if len(current) < size else current


def _opened(path: pathlib.Path) -> int | None:
    try:
        file = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError as e:
        if e.errno in {errno.ENOENT, errno.ELOOP, errno.ENXIO}:  # nothing, a link, a socket
            return None
        raise
    if stat.S_ISREG(os.fstat(file).st_mode):
        return file
    os.close(file)
    return None


def _end_of(path: pathlib.Path, size: int) -> bytes:
    if (descriptor := _opened(path)) is None:
        return b""
    with os.fdopen(descriptor, "rb") as file:
        file.seek(max(0, os.fstat(descriptor).st_size - size))
        return file.read(size)


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
        self._file = _opened(self._folder / CURRENT)

    def _is_current(self) -> bool:
        try:
            named = (self._folder / CURRENT).lstat().st_ino
        except FileNotFoundError:
            return True
        return self._file is None or named == os.fstat(self._file).st_ino

    def __del__(self) -> None:
        if self._file is not None:
            os.close(self._file)
