"""What the pump finds out about an event's speed, and the table of waits that it makes of it. Pure.

The pump keeps one `Estimate` per event, calls `observe` in each round and, when its `table` is another one than it was,
writes its `text` beside the line, where `eta.read` finds it. A pump that starts anew goes on from there (`resumed`).
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from math import exp, hypot, log1p, sqrt

from codehub.waiting_room import eta
from codehub.waiting_room.eta_forecast import (
    EDGES,
    Course,
    Outlook,
    Stays,
    Survival,
    course,
)

PERIOD = 5.0  # seconds between two tables, unless the regime changes
Z = 1.8  # 93 of 100 waits between the bounds, were everything as assumed
SCALES = (15.0, 60.0, 240.0, 960.0, 3840.0)  # seconds over which forecasts are compared with what came
FADE = 0.95  # of what earlier comparisons showed, at each further one
BURSTS = 16  # in the time that a place is kept: departures closer than that may have one reason
BURST_FADE = 0.98
SHORT_STAY = 4  # a place kept for less than such a part of the mean was not really used: an offer that lapsed
CHANGE, CHANGE_SECONDS = 0.15, 600.0  # how much may change until then that nothing foretells: the capacity, habits
SMOOTH = 0.3  # of the way from what was told to what was found, at each table
ROUND = 1.0  # seconds of a pump's round: an offer is never earlier than it, on average half of it late
HOUR = 3600.0
FILLING = 4, 10_000  # free places that are thought of as taken next: at least, at most
LONG_STAY = 2 * HOUR  # what is thought possible before any place was given back


@dataclass(frozen=True)
class Seen:
    """What one round of the pump sees. Times are seconds since 1970."""

    at: float
    live: int  # in line and may be offered a place (not passed, not silent, without an offer)
    joined: int  # in all: waiting + entered + left + expired
    granted: int  # offers made since the last round, this one's included
    capacity: int | None  # None: without limit
    taken: Sequence[float]  # since when each place is offered, reserved, held or, in `lab`, running
    per_minute: float | None = None  # the event's `admission_rate`
    next_grant_at: float = 0.0
    not_before: float = 0.0  # the later of `opens_at` and the end of a hold
    paused: bool = False

    @property
    def free(self) -> int:
        return 1_000_000 if self.capacity is None else self.capacity - len(self.taken)

    def ages(self, at: float) -> list[float]:
        return [max(0.0, at - since) for since in self.taken]

    @property
    def regime(self) -> tuple[object, ...]:
        """A change of this is told at once: what people set, and whether any place is free."""
        return self.capacity, self.per_minute, self.not_before, self.paused, self.free > 0


@dataclass(frozen=True)
class Comparison:
    """A forecast for one scale, and how such forecasts have done."""

    until: float = 0.0
    expected: float = -1.0  # below zero: none is under way
    came: float = 0.0
    squares: float = 0.0  # of what came less what was expected
    events: float = 0.0  # expected in all

    @property
    def dispersion(self) -> float:
        """1 for independent departures, 0 for a clock, many where people leave together."""
        return (self.squares + 2.0) / (self.events + 2.0)


@dataclass(frozen=True)
class Bursts:
    """On how many occasions places were given back: a class that ended is one, whatever its size."""

    until: float = 0.0  # the end of the present one
    count: float = 0.0
    total: float = 0.0
    squares: float = 0.0

    @property
    def number(self) -> float:
        squares = self.squares + self.count * self.count
        return (self.total + self.count) ** 2 / squares if squares else 0.0

    def after(self, ended: int, at: float, length: float) -> "Bursts":
        if at < self.until:
            return replace(self, count=self.count + ended)
        total, squares = BURST_FADE * self.total + self.count, BURST_FADE * self.squares + self.count * self.count
        return Bursts(at + length, ended, total, squares)


@dataclass(frozen=True)
class Estimate:
    seen: Seen | None = None  # the last one
    granted: int = 0  # since the last table
    stays: Stays = field(default_factory=Stays)
    lost: float = 0.0  # people who went away from the line, fading
    queued: float = 0.0  # person-seconds in which they did
    bursts: Bursts = field(default_factory=Bursts)
    checks: tuple[Comparison, ...] = (Comparison(),) * len(SCALES)
    table: eta.Table = eta.NOTHING_KNOWN

    @property
    def text(self) -> str:
        bursts = self.bursts
        numbers = [self.lost, self.queued, bursts.total + bursts.count, bursts.squares + bursts.count**2]
        numbers += [*self.stays.departures, *self.stays.exposure]
        numbers += [number for check in self.checks for number in (check.squares, check.events)]
        return f"{eta.written(self.table)}|{_packed(numbers)}"


def resumed(text: str) -> Estimate:
    """From what an earlier pump wrote; anything else begins anew."""
    try:
        numbers = _unpacked(text.split("|")[6])
        ages = len(EDGES)
        (lost, queued, total, squares), rest = numbers[:4], numbers[4:]
        pairs = rest[2 * ages :]
        checks = [Comparison(squares=pairs[2 * n], events=pairs[2 * n + 1]) for n in range(len(SCALES))]
        stays = Stays(tuple(rest[:ages]), tuple(rest[ages : 2 * ages]))
        bursts = Bursts(total=total, squares=squares)
        return Estimate(None, 0, stays, lost, queued, bursts, tuple(checks), eta.read(text))
    except (IndexError, ValueError):
        return Estimate()


def observe(estimate: Estimate, seen: Seen) -> Estimate:
    """With each round. The same table for `PERIOD` seconds, unless the regime changed."""
    last = estimate.seen
    granted = estimate.granted + seen.granted
    if last is not None and seen.at < last.at + PERIOD and seen.regime == last.regime:
        return replace(estimate, granted=granted)
    seconds = seen.at - last.at if last else 0.0
    if last is None or not 0 < seconds < HOUR:  # begun, or a clock was set
        return _tabled(replace(estimate, seen=seen, granted=0))
    ended = _ended(last, seen, granted)
    estimate = replace(estimate, seen=seen, granted=0, stays=estimate.stays.after(seconds, seen.ages(seen.at), ended))
    estimate = _attrition(estimate, last, seen, granted)
    checks = tuple(_came(check, len(ended), seen) for check in estimate.checks)
    table = estimate.table
    estimate = _tabled(replace(estimate, checks=checks), len(ended))
    if seen.regime != last.regime:
        return estimate
    return replace(estimate, table=_smoothed(table, estimate.table))


def _ended(last: Seen, seen: Seen, granted: int) -> list[float]:
    """For how long each place had been taken that was given back since.

    A workspace started with a reservation of `lab` is a place that began and one that ended, but none was given back.
    """
    before, after = Counter(last.taken), Counter(seen.taken)
    ended = sorted(max(0.0, seen.at - since) for since in (before - after).elements())
    begun = sum((after - before).values())
    return ended[max(0, begun - granted) :]


def _attrition(estimate: Estimate, last: Seen, seen: Seen, granted: int) -> Estimate:
    """People who were live and left, or fell silent, without an offer; who comes back counts against it."""
    seconds = seen.at - last.at
    fade = 0.5 ** (seconds / (HOUR / 4))
    lost = (last.live + max(0, seen.joined - last.joined) - granted) - seen.live
    if seen.joined < last.joined or seen.not_before > seen.at:  # the line was lost, or has not begun to move
        return estimate
    queued = estimate.queued * fade + seconds * (last.live + seen.live) / 2
    return replace(estimate, lost=max(0.0, estimate.lost * fade + lost), queued=queued)


def _came(check: Comparison, ended: int, seen: Seen) -> Comparison:
    if check.expected < 0:
        return check
    if seen.free > 0 or seen.paused:  # places stay empty: nothing was to be learnt
        return replace(check, expected=-1.0)
    came = check.came + ended
    if seen.at < check.until:
        return replace(check, came=came)
    squares = FADE * check.squares + (came - check.expected) ** 2
    return Comparison(squares=squares, events=FADE * check.events + check.expected)


def _tabled(estimate: Estimate, ended: int = 0) -> Estimate:
    """The table for those in line now; `ended`: places given back since the last one."""
    seen = estimate.seen
    assert seen is not None  # noqa: S101 - `observe` has just put it there
    begin = max(seen.at, seen.not_before)
    filling = max(0, min(seen.free, max(seen.live, FILLING[0]), FILLING[1]))  # free places are taken at once
    ages = seen.ages(begin) + [0.0] * filling
    attrition = estimate.lost / estimate.queued if estimate.queued > 0 else 0.0
    outlook = Outlook(ages, seen.free, attrition)
    places = max(1, len(ages))
    survival = Survival(estimate.stays.hazards(places, eta.PLACE_SECONDS))
    line = course(outlook, survival, 2 * seen.live + 8)
    estimate = replace(estimate, bursts=estimate.bursts.after(ended, seen.at, survival.mean / BURSTS))
    if estimate.bursts.number > 3 and seen.free <= 0 and not seen.paused and seen.not_before <= seen.at:
        checks = [_begun(*each, line, seen.at) for each in zip(estimate.checks, SCALES, strict=True)]
        estimate = replace(estimate, checks=tuple(checks))
    knots = [_by_places(estimate, outlook, survival, line, ahead) for ahead in _aheads(seen.live)]
    if seen.per_minute:
        wait, every = max(0.0, seen.next_grant_at - begin), 60 / seen.per_minute
        knots = [_later(knot, _by_rate(knot.ahead, wait, every, attrition)) for knot in knots]
    endless = seen.paused or seen.capacity == 0
    table = eta.Table(seen.at, seen.not_before, endless, seen.live, _rising(knots))
    return replace(estimate, table=table)


def _smoothed(old: eta.Table, new: eta.Table) -> eta.Table:
    """For the same number ahead, from what was told towards what was found: no wait jumps to and fro at each poll."""
    if not 0 < new.at - old.at <= 3 * PERIOD or old.endless or new.endless or new.not_before > new.at:
        return new
    return replace(new, knots=_rising([_towards(eta.between(old, knot.ahead), knot) for knot in new.knots]))


def _towards(old: eta.Knot, new: eta.Knot) -> eta.Knot:
    pairs = ((old.low, new.low), (old.eta, new.eta), (old.high, new.high))
    return eta.Knot(new.ahead, *(before + SMOOTH * (after - before) for before, after in pairs))


def _begun(check: Comparison, scale: float, line: Course, now: float) -> Comparison:
    if check.expected >= 0:
        return check
    return replace(check, until=now + scale, expected=max(0.0, line.offers_by(scale)), came=0.0)


def _aheads(live: int) -> list[int]:
    found = [0, 1, 2, 3]
    while found[-1] < live:
        found.append(max(found[-1] + 1, int(found[-1] * 1.5)))
    return found


def _by_places(estimate: Estimate, outlook: Outlook, survival: Survival, line: Course, ahead: int) -> eta.Knot:
    """As places are given back."""
    free, places = max(0, outlook.free), max(1, len(outlook.ages))
    if ahead < free:
        return eta.Knot(ahead, 0.0, ROUND / 2, 3 * ROUND)
    middle = line.when(ahead + 1)
    noise = _dispersion(estimate.checks, middle / 2)
    low, high = (line.when(ahead + 1, z * sqrt(noise)) for z in (Z, -Z))
    # Where all stay equally long, an error of that length moves the end of present stays; else only what is ahead.
    age = sum(outlook.ages) / places
    since = age * max(0.0, 1 - 1.5 * survival.variation)
    known = 0.5 + min(estimate.bursts.number, estimate.stays.longer_than(survival.mean / SHORT_STAY))
    unsure = (0.5 * survival.variation + 0.15 / known) / sqrt(known)
    change = CHANGE * sqrt(min(1.0, middle / CHANGE_SECONDS))
    factor = exp(min(1.6, Z * hypot(unsure, change)))
    low, high = (since + low) / factor - since, (since + high) * factor - since
    unknown = 1 / (0.5 + known) ** 2
    classes = (ahead - free) // places
    lowest, highest = age * (0.05 + 0.5 * classes), max(LONG_STAY, 4 * age) * (1 + classes)
    low += (min(low, lowest) - low) * unknown
    high += (max(high, highest) - high) * unknown
    return eta.Knot(ahead, max(0.0, min(low, middle) - 2), middle + ROUND / 2, max(high, middle) + 3)


def _by_rate(ahead: int, wait: float, every: float, attrition: float) -> eta.Knot:
    """As the event's own rate allows. At most nobody ahead goes away, at least twice as many as did."""
    low, middle, high = (_thinned(ahead * every, rate) for rate in (2 * attrition, attrition, 0.0))
    return eta.Knot(ahead, max(0.0, wait + 0.95 * low - 2), wait + middle + ROUND / 2, wait + 1.05 * high + 3)


def _thinned(seconds: float, attrition: float) -> float:
    """What a wait of so many seconds becomes when people ahead go away."""
    return log1p(attrition * seconds) / attrition if attrition > 1e-9 else seconds


def _later(one: eta.Knot, other: eta.Knot) -> eta.Knot:
    return eta.Knot(one.ahead, max(one.low, other.low), max(one.eta, other.eta), max(one.high, other.high))


def _dispersion(checks: Sequence[Comparison], seconds: float) -> float:
    """The largest that was seen over times as long as this, or shorter."""
    return max(
        check.dispersion for check, scale in zip(checks, SCALES, strict=True) if scale <= max(SCALES[0], seconds)
    )


def _rising(knots: Sequence[eta.Knot]) -> list[eta.Knot]:
    """Nobody further back is told less."""
    found: list[eta.Knot] = []
    low = middle = high = 0.0
    for knot in knots:
        low, middle, high = max(low, knot.low), max(middle, knot.eta), max(high, knot.high)
        middle = max(low, middle)
        high = max(middle, high)
        found.append(eta.Knot(knot.ahead, low, middle, high))
    return found


DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"


def _packed(numbers: Sequence[float]) -> str:
    """Short, as it travels with every status: tenths to the base of 36, and noughts in a row are counted."""
    words: list[str] = []
    zeros = 0
    for tenths in (max(0, round(10 * number)) for number in numbers):
        if tenths == 0:
            zeros += 1
            continue
        if zeros:
            words.append(f".{zeros}")
            zeros = 0
        words.append(_digits(tenths))
    return ",".join([*words, f".{zeros}"] if zeros else words)


def _digits(number: int) -> str:
    return _digits(number // 36) + DIGITS[number % 36] if number else ""


def _unpacked(text: str) -> list[float]:
    numbers: list[float] = []
    for word in text.split(","):
        numbers += [0.0] * int(word[1:]) if word.startswith(".") else [int(word, 36) / 10]
    return numbers
