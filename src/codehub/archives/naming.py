"""What entries are called in an archive, so that names stay short however deep a tree is. For `pack` and `unpack`.

An entry's name is its path. In folders that lie in each other paths add up to the square of their number, so none may
grow beyond what a system call takes (PATH_MAX). Where the path of something in a folder would, the folder's own entry
carries an alias in a record of ours, and everything below is named from there on: `./codehub-deep-0/7/…` (no other name
begins with `./`). `unpack` knows which folder that is. An ordinary tar, to which no longer path could be said anyway,
makes a folder of that name beside the others: also there nothing is lost.

A file with several names is known by the first of them, unless that lies below an alias: then by a number.
"""

import itertools
import os
import re
from collections.abc import Iterable
from typing import NamedTuple

from codehub.archives.walk import Descent

LONGEST_PATH = 4095
LONGEST_NAME = 1023  # no file system has longer ones
ALIAS_START = b"./"
_ALIAS = re.compile(rb"\./codehub-deep-[0-9]{1,9}/[0-9]{1,18}/")


class Prefix(NamedTuple):
    """What a directory's entries have before their own names. A chain, so that folders in each other share it."""

    part: bytes = b""
    above: "Prefix | None" = None

    def path(self) -> bytes:
        parts, prefix = [], self
        while prefix.above is not None:
            parts.append(prefix.part)
            prefix = prefix.above
        parts.append(prefix.part)
        return b"".join(reversed(parts))


def has_alias(path: bytes) -> bool:
    return path.startswith(ALIAS_START)


def is_alias(path: bytes) -> bool:
    return _ALIAS.fullmatch(path) is not None


def needs_alias(prefix: bytes, names: Iterable[bytes]) -> bool:
    """Whether one of these names, and a slash, would make a path too long. Not at the top: an alias is as long."""
    room = LONGEST_PATH - len(prefix) - 1
    return prefix != b"" and room < LONGEST_NAME and any(len(name) > room for name in names)


class Aliases:
    """The aliases of one archive, in the order of the walk."""

    def __init__(self) -> None:
        self._folder = b""
        self._numbers = itertools.count()

    def following(self, descent: Descent) -> bytes:
        self._folder = self._folder or _unused_name(descent)
        return b"./%b/%d/" % (self._folder, next(self._numbers))


def _unused_name(descent: Descent) -> bytes:
    """Not what the tree has already: an ordinary tar would mix the two, or follow a link of that name."""
    root = descent.open_root()
    try:
        for number in itertools.count():
            name = b"codehub-deep-%d" % number
            try:
                os.stat(name, dir_fd=root, follow_symlinks=False)
            except FileNotFoundError:
                return name
    finally:
        os.close(root)
    raise AssertionError


class First(NamedTuple):
    """The first name of a file that has several, as it is in the archive."""

    prefix: Prefix
    name: bytes
    number: int  # -1 where the name is enough to find it


class FirstNames:
    """Of all files with several names that have gone into an archive."""

    def __init__(self) -> None:
        self._first: dict[tuple[int, ...], First] = {}
        self._numbered = 0

    def find(self, status: os.stat_result) -> First | None:
        return self._first.get(_identity(status))

    def number(self, status: os.stat_result, path: bytes) -> int:
        """The one that a file would have that is written next; -1 where it needs none."""
        return self._numbered if status.st_nlink > 1 and has_alias(path) else -1

    def add(self, status: os.stat_result, prefix: Prefix, path: bytes) -> None:
        if status.st_nlink > 1 and (identity := _identity(status)) not in self._first:
            number = self.number(status, path)
            self._numbered += number >= 0
            self._first[identity] = First(prefix, path.rpartition(b"/")[2], number)


def _identity(status: os.stat_result) -> tuple[int, ...]:
    """With its time and size: a number is given again as soon as a file is gone, and a changed one is another file."""
    return status.st_dev, status.st_ino, status.st_mtime_ns, status.st_size
