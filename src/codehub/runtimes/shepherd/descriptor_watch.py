"""Keeps one workspace from filling the machine's table of open files, which everybody shares. For the shepherd.

An rlimit holds each process, and many processes together are still too much. The machine's own figure is looked at;
only when half of the table is taken are a workspace's descriptors counted.
"""

import contextlib
from collections.abc import Callable

from codehub.runtimes.shepherd import share_rules as rules
from codehub.runtimes.shepherd.members import Members

PAUSE, PAUSE_WHEN_FULL = 1.0, 0.1
TABLE = "/proc/sys/fs/file-nr"


class DescriptorWatch:
    def __init__(self, members: Members, say: Callable[[str], None], table: str = TABLE) -> None:
        self._members = members
        self._say = say
        self._table = table

    @property
    def wanted(self) -> bool:
        return bool(self._taken()[1])

    def look(self) -> float:
        """Seconds until the next look."""
        taken = self._taken()
        if not rules.table_is_full(*taken):
            return PAUSE
        counts = {pid: self._members.descriptors(pid) for pid in self._members.pids()}
        if rules.holds_too_many(sum(counts.values()), taken[1]):
            largest = max(counts, key=lambda pid: counts[pid])
            self._say("the machine's table of open files is nearly full, and the process with most of them was ended")
            if largest in self._members.spared:
                self._members.end_workspace()
            else:
                self._members.end([largest])
        return PAUSE_WHEN_FULL

    def _taken(self) -> tuple[int, int]:
        """Of how many places."""
        with contextlib.suppress(OSError, ValueError), open(self._table, encoding="ascii") as file:  # noqa: PTH123
            taken, _, places = map(int, file.read().split())
            return taken, places
        return 0, 0
