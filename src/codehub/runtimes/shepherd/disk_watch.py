"""Keeps a home within its limit, and the file system above the platform's reserve. Each shepherd has one.

The file system's own figures are looked at often, for they cost nothing. The home is measured only when so much has
gone from the file system since the last time that it could be at its limit: costs grow with what is written.
"""

import contextlib
import json
import os
from collections.abc import Callable

from codehub.runtimes.shepherd import measuring
from codehub.runtimes.shepherd import share_rules as rules
from codehub.runtimes.shepherd.measuring import Measuring
from codehub.runtimes.shepherd.members import Members
from codehub.runtimes.shepherd.share_rules import DiskAmount, Level, Reach, Sample
from codehub.runtimes.shepherd.shares import Shares
from codehub.runtimes.shepherd.writers import Writers
from codehub.system.kernel import now_seconds

SEARCH_SECONDS = 1.0  # between looks for what cannot be counted
ANYWAY_SECONDS = 600.0  # what one deletes hides what another writes: measured now and then all the same

Say = Callable[[str], None]


class DiskWatch:
    def __init__(self, shares: Shares, folders: list[str], members: Members, say: Say) -> None:
        self._shares = shares
        self._limit = DiskAmount(shares.disk_bytes, shares.disk_files)
        self._reserve = DiskAmount(shares.reserve_bytes, shares.reserve_files)
        found = _file_systems(folders)
        self._places, self._devices = list(found.values()), set(found)
        self._members = members
        self._say = say
        self._measuring = Measuring(folders)
        self._used: DiskAmount | None = None  # at the last measurement
        self._least = DiskAmount(0, 0)  # the smallest it was while it was too large
        self._gone = DiskAmount(0, 0)  # from the file system since the latest measurement began
        self._gone_before = DiskAmount(0, 0)  # while one is under way: between its begin and that of the one before
        self._writers = Writers(members)
        self._free = _free(self._places)
        self._before: dict[int, Sample] = {}
        self._looked_at = self._measured_at = now_seconds()
        self._low_since: float | None = None  # below the reserve, with what cannot be counted in here
        self._searched_at = 0.0
        self._written = 0  # by all that were seen
        self._strikes = 0
        self._settling = False
        self._said: set[str] = set()

    @property
    def wanted(self) -> bool:
        return any((*vars(self._limit).values(), *vars(self._reserve).values()))

    def look(self) -> float:
        """Seconds until the next look."""
        free = _free(self._places)
        gone = DiskAmount(max(0, self._free.bytes - free.bytes), max(0, self._free.files - free.files))
        self._gone = _sum(self._gone, gone)
        self._free = free
        level = rules.level(free, self._reserve)
        self._suspect()
        self._measure(level)
        if level and rules.grew(DiskAmount(0, 0), gone):
            self._defend(level)
        elif not level:
            self._before = {}
        self._search(level)
        return self._pause(free)

    def _pause(self, free: DiskAmount) -> float:
        pause = rules.pause(free, self._reserve)
        home = rules.pause_of_home(self._at_most(), self._limit)
        return min(pause, measuring.PAUSE if self._measuring.under_way else home)

    def _at_most(self) -> DiskAmount:
        """The home, should everything that went from the file system have gone there."""
        return _sum(self._used or DiskAmount(0, 0), self._gone_before, self._gone)

    def _suspect(self) -> None:
        """Who writes is looked at before the home's size is known: by then they could be done."""
        if not rules.beyond(self._at_most(), self._limit):
            self._writers.calm()
            return
        gone = _sum(self._gone_before, self._gone)
        if paused := self._writers.look(self._used or DiskAmount(0, 0), gone, self._limit):
            self._say(f"{_processes(paused)} made to wait: the home is measured, for it may be at its limit")

    def _measure(self, level: Level) -> None:
        if self._measuring.under_way:
            self._collect()
            return
        urgent = self._writers.waiting or (self._writers.active and rules.beyond(self._at_most(), self._limit))
        if self._measuring.rested(urgent=urgent) and self._due(level, now_seconds()):
            self._gone_before, self._gone = _sum(self._gone_before, self._gone), DiskAmount(0, 0)
            self._writers.begin()
            self._measuring.begin()

    def _collect(self) -> None:
        if (used := self._measuring.result()) is not None:
            unnamed = self._members.unnamed(self._devices) if self._used else 0
            self._gone_before = DiskAmount(0, 0)
            self._measured(DiskAmount(used.bytes + unnamed, used.files))
            self._writers.measured()
        elif not self._measuring.under_way:  # it could not be done: the next one will
            self._writers.let_go()

    def _due(self, level: Level, now: float) -> bool:
        if self._used is None:
            return True
        if not rules.grew(DiskAmount(0, 0), self._gone):
            return bool(self._gone.bytes) and now - self._measured_at > ANYWAY_SECONDS
        # Its own share, its warning, or the file system: whichever could have been reached meanwhile.
        warned = "warning" in self._said
        reached = rules.beyond if warned else rules.close_to
        return bool(level) or reached(self._at_most(), self._limit) or now - self._measured_at > ANYWAY_SECONDS

    def _measured(self, used: DiskAmount) -> None:
        before, self._used, self._measured_at = self._used, used, now_seconds()
        self._write_down(used)
        if before is None:  # the first: what is there is let be, should it be too much already
            self._limit = rules.allowed(self._limit, used, self._free, self._reserve)
            before = used
        self._tell(used)
        if not rules.beyond(used, self._limit):
            self._strikes, self._least = 0, DiskAmount(0, 0)
            return
        self._least = _smaller(self._least, used) if self._least.files else _smaller(used, before)
        if self._settling and not self._writers.waiting:
            # What was written while it was measured the last time: by a process that was ended, or is done and gone.
            self._settling = False
        elif rules.grew(before, used) or rules.crept(self._least, used):
            self._least = used
            self._strike(Reach(min(self._strikes + 1, Reach.WORKSPACE)), "its home is at its limit and was growing")
        else:
            self._strikes = 0

    def _tell(self, used: DiskAmount) -> None:
        size = f"{used.bytes >> 20} MB in {used.files} files"
        limit = f"{self._limit.bytes >> 20} MB and {self._limit.files} files"
        if rules.beyond(used, self._limit):
            self._once(
                "limit",
                f"the home takes {size}; its limit is {limit}. It can be emptied, and what makes it grow is ended.",
                f"홈 디렉터리가 한도({self._limit.bytes >> 20}MB)를 넘었습니다. 파일을 지워 공간을 확보해 주세요.",
            )
        elif rules.close_to(used, self._limit):
            self._once(
                "warning",
                f"the home takes {size}; its limit is {limit}. Make room before it is full.",
                f"홈 디렉터리가 한도({self._limit.bytes >> 20}MB)에 가까워졌습니다. 필요 없는 파일을 정리해 주세요.",
            )
        else:
            self._said.clear()

    def _once(self, key: str, text: str, korean: str) -> None:
        if key not in self._said:
            self._said.add(key)
            self._say(text)
            self._members.tell_terminals(f"[codehub] {text}\r\n[codehub] {korean}")

    def _strike(self, reach: Reach, why: str) -> None:
        """End who writes; should it go on growing all the same, a larger circle."""
        self._strikes += 1
        self._settling = True
        self._end(reach, self._writers.found(), self._members.samples(), why)

    def _defend(self, level: Level) -> None:
        """The file system is below the platform's reserve, and less is free than at the last look."""
        before, self._before = self._before, self._members.samples()
        now = now_seconds()
        passed, self._looked_at = now - self._looked_at, now
        if not before:
            return  # two looks tell who it was
        wrote = rules.writers(before, self._before, rules.WRITTEN[level])
        why = "the machine's disk is nearly full, and it was writing"
        last = level is Level.LAST and (bool(wrote) or rules.busy(before, self._before, passed))
        ide_wrote = level >= Level.CRITICAL and not wrote.isdisjoint(self._members.spared)
        if last or ide_wrote:
            self._end(Reach.WORKSPACE, wrote, self._before, why)
        elif wrote:
            self._end(Reach.WRITERS, wrote, self._before, why)

    def _search(self, level: Level) -> None:
        """Below the reserve, and nobody writes any more: what is held without a name or a descriptor is given back."""
        now = now_seconds()
        if not level:
            self._low_since = None
        if not level or now - self._searched_at < SEARCH_SECONDS:
            return
        self._searched_at = now
        pids, held = self._members.pids(), self._members.held
        held.look(pids)
        self._written = max(self._written, sum(sample.written for sample in self._members.samples().values()))
        in_flight, unsized = held.in_flight(pids), held.unsized(self._devices)
        self._low_since = (self._low_since or now) if in_flight or unsized else None
        elsewhere = self._written - (self._used.bytes if self._used else 0)
        low = now - (self._low_since or now)
        if rules.hoards(low, in_flight=in_flight, unsized=unsized, elsewhere=elsewhere, reserve=self._reserve):
            self._end(Reach.WORKSPACE, set(), {}, "the machine's disk is nearly full, and it held files without a name")

    def _end(self, reach: Reach, wrote: set[int], there: dict[int, Sample], why: str) -> None:
        if reach is Reach.WORKSPACE:
            self._say(f"the workspace was ended: {why}. Start it again and delete files.")
            self._members.end_workspace()
        elif ended := self._members.end(rules.whom(reach, there, self._members.spared, wrote)):
            self._say(f"{_processes(ended)} ended: {why}")

    def _write_down(self, used: DiskAmount) -> None:
        """For the next start. Not there, or half there: then it is measured anew."""
        if self._shares.usage_file:
            with contextlib.suppress(OSError), open(f"{self._shares.usage_file}.new", "w", encoding="ascii") as file:  # noqa: PTH123
                json.dump(vars(used), file)
                file.flush()
                os.replace(f"{self._shares.usage_file}.new", self._shares.usage_file)  # noqa: PTH105


def _processes(count: int) -> str:
    return f"{count} processes were" if count > 1 else "1 process was"


def _sum(*amounts: DiskAmount) -> DiskAmount:
    return DiskAmount(sum(amount.bytes for amount in amounts), sum(amount.files for amount in amounts))


def _smaller(one: DiskAmount, other: DiskAmount) -> DiskAmount:
    return DiskAmount(min(one.bytes, other.bytes), min(one.files, other.files))


def _file_systems(folders: list[str]) -> dict[int, str]:
    """Each with one of the folders that lie on it."""
    found: dict[int, str] = {}
    for folder in folders:
        with contextlib.suppress(OSError):
            found.setdefault(os.stat(folder).st_dev, folder)  # noqa: PTH116
    return found


def _free(places: list[str]) -> DiskAmount:
    """Of the fullest. A file system that makes files as it goes names none: then there is nothing to run out of."""
    amounts = []
    for place in places:
        with contextlib.suppress(OSError):
            found = os.statvfs(place)
            amounts.append(DiskAmount(found.f_bavail * found.f_frsize, found.f_favail if found.f_files else 1 << 40))
    return DiskAmount(
        min((amount.bytes for amount in amounts), default=1 << 60),
        min((amount.files for amount in amounts), default=1 << 40),
    )
