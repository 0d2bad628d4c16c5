"""What another time to sleep would have done to the days behind us. Pure.

A workspace's past is a list of runs, each with the stretches in which nothing happened in it. What people did is taken
as it was: they come back when they came back, and what they put to sleep themselves still sleeps then. So a longer time
bridges some sleeps, and a shorter one puts to sleep in the middle of a run. Where the stretches are not known, the
answer has two ends: as if there were none, and as if a run consisted of nothing else.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import Enum, auto

SHORTEST_SEEN = 300.0  # seconds; stretches that are shorter are not kept (`idle_periods`)
# A timer acts so long after the time was up, at the latest; later means that something kept the workspace awake.
PROMPT = 180.0


class End(Enum):
    TIMER = auto()  # slept, because nothing happened
    ASKED = auto()  # slept, because a person wanted it to
    GONE = auto()  # deleted, or ended by itself
    STILL = auto()  # runs yet


@dataclass(frozen=True)
class Stretch:
    """Nothing happened in a running workspace."""

    began: datetime
    ended: datetime
    kept_until: datetime | None = None  # by a person, or by what computed


@dataclass(frozen=True)
class Run:
    began: datetime
    ended: datetime
    end: End
    stretches: tuple[Stretch, ...] = ()  # in order of time; of a timer's end without the last one
    idle_since: datetime | None = None  # before a timer's end, and of what runs yet
    kept_until: datetime | None = None  # of what runs yet
    seconds: int = 0  # after which it slept then; 0: never
    seen: bool = True  # all its stretches of five minutes and more are known
    next_at: datetime | None = None  # when it was wanted again, or deleted
    came_back: bool = False  # that was a person who wanted it
    stored: bool = False  # it was stored away meanwhile


@dataclass(frozen=True)
class Past:
    """One workspace's."""

    runs: Sequence[Run]
    archive_seconds: int | None = None  # its own; None: the platform's


@dataclass(frozen=True)
class Between:
    low: float
    high: float

    def __add__(self, other: "Between") -> "Between":
        return Between(self.low + other.low, self.high + other.high)


NOTHING = Between(0, 0)


@dataclass(frozen=True)
class Figures:
    hours: Between = NOTHING  # that workspaces ran
    sleeps: Between = NOTHING  # by the timer
    wakes: Between = NOTHING  # people who came back to a sleeping workspace
    stored: Between = NOTHING  # sleeps that became long enough to store it away
    restores: Between = NOTHING  # of those, to which people came back

    def __add__(self, other: "Figures") -> "Figures":
        return Figures(**{name: getattr(self, name) + getattr(other, name) for name in vars(self)})


@dataclass
class _Tally:
    hours: float = 0.0
    sleeps: int = 0
    wakes: int = 0
    asleep: list[tuple[datetime, datetime, bool]] = field(default_factory=list)  # from, to, did a person come back
    already: datetime | None = None  # it slept when a person asked it to

    def sleep(self, at: datetime, back: datetime, *, came_back: bool, by_timer: bool = True) -> None:
        self.sleeps += by_timer
        self.wakes += came_back
        self.asleep.append((at, back, came_back))


def did(pasts: Iterable[Past], until: datetime) -> Figures:
    """As it was."""
    total = Figures()
    for past in pasts:
        for run in past.runs:
            slept = run.end in {End.TIMER, End.ASKED}
            total += Figures(
                _exactly(_hours(run.began, run.ended)),
                _exactly(run.end is End.TIMER),
                _exactly(slept and _comes_back(run, until)),
                _exactly(slept and run.stored),
                _exactly(slept and run.stored and _comes_back(run, until)),
            )
    return total


def would(pasts: Iterable[Past], standby: int, archive: int, until: datetime) -> Figures:
    """As it would have been with these times, in seconds; 0 = never."""
    total = Figures()
    for past in pasts:
        for run in past.runs:
            total += _would(run, standby, archive if past.archive_seconds is None else past.archive_seconds, until)
    return total


def _would(run: Run, standby: int, archive: int, until: datetime) -> Figures:
    tally = _Tally(hours=_hours(run.began, run.ended))
    for stretch in run.stretches:
        slept = max(_after(stretch.began, standby, until), stretch.kept_until or stretch.began, run.began)
        if slept >= stretch.ended:
            continue
        tally.hours -= _hours(slept, stretch.ended)
        if stretch.ended < run.ended:
            tally.sleep(slept, stretch.ended, came_back=True)
        elif run.end is End.ASKED:
            tally.sleeps, tally.already = tally.sleeps + 1, slept
        else:
            tally.sleep(slept, stretch.ended, came_back=False)
    _end(run, standby, until, tally)
    kept = [(begin, end, back) for begin, end, back in tally.asleep if archive and _seconds(begin, end) > archive]
    saved, more = _unseen(run, standby)
    restored = more if archive and _longest_unseen(run) - standby > archive else 0
    return Figures(
        Between(tally.hours - saved, tally.hours),
        Between(tally.sleeps, tally.sleeps + more),
        Between(tally.wakes, tally.wakes + more),
        Between(len(kept), len(kept) + restored),
        Between(sum(back for _, _, back in kept), sum(back for _, _, back in kept) + restored),
    )


def _end(run: Run, standby: int, until: datetime, tally: _Tally) -> None:
    """What becomes of a run's end: a timer's comes earlier or later, a person's stays."""
    following = until if run.next_at is None else min(run.next_at, until)
    if run.end is End.ASKED:
        tally.sleep(tally.already or run.ended, following, came_back=_comes_back(run, until), by_timer=False)
    elif run.end is End.STILL and run.idle_since is not None:
        slept = max(_after(run.idle_since, standby, until), run.kept_until or run.began, run.began)
        if slept < run.ended:
            tally.hours -= _hours(slept, run.ended)
            tally.sleep(slept, run.ended, came_back=False)
    elif run.end is End.TIMER:
        slept = _timer(run, standby, until)
        tally.hours += _hours(run.ended, min(slept, following))
        if slept <= run.ended or slept < following:
            tally.sleep(slept, following, came_back=_comes_back(run, until))


def _timer(run: Run, standby: int, until: datetime) -> datetime:
    """When it would have slept. What kept it awake for longer than its time would have done so again."""
    idle_since = run.idle_since or run.ended
    if standby == 0:
        return until + timedelta(seconds=1)
    if _seconds(idle_since, run.ended) - run.seconds > PROMPT:
        return max(run.ended, idle_since + timedelta(seconds=standby))
    return run.ended + timedelta(seconds=standby - run.seconds)


def _comes_back(run: Run, until: datetime) -> bool:
    return run.came_back and run.next_at is not None and run.next_at <= until


# --- what is not known ----------------------------------------------------------------------------------------------


def _unseen(run: Run, standby: int) -> tuple[float, int]:
    """At most so many hours less, and so many sleeps more, in what is not known of a run."""
    longest = _longest_unseen(run)
    if standby == 0 or standby >= longest:
        return 0.0, 0
    saved, more = 0.0, 0
    for length in _busy(run):
        more += int(length // standby)
        whole, rest = (0.0, length) if math.isinf(longest) else divmod(length, longest)
        saved += whole * (longest - standby) + max(0.0, rest - standby)
    return saved / 3600, more


def _longest_unseen(run: Run) -> float:
    """Nothing may have happened for so long without our knowing: beyond it, the timer of then would have acted."""
    unseen = run.seconds or math.inf
    return min(SHORTEST_SEEN, unseen) if run.seen else unseen


def _busy(run: Run) -> list[float]:
    """The lengths of what lies between its stretches."""
    found, at = [], run.began
    for stretch in run.stretches:
        found.append(_seconds(at, stretch.began))
        at = max(at, stretch.ended)
    end = run.ended if run.idle_since is None else min(run.idle_since, run.ended)
    found.append(_seconds(at, end))
    return [length for length in found if length > 0]


def _after(moment: datetime, seconds: int, until: datetime) -> datetime:
    """Never, for 0: after all that is looked at."""
    return moment + timedelta(seconds=seconds) if seconds else until + timedelta(seconds=1)


def _seconds(since: datetime, until: datetime) -> float:
    return (until - since).total_seconds()


def _hours(since: datetime, until: datetime) -> float:
    return _seconds(since, until) / 3600


def _exactly(value: float) -> Between:
    return Between(value, value)
