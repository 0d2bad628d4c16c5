"""Reading a template's starter files: the folder beside its TOML that a new home begins with. Called by `loader`.

They are read once, at the start, as the template itself: what is in the folder later is of the next start. Only files
and folders, so that a link cannot bring in what the operator did not mean to give; and few, because every process that
knows templates has them in memory.
"""

import os
import pathlib
import stat
from collections.abc import Iterator

from codehub.templates.model import StarterFile

MOST_FILES = 100
MOST_BYTES = 4 << 20  # of all together
DEEPEST = 10  # folders in each other
LONGEST_PATH = 200  # characters


class WrongStarterError(Exception):
    """Says what is wrong with the folder; the loader adds the template's file."""


def read(folder: pathlib.Path) -> tuple[StarterFile, ...]:
    """In the order of their paths."""
    try:
        if not stat.S_ISDIR(folder.lstat().st_mode):
            raise WrongStarterError(f"starter: {folder.name} is not a folder")
        found = sorted(_walk(folder, folder, DEEPEST))
        if len(found) > MOST_FILES:
            raise WrongStarterError(f"starter: {folder.name} has more than {MOST_FILES} files")
        return tuple(_files(folder, found))
    except OSError as e:
        raise WrongStarterError(f"starter: {e.filename or folder} cannot be read: {e.strerror}") from e


def _walk(folder: pathlib.Path, top: pathlib.Path, deep: int) -> Iterator[str]:
    with os.scandir(folder) as entries:
        for entry in entries:
            shown = os.path.relpath(entry.path, top)
            _check_name(shown)
            if entry.is_symlink() or not (entry.is_file() or entry.is_dir()):
                raise WrongStarterError(f"starter: {shown} is neither a file nor a folder")
            if entry.is_file():
                yield shown
            elif deep:
                yield from _walk(pathlib.Path(entry.path), top, deep - 1)
            else:
                raise WrongStarterError(f"starter: {shown} is more than {DEEPEST} folders deep")


def _check_name(shown: str) -> None:
    if not shown.isprintable() or len(shown) > LONGEST_PATH:  # also bytes that are no UTF-8
        raise WrongStarterError(f"starter: {shown[:LONGEST_PATH]!r} cannot be the name of a starter file")


def _files(folder: pathlib.Path, paths: list[str]) -> Iterator[StarterFile]:
    left = MOST_BYTES
    for path in paths:
        # Not through a link that came since the walk, and never to wait for a pipe's other end.
        fd = os.open(folder / path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(fd, "rb") as file:
            executable = bool(os.fstat(fd).st_mode & stat.S_IXUSR)
            data = file.read(left + 1)
        left -= len(data)
        if left < 0:
            raise WrongStarterError(f"starter: {folder.name} has more than {MOST_BYTES >> 20} MB")
        yield StarterFile(path, data, executable)
