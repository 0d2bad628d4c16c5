"""A course's folder on disk: which files it has, as text, with bounds. Nothing outside of it is read. For `folder`."""

import os
import pathlib
import stat
from collections.abc import Iterator
from dataclasses import dataclass, field

from codehub.courses.source import MOST_BYTES
from codehub.sessions.blueprint_model import is_compiled

MOST_ENTRIES = 40_000  # whatever a course may have, 200 sessions of 100 files each, and as many solutions
LONGEST_FILE = 1024 * 1024
DEEPEST = 110  # a starter file's path, of 200 bytes, has 100 at most
VERSION_CONTROL = frozenset({".git", ".hg", ".svn"})  # at the top


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
    root: pathlib.Path
    paths: dict[str, int] = field(default_factory=dict)  # relative, with / between folders; in their order; sizes
    problems: list[Problem] = field(default_factory=list)
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
            content = (self.root / path).read_bytes()
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


def _entries(root: pathlib.Path, below: str, tree: Tree) -> Iterator[str]:
    """Files that may be read, in the order of their names."""
    if below.count("/") > DEEPEST:
        tree.wrong(below, f"is more than {DEEPEST} folders deep")
        return
    seen: dict[str, str] = {}
    for entry in sorted(os.scandir(root / below), key=lambda entry: entry.name):
        path = f"{below}{entry.name}"
        if (not below and entry.name in VERSION_CONTROL) or is_compiled(path):
            continue
        other = seen.setdefault(entry.name.casefold(), entry.name)
        if other != entry.name:
            tree.wrong(path, f"differs from {other!r} only in case: on many machines that is one file")
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
        return "the name is not UTF-8: rename it"
    if (
        entry.is_symlink()
    ):  # also inside the folder: it could lead to solutions, or to what version control keeps secret
        return "is a link: put the file itself here"
    try:
        found = entry.stat(follow_symlinks=False)
    except OSError as error:
        return f"cannot be read: {error.strerror}"
    if not stat.S_ISREG(found.st_mode):
        return "is not an ordinary file"
    if found.st_size > LONGEST_FILE:
        return f"has more than {LONGEST_FILE // 1024} KB: a session with its files has at most 256 KB"
    return None
