"""Trees to archive: how to grow one, how to see everything of one, and Hypothesis's idea of one."""

import contextlib
import hashlib
import io
import os
import shutil
import stat
import subprocess
import tempfile
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import zstandard
from hypothesis import strategies as st

from codehub.archives import compress
from codehub.archives.model import Quota
from codehub.archives.pack import Packed, Packer, open_home
from codehub.archives.unpack import Owner, Unpacked, Unpacker

PLENTY = Quota(bytes=10**12, inodes=10**7)
ROOT = os.geteuid() == 0
DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW


@dataclass(frozen=True)
class Attributes:
    mode: int = 0o644
    mtime_ns: int = 1_700_000_000_123_456_789
    owner: tuple[int, int] = (0, 0)
    xattrs: tuple[tuple[str, bytes], ...] = ()


@dataclass(frozen=True)
class File:
    content: bytes = b""
    attributes: Attributes = field(default_factory=Attributes)


@dataclass(frozen=True)
class Holes:
    """A file with data here and there."""

    size: int
    pieces: tuple[tuple[int, bytes], ...]
    attributes: Attributes = field(default_factory=Attributes)


@dataclass(frozen=True)
class Symlink:
    target: bytes
    attributes: Attributes = field(default_factory=Attributes)


@dataclass(frozen=True)
class OtherName:
    """A hard link to one of the files grown before it, if there is any."""

    number: int


@dataclass(frozen=True)
class Folder:
    children: dict[bytes, "Node"]
    attributes: Attributes = field(default_factory=lambda: Attributes(mode=0o755))


Node = File | Holes | Symlink | OtherName | Folder


def grow(path: Path, tree: Folder) -> None:
    path.mkdir()
    files: list[tuple[int, bytes]] = []
    # Directories are finished last, innermost first: one that is closed to us can take no more.
    folders: list[tuple[int, Attributes]] = []
    _grow_children(os.open(path, DIRECTORY), tree, files, folders)
    for fd, attributes in folders:
        _dress(fd, attributes)
    for fd, _ in folders:
        os.close(fd)


def _grow_children(
    fd: int, tree: Folder, files: list[tuple[int, bytes]], folders: list[tuple[int, Attributes]]
) -> None:
    for name, node in tree.children.items():
        if isinstance(node, Folder):
            os.mkdir(name, 0o700, dir_fd=fd)
            _grow_children(os.open(name, DIRECTORY, dir_fd=fd), node, files, folders)
        elif isinstance(node, Symlink):
            os.symlink(node.target, name, dir_fd=fd)
            times = (node.attributes.mtime_ns, node.attributes.mtime_ns)
            if ROOT:
                os.chown(name, *node.attributes.owner, dir_fd=fd, follow_symlinks=False)
            os.utime(name, ns=times, dir_fd=fd, follow_symlinks=False)
        elif isinstance(node, OtherName):
            if files:
                folder, first = files[node.number % len(files)]
                os.link(first, name, src_dir_fd=folder, dst_dir_fd=fd)
        else:
            _grow_file(fd, name, node)
            files.append((fd, name))
    folders.append((fd, tree.attributes))


def _grow_file(directory: int, name: bytes, node: File | Holes) -> None:
    fd = os.open(name, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600, dir_fd=directory)
    if isinstance(node, File):
        os.write(fd, node.content)
    else:
        os.ftruncate(fd, node.size)
        for offset, content in node.pieces:
            os.pwrite(fd, content[: max(0, node.size - offset)], offset)
    _dress(fd, node.attributes)
    os.close(fd)


def _dress(fd: int, attributes: Attributes) -> None:
    for key, value in attributes.xattrs:
        os.setxattr(fd, key, value)
    if ROOT:
        os.fchown(fd, *attributes.owner)
    os.fchmod(fd, attributes.mode)
    os.utime(fd, ns=(attributes.mtime_ns, attributes.mtime_ns))


def fell(path: Path) -> None:
    """Remove a tree, also where its folders are closed to their owner."""
    subprocess.run(["chmod", "-R", "u+rwx", str(path)], check=False, stderr=subprocess.DEVNULL)
    shutil.rmtree(path)


def picture(path: Path) -> dict[bytes, Any]:
    """Everything there is to see of a tree, hard links by the first of their names."""
    seen: dict[bytes, Any] = {}
    first: dict[tuple[int, int], bytes] = {}
    root = os.open(path, DIRECTORY)
    for prefix, fd, folder in _folders(root, b"", os.fstat(root)):
        seen[prefix] = _look(fd, folder, "")
        for name in _names(fd):
            status = os.stat(name, dir_fd=fd, follow_symlinks=False)
            if stat.S_ISDIR(status.st_mode):
                continue
            earlier = first.setdefault((status.st_dev, status.st_ino), prefix + name)
            if earlier != prefix + name:
                seen[prefix + name] = earlier
            elif stat.S_ISLNK(status.st_mode):
                seen[prefix + name] = _look(None, status, os.readlink(name, dir_fd=fd))
            elif stat.S_ISREG(status.st_mode):
                seen[prefix + name] = _look_at_file(fd, name, status)
            else:
                seen[prefix + name] = stat.S_IFMT(status.st_mode)
    os.close(root)
    return seen


def without_owner(path: Path) -> dict[bytes, Any]:
    """The same of a home, whose owner is another with each generation."""
    return {name: (mode, *rest) for name, (mode, _uid, _gid, *rest) in picture(path).items()}


def _names(fd: int) -> list[bytes]:
    return sorted(os.fsencode(name) for name in os.listdir(fd))


def _folders(fd: int, prefix: bytes, status: os.stat_result) -> Iterator[tuple[bytes, int, os.stat_result]]:
    yield prefix, fd, status
    for name in _names(fd):
        below = os.stat(name, dir_fd=fd, follow_symlinks=False)
        if stat.S_ISDIR(below.st_mode):
            with _opened_anyway(name, DIRECTORY, fd) as folder:
                yield from _folders(folder, prefix + name + b"/", below)


@contextlib.contextmanager
def _opened_anyway(name: bytes, flags: int, directory: int) -> Iterator[int]:
    """Also what is closed to its owner, which only root enters just so: lent while it is looked at, then given back."""
    mode = stat.S_IMODE(os.stat(name, dir_fd=directory, follow_symlinks=False).st_mode)
    lent = not ROOT and mode & 0o500 != 0o500
    if lent:
        os.chmod(name, mode | 0o700, dir_fd=directory)
    fd = os.open(name, flags, dir_fd=directory)
    try:
        yield fd
    finally:
        os.close(fd)
        if lent:
            os.chmod(name, mode, dir_fd=directory)


def _look_at_file(directory: int, name: bytes, status: os.stat_result) -> Any:
    with (
        _opened_anyway(name, os.O_RDONLY | os.O_NOFOLLOW, directory) as fd,
        os.fdopen(fd, "rb", closefd=False) as file,
    ):
        return _look(fd, status, hashlib.file_digest(file, "sha256").hexdigest())


def _look(fd: int | None, status: os.stat_result, content: str | bytes) -> Any:
    xattrs = {} if fd is None else {name: os.getxattr(fd, name) for name in os.listxattr(fd)}
    size = 0 if stat.S_ISDIR(status.st_mode) else status.st_size
    return (oct(status.st_mode), status.st_uid, status.st_gid, size, status.st_mtime_ns, content, xattrs)


def pack(path: Path) -> tuple[bytes, Packed]:
    """The tar stream of a tree, in this process."""
    output = io.BytesIO()
    packed = Packer(output.write).run(*open_home(str(path)))
    return output.getvalue(), packed


def done_by_an_ordinary_person(work: Callable[[], bool]) -> bool:
    """In a child without privileges: root may read everything, for it no folder is closed, and it proves nothing."""
    global ROOT  # noqa: PLW0603 (of the child alone)
    child = os.fork()
    if child == 0:
        status = 1
        try:
            if ROOT:
                os.setgroups([])
                os.setgid(65534)
                os.setuid(65534)
                ROOT = False
            status = 0 if work() else 2
        except BaseException:  # noqa: BLE001 - shown here, because the child ends without unwinding into pytest
            traceback.print_exc()
        finally:
            os._exit(status)
    return os.waitpid(child, 0)[1] == 0


def squeeze(stream: bytes) -> bytes:
    return zstandard.ZstdCompressor(level=1, write_checksum=True).compress(stream)


def unpack(compressed: bytes, into: Path, owner: Owner | None = None, quota: Quota = PLENTY) -> Unpacked:
    """Unpack in this process, as the worker does it."""
    source = compress.Decompressed(io.BytesIO(compressed))
    mask = os.umask(0)
    try:
        unpacked = Unpacker(source, owner, quota).run(os.open(into, DIRECTORY))
        source.finish()
    finally:
        os.umask(mask)
    return unpacked


def has_xattrs(path: Path) -> bool:
    with tempfile.TemporaryFile(dir=path) as probe:  # of our own: other processes may try the same folder
        try:
            os.setxattr(probe.fileno(), "user.probe", b"")
        except OSError:
            return False
    return True


_awkward = [
    b"-rf", b" ", b"\n", b"*", b"a\\b", b"...", b"\xff\xfe", b"x" * 255, "ü".encode() * 127, b"\xed\xa0\x80", b"=%3D",
    b"GNUSparseFile.0", b"@PaxHeader", "가나다".encode(),
]  # fmt: skip
names = st.one_of(
    st.sampled_from(_awkward),
    st.binary(min_size=1, max_size=255).filter(lambda n: b"/" not in n and b"\0" not in n and n not in {b".", b".."}),
    st.text("abcdefgh", min_size=1, max_size=12).map(str.encode),
    st.integers(90, 110).map(lambda n: b"n" * n),  # around the length that a header has room for
)
_moments = st.integers(-(2**31) * 10**9 + 10**9, 4_000_000_000 * 10**9) | st.integers(0, 2**31).map(lambda s: s * 10**9)
_ids = st.sampled_from([0, 1000, 65534, 0o7777777, 0o7777777 + 1, 2**31, 2**32 - 2])
_xattrs = st.lists(
    st.tuples(st.sampled_from(["user.a", "user.b=c", "user.100%", "user.ü"]), st.binary(max_size=60)),
    max_size=3,
    unique_by=lambda pair: pair[0],
).map(tuple)


def _attributes(modes: st.SearchStrategy[int], *, with_xattrs: bool) -> st.SearchStrategy[Attributes]:
    xattrs: st.SearchStrategy[Any] = _xattrs if with_xattrs else st.just(())
    return st.builds(Attributes, modes, _moments, st.tuples(_ids, _ids), xattrs)


def trees(*, with_xattrs: bool) -> st.SearchStrategy[Folder]:
    attributes = _attributes(st.integers(0, 0o7777), with_xattrs=with_xattrs)
    plain = _attributes(st.just(0o777), with_xattrs=False)
    contents = st.binary(max_size=2000) | st.integers(500, 1600).map(lambda n: b"z" * n)
    pieces = st.lists(st.tuples(st.integers(0, 3_000_000), st.binary(min_size=1, max_size=5000)), max_size=4).map(tuple)
    leaves = st.one_of(
        st.builds(File, contents, attributes),
        st.builds(Holes, st.integers(0, 3_000_000), pieces, attributes),
        st.builds(Symlink, st.binary(min_size=1, max_size=300).filter(lambda t: b"\0" not in t), plain),
        st.builds(OtherName, st.integers(0, 20)),
    )
    nodes = st.recursive(
        leaves,
        lambda below: st.builds(Folder, st.dictionaries(names, below, max_size=5), attributes),
        max_leaves=25,
    )
    return st.builds(Folder, st.dictionaries(names, nodes, max_size=6), attributes)


def rich(*, with_xattrs: bool = True, levels: int = 30) -> Folder:
    """One of everything."""
    xattrs = (("user.note", b"\0\xffbinary"), ("user.a=b%", b"")) if with_xattrs else ()
    deep: Folder = Folder({b"bottom": File(b"down here")})
    for _ in range(levels):
        deep = Folder({b"d" * 200: deep})
    return Folder(
        {
            b"notes.txt": File(b"hello\n" * 1000, Attributes(0o640, -5_500_000_001, (1000, 1001), xattrs)),
            b"\xff\xfenot utf-8": File(b"bytes"),
            b"x" * 255: File(b"long name"),
            b"empty": File(),
            b"closed": File(b"secret", Attributes(0o000)),
            b"set": File(b"#!", Attributes(0o6755, owner=(0o7777777 + 5, 2**32 - 2))),
            b"large": File(bytes(range(256)) * 12_000),
            b"holes": Holes(5_000_000, ((0, b"start"), (2_000_000, b"middle" * 1000))),
            b"all hole": Holes(1_000_000, ()),
            b"again": OtherName(0),
            b"link": Symlink(b"/etc/passwd"),
            b"dangling": Symlink(b"../" * 80 + b"\xff"),
            b"nothing in it": Folder({}, Attributes(0o1777, 1, (7, 8), xattrs)),
            b"shut": Folder({b"inside": File(b"in"), b"too": OtherName(1)}, Attributes(0o000)),
            b"deep": deep,
            b"z": Folder({b"first again": OtherName(0)}),
        }
    )
