"""User numbers for workspaces, when we are root. Called by `volumes` for each new home.

Each is given out once and never again: a number cannot come back while a file, a process or an old archive still names
it. The counter is moved on, on disk, before the number is used; a crash in between only skips one.
"""

import fcntl
import os
import pathlib

from codehub.runtimes import files

LARGEST = 4_000_000_000


def allocate(counter: pathlib.Path, base: int) -> int:
    lock = os.open(counter.with_suffix(".lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        number = max(base, _next(counter, counter.parent / "homes"))
        if number > LARGEST:
            raise OverflowError("there are no user numbers left: set CODEHUB_UID_BASE lower")
        files.write_whole(counter, str(number + 1))
        return number
    finally:
        os.close(lock)


def _next(counter: pathlib.Path, homes: pathlib.Path) -> int:
    try:
        return int(counter.read_text())
    except (FileNotFoundError, ValueError):
        # Lost, which is the one time that all homes are looked at: nobody gets a number that is in use.
        taken = [entry.stat().st_uid for entry in homes.glob("*/*/home") if entry.is_dir()]
        return max(taken, default=0) + 1
