"""When a workspace takes too much, and what is done about it. Pure; `disk_watch` and `process_watch` act.

A home beyond its limit can be emptied and not grow: who makes it grow is ended, the IDE last. Below the platform's
reserve of the file system nobody may grow: the fastest writers first, and the more has gone the smaller they may be.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from enum import IntEnum

MIB, GIB = 1 << 20, 1 << 30
# What a writer can do in a second, generously: how long one may look away.
FASTEST_BYTES, FASTEST_FILES = 4 * GIB, 400_000
SHORTEST_PAUSE, SHORTEST_PAUSE_OF_HOME, LONGEST_PAUSE = 0.1, 0.25, 2.0
WARN_SHARE = 0.9
GROWN_BYTES, GROWN_FILES = MIB, 100  # less than this is an editor that saves
GRACE_BYTES, GRACE_FILES = 64 * MIB, 5000  # so much may come together slowly, beyond the limit
# By level: a process that wrote more than this between two looks is ended.
WRITTEN = (0, 8 * MIB, MIB // 4, 1)
BUSY_SHARE = 0.1  # of a core, on the last level
MAKER_SHARE = 0.1  # of a core, by one process
# So long below the reserve without a writer, and a workspace that holds what cannot be counted is ended.
HELD_SECONDS = 5.0
TABLE_PART = 20  # of the machine's open files, by one workspace, once half of them are taken
HELD_PART = 8  # of the reserve, at least: written by it, and not in its home


class Level(IntEnum):
    """How much of the reserve has gone."""

    FINE = 0
    LOW = 1
    CRITICAL = 2
    LAST = 3


class Reach(IntEnum):
    """Whom to end."""

    NOBODY = 0
    WRITERS = 1
    ALL_BUT_IDE = 2
    WORKSPACE = 3


@dataclass(frozen=True)
class DiskAmount:
    """Bytes and files: of a home what it takes, of a file system what is free."""

    bytes: int
    files: int


@dataclass(frozen=True)
class Sample:
    """One process at one look."""

    started: int
    written: int
    cpu_seconds: float


def level(free: DiskAmount, reserve: DiskAmount) -> Level:
    return max(_level(free.bytes, reserve.bytes), _level(free.files, reserve.files))


def _level(free: int, reserve: int) -> Level:
    if not reserve or free >= reserve:
        return Level.FINE
    if free >= reserve // 2:
        return Level.LOW
    return Level.CRITICAL if free >= reserve // 4 else Level.LAST


def pause(free: DiskAmount, reserve: DiskAmount) -> float:
    """Until the next look at the file system: half of the time in which the fastest could come to the reserve."""
    return max(SHORTEST_PAUSE, _soonest(reserve, free))


def pause_of_home(used: DiskAmount, limit: DiskAmount) -> float:
    """The same for a home and its limit; there it does not hurt to be a moment late."""
    return max(SHORTEST_PAUSE_OF_HOME, _soonest(used, limit))


def _soonest(one: DiskAmount, other: DiskAmount) -> float:
    """Half of the time in which the fastest takes what is between two figures; 0 is none."""
    seconds = [LONGEST_PAUSE]
    if one.bytes and other.bytes:
        seconds.append((other.bytes - one.bytes) / FASTEST_BYTES / 2)
    if one.files and other.files:
        seconds.append((other.files - one.files) / FASTEST_FILES / 2)
    return min(seconds)


def allowed(limit: DiskAmount, used: DiskAmount, free: DiskAmount, reserve: DiskAmount) -> DiskAmount:
    """A home may take what its limit says, and never more than half of what is there for all."""
    return DiskAmount(
        _allowed(limit.bytes, used.bytes, free.bytes - reserve.bytes),
        _allowed(limit.files, used.files, free.files - reserve.files) if free.files else limit.files,
    )


def _allowed(limit: int, used: int, spare: int) -> int:
    return min(limit, max(used, 0) + max(spare, 0) // 2) if limit else 0


def beyond(used: DiskAmount, limit: DiskAmount) -> bool:
    return bool((limit.bytes and used.bytes > limit.bytes) or (limit.files and used.files > limit.files))


def close_to(used: DiskAmount, limit: DiskAmount) -> bool:
    return beyond(used, DiskAmount(int(limit.bytes * WARN_SHARE), int(limit.files * WARN_SHARE)))


def grew(before: DiskAmount, after: DiskAmount) -> bool:
    """By more than an editor that saves."""
    return after.bytes - before.bytes >= GROWN_BYTES or after.files - before.files >= GROWN_FILES


def crept(least: DiskAmount, after: DiskAmount) -> bool:
    """Slowly, but far, since it was smallest while it was too large."""
    return after.bytes - least.bytes >= GRACE_BYTES or after.files - least.files >= GRACE_FILES


def written(before: Mapping[int, Sample], after: Mapping[int, Sample]) -> dict[int, int]:
    """What each wrote between two looks. One that is new wrote all it has written."""
    found = {}
    for pid, sample in after.items():
        earlier = before.get(pid)
        same = earlier is not None and earlier.started == sample.started
        found[pid] = max(0, sample.written - (earlier.written if earlier and same else 0))
    return found


def writers(before: Mapping[int, Sample], after: Mapping[int, Sample], least: int) -> set[int]:
    return {pid for pid, size in written(before, after).items() if size >= least}


def overfills(used: DiskAmount, more: int, limit: DiskAmount) -> bool:
    """Would so many bytes more be clearly too much? What an editor saves never is."""
    return bool(limit.bytes) and more >= GRACE_BYTES and used.bytes + more > limit.bytes + GRACE_BYTES


def hoards(seconds: float, *, in_flight: bool, unsized: bool, elsewhere: int, reserve: DiskAmount) -> bool:
    """Below the reserve for so long: does it hold files that nobody can see?"""
    much = unsized and elsewhere >= reserve.bytes // HELD_PART
    return seconds >= HELD_SECONDS and (in_flight or much)


def table_is_full(taken: int, places: int) -> bool:
    """The machine's open files: so many that workspaces have to give some back."""
    return bool(places) and taken > places // 2


def holds_too_many(own: int, places: int) -> bool:
    return own > places // TABLE_PART


def makers(before: Mapping[int, Sample], after: Mapping[int, Sample], seconds: float) -> set[int]:
    """Who could have made many empty files, which are not counted as written: making them takes processor time."""
    return {
        pid
        for pid, sample in after.items()
        if pid in before and sample.cpu_seconds - before[pid].cpu_seconds >= MAKER_SHARE * seconds
    }


def busy(before: Mapping[int, Sample], after: Mapping[int, Sample], seconds: float) -> bool:
    """Did anything in there work, or come and go, so that it could be what makes files?"""
    used = sum(sample.cpu_seconds - before[pid].cpu_seconds for pid, sample in after.items() if pid in before)
    return used >= BUSY_SHARE * max(seconds, SHORTEST_PAUSE) or set(before) != set(after)


def whom(reach: Reach, pids: Collection[int], spared: Collection[int], wrote: set[int]) -> set[int]:
    """Whom of a workspace that goes on; the spared are the IDE and what is around it."""
    others = {pid for pid in pids if pid not in spared}
    return others if reach is Reach.ALL_BUT_IDE else others & wrote
