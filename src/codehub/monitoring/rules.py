"""How long samples are kept, and how many become one. Pure.

All three resolutions are written side by side, so that nothing has to be thinned out later: an older sample of a finer
resolution is only removed.
"""

import bisect
import math
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime, timedelta

from codehub.monitoring.model import Resolution, Sample

KEPT = {
    Resolution.MINUTE: timedelta(days=1),
    Resolution.QUARTER_HOUR: timedelta(days=14),
    Resolution.HOUR: timedelta(days=92),
}
# Of seconds that a wake took: each a quarter more than the one before it, so that a quantile is told to within 12 %.
BOUNDS = tuple(0.1 * 1.25**n for n in range(40))
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def most_rows() -> int:
    """That the table can have: of each resolution one more than its time has room for, the one that is being filled."""
    return sum(kept // timedelta(seconds=resolution) + 1 for resolution, kept in KEPT.items())


def beginning(moment: datetime, seconds: int) -> datetime:
    """Of the interval of that length in which it lies."""
    return moment - (moment - EPOCH) % timedelta(seconds=seconds)


def until_next_minute(now: datetime) -> float:
    return (beginning(now, 60) + timedelta(minutes=1) - now).total_seconds()


# --- merging --------------------------------------------------------------------------------------------------------


def merge(samples: Sequence[Sample], at: datetime) -> Sample:
    """Workspaces on average; people and what waits at their most, as lag; what is free at its least."""
    by_time = sorted(samples, key=lambda s: s.taken_at)
    minutes = sum(s.minutes for s in samples)

    def mean(of: Callable[[Sample], float]) -> float:
        return sum(of(s) * s.minutes for s in samples) / minutes

    slowest = max(samples, key=lambda s: -1.0 if s.loop_lag_seconds is None else s.loop_lag_seconds)
    return Sample(
        at=at,
        taken_at=by_time[-1].taken_at,
        minutes=minutes,
        running=mean(lambda s: s.running),
        asleep=mean(lambda s: s.asleep),
        stored=mean(lambda s: s.stored),
        pending=mean(lambda s: s.pending),
        broken=mean(lambda s: s.broken),
        active_workspaces=max(s.active_workspaces for s in samples),
        active_people=max(s.active_people for s in samples),
        waiting=max(_known(s.waiting for s in samples), default=None),
        archive_bytes=by_time[-1].archive_bytes,
        disk_free_bytes=min(_known(s.disk_free_bytes for s in samples), default=None),
        loop_lag_seconds=slowest.loop_lag_seconds,
        slowest_loop=slowest.slowest_loop,
        wakes=add([s.wakes for s in samples]),
    )


def same_minute(before: Sample | None, new: Sample) -> Sample:
    """Two samples of one minute, as when another leader takes over: the newer one says how it is."""
    if before is None:
        return new
    both = merge([before, new], new.at)
    return Sample(**{**vars(both), **{name: getattr(new, name) for name in GAUGES}, "minutes": 1})


GAUGES = ("running", "asleep", "stored", "pending", "broken")


def grouped(samples: Iterable[Sample], key: Callable[[Sample], datetime]) -> list[Sample]:
    """One for each key, in order of time. `key` names the beginning of the interval."""
    found: dict[datetime, list[Sample]] = {}
    for sample in samples:
        found.setdefault(key(sample), []).append(sample)
    return [merge(some, at) for at, some in sorted(found.items())]


def _known(values: Iterable[int | None]) -> list[int]:
    return [value for value in values if value is not None]


# --- how long wakes took --------------------------------------------------------------------------------------------


def histogram(seconds: Iterable[float]) -> tuple[int, ...]:
    """How many lie in each interval of `BOUNDS`, the last one without an end. Empty: there were none."""
    counts = [0] * (len(BOUNDS) + 1)
    for value in seconds:
        counts[bisect.bisect_left(BOUNDS, value)] += 1
    return tuple(counts) if any(counts) else ()


def add(histograms: Sequence[Sequence[int]]) -> tuple[int, ...]:
    some = [h for h in histograms if h]
    return tuple(map(sum, zip(*some, strict=True))) if some else ()


def quantile(counts: Sequence[int], part: float) -> float | None:
    """Below which that part of them lies. None: there were none."""
    total = sum(counts)
    if not total:
        return None
    wanted, seen = math.ceil(part * total), 0
    for number, count in enumerate(counts):
        seen += count
        if seen >= wanted:
            return BOUNDS[min(number, len(BOUNDS) - 1)] / math.sqrt(1.25)
    raise AssertionError("a part is at most 1")
