"""Reads a tar stream into an empty directory. Runs in `worker`, a process of its own; `service` sends it the bytes.

The archive is taken for hostile. Every name is made below the directory we are in, one component at a time, and
nothing is ever opened through a link. The order is the one `pack` writes: a directory, what is in it, then its
neighbours; so an entry lies in the current directory or in one above it, and anything else is refused. That also holds
below an alias (see `naming`), which is nothing but another way to say in which of these directories. A directory gets
its mode and times when it is left, so that neither hinders what goes in.
"""

import errno
import os
from dataclasses import dataclass
from typing import Protocol

from codehub.archives import format as tar
from codehub.archives import naming, sparse
from codehub.archives.kept_links import KeptLinks
from codehub.archives.model import ArchiveCorruptedError, Quota, QuotaExceededError
from codehub.archives.walk import DIRECTORY_FLAGS, Descent, MovedError

_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_AT_ONCE = 64 * 1024
_KEPT_XATTRS = ("user.", "system.posix_acl_")
# How a file system says that a name, a link, a size or a place cannot be. A tree that `pack` saw never gets these here.
_IMPOSSIBLE = {
    errno.EEXIST,
    errno.ELOOP,
    errno.ENOTDIR,
    errno.ENOENT,
    errno.ENAMETOOLONG,
    errno.EINVAL,
    errno.EOVERFLOW,
}

Owner = tuple[int, int]


class Source(Protocol):
    """The tar stream."""

    def take(self, count: int) -> bytes:
        """Exactly so many bytes; raises when there are fewer."""
        ...

    def some(self, most: int) -> memoryview:
        """At least one byte, as many as are at hand."""
        ...


@dataclass
class Unpacked:
    bytes: int = 0
    files: int = 0
    xattrs_lost: int = 0  # the file system has none


@dataclass(slots=True)
class _Level:
    prefix: naming.Prefix
    entry: tar.Entry


class Unpacker:
    """One pass over an archive; `done` may be read from another thread for progress."""

    def __init__(self, source: Source, owner: Owner | None, quota: Quota) -> None:
        self.done = Unpacked()
        self._take = source.take
        self._some = source.some
        self._owner = owner
        self._quota = quota
        self._prefix = b""
        self._levels: list[_Level] = []
        # Numeric owners of the archive need privileges, as do another's.
        self._privileged = os.geteuid() == 0
        self._own = owner is not None or self._privileged
        self._maker: Owner | None = None  # whom new files belong to, when that is known
        self._used = 0  # of the quota
        self._closed_directories: list[tuple[naming.Prefix, int]] = []

    def run(self, root: int) -> Unpacked:
        """Unpack below an open, empty directory, which is closed. There must be no umask: modes are taken as given."""
        status = os.fstat(root)
        if status.st_gid == os.getegid():  # else a directory may hand its group on
            self._maker = (os.geteuid(), os.getegid())
        descent = Descent(root)
        self._kept = KeptLinks(descent.open_root())
        try:
            while (entry := self._next_entry()) is not None:
                self._make(descent, entry)
            self._kept.remove()
            while self._levels:
                self._leave(descent)
            self._restore_closed_modes(descent)
        except (MovedError, ValueError, OverflowError) as e:  # a name with a NUL, an owner beyond all numbers
            raise ArchiveCorruptedError("the archive names what cannot be") from e
        finally:
            self._kept.close()
            descent.close()
        return self.done

    def _next_entry(self) -> tar.Entry | None:
        block = self._take(tar.BLOCK)
        if block == tar.MTIME_HEAD:  # the short way, as for nearly every file
            both = self._take(2 * tar.BLOCK)
            mtime = tar.parse_short_mtime(both)
            entry = tar.parse_head(both[tar.BLOCK :])
            if mtime is None:
                tar.apply_pax(entry, tar.parse_pax(both[:30]))
            else:
                entry.mtime_ns = mtime
            return entry
        if block[156:157] == tar.PAX:
            size = tar.parse_head(block).size
            if size > tar.MAX_PAX_BYTES:
                raise ArchiveCorruptedError("an extended header is too long")
            records = tar.parse_pax(self._take(size))
            self._take(-size % tar.BLOCK)
            entry = tar.parse_head(self._take(tar.BLOCK))
            tar.apply_pax(entry, records)
            return entry
        if block == tar.ZEROS:
            if self._take(tar.BLOCK) != tar.ZEROS:
                raise ArchiveCorruptedError("the archive goes on after its end")
            return None
        return tar.parse_head(block)

    def _make(self, descent: Descent, entry: tar.Entry) -> None:
        self.done.files += 1
        if self.done.files > self._quota.inodes:
            raise QuotaExceededError(f"the archive holds more than {self._quota.inodes} files")
        if not self._levels:
            self._begin(entry)
            return
        name = self._find(descent, entry)
        is_directory = entry.kind == tar.DIRECTORY
        if entry.link >= 0 if is_directory else entry.alias:
            raise ArchiveCorruptedError("the archive says of a file what only a directory can have, or the reverse")
        try:
            if is_directory:
                self._directory(descent, name, entry)
            elif entry.kind in {tar.FILE, tar.SYMLINK}:
                make = self._file if entry.kind == tar.FILE else self._symlink
                make(descent.fd, name, entry)
                if entry.link >= 0:
                    self._kept.keep(descent.fd, name, entry.link)
            elif entry.kind == tar.HARD_LINK:
                self._hard_link(descent, name, entry)
            else:
                raise ArchiveCorruptedError("the archive holds a device, or something that we never write")
        except OSError as e:
            if e.errno in _IMPOSSIBLE:
                raise ArchiveCorruptedError(f"the archive names what cannot be: {e.strerror}") from e
            raise

    def _begin(self, entry: tar.Entry) -> None:
        if entry.name != b"./" or entry.kind != tar.DIRECTORY or entry.size or entry.alias or entry.link >= 0:
            raise ArchiveCorruptedError("the archive does not begin with its own directory")
        self._levels.append(_Level(naming.Prefix(), entry))

    def _find(self, descent: Descent, entry: tar.Entry) -> bytes:
        """Go to the directory that an entry lies in; its last component."""
        path = entry.name
        if entry.kind == tar.DIRECTORY:
            path = path.removesuffix(b"/")
        while not path.startswith(self._prefix):
            self._leave(descent)
        name = path[len(self._prefix) :]
        if not name or name in {b".", b".."} or b"/" in name or b"\0" in name:
            raise ArchiveCorruptedError("the archive names what does not lie in the directory before it")
        return name

    def _leave(self, descent: Descent) -> None:
        left = self._levels.pop()
        entry = left.entry
        self._give(descent.fd, entry)
        self._set_xattrs(descent.fd, entry)
        mode = entry.mode & 0o7777
        closed = mode & 0o700 != 0o700 and not self._privileged
        os.fchmod(descent.fd, mode | 0o700 if closed else mode)
        os.utime(descent.fd, ns=(entry.mtime_ns, entry.mtime_ns))
        if closed and naming.has_alias(self._prefix):  # no path leads there any more, and the way up must be open
            directory = os.dup(descent.fd)
            descent.leave()
            os.fchmod(directory, mode)
            os.close(directory)
        else:
            if closed:
                self._closed_directories.append((left.prefix, mode))
            if self._levels:
                descent.leave()
        if self._levels:
            self._prefix = self._levels[-1].prefix.path()

    def _restore_closed_modes(self, descent: Descent) -> None:
        """Directories closed to their own owner, whom we are: a later hard link may still lead into one.

        They come in the order in which they were left, so what lies inside is closed before what is around it.
        """
        for prefix, mode in self._closed_directories:
            fd = self._open_below_root(descent, prefix.path().split(b"/")[:-1])
            os.fchmod(fd, mode)
            os.close(fd)

    def _directory(self, descent: Descent, name: bytes, entry: tar.Entry) -> None:
        if entry.size:
            raise ArchiveCorruptedError("a directory has content")
        if entry.alias and not naming.is_alias(entry.alias):
            raise ArchiveCorruptedError("a directory has an alias that we never write")
        os.mkdir(name, 0o700, dir_fd=descent.fd)
        descent.enter(os.open(name, DIRECTORY_FLAGS, dir_fd=descent.fd))
        prefix = naming.Prefix(entry.alias or name + b"/", None if entry.alias else self._levels[-1].prefix)
        self._prefix = entry.alias or self._prefix + name + b"/"
        entry.name = b""  # many levels with long names would be much to hold
        self._levels.append(_Level(prefix, entry))

    def _file(self, directory: int, name: bytes, entry: tar.Entry) -> None:
        size = entry.size
        if entry.real_size < 0:
            self._count(size)
        fd = os.open(name, _CREATE, entry.mode & 0o777, dir_fd=directory)
        try:
            if entry.real_size >= 0:
                self._sparse(fd, entry)
            else:
                self._copy(fd, size)
            if size & 511:
                self._take(-size & 511)
            self._give(fd, entry)
            if entry.xattrs:
                os.fchmod(fd, 0o600)  # attributes can only be set where their owner may write
                self._set_xattrs(fd, entry)
            if entry.xattrs or entry.mode & 0o7000:  # a change of owner clears these, and creating does not set them
                os.fchmod(fd, entry.mode & 0o7777)
            os.utime(fd, ns=(entry.mtime_ns, entry.mtime_ns))
        finally:
            os.close(fd)

    def _sparse(self, fd: int, entry: tar.Entry) -> None:
        pieces, used = sparse.read_map(self._take, entry.real_size)
        if used + sparse.data_bytes(pieces) != entry.size:
            raise ArchiveCorruptedError("a sparse file's map and its size do not agree")
        self._count(sparse.data_bytes(pieces))
        os.ftruncate(fd, entry.real_size)
        for index in range(0, len(pieces), 2):
            os.lseek(fd, pieces[index], os.SEEK_SET)
            self._copy(fd, pieces[index + 1])

    def _copy(self, fd: int, size: int) -> None:
        if size <= _AT_ONCE:  # one write, as for nearly every file
            self.done.bytes += size
            if os.write(fd, self._take(size)) != size:
                raise OSError(errno.ENOSPC, "a file could only be written in part")
            return
        while size:
            content = self._some(size)
            size -= len(content)
            self.done.bytes += len(content)
            while content:
                content = content[os.write(fd, content) :]

    def _symlink(self, directory: int, name: bytes, entry: tar.Entry) -> None:
        if entry.size or not entry.target:
            raise ArchiveCorruptedError("a symbolic link has content, or no target")
        self._count(len(entry.target))
        os.symlink(entry.target, name, dir_fd=directory)
        owner = self._owner or (entry.uid, entry.gid)
        if self._own and owner != self._maker:
            os.chown(name, *owner, dir_fd=directory, follow_symlinks=False)
        os.utime(name, ns=(entry.mtime_ns, entry.mtime_ns), dir_fd=directory, follow_symlinks=False)

    def _hard_link(self, descent: Descent, name: bytes, entry: tar.Entry) -> None:
        if entry.size:
            raise ArchiveCorruptedError("a hard link has content")
        if entry.link >= 0:
            self._kept.link(entry.link, descent.fd, name)
            return
        *folders, last = entry.target.split(b"/")
        if not last or any(part in {b"", b".", b".."} for part in (*folders, last)):
            raise ArchiveCorruptedError("a hard link leads out of the archive")
        folder = self._open_below_root(descent, folders)
        try:
            os.link(last, name, src_dir_fd=folder, dst_dir_fd=descent.fd, follow_symlinks=False)
        except PermissionError as e:
            raise ArchiveCorruptedError("a hard link leads to a directory") from e
        finally:
            os.close(folder)

    def _open_below_root(self, descent: Descent, folders: list[bytes]) -> int:
        fd = descent.open_root()
        for folder in folders:
            try:
                below = os.open(folder, DIRECTORY_FLAGS, dir_fd=fd)
            finally:
                os.close(fd)
            fd = below
        return fd

    def _give(self, fd: int, entry: tar.Entry) -> None:
        """What we make is ours at first; mostly it belongs to another user."""
        owner = self._owner or (entry.uid, entry.gid)
        if self._own and owner != self._maker:
            os.fchown(fd, *owner)

    def _set_xattrs(self, fd: int, entry: tar.Entry) -> None:
        for key, value in entry.xattrs.items():
            if not key.startswith(_KEPT_XATTRS):
                raise ArchiveCorruptedError("the archive holds an extended attribute that we never write")
            self._count(len(value))
            try:
                os.setxattr(fd, key, value)
            except OSError as e:
                if e.errno != errno.ENOTSUP:
                    raise
                self.done.xattrs_lost += 1

    def _count(self, size: int) -> None:
        self._used += size
        if self._used > self._quota.bytes:
            raise QuotaExceededError(f"the archive holds more than {self._quota.bytes} bytes")
