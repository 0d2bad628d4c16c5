"""A course's folder, on disk or held in memory: which files it has, as text, with bounds. For `folder`.

Nothing outside of the folder is read. What an archive held (`archive`) is looked at by the same rules.
"""

import os
import pathlib
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from codehub.courses.source import MOST_BYTES
from codehub.sessions.blueprint_model import is_compiled

MOST_ENTRIES = 40_000  # whatever a course may have, 200 sessions of 100 files each, and as many solutions
LONGEST_FILE = 1024 * 1024
DEEPEST = 110  # a starter file's path, of 200 bytes, has 100 at most
VERSION_CONTROL = frozenset({".git", ".hg", ".svn"})  # at the top
A_LINK = "is a link: put the file itself here"  # also inside the folder: it could lead to solutions, or to secrets
NO_FILE = "is not an ordinary file"
TOO_LONG = f"has more than {LONGEST_FILE // 1024} KB: a session with its files has at most 256 KB"
NO_NAME = "the name is not UTF-8: rename it"


@dataclass(frozen=True, order=True)
class Problem:
    file: str
    line: int
    what: str
    is_error: bool = True

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {'' if self.is_error else 'warning: '}{self.what}"


@dataclass
class Tree:
    root: pathlib.Path | None  # None: all of it is in memory
    paths: dict[str, int] = field(default_factory=dict)  # relative, with / between folders; in their order; sizes
    problems: list[Problem] = field(default_factory=list)
    held: Mapping[str, bytes] = field(default_factory=dict)  # what is in memory
    _texts: dict[str, str | None] = field(default_factory=dict)

    def wrong(self, path: str, what: str, line: int = 1) -> None:
        self.problems.append(Problem(path, line, what))

    def text(self, path: str) -> str | None:
        """None: it is not there, or is no text, which has been said."""
        if path in self.paths and path not in self._texts:
            self._texts[path] = self._read(path)
        return self._texts.get(path)

    def markdown(self, path: str) -> str | None:
        """With one kind of line end, without the mark that some editors put first."""
        text = self.text(path)
        return None if text is None else text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")

    def _read(self, path: str) -> str | None:
        try:
            content = (self.root / path).read_bytes() if self.root else self.held[path]
        except OSError as error:
            self.wrong(path, f"cannot be read: {error.strerror}")
            return None
        if b"\x00" in content:
            self.wrong(path, "is not a text file (it has a NUL byte): only text can be put into a workspace")
            return None
        try:
            return content.decode()
        except UnicodeDecodeError as error:
            line = content.count(b"\n", 0, error.start) + 1
            self.wrong(path, "is not UTF-8: save it in this encoding; other files cannot be part of a course", line)
            return None


def walk(root: pathlib.Path) -> Tree:
    tree = Tree(root)
    total = 0
    for entries, path in enumerate(_entries(root, "", tree), 1):
        if entries > MOST_ENTRIES:
            tree.wrong(path, f"the folder has more than {MOST_ENTRIES} files")
            break
        total += tree.paths[path]
        if total > MOST_BYTES:
            tree.wrong(path, f"the folder has more than {MOST_BYTES // 1024 // 1024} MB")
            break
    return tree


def hold(files: Mapping[str, bytes]) -> Tree:
    """Of files by their paths, whose number and sizes were bounded when they were read."""
    tree = Tree(None, held=files)
    seen: dict[str, str] = {}
    for path in sorted(files, key=lambda path: path.split("/")):
        parts = path.split("/")
        if parts[0] in VERSION_CONTROL or is_compiled(path):
            continue
        if len(parts) > DEEPEST:
            tree.wrong(path, _too_deep())
            continue
        upto = ["/".join(parts[: n + 1]) for n in range(len(parts))]
        other = next((o for one in upto if (o := seen.setdefault(one.casefold(), one)) != one), None)
        if other is not None:
            tree.wrong(path, _same_but_for_case(other.rpartition("/")[2]))
        else:
            tree.paths[path] = len(files[path])
    return tree


def _too_deep() -> str:
    return f"is more than {DEEPEST} folders deep"


def _same_but_for_case(other: str) -> str:
    return f"differs from {other!r} only in case: on many machines that is one file"


def _entries(root: pathlib.Path, below: str, tree: Tree) -> Iterator[str]:
    """Files that may be read, in the order of their names."""
    if below.count("/") > DEEPEST:
        tree.wrong(below, _too_deep())
        return
    seen: dict[str, str] = {}
    for entry in sorted(os.scandir(root / below), key=lambda entry: entry.name):
        path = f"{below}{entry.name}"
        if (not below and entry.name in VERSION_CONTROL) or is_compiled(path):
            continue
        other = seen.setdefault(entry.name.casefold(), entry.name)
        if other != entry.name:
            tree.wrong(path, _same_but_for_case(other))
        elif entry.is_dir(follow_symlinks=False):
            yield from _entries(root, f"{path}/", tree)
        elif _is_usable(entry, path, tree):
            tree.paths[path] = entry.stat(follow_symlinks=False).st_size
            yield path


def _is_usable(entry: os.DirEntry[str], path: str, tree: Tree) -> bool:
    complaint = _complaint(entry)
    if complaint:
        tree.wrong(path.encode("utf-8", "replace").decode(), complaint)
    return complaint is None


def _complaint(entry: os.DirEntry[str]) -> str | None:
    try:
        entry.name.encode()
    except UnicodeEncodeError:
        return NO_NAME
    if entry.is_symlink():
        return A_LINK
    try:
        found = entry.stat(follow_symlinks=False)
    except OSError as error:
        return f"cannot be read: {error.strerror}"
    if not stat.S_ISREG(found.st_mode):
        return NO_FILE
    if found.st_size > LONGEST_FILE:
        return TOO_LONG
    return None
