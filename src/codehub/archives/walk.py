"""Going down and up a directory tree by descriptors. `pack` and `unpack` hold one `Descent` each.

Every step opens one component below an open directory and never follows a link, so no path, however long, and no
link, whatever it says, leads elsewhere. Only the last few levels stay open: a tree may be deeper than a process may
have files. Above them one goes up by `..`, and looks whether that is where one came from.
"""

import os
from collections import deque

DIRECTORY_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
KEEP_OPEN = 64


class MovedError(Exception):
    """The tree was rearranged under our feet."""


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
        status = os.fstat(self.fd)
        self._above.append((status.st_dev, status.st_ino))
        self._open.append(self.fd)
        if len(self._open) > self._keep_open:
            os.close(self._open.popleft())
        self.fd = fd

    def leave(self) -> None:
        expected = self._above.pop()
        child = self.fd
        if self._open:
            self.fd = self._open.pop()
        else:
            self.fd = os.open("..", DIRECTORY_FLAGS, dir_fd=child)
            status = os.fstat(self.fd)
            if (status.st_dev, status.st_ino) != expected:
                raise MovedError
        os.close(child)

    def open_root(self) -> int:
        """The directory where it all began, once more; the caller closes it."""
        return os.dup(self._root)

    def close(self) -> None:
        for fd in (self.fd, self._root, *self._open):
            os.close(fd)
