"""Write files into a home as its user, wherever its owner's links may point. Started by `inside`.

On standard input, as for `enter`: ten digits, JSON, then the files' contents one after the other. Folders are walked
one by one without following links, and a file is written aside and renamed, so that a link in its place is replaced,
not followed. As root, the home is opened first and the rights given up before anything in it is touched.

A file that comes with a list of digests is delivered: what stands in its place is replaced only if it has one of them,
which nobody but the platform wrote. Else it is a person's, and stays. A home can be made so that looking takes long
(one large file under many names), so only what may be ours by its size is read, and not more than `MOST_READ` in all.
What stands in the way of a folder is found before anything is read or written.
"""

# Plain names and descriptors instead of paths: everything is relative to a folder that is held open.

import contextlib
import errno
import hashlib
import json
import os
import stat
from collections.abc import Iterator
from typing import Any

from codehub.runtimes.shepherd.enter import read_exactly
from codehub.system import kernel

FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# Without waiting for the other end of a pipe that has the name of a file.
LOOK = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
OTHER = ""  # what is there, and not one of ours: a link, a folder, a pipe, something large or closed
MOST_NAMES = 4  # its own, and three beside it
LARGEST = 256 << 10  # of what was delivered before: a session with all its files has no more bytes
MOST_READ = 16 << 20  # to find out what is ours
WRITTEN, UNCHANGED, BESIDE = "written", "unchanged", "beside"


def main(arguments: list[str]) -> None:
    report = int(arguments[0])
    try:
        wanted = json.loads(read_exactly(int(read_exactly(10))))
        home = os.open(wanted["home"], FOLDER)
        kernel.give_up_rights(wanted["uid"], wanted["gid"])
        os.umask(0o022)
        for path, _, _ in wanted["files"]:
            _require_folders(home, path)
        reader = Reader()
        files = [_write(home, path, read_exactly(size), known, reader) for path, size, known in wanted["files"]]
        outcome: dict[str, Any] = {"code": 0, "files": files}
    except OSError as e:
        said = f"{e.filename}: {e.strerror}" if e.filename else e.strerror or str(e)
        outcome = {"error": said, "full": e.errno in FULL}
    os.write(report, json.dumps(outcome).encode())
    os._exit(0)


class Reader:
    """Says what a file is, for as long as not too much was read for it."""

    def __init__(self) -> None:
        self._left = MOST_READ

    def digest(self, folder: int, name: str, size: int, known: frozenset[str]) -> str | None:
        """Of what is there. None: nothing is. `size`: of what is delivered now; of what was before, only `known`."""
        try:
            fd = os.open(name, LOOK, dir_fd=folder)
        except FileNotFoundError:
            return None
        except OSError:
            return OTHER
        try:
            info = os.fstat(fd)
            may_be_ours = info.st_size == size or (known and info.st_size <= LARGEST)
            if not stat.S_ISREG(info.st_mode) or not may_be_ours or info.st_size > self._left:
                return OTHER
            self._left -= info.st_size
            with os.fdopen(os.dup(fd), "rb") as file:
                return hashlib.sha256(file.read(info.st_size + 1)).hexdigest()  # one more: it may be growing
        finally:
            os.close(fd)


def _require_folders(home: int, path: str) -> None:
    """Those of this path that are there are folders."""
    try:
        with contextlib.suppress(FileNotFoundError):
            os.close(_walk(home, path.split("/")[:-1], make=False))
    except OSError as e:
        raise _in_the_way(e, path) from e


def _in_the_way(e: OSError, path: str) -> OSError:
    reason = "a link or a file stands where a folder should be" if e.errno in {errno.ELOOP, errno.ENOTDIR} else None
    return OSError(e.errno, reason or e.strerror, path)


def _write(home: int, path: str, data: bytes, known: list[str] | None, reader: Reader) -> tuple[str, str]:
    """What became of it, and the path it has."""
    *folders, name = path.split("/")
    try:
        folder = _walk(home, folders)
    except OSError as e:
        raise _in_the_way(e, path) from e
    try:
        if known is None:
            _replace(folder, name, data)
            return WRITTEN, path
        outcome, placed = _deliver(folder, name, data, frozenset(known), reader)
        return outcome, "/".join((*folders, placed))
    except OSError as e:
        raise OSError(e.errno, e.strerror, path) from e
    finally:
        os.close(folder)


def _walk(home: int, folders: list[str], *, make: bool = True) -> int:
    here = os.dup(home)
    for name in folders:
        try:
            if make:
                with contextlib.suppress(FileExistsError):
                    os.mkdir(name, 0o755, dir_fd=here)
            there = os.open(name, FOLDER, dir_fd=here)
        finally:
            os.close(here)
        here = there
    return here


def _replace(folder: int, name: str, data: bytes) -> None:
    mode = 0o644
    with contextlib.suppress(FileNotFoundError):
        before = os.stat(name, dir_fd=folder, follow_symlinks=False)
        if stat.S_ISREG(before.st_mode):
            mode = stat.S_IMODE(before.st_mode) & 0o777
    with _aside(folder, data, mode) as aside:
        os.replace(aside, name, src_dir_fd=folder, dst_dir_fd=folder)


@contextlib.contextmanager
def _aside(folder: int, data: bytes, mode: int) -> Iterator[str]:
    """The file under a name that nothing else has. What still has that name afterwards goes."""
    aside = f".codehub-{os.getpid()}-{os.urandom(8).hex()}"
    fd = os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600, dir_fd=folder)
    try:
        with os.fdopen(fd, "wb") as file:
            file.write(data)
            os.fchmod(fd, mode)
        yield aside
    finally:
        with contextlib.suppress(OSError):
            os.unlink(aside, dir_fd=folder)


def _deliver(folder: int, name: str, data: bytes, known: frozenset[str], reader: Reader) -> tuple[str, str]:
    new = hashlib.sha256(data).hexdigest()
    for candidate in (name, *_other_names(name)):
        outcome = WRITTEN if candidate == name else BESIDE
        there = reader.digest(folder, candidate, len(data), known)
        if there is None and _create(folder, candidate, data):
            return outcome, candidate
        if there == new:
            return UNCHANGED if candidate == name else BESIDE, candidate
        if there in known and _exchange(folder, candidate, data, known, reader):
            return outcome, candidate
        if new in known:  # delivered before, and worked on since: that is what it was for
            return UNCHANGED, name
    raise OSError(errno.EEXIST, "too many files of such a name are there")


def _other_names(name: str) -> Iterator[str]:
    """`main.new.py`, `main.new2.py`, …: still what its ending says."""
    stem, ending = os.path.splitext(name)  # noqa: PTH122
    for number in range(1, MOST_NAMES):
        yield f"{stem}.new{number if number > 1 else ''}{ending}"


def _create(folder: int, name: str, data: bytes) -> bool:
    """Not over anything that a person makes meanwhile."""
    with _aside(folder, data, 0o644) as aside:
        try:
            os.link(aside, name, src_dir_fd=folder, dst_dir_fd=folder, follow_symlinks=False)
        except FileExistsError:
            return False
    return True


def _exchange(folder: int, name: str, data: bytes, known: frozenset[str], reader: Reader) -> bool:
    """Against one of ours, and back should it be a person's by now."""
    mode = stat.S_IMODE(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode) & 0o777
    with _aside(folder, data, mode) as aside:
        try:
            kernel.exchange(folder, aside, name)
        except OSError as e:
            if e.errno not in {errno.ENOSYS, errno.EINVAL}:
                raise
            os.replace(aside, name, src_dir_fd=folder, dst_dir_fd=folder)  # a file system that cannot: seen just now
            return True
        if reader.digest(folder, aside, len(data), known) in known:
            return True
        kernel.exchange(folder, aside, name)
    return False
