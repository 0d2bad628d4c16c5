"""A course's folder in an archive, `.zip` or `.tar.gz`, as a browser sends and gets it. Pure: all of it is in memory.

What comes is read with bounds and becomes a `tree`, which `folder` examines as it does a folder on disk. Nothing is
unpacked to a disk, so that no path can lead anywhere. How much is unpacked is counted as it comes out, whatever the
archive says of itself.
"""

import gzip
import io
import posixpath
import stat
import struct
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from codehub.courses import tar, tree
from codehub.courses.folder import COURSE
from codehub.courses.source import MOST_BYTES
from codehub.courses.tree import LONGEST_FILE, MOST_ENTRIES, Problem, Tree
from codehub.errors import CodeHubError

LARGEST = 12 * 1024 * 1024  # bytes of the archive: a folder of 10 MB that cannot be packed, and what it has around it
MOST_UNPACKED = MOST_BYTES + 2 * tar.BLOCK * MOST_ENTRIES  # of a tar archive, whose files have headers and gaps
LONGEST_PATH = 1000  # characters
ZIP, EMPTY_ZIP, GZIP = b"PK\x03\x04", b"PK\x05\x06", b"\x1f\x8b"
ZIP_ENTRY = b"PK\x01\x02"
PACKED_BY = frozenset({zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED})  # others are unpacked by the library without bounds
ENCRYPTED, IN_UTF8 = 0x1, 0x800  # flags of an entry
OTHER_NAMES = ("utf-8", "cp949")  # of names that do not say it: as Linux, and as Windows in Korea writes them
NOT_OURS = frozenset({"__MACOSX", ".DS_Store", "Thumbs.db", "desktop.ini"})  # what computers put beside files


# What the libraries say of what they cannot read.
BROKEN = (
    zipfile.BadZipFile, zlib.error, tar.TarError, struct.error,
    EOFError, OSError, ValueError, RuntimeError,
)  # fmt: skip


class ArchiveError(CodeHubError):
    """`reason`: what is wrong with the whole of it, which pages put into words. `where`: what it is about."""

    code = "COURSE_ARCHIVE"
    status = 400
    title = "The archive cannot be read"

    def __init__(self, reason: str, detail: str, where: str = "") -> None:
        super().__init__(detail)
        self.reason, self.where = reason, where


@dataclass
class _Content:
    """What came out so far."""

    files: dict[str, bytes] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)
    entries: int = 0
    left: int = MOST_BYTES

    def count(self) -> None:
        self.entries += 1
        if self.entries > MOST_ENTRIES:
            raise ArchiveError("many", f"the archive has more than {MOST_ENTRIES} files")

    def add(self, path: str, stream: tar.Stream) -> int:
        """Returns how many bytes were read: of a file that is too long, not all."""
        content = stream.read(min(LONGEST_FILE, self.left) + 1)
        self.left -= len(content)
        if self.left < 0:
            raise ArchiveError("large", f"the folder has more than {MOST_BYTES // 1024 // 1024} MB")
        if len(content) > LONGEST_FILE:
            self.problems.append(Problem(path, 1, tree.TOO_LONG))
        elif path in self.files:
            raise ArchiveError("twice", f"{path} is in the archive twice", path)
        else:
            self.files[path] = content
        return len(content)


def read(data: bytes) -> Tree:
    """Raise ArchiveError; what is wrong with single files is told by the tree."""
    content = _Content()
    try:
        if data.startswith(ZIP):
            _read_zip(data, content)
        elif data.startswith(GZIP):
            _read_tar(data, content)
        elif data.startswith(EMPTY_ZIP) or not data:
            raise ArchiveError("empty", "there is nothing in it")
        else:
            raise ArchiveError("kind", "it is neither a .zip nor a .tar.gz")
    except BROKEN as error:
        raise ArchiveError("broken", f"it is damaged, or was not sent whole: {error}") from error
    if not content.files and not content.problems:
        raise ArchiveError("empty", "there is nothing in it")
    return _course(content)


# --- the two kinds --------------------------------------------------------------------------------------------------


def _read_zip(data: bytes, content: _Content) -> None:
    if data.count(ZIP_ENTRY) > MOST_ENTRIES:  # before the library makes an object of each
        raise ArchiveError("many", f"the archive has more than {MOST_ENTRIES} files")
    with zipfile.ZipFile(io.BytesIO(data)) as packed:
        for entry in packed.infolist():
            content.count()
            named = _zip_name(entry)
            path = _path(named)
            if path is None or named.endswith("/"):
                continue
            mode = entry.external_attr >> 16
            if entry.flag_bits & ENCRYPTED:
                raise ArchiveError("locked", f"{path} is locked by a password", path)
            if stat.S_ISLNK(mode):
                content.problems.append(Problem(path, 1, tree.A_LINK))
            elif stat.S_IFMT(mode) and not stat.S_ISREG(mode):
                content.problems.append(Problem(path, 1, tree.NO_FILE))
            elif entry.compress_type not in PACKED_BY:
                raise ArchiveError("method", f"{path} is packed in a way that is not understood", path)
            else:
                with packed.open(entry) as stream:
                    content.add(path, stream)


def _zip_name(entry: zipfile.ZipInfo) -> str:
    name = entry.orig_filename
    if not entry.flag_bits & IN_UTF8:  # then the library took it for the letters of an IBM PC
        name = _decoded(name.encode("cp437"))
    return name.replace("\\", "/")  # some programs on Windows


def _read_tar(data: bytes, content: _Content) -> None:
    with gzip.GzipFile(fileobj=io.BytesIO(data)) as unpacked:
        stream = _Bounded(unpacked)
        for entry in tar.entries(stream):
            content.count()
            path, size, taken = _path(_decoded(entry.name)), entry.size, 0
            if path is not None and entry.kind == "file" and not entry.name.endswith(b"/"):
                taken = content.add(path, _Part(stream, size))
            elif path is not None and entry.kind in {"link", "other"}:
                content.problems.append(Problem(path, 1, tree.A_LINK if entry.kind == "link" else tree.NO_FILE))
            # What is no file has no content, whatever its header says; of long ones the rest is passed over.
            tar.skip(stream, size + -size % tar.BLOCK - taken if entry.kind in {"file", "other"} else 0)


class _Bounded:
    """A stream that ends with an error where too much comes out of it."""

    def __init__(self, stream: gzip.GzipFile) -> None:
        self._stream, self._left = stream, MOST_UNPACKED

    def read(self, size: int) -> bytes:
        found = self._stream.read(size)
        self._left -= len(found)
        if self._left < 0:
            raise ArchiveError("large", f"the folder has more than {MOST_BYTES // 1024 // 1024} MB")
        return found


class _Part:
    """The next bytes of a stream."""

    def __init__(self, stream: tar.Stream, size: int) -> None:
        self._stream, self._left = stream, size

    def read(self, size: int) -> bytes:
        found, wanted = b"", min(size, self._left)
        while len(found) < wanted and (piece := self._stream.read(wanted - len(found))):
            found += piece
        if len(found) < wanted:
            raise EOFError("it ends too early")
        self._left -= len(found)
        return found


# --- names ----------------------------------------------------------------------------------------------------------


def _decoded(name: bytes) -> str:
    for encoding in OTHER_NAMES:
        try:
            return name.decode(encoding)
        except UnicodeDecodeError:
            continue
    raise ArchiveError("name", tree.NO_NAME, name.decode("ascii", "replace"))


def _path(name: str) -> str | None:
    """Within the archive, in its shortest form; None: it is no part of a course. Raise for one that leads out of it."""
    if not name.isprintable() or len(name) > LONGEST_PATH:
        raise ArchiveError("name", "a name has characters that cannot be shown, or too many", _shown(name))
    if name.startswith("/") or ".." in name.split("/") or name[1:2] == ":":
        raise ArchiveError("outside", f"{name} leads out of the archive", _shown(name))
    path = posixpath.normpath(name)
    parts = path.split("/")
    if len(parts) > tree.DEEPEST:
        raise ArchiveError("name", f"is more than {tree.DEEPEST} folders deep", _shown(name))
    apple = parts[-1].startswith("._")
    return None if path == "." or apple or NOT_OURS.intersection(parts) else path


def _shown(name: str) -> str:
    return "".join(c if c.isprintable() else "\ufffd" for c in name[:100])


# --- where in the archive the course is ------------------------------------------------------------------------------


def _course(content: _Content) -> Tree:
    """People pack the folder, or what is in it: both are the course."""
    paths = [*content.files, *(problem.file for problem in content.problems)]
    top = _top(paths)
    inside = {path.removeprefix(top): text for path, text in content.files.items() if path.startswith(top)}
    for path in inside:
        if any(parent in inside for parent in _parents(path)):
            raise ArchiveError("twice", f"{path} is in a folder that is a file", path)
    found = tree.hold(inside)
    found.problems += (
        Problem(problem.file.removeprefix(top), problem.line, problem.what) for problem in content.problems
    )
    outside = sorted(path for path in content.files if not path.startswith(top) and not path.startswith("."))
    found.problems += (Problem(path, 1, "is not read: it is not in the course's folder", False) for path in outside)
    return found


def _top(paths: Iterable[str]) -> str:
    """The folder that has the course.md: the outermost one. Empty: the archive itself."""
    paths = list(paths)
    heads = [path for path in paths if posixpath.basename(path) == COURSE]
    depth = min((head.count("/") for head in heads), default=0)
    outermost = sorted(head for head in heads if head.count("/") == depth)
    if len(outermost) > 1:
        raise ArchiveError("several", f"there are several courses in it: {', '.join(outermost)}", ", ".join(outermost))
    if outermost:
        return outermost[0].removesuffix(COURSE)
    first = {path.partition("/")[0] for path in paths}
    return f"{first.pop()}/" if len(first) == 1 and all("/" in path for path in paths) else ""


def _parents(path: str) -> Iterator[str]:
    while path := path.rpartition("/")[0]:
        yield path


# --- writing --------------------------------------------------------------------------------------------------------


def zipped(files: Mapping[str, bytes], folder: str, at: datetime) -> bytes:
    """The files in one folder; the same files at the same time are the same bytes."""
    made = io.BytesIO()
    moment = (max(at.year, 1980), at.month, at.day, at.hour, at.minute, at.second)  # as early as the format goes
    with zipfile.ZipFile(made, "w") as packed:
        for path, content in files.items():
            entry = zipfile.ZipInfo(f"{folder}/{path}", moment)
            entry.compress_type, entry.external_attr = zipfile.ZIP_DEFLATED, 0o644 << 16
            packed.writestr(entry, content)
    return made.getvalue()
