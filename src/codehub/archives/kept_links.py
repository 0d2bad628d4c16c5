"""Files of an archive that later names are given to by number, while it is unpacked. `unpack` holds one `KeptLinks`.

A file that lies deep (see `naming`) could only be reached again by going all the way down to it, once for each of its
names. So each has one more name for the time being, its number, in a folder of its own at the top of what is unpacked.
If unpacking is interrupted, the folder stays; so does everything else, and the caller discards it all.
"""

import contextlib
import errno
import os

from codehub.archives.model import ArchiveCorruptedError
from codehub.archives.walk import DIRECTORY_FLAGS


class KeptLinks:
    def __init__(self, root: int) -> None:
        self._root = root
        # An archive that has a file of this name could only guess it.
        self._name = f".codehub-links-{os.urandom(16).hex()}"
        self._fd = -1
        self._count = 0

    def keep(self, directory: int, name: bytes, number: int) -> None:
        """Numbers come in order: then none comes twice, and all are known at the end."""
        if number != self._count:
            raise ArchiveCorruptedError("a file with several names has a number that does not follow the one before")
        if self._fd < 0:
            os.mkdir(self._name, 0o700, dir_fd=self._root)
            self._fd = os.open(self._name, DIRECTORY_FLAGS, dir_fd=self._root)
        os.link(name, str(number), src_dir_fd=directory, dst_dir_fd=self._fd, follow_symlinks=False)
        self._count += 1

    def link(self, number: int, directory: int, name: bytes) -> None:
        if number >= self._count:
            raise ArchiveCorruptedError("a hard link leads to a file that has not come yet")
        try:
            os.link(str(number), name, src_dir_fd=self._fd, dst_dir_fd=directory, follow_symlinks=False)
        except OSError as e:
            if e.errno != errno.EMLINK:
                raise
            # It has as many names as a file can have, ours among them: this is the last one, and takes its place.
            os.rename(str(number), name, src_dir_fd=self._fd, dst_dir_fd=directory)

    def remove(self) -> None:
        """When everything has its names."""
        if self._fd < 0:
            return
        for number in range(self._count):
            with contextlib.suppress(FileNotFoundError):
                os.unlink(str(number), dir_fd=self._fd)
        os.rmdir(self._name, dir_fd=self._root)

    def close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
        os.close(self._root)
