"""Keeps the files in the data directory's `log` folder bounded. A task of `supervisor.serve`.

Processes that write to one go on writing to the same file: roles cannot open another one, and servers do not know that
there is one. So a file that has become long is copied to `NAME.log.1` and emptied.
"""

import fcntl
import os
import pathlib
import shutil

from codehub.clock import Clock

MAX_BYTES = 20_000_000
PERIOD_SECONDS = 10.0


async def keep_bounded(folder: pathlib.Path, clock: Clock) -> None:
    while True:
        shorten_all(folder)
        await clock.sleep(PERIOD_SECONDS)


def shorten_all(folder: pathlib.Path) -> None:
    for path in folder.glob("*.log"):
        shorten(path, MAX_BYTES)


def shorten(path: pathlib.Path, max_bytes: int) -> None:
    """No line of ours is lost: its writer waits for this lock (see `codehub.logs`)."""
    if path.stat().st_size <= max_bytes:
        return
    copy = path.with_suffix(".log.1")
    with path.open("r+b") as file:
        try:
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:  # a line is being written: next time
            return
        with open(os.open(copy, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as into:  # noqa: PTH123
            shutil.copyfileobj(file, into)
        file.truncate(0)
