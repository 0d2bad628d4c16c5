"""How much a home takes, measured by `du` beside the shepherd's own work. One at a time; used by `disk_watch`.

By `du`, because a home can be deeper than Python can go; at the lowest priority, and seldom enough that measuring
a large home over and over never takes more than a small part of a core.
"""

import contextlib
import os

from codehub.runtimes.shepherd.kernel import now_seconds
from codehub.runtimes.shepherd.share_rules import Room

PART_OF_A_CORE = 20  # it rests so many times as long as it took
SHORTEST_REST = 0.25
PAUSE = 0.05  # between looks whether it is done


class Measuring:
    def __init__(self, folders: list[str]) -> None:
        self._folders = folders
        self._fd = -1
        self._text = b""
        self._began = 0.0
        self.rested_at = 0.0  # when the next one may begin

    @property
    def under_way(self) -> bool:
        return self._fd >= 0

    def begin(self) -> None:
        """Two figures, so two runs: one after the other, in one process group of the lowest priority."""
        reading, writing = os.pipe2(os.O_CLOEXEC)
        os.set_blocking(reading, False)
        script = (
            'nice -n 19 du -scx --block-size=1 -- "$@" | tail -n 1; nice -n 19 du -scx --inodes -- "$@" | tail -n 1'
        )
        nothing = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
        try:
            os.posix_spawnp(
                "sh",
                ["sh", "-c", script, "measure", *self._folders],
                {"PATH": os.defpath, "LC_ALL": "C"},
                file_actions=[
                    (os.POSIX_SPAWN_DUP2, nothing, 0),
                    (os.POSIX_SPAWN_DUP2, writing, 1),
                    (os.POSIX_SPAWN_DUP2, nothing, 2),
                ],
            )
        except OSError:
            os.close(reading)
            return
        finally:
            os.close(writing)
            os.close(nothing)
        self._fd, self._text, self._began = reading, b"", now_seconds()

    def result(self) -> Room | None:
        """None while it is under way, and when it could not be done."""
        with contextlib.suppress(BlockingIOError):
            while piece := os.read(self._fd, 4096):
                self._text += piece
            return self._end()
        return None

    def _end(self) -> Room | None:
        os.close(self._fd)
        self._fd = -1
        now = now_seconds()
        self.rested_at = now + max(SHORTEST_REST, (now - self._began - PAUSE) * PART_OF_A_CORE)
        try:
            size, files = (int(line.split()[0]) for line in self._text.splitlines())
        except ValueError:
            return None
        return Room(size, files)
