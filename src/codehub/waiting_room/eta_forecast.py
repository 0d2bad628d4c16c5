"""When places will be free: from how long places are kept and since when the present ones are. Pure.

`eta_rate` keeps `Stays` (what has been seen of how long places are kept) and asks for a `Course` of the coming hours. A
place that is freed goes to the next in line, who keeps it as long as others did; so classes that end together end
together again.
"""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from math import exp, sqrt
from operator import mul

STEPS = 24
LONGEST = 10_000_000.0  # seconds that are looked ahead
FIRST_AGE, AGE_FACTOR, AGES = 5.0, 1.25, 46  # up to 28 hours; longer stays count as that
EDGES = [0.0, *(FIRST_AGE * AGE_FACTOR**n for n in range(AGES))]
PRIOR = 0.5  # departures that an age is credited with at the mean rate, until it has shown its own
REMEMBERED = 256.0  # departures; what was seen before fades


def age_class(age: float) -> int:
    return max(0, bisect_right(EDGES, age) - 1)


@dataclass(frozen=True)
class Stays:
    """By age of a place: how many were given back at that age, and for how long any were seen at that age."""

    departures: tuple[float, ...] = (0.0,) * len(EDGES)
    exposure: tuple[float, ...] = (0.0,) * len(EDGES)

    @cached_property
    def seen(self) -> float:
        return sum(self.departures)

    def after(self, seconds: float, ages: Sequence[float], ended: Sequence[float]) -> "Stays":
        """So many seconds later: `ages` of places that are still taken, and of those that were given back."""
        departures, exposure = list(self.departures), list(self.exposure)
        for age in ages:
            exposure[age_class(age - min(seconds, age) / 2)] += min(seconds, age)
        for age in ended:
            departures[age_class(age)] += 1
        total = sum(departures)
        if total > REMEMBERED:
            part = REMEMBERED / total
            departures, exposure = [d * part for d in departures], [e * part for e in exposure]
        return Stays(tuple(departures), tuple(exposure))

    def longer_than(self, age: float) -> float:
        """How many were given back at a higher age."""
        return sum(self.departures[age_class(age) + 1 :])

    def mean_hazard(self, places: int, place_seconds: float) -> float:
        belief = places / (1 + self.seen / 4)
        return (self.seen + belief) / (sum(self.exposure) + belief * place_seconds * places)

    def hazards(self, places: int, place_seconds: float) -> list[float]:
        """For each age, departures a second of one place.

        Before any was seen: places are kept as long again as they have been, and at first `place_seconds` for each
        place that there is. That belief goes as departures come.
        """
        mean = self.mean_hazard(places, place_seconds)
        return [(d + PRIOR) / (e + PRIOR / mean) for d, e in zip(self.departures, self.exposure, strict=True)]


class Survival:
    """How likely a place is kept beyond an age."""

    def __init__(self, hazards: Sequence[float]) -> None:
        self._hazards = hazards
        self._sums = [0.0]
        for n in range(1, len(EDGES)):
            self._sums.append(self._sums[-1] + hazards[n - 1] * (EDGES[n] - EDGES[n - 1]))

    def risk(self, age: float) -> float:
        """Its negative logarithm."""
        n = bisect_right(EDGES, age) - 1
        return self._sums[n] + self._hazards[n] * (age - EDGES[n])

    @cached_property
    def mean(self) -> float:
        """Of how long a place is kept, in seconds."""
        return self._moments[0]

    @cached_property
    def variation(self) -> float:
        """Standard deviation over mean: near 0 where all stay equally long, near 1 where one cannot tell."""
        mean, square = self._moments
        return sqrt(max(0.0, square / (mean * mean) - 1))

    @cached_property
    def _moments(self) -> tuple[float, float]:
        mean = square = 0.0
        for n, (begin, end) in enumerate(pairwise([*EDGES, 10 * EDGES[-1]])):
            kept = exp(-self._sums[n])
            if kept < 1e-6:
                break
            hazard, length = self._hazards[n], end - begin
            over = kept * (1 - exp(-hazard * length)) / hazard  # of the chance to be kept, over these ages
            mean += over
            square += 2 * over * min(begin + length / 2, begin + 1 / hazard)
        return mean, square


def groups(ages: Sequence[float]) -> list[tuple[float, int]]:
    """Places of about the same age: (mean age, how many)."""
    found: dict[int, list[float]] = {}
    for age in ages:
        found.setdefault(age_class(age), []).append(age)
    return [(sum(these) / len(these), len(these)) for these in found.values()]


@dataclass(frozen=True)
class Departures:
    """Expected until each of `STEPS` steps is over: of the present ones, and of those who follow them."""

    step: float
    present: Sequence[float]
    followers: Sequence[float]

    @property
    def most(self) -> float:
        return self.present[-1] + self.followers[-1]


def departures(holders: Sequence[tuple[float, int]], survival: Survival, step: float) -> Departures:
    risk = survival.risk
    risks = [(age, count, risk(age)) for age, count in holders]
    first = [sum([c * (1 - exp(r - risk(a + n * step))) for a, c, r in risks]) for n in range(STEPS + 1)]
    cdf = [0.0, *(1 - exp(-survival.risk((n + 0.5) * step)) for n in range(STEPS))]
    again = [b - a for a, b in pairwise(cdf)]  # by whole steps after it was taken in mid-step
    each: list[float] = []
    followers, total = [], 0.0
    for n in range(STEPS):
        own = first[n + 1] - first[n]
        more = sum(map(mul, each, again[n:0:-1]))
        each.append((own + more) / (1 - min(0.9, again[0])))
        total += each[-1] - own
        followers.append(total)
    return Departures(step, first[1:], followers)


@dataclass(frozen=True)
class Course:
    """How the line is expected to move: by each of `times` so many `offers` made, persons with so many `ahead` served.

    `variance`: of `offers`, where people leave independently of each other.
    """

    times: Sequence[float]
    offers: Sequence[float]
    variance: Sequence[float]
    ahead: Sequence[float]
    pace: float  # offers a second, on the whole: beyond the last of `times`
    _reached: dict[float, list[float]] = field(default_factory=dict)

    def when(self, ahead: float, deviations: float = 0.0) -> float:
        """When a person with so many ahead is served, if the line moves so many standard deviations faster."""
        reached = self._reached.get(deviations) or self._reached.setdefault(deviations, self._moved(deviations))
        if ahead > reached[-1]:
            return self.times[-1] + (ahead - reached[-1]) / self.pace
        return _inverse(self.times, reached, ahead)

    def _moved(self, deviations: float) -> list[float]:
        reached: list[float] = []
        best = -1e9
        for offers, variance, gone in zip(self.offers, self.variance, self.ahead, strict=True):
            best = max(best, gone + deviations * sqrt(variance) * (gone / offers if offers else 1.0))
            reached.append(best)
        return reached

    def offers_by(self, seconds: float) -> float:
        return _inverse(self.offers, self.times, seconds) + self.pace * max(0.0, seconds - self.times[-1])


@dataclass(frozen=True)
class Outlook:
    """What the next hours depend on, besides `Stays`."""

    ages: Sequence[float]  # of places that are taken
    free: int  # below zero: so many must be given back before one is free
    attrition: float  # part of those in line that goes away in a second


def course(outlook: Outlook, survival: Survival, people: int) -> Course:
    """Far enough for so many people. In two pieces: the near one with finer steps."""
    holders = groups(outlook.ages)
    wanted = max(1, people - outlook.free)
    span = min(LONGEST, wanted * survival.mean / max(1e-9, len(outlook.ages)))
    long = departures(holders, survival, span / STEPS)
    while span < LONGEST and long.most < wanted:
        span *= 1.5
        long = departures(holders, survival, span / STEPS)
    near = _piece(outlook, survival, departures(holders, survival, span / STEPS / 12))
    far = _piece(outlook, survival, long)
    rest = [n for n, time in enumerate(far.times) if time > near.times[-1]]
    return Course(
        [*near.times, *(far.times[n] for n in rest)],
        [*near.offers, *(far.offers[n] for n in rest)],
        [*near.variance, *(far.variance[n] for n in rest)],
        [*near.ahead, *(far.ahead[n] for n in rest)],
        far.pace,
    )


def _piece(outlook: Outlook, survival: Survival, left: Departures) -> Course:
    places = max(1, len(outlook.ages))
    made = gone = max(0.0, float(outlook.free))
    times, offers, variances, ahead = [0.0], [made], [0.0], [gone]
    for n, (own, more) in enumerate(zip(left.present, left.followers, strict=True), start=1):
        freed = outlook.free + own + more
        gone += max(0.0, freed - made) * exp(min(50.0, outlook.attrition * (n - 0.5) * left.step))
        made = max(made, freed)
        times.append(n * left.step)
        offers.append(made)
        # All of the present ones leave in the end, so that their number is sure then; the followers' begins anew.
        variances.append(max(0.0, own * (1 - own / places)) + more * min(1.0, 0.3 + survival.variation))
        ahead.append(gone)
    return Course(times, offers, variances, ahead, pace=max(1 / LONGEST, len(outlook.ages) / survival.mean))


def _inverse(values: Sequence[float], keys: Sequence[float], key: float) -> float:
    """`values` where `keys`, which rise, reach `key`."""
    n = bisect_right(keys, key)
    if n == 0:
        return values[0]
    if n == len(keys):
        return values[-1]
    part = (key - keys[n - 1]) / (keys[n] - keys[n - 1])
    return values[n - 1] + (values[n] - values[n - 1]) * part
