"""The two files that hold a workspace's log, of which one is old: written by the shepherd, read by `runtimes.logs`."""

import contextlib
import os

CURRENT, PREVIOUS = "current", "previous"


class LogFiles:
    """Appends within a bound: when the current file has half of it, it becomes the previous one."""

    def __init__(self, folder: str, max_bytes: int) -> None:
        self._folder = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        self._half = max_bytes // 2
        self._open()

    def _open(self) -> None:
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW
        self._file = os.open(CURRENT, flags, 0o640, dir_fd=self._folder)
        self._size = os.fstat(self._file).st_size

    def write(self, data: bytes) -> None:
        """Never fails: on a full disk a line of log is worth less than the IDE that waits to write it."""
        with contextlib.suppress(OSError):
            if self._size + len(data) > self._half and self._size:
                os.close(self._file)
                os.replace(CURRENT, PREVIOUS, src_dir_fd=self._folder, dst_dir_fd=self._folder)
                self._open()
            for start in range(0, len(data), self._half):
                os.write(self._file, data[start : start + self._half])
            self._size += len(data)
