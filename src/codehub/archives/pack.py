"""Writes a directory tree as a tar stream. Runs in `worker`, a process of its own; `service` sends the bytes on.

The order is fixed (names sorted, what is not a directory first) and nothing of the moment goes in, so that packing an
unchanged tree again gives the same bytes. For an archive the container is stopped while we read: a file that changes or
vanishes all the same means that the picture is not one moment's, and the whole is tried again later. A download or a
backup may be `live`: then each file is as it was when we came by, and the tar is sound and comes to an end whatever
those in the home do meanwhile; what changed while it was read, or could not be read, is counted and named.

Memory grows with the largest directory, the depth of the tree and the number of files that have several names, not with
bytes; the archive grows with the number of entries, however deep they lie (see `naming`).
"""

import contextlib
import errno
import itertools
import os
import stat
import sys
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field

from codehub.archives import format as tar
from codehub.archives import naming, sparse
from codehub.archives.model import SourceChangedError
from codehub.archives.walk import DIRECTORY_FLAGS, Descent, MovedError

CHUNK = 1024 * 1024
# Names of what was left out that are reported; the rest is only counted.
NAMED_AT_MOST = 100

# Reading must not set access times of 200,000 files; only an owner (or root) may ask for that.
_NO_ATIME = os.O_NOATIME if os.geteuid() == 0 else 0
_FILE_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC | _NO_ATIME
_KEPT_XATTRS = ("user.", "system.posix_acl_")
# Not caused by the home: these fail a live one, too.
_PLATFORM_ERRORS = {errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EIO}
# A process that moves folders to where we have not been yet could keep us busy for ever: more than this is not there.
_ENDLESS_BYTES, _ENDLESS_ENTRIES = 1 << 30, 1_000_000  # beside twice what the whole file system holds
_SPECIAL = {stat.S_IFSOCK: "socket", stat.S_IFIFO: "pipe", stat.S_IFCHR: "device", stat.S_IFBLK: "device"}

_ENCODING = sys.getfilesystemencoding()  # os.fsencode does the same, three times as slowly

Write = Callable[[bytes], object]


@dataclass
class Packed:
    bytes: int = 0
    files: int = 0
    left_out_count: int = 0
    left_out: list[str] = field(default_factory=list)
    moved_count: int = 0  # what changed, vanished or could not be read while it was packed; live only
    moved: list[str] = field(default_factory=list)


class OutputError(Exception):
    """What we write cannot be taken any more. Not an OSError: those are the home's."""

    def __init__(self, cause: OSError) -> None:
        super().__init__(str(cause))
        self.cause = cause


@dataclass(slots=True)
class _Level:
    """A directory on the way down. There may be a hundred thousand."""

    name: bytes
    before: tuple[int, int]
    prefix: naming.Prefix
    subdirectories: list[bytes]  # still to visit, last first
    original_mode: int | None  # what the mode was before we gave ourselves access


class Packer:
    """One walk over a tree; `done` may be read from another thread for progress."""

    def __init__(self, write: Write, *, live: bool = False) -> None:
        self.done = Packed()
        self._write = write
        self._live = live
        self._buffer: list[bytes] = []
        self._buffered = 0
        self._sent = 0
        self._aliases = naming.Aliases()
        self._first_names = naming.FirstNames()
        self._prefix = naming.Prefix()  # of the directory whose files are being written
        self._most = (0, 0)  # bytes and entries that can be there

    def run(self, root: int, original_mode: int | None = None) -> Packed:
        """Pack everything below an open directory, which is closed; `open_home` says what its mode was."""
        descent, kept = Descent(root), os.dup(root)
        self._most = _most(root)
        try:
            self._walk(descent, original_mode)
        except (FileNotFoundError, NotADirectoryError, MovedError) as e:
            raise SourceChangedError("a file vanished while it was archived") from e
        finally:
            descent.close()
            if original_mode is not None:
                os.fchmod(kept, original_mode)
            os.close(kept)
        self._emit(tar.END)
        self._flush()
        return self.done

    def _walk(self, descent: Descent, original_mode: int | None) -> None:
        levels = [self._open_level(descent, b"", naming.Prefix(), original_mode)]
        try:
            self._walk_on(descent, levels)
        except BaseException:
            _close_again(descent, levels)
            raise

    def _walk_on(self, descent: Descent, levels: list[_Level]) -> None:
        while levels:
            level = levels[-1]
            if level.subdirectories and self._live and self._is_endless():
                self._note_moved(level.prefix.path(), "has no end")
                level.subdirectories.clear()
            if level.subdirectories:
                self._go_down(descent, levels, level.subdirectories.pop())
                continue
            if level.before != _moment(os.fstat(descent.fd)):
                self._changed(level.prefix.path(), "changed")
            if level.original_mode is not None:
                os.fchmod(descent.fd, level.original_mode)
            levels.pop()
            if levels:
                self._go_up(descent, levels)

    def _go_down(self, descent: Descent, levels: list[_Level], name: bytes) -> None:
        prefix = naming.Prefix(name + b"/", levels[-1].prefix)
        try:
            fd, original_mode = _open(name, descent.fd, DIRECTORY_FLAGS | _NO_ATIME)
        except OSError as e:
            self._skip(e, prefix.path())
            return
        descent.enter(fd)
        try:
            levels.append(self._open_level(descent, name, prefix, original_mode))
        except BaseException as e:  # removed since it was opened; it has too many extended attributes; or it is over
            if original_mode is not None:
                os.fchmod(fd, original_mode)
            self._go_up(descent, levels)
            if not isinstance(e, OSError | ValueError):
                raise
            self._skip(e, prefix.path())

    def _go_up(self, descent: Descent, levels: list[_Level]) -> None:
        """To the last of the levels. Where the tree we are in was moved: to the last that is in its place."""
        try:
            descent.leave()
        except (MovedError, OSError):
            if not self._live:
                raise
            depth = descent.find_back([level.name for level in levels[1:]])
            for lost in levels[depth + 1 :]:
                self._note_moved(lost.prefix.path(), "was moved")
            del levels[depth + 1 :]

    def _open_level(self, descent: Descent, name: bytes, prefix: naming.Prefix, original_mode: int | None) -> _Level:
        """Write a directory and everything in it that is not one."""
        fd, start = descent.fd, prefix.path()
        status = os.fstat(fd)
        mode = stat.S_IMODE(status.st_mode) if original_mode is None else original_mode
        entry = _entry(start or b"./", tar.DIRECTORY, status)
        entry.mode = mode
        entry.xattrs = _kept(fd, os.listxattr(fd))
        subdirectories, names, special = _listing(fd)
        if naming.needs_alias(start, itertools.chain(names, subdirectories)):
            entry.alias = start = self._aliases.following(descent)
            prefix = naming.Prefix(start)
        self._emit(tar.describe(entry))
        self.done.files += 1
        self._prefix = prefix
        for item in names:
            path = start + item
            try:
                if item in special:
                    self._other(fd, item, path)
                else:
                    self._file(fd, item, path)
            except (OSError, ValueError) as e:
                self._skip(e, path)
        return _Level(name, _moment(status), prefix, subdirectories, original_mode)

    def _file(self, directory: int, name: bytes, path: bytes) -> None:
        try:
            fd, original_mode = os.open(name, _FILE_FLAGS, dir_fd=directory), None
        except PermissionError:
            fd, original_mode = _open(name, directory, _FILE_FLAGS)
        try:
            status = os.fstat(fd)
            if status.st_nlink > 1 and self._linked(status, path):
                return
            if self._live and not stat.S_ISREG(status.st_mode):
                self._note_moved(path, "became something else")
                return
            size = status.st_size
            names = os.listxattr(fd)
            special = names or size > CHUNK or status.st_blocks * 512 < size or original_mode is not None
            if special or self._first_names.number(status, path) >= 0:
                self._special_file(fd, path, status, _kept(fd, names), original_mode)
                return
            content = os.read(fd, size + 1)
            after = os.fstat(fd)
        finally:
            if original_mode is not None:
                os.fchmod(fd, original_mode)
            os.close(fd)
        if len(content) != size or after.st_mtime_ns != status.st_mtime_ns or after.st_size != size:
            self._changed(path, "changed")
            size = len(content)
        mtime = status.st_mtime_ns
        self._buffer.append(tar.describe_file(path, status.st_mode & 0o7777, status.st_uid, status.st_gid, size, mtime))
        self._buffer.append(content)
        self._buffer.append(tar.ZEROS[: -size % 512])
        self._buffered += size + 1536
        self._written(status, path)
        self.done.bytes += size
        if self._buffered >= CHUNK:
            self._flush()

    def _special_file(
        self, fd: int, path: bytes, before: os.stat_result, xattrs: dict[str, bytes], mode: int | None
    ) -> None:
        """One with attributes, with holes that stay holes, too large to hold, closed to its owner, or with a number."""
        entry = _entry(path, tar.FILE, before)
        entry.size, entry.xattrs = before.st_size, xattrs
        if mode is not None:
            entry.mode = mode
        entry.link = self._first_names.number(before, path)
        pieces, written_map = _holes(fd, entry)
        self._emit(tar.describe(entry) + written_map)
        for index in range(0, len(pieces), 2):
            os.lseek(fd, pieces[index], os.SEEK_SET)
            self._copy(fd, pieces[index + 1], path)
        self._emit(tar.padding(entry.size))
        self._written(before, path)
        if _moment(before) != _moment(os.fstat(fd)):
            self._changed(path, "changed")

    def _copy(self, fd: int, size: int, path: bytes) -> None:
        shorter = False
        while size:
            content = self._read(fd, min(size, CHUNK))
            if not content:
                if not self._live:
                    raise SourceChangedError(f"{_shown(path)!r} became shorter while it was archived")
                shorter = True
                content = bytes(min(size, CHUNK))  # what was announced has to follow
            self._emit(content)
            self.done.bytes += len(content)
            size -= len(content)
        if shorter:
            self._note_moved(path, "became shorter")

    def _read(self, fd: int, size: int) -> bytes:
        """In the middle of a file: what cannot be read of a live one is like what is not there."""
        try:
            return os.read(fd, size)
        except OSError as e:
            if not self._live or e.errno in _PLATFORM_ERRORS:
                raise
            return b""

    def _other(self, directory: int, name: bytes, path: bytes) -> None:
        status = os.stat(name, dir_fd=directory, follow_symlinks=False)
        kind = stat.S_IFMT(status.st_mode)
        if kind in _SPECIAL:
            self.done.left_out_count += 1
            if len(self.done.left_out) < NAMED_AT_MOST:
                self.done.left_out.append(f"{_SPECIAL[kind]} {_shown(path)}")
        elif kind != stat.S_IFLNK:
            self._changed(path, "became something else")
        elif status.st_nlink == 1 or not self._linked(status, path):
            entry = _entry(path, tar.SYMLINK, status)
            entry.target = os.readlink(name, dir_fd=directory)
            entry.link = self._first_names.number(status, path)
            self._emit(tar.describe(entry))
            self._written(status, path)

    def _skip(self, error: OSError | ValueError, path: bytes) -> None:
        """Nothing of it has been written yet. Whatever stood in the way, it is what they made of their home."""
        if not self._live or getattr(error, "errno", None) in _PLATFORM_ERRORS:
            raise error
        gone = isinstance(error, FileNotFoundError | NotADirectoryError)
        self._note_moved(path, "vanished" if gone else (error.strerror if isinstance(error, OSError) else str(error)))

    def _changed(self, path: bytes, how: str) -> None:
        if not self._live:
            raise SourceChangedError(f"{_shown(path)!r} {how} while it was archived")
        self._note_moved(path, how)

    def _note_moved(self, path: bytes, how: str | None) -> None:
        self.done.moved_count += 1
        if len(self.done.moved) < NAMED_AT_MOST:
            self.done.moved.append(f"{_shown(path or b'./')}: {how}")

    def _is_endless(self) -> bool:
        return self._sent > self._most[0] or self.done.files > self._most[1]

    def _linked(self, status: os.stat_result, path: bytes) -> bool:
        """Write a further name of a file that has gone in already."""
        first = self._first_names.find(status)
        if first is None:
            return False
        entry = _entry(path, tar.HARD_LINK, status)
        entry.target, entry.link = first.prefix.path() + first.name, first.number
        self._emit(tar.describe(entry))
        self.done.files += 1
        return True

    def _written(self, status: os.stat_result, path: bytes) -> None:
        """Only what is in the archive can have further names in it."""
        self._first_names.add(status, self._prefix, path)
        self.done.files += 1

    def _emit(self, content: bytes) -> None:
        self._buffer.append(content)
        self._buffered += len(content)
        if self._buffered >= CHUNK:
            self._flush()

    def _flush(self) -> None:
        content = b"".join(self._buffer)
        try:
            self._write(content)
        except OSError as e:
            raise OutputError(e) from e
        self._sent += len(content)
        self._buffer.clear()
        self._buffered = 0


def _close_again(descent: Descent, levels: list[_Level]) -> None:
    """What was opened on the way down gets its mode back, so that the next attempt finds it as its owner left it."""
    with contextlib.suppress(OSError, MovedError):
        while levels:
            if (mode := levels.pop().original_mode) is not None:
                os.fchmod(descent.fd, mode)
            if levels:
                descent.leave()


def _listing(fd: int) -> tuple[list[bytes], list[bytes], set[bytes]]:
    """Directories (last first), everything else, and which of that are no files.

    Only names, and as bytes: there may be a million, and a name that is no text takes twice as much as one.
    """
    directories, names, special = [], [], set()
    os.lseek(fd, 0, os.SEEK_SET)  # what was read from it before must not be missing
    with os.scandir(fd) as found:
        for item in found:
            name = item.name.encode(_ENCODING, "surrogateescape")
            if item.is_dir(follow_symlinks=False):
                directories.append(name)
                continue
            names.append(name)
            if not item.is_file(follow_symlinks=False):
                special.add(name)
    names.sort()
    directories.sort(reverse=True)
    # What is renamed or replaced while it is listed may come twice, and can be in an archive only once.
    return _once(directories), _once(names, set(directories)), special


def _once(names: list[bytes], besides: Collection[bytes] = ()) -> list[bytes]:
    return [name for name, _ in itertools.groupby(names) if name not in besides]


def _most(root: int) -> tuple[int, int]:
    found = os.fstatvfs(root)
    used = (found.f_blocks - found.f_bfree) * found.f_frsize, found.f_files - found.f_ffree
    return 2 * used[0] + _ENDLESS_BYTES, 2 * max(used[1], 0) + _ENDLESS_ENTRIES


def _moment(status: os.stat_result) -> tuple[int, int]:
    """What differs when something has been changed."""
    return status.st_mtime_ns, status.st_size


def _shown(path: bytes) -> str:
    """For people's eyes, and terminals: names are chosen by those whose home it is."""
    text = path.decode("utf-8", "backslashreplace")[-200:]
    return "".join(sign if sign.isprintable() else f"\\x{ord(sign):02x}" for sign in text)


def _entry(path: bytes, kind: bytes, status: os.stat_result) -> tar.Entry:
    """All but a regular file."""
    mode = stat.S_IMODE(status.st_mode)
    return tar.Entry(path, kind, mode, status.st_uid, status.st_gid, 0, status.st_mtime_ns)


def _holes(fd: int, entry: tar.Entry) -> tuple[Sequence[int], bytes]:
    """Where the file has data, and the map to write before it; no map for a file that is data throughout."""
    size = entry.size
    found = sparse.extents(fd, size)
    used = sparse.data_bytes(found)
    if used == size:
        return (0, size), b""
    written_map = sparse.write_map(found, size)
    entry.real_size, entry.size = size, len(written_map) + used
    return found, written_map


def open_home(path: str) -> tuple[int, int | None]:
    """A home, also one that is closed to its own owner, whom we may be: for `Packer.run`."""
    return _open(os.fsencode(path), None, DIRECTORY_FLAGS)


def _open(name: bytes, directory: int | None, flags: int) -> tuple[int, int | None]:
    """Open what may be closed to its own owner, whom we may be: (descriptor, the mode to give back)."""
    try:
        fd = os.open(name, flags, dir_fd=directory)
    except PermissionError:
        status = os.stat(name, dir_fd=directory, follow_symlinks=False)
        if status.st_uid != os.geteuid() or stat.S_ISLNK(status.st_mode):
            raise
        mode = stat.S_IMODE(status.st_mode)
        os.chmod(name, mode | (0o700 if flags & os.O_DIRECTORY else 0o400), dir_fd=directory)
        return os.open(name, flags, dir_fd=directory), mode
    return fd, _make_enterable(fd) if flags & os.O_DIRECTORY else None


def _make_enterable(fd: int) -> int | None:
    """A directory may be listed and yet not entered (0600): the mode to give back, where that was changed."""
    status, ours = os.fstat(fd), os.geteuid()
    if ours == 0 or status.st_uid != ours or status.st_mode & stat.S_IXUSR:
        return None
    mode = stat.S_IMODE(status.st_mode)
    os.fchmod(fd, mode | 0o700)
    return mode


def _kept(fd: int, names: list[str]) -> dict[str, bytes]:
    """What a person can set; privileges (security.*) and an administrator's notes (trusted.*) are not theirs."""
    return {name: os.getxattr(fd, name) for name in sorted(names) if name.startswith(_KEPT_XATTRS)}
