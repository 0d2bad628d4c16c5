"""Large files straight to the disk and back, past the kernel's memory of them, where the file system can do that.

For `local`: an archive is written once and read once. Kept in memory it would push out what people work with, and cost
a third of the processor's time; and what is read back comes from the disk, as it should. Where the file system cannot,
everything goes the usual way.
"""

import errno
import fcntl
import mmap
import os

BLOCK = 4 * 1024 * 1024  # sizes, places and buffers have to be a multiple of a disk's sector, and this is


def _go_direct(fd: int, *, wanted: bool) -> None:
    flags = fcntl.fcntl(fd, fcntl.F_GETFL)
    fcntl.fcntl(fd, fcntl.F_SETFL, flags | os.O_DIRECT if wanted else flags & ~os.O_DIRECT)


class Writing:
    """A file that is written from its beginning to its end, into a descriptor that is the caller's."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._buffer = mmap.mmap(-1, BLOCK)  # begins where a page does
        self._filled = 0
        self._direct: bool | None = None  # None: not tried yet

    def write(self, chunk: bytes | memoryview) -> None:
        rest = memoryview(chunk)
        while rest:
            part = rest[: BLOCK - self._filled]
            self._buffer[self._filled : self._filled + len(part)] = part
            self._filled += len(part)
            rest = rest[len(part) :]
            if self._filled == BLOCK:
                self._write_out()

    def settle(self) -> None:
        """Everything to disk, and out of memory."""
        self._stop_direct()  # the end is no multiple of anything
        self._write_out()
        self._buffer.close()
        os.fsync(self._fd)
        os.posix_fadvise(self._fd, 0, 0, os.POSIX_FADV_DONTNEED)

    def _write_out(self) -> None:
        if self._direct is None:
            self._try_direct()
        with memoryview(self._buffer) as whole:
            written = 0
            while written < self._filled:
                written += self._write_some(whole[written : self._filled])
        self._filled = 0

    def _write_some(self, part: memoryview) -> int:
        try:
            return os.write(self._fd, part)
        except OSError as e:
            if e.errno != errno.EINVAL or not self._direct:
                raise
        self._stop_direct()  # it took the flag and will not have it; or a write was cut short at an odd place
        return os.write(self._fd, part)

    def _try_direct(self) -> None:
        self._direct = True
        try:
            _go_direct(self._fd, wanted=True)
        except OSError:
            self._direct = False

    def _stop_direct(self) -> None:
        if self._direct:
            _go_direct(self._fd, wanted=False)
        self._direct = False


class Reading:
    """A file that is read in blocks, from its beginning to its end: one of them while the one before is worked on."""

    def __init__(self, path: str) -> None:
        self._fd = _open(path)
        self._buffers = [memoryview(mmap.mmap(-1, BLOCK)) for _ in range(2)]

    def read(self, start: int, size: int) -> memoryview:
        """All of that, in the buffer of the block before the last; nothing, when the file is shorter."""
        buffer = self._buffers[start // BLOCK % len(self._buffers)]
        got = 0
        while got < size:
            more = self._read_some(buffer[got:], start + got)
            if not more:
                return buffer[:0]
            got += more
        return buffer[:size]

    def _read_some(self, into: memoryview, start: int) -> int:
        try:
            return os.preadv(self._fd, [into], start)
        except OSError as e:
            if e.errno != errno.EINVAL:
                raise
        _go_direct(self._fd, wanted=False)  # it took the flag and will not have it; or a read was cut at an odd place
        return os.preadv(self._fd, [into], start)

    def close(self) -> None:
        os.close(self._fd)


def _open(path: str) -> int:
    try:
        return os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_DIRECT)
    except OSError as e:
        if e.errno != errno.EINVAL:
            raise
    return os.open(path, os.O_RDONLY | os.O_CLOEXEC)
