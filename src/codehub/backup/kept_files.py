"""The files of backups that a page asked for: `backups/` of the data directory, which only the coordinator may enter.

A file has its name only when it is whole (`archive.writing`): what a killed process leaves is a `….part`, which the
next leader removes. Called by `maker`, in threads.
"""

import contextlib
import os
import pathlib
import re
import shutil
import stat
from collections.abc import AsyncGenerator
from dataclasses import dataclass
from datetime import UTC, datetime

from codehub.backup import archive
from codehub.errors import NotFoundError

NAME = re.compile(r"codehub-(\d{4}-\d\d-\d\d-\d{6})-([a-z0-9]{1,63})\.codehub")
LEFT_OVER = re.compile(rf"\.{NAME.pattern}\.[^/]*\.part")
MOMENT = "%Y-%m-%d-%H%M%S"
CHUNK = 256 * 1024


@dataclass(frozen=True)
class File:
    id: str
    path: pathlib.Path
    size: int
    made_at: datetime


def name_of(id_: str, at: datetime) -> str:
    return f"codehub-{at.astimezone(UTC).strftime(MOMENT)}-{id_}.codehub"


def prepare(folder: pathlib.Path) -> None:
    folder.mkdir(mode=0o700, exist_ok=True)
    folder.chmod(0o700)


def files(folder: pathlib.Path) -> dict[str, File]:
    """By id; what has another name is the operator's own, and left alone."""
    found = {}
    for entry in _entries(folder):
        match = NAME.fullmatch(entry.name)
        info = entry.lstat()
        if match and stat.S_ISREG(info.st_mode):
            with contextlib.suppress(ValueError):  # a day that no month has
                at = datetime.strptime(match[1], MOMENT).replace(tzinfo=UTC)
                found[match[2]] = File(match[2], entry, info.st_size, at)
    return found


def _entries(folder: pathlib.Path) -> list[pathlib.Path]:
    try:
        return list(folder.iterdir())
    except FileNotFoundError:
        return []


def remove_left_over(folder: pathlib.Path) -> int:
    """What a process that was killed had not finished. Only while none of this leader is being made."""
    gone = [entry for entry in _entries(folder) if LEFT_OVER.fullmatch(entry.name)]
    for entry in gone:
        entry.unlink(missing_ok=True)
    return len(gone)


def remove(folder: pathlib.Path, id_: str) -> None:
    if file := files(folder).get(id_):
        file.path.unlink(missing_ok=True)


def free(folder: pathlib.Path) -> int:
    """Bytes on its disk. The folder need not be there yet."""
    return shutil.disk_usage(folder if folder.exists() else folder.parent).free


async def pieces(folder: pathlib.Path, id_: str) -> AsyncGenerator[bytes, None]:
    """The whole file, as it is: for a download."""
    file = files(folder).get(id_)
    if file is None:
        raise NotFoundError("there is no such backup on this machine")
    with os.fdopen(os.open(file.path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC), "rb") as content:
        read: list[bytes] = []

        def take() -> None:
            read.append(content.read(CHUNK))

        while True:
            await archive.to_the_end(take)
            piece = read.pop()
            if not piece:
                return
            yield piece
