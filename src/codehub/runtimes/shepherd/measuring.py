"""How much a home takes, measured by `du` beside the shepherd's own work. One at a time; used by `disk_watch`.

By `du`, because a home can be deeper than Python can go; at the lowest priority, and seldom enough that measuring
a large home over and over never takes more than a small part of a core.
"""

import contextlib
import os
from typing import NoReturn

from codehub.runtimes.shepherd.share_rules import DiskAmount
from codehub.system import kernel
from codehub.system.kernel import now_seconds

PART_OF_A_CORE = 20  # it rests so many times as long as it took
PART_WHEN_URGENT = 2  # the same, while the home could be beyond its limit
SHORTEST_REST = 0.25
PAUSE = 0.05  # between looks whether it is done


class Measuring:
    def __init__(self, folders: list[str]) -> None:
        self._folders = folders
        self._fd = -1
        self._text = b""
        self._began = self._ended = self._took = 0.0

    @property
    def under_way(self) -> bool:
        return self._fd >= 0

    def rested(self, *, urgent: bool) -> bool:
        """May the next one begin?"""
        parts = PART_WHEN_URGENT if urgent else PART_OF_A_CORE
        return now_seconds() >= self._ended + max(SHORTEST_REST, self._took * parts)

    def begin(self) -> None:
        reading, writing = os.pipe2(os.O_CLOEXEC)
        os.set_blocking(reading, False)
        try:
            child = os.fork()
        except OSError:
            os.close(reading)
            os.close(writing)
            return
        if child == 0:
            _become_du(self._folders, writing)
        os.close(writing)
        self._fd, self._text, self._began = reading, b"", now_seconds()

    def result(self) -> DiskAmount | None:
        """None while it is under way, and when it could not be done."""
        with contextlib.suppress(BlockingIOError):
            while piece := os.read(self._fd, 4096):
                self._text += piece
            return self._end()
        return None

    def _end(self) -> DiskAmount | None:
        os.close(self._fd)
        self._fd = -1
        now = now_seconds()
        self._ended, self._took = now, max(0.0, now - self._began - PAUSE)
        try:
            size, files = (int(line.split()[0]) for line in self._text.splitlines())
        except ValueError:
            return None
        return DiskAmount(size, files)


def _become_du(folders: list[str], output: int) -> NoReturn:
    """Two figures, so two runs: one after the other, at the lowest priority."""
    try:
        nothing = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
        for fd, place in ((nothing, 0), (output, 1), (nothing, 2)):
            os.dup2(fd, place)
        os.nice(19)
        kernel.open_closed_folders()
        script = 'du -scx --block-size=1 -- "$@" | tail -n 1; du -scx --inodes -- "$@" | tail -n 1'
        environment = {"PATH": os.defpath, "LC_ALL": "C"}
        os.execve("/bin/sh", ["sh", "-c", script, "measure", *folders], environment)  # noqa: S606
    finally:
        os._exit(1)


def main(arguments: list[str]) -> None:
    """Started by `inside`: one `du` of one folder, which sees into closed ones too."""
    kernel.open_closed_folders()
    os.execvpe("du", ["du", "-s", "-x", "--block-size=1", "--", *arguments], {"PATH": os.defpath})  # noqa: S606
