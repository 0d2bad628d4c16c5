"""Write files into a home as its user, wherever its owner's links may point. Started by `inside`.

On standard input, as for `enter`: ten digits, JSON, then the files' contents one after the other. Folders are walked
one by one without following links, and a file is written aside and renamed, so that a link in its place is replaced,
not followed. As root, the home is opened first and the rights given up before anything in it is touched.
"""

import contextlib
import errno
import json
import os
import stat
from typing import Any

from codehub.runtimes.shepherd.enter import read_exactly
from codehub.system import kernel

FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def main(arguments: list[str]) -> None:
    report = int(arguments[0])
    try:
        wanted = json.loads(read_exactly(int(read_exactly(10))))
        home = os.open(wanted["home"], FOLDER)
        kernel.give_up_rights(wanted["uid"], wanted["gid"])
        os.umask(0o022)
        for path, size in wanted["files"]:
            _write(home, path, read_exactly(size))
        outcome: dict[str, Any] = {"code": 0}
    except OSError as e:
        outcome = {"error": f"{e.filename}: {e.strerror}" if e.filename else e.strerror or str(e)}
    os.write(report, json.dumps(outcome).encode())
    os._exit(0)


def _write(home: int, path: str, data: bytes) -> None:
    *folders, name = path.split("/")
    try:
        folder = _walk(home, folders)
    except OSError as e:
        reason = "a link or a file stands where a folder should be" if e.errno in {errno.ELOOP, errno.ENOTDIR} else None
        raise OSError(e.errno, reason or e.strerror, path) from e
    try:
        _replace(folder, name, data)
    except OSError as e:
        raise OSError(e.errno, e.strerror, path) from e
    finally:
        os.close(folder)


def _walk(home: int, folders: list[str]) -> int:
    here = os.dup(home)
    for name in folders:
        with contextlib.suppress(FileExistsError):
            os.mkdir(name, 0o755, dir_fd=here)
        try:
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
    aside = f".codehub-{os.getpid()}-{os.urandom(8).hex()}"
    fd = os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600, dir_fd=folder)
    try:
        with os.fdopen(fd, "wb") as file:
            file.write(data)
            os.fchmod(fd, mode)
        os.replace(aside, name, src_dir_fd=folder, dst_dir_fd=folder)
    except OSError:
        with contextlib.suppress(OSError):
            os.unlink(aside, dir_fd=folder)
        raise
