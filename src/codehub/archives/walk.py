"""Going down and up a directory tree by descriptors. `pack` and `unpack` hold one `Descent` each.

Every step opens one component below an open directory and never follows a link, so no path, however long, and no
link, whatever it says, leads elsewhere. Only the last few levels stay open: a tree may be deeper than a process may
have files. Above them one goes up by `..`, and looks whether that is where one came from.
"""

import os
from collections import deque
from collections.abc import Sequence

DIRECTORY_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
KEEP_OPEN = 64


class MovedError(Exception):
    """The tree was rearranged while we were in it."""


class Descent:
    """Where we are in a tree: the current directory's descriptor, and the way back up."""

    def __init__(self, root: int, keep_open: int = KEEP_OPEN) -> None:
        self.fd = root
        self._root = os.dup(root)
        self._above: list[tuple[int, int]] = []  # (device, inode) of every directory above the current one
        self._open: deque[int] = deque()  # descriptors of the nearest of them
        self._keep_open = keep_open

    def enter(self, fd: int) -> None:
        """Make a directory, opened by the caller below the current one, the current one."""
        self._above.append(_identity(self.fd))
        self._open.append(self.fd)
        if len(self._open) > self._keep_open:
            os.close(self._open.popleft())
        self.fd = fd

    def leave(self) -> None:
        """Up by one. Where that fails, we stay: see `find_back`."""
        child = self.fd
        if self._open:
            self.fd = self._open.pop()
        else:
            above = os.open("..", DIRECTORY_FLAGS, dir_fd=child)
            if _identity(above) != self._above[-1]:
                os.close(above)
                raise MovedError
            self.fd = above
        self._above.pop()
        os.close(child)

    def find_back(self, names: Sequence[bytes]) -> int:
        """Down from the root again by the names of the way that led to the level above the current one.

        As far as they lead where they did; returns how many that is. There we are afterwards.
        """
        fd, depth = os.dup(self._root), 0
        for name, expected in zip(names, self._above[1:], strict=False):
            try:
                below = os.open(name, DIRECTORY_FLAGS, dir_fd=fd)
            except OSError:
                break
            if _identity(below) != expected:
                os.close(below)
                break
            os.close(fd)
            fd, depth = below, depth + 1
        for left in (self.fd, *self._open):
            os.close(left)
        self._open.clear()
        self.fd, self._above = fd, self._above[:depth]
        return depth

    def open_root(self) -> int:
        """The directory where it all began, once more; the caller closes it."""
        return os.dup(self._root)

    def close(self) -> None:
        for fd in (self.fd, self._root, *self._open):
            os.close(fd)


def _identity(fd: int) -> tuple[int, int]:
    status = os.fstat(fd)
    return status.st_dev, status.st_ino
