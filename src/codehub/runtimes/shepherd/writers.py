"""Who of a workspace wrote since its home was measured, and who waits until it is measured again. For `disk_watch`.

A home of many files takes a while to be measured, and much can be written meanwhile. A process that wrote more than
there was room for is stopped until the home's size is known; then it goes on, or is ended.
"""

import signal

from codehub.runtimes.shepherd import share_rules as rules
from codehub.runtimes.shepherd.members import Members
from codehub.runtimes.shepherd.share_rules import DiskAmount, Sample
from codehub.system.kernel import now_seconds


class Writers:
    def __init__(self, members: Members) -> None:
        self._members = members
        self._since_used: dict[int, Sample] = {}  # when the measurement began whose result we have
        self._since_begun: dict[int, Sample] = {}  # when the latest one began
        self._used_at = self._begun_at = self._looked_at = now_seconds()
        self._last: dict[int, Sample] = {}
        self._paused: set[int] = set()
        self.active = False  # since the latest one began: anything that could have made the home grow

    def begin(self) -> None:
        """The home is going to be measured."""
        self._since_begun, self._begun_at = self._members.samples(), now_seconds()
        self.active = False

    def look(self, used: DiskAmount, gone: DiskAmount, limit: DiskAmount) -> int:
        """The home could be beyond its limit. How many were stopped, because they would be enough for that alone."""
        now, last, seconds = self._members.samples(), self._last, now_seconds() - self._looked_at
        self._last, self._looked_at = now, now_seconds()
        self.active = self.active or (bool(last) and rules.busy(last, now, seconds))
        written = rules.written(self._since_used, now)
        if not rules.overfills(used, min(gone.bytes, sum(written.values())), limit):
            return 0
        many = {pid for pid, size in written.items() if size >= rules.GROWN_BYTES and pid != 1}
        many &= rules.writers(last or self._since_used, now, 1)
        fresh = many - self._paused
        self._paused |= many
        self._members.end(many, signal.SIGSTOP)  # again, if somebody inside let it go on
        return len(fresh)

    def calm(self) -> None:
        """The home cannot be beyond its limit."""
        self._last = {}

    def found(self) -> set[int]:
        """Who made it grow: during the measurement, or before it, or else those that worked and so could make files."""
        now, at = self._members.samples(), now_seconds()
        return (
            (rules.writers(self._since_begun, now, rules.GROWN_BYTES) | self._paused & set(now))
            or rules.writers(self._since_used, now, rules.GROWN_BYTES)
            or rules.makers(self._since_begun, now, at - self._begun_at)
            or rules.makers(self._since_used, now, at - self._used_at)
        )

    @property
    def waiting(self) -> bool:
        return bool(self._paused)

    def measured(self) -> None:
        self.let_go()
        self._since_used, self._used_at = self._since_begun, self._begun_at

    def let_go(self) -> None:
        """Who is still there goes on."""
        self._members.end(self._paused, signal.SIGCONT)
        self._paused = set()
