"""A waiting room in made-up time: people come, poll, fall silent, come back and leave; places are offered and kept.

The rules are those of the line and the pump, without servers: offers go to the first live people in order, those told
and not taking it are passed, those silent for 90 s are passed over, after 300 s they are gone. What is told of the wait
is the product's (`eta`, `eta_rate`). Used by `test_eta.py` (a slice) and `bench/eta.py`. A seed decides everything.
"""

import heapq
import itertools
import random
from bisect import bisect_left, insort
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import Enum

from codehub.waiting_room import eta, eta_rate

SILENT, EXPIRED, OFFER, LATE = 90.0, 300.0, 60.0, 5.0
EPOCH = 1_800_000_000.0  # when the simulation begins, so that times look like the product's
POLL, HIDDEN = 2.0, 60.0
LONGEST = 12 * 3600


class Is(Enum):
    LIVE = "live"
    SILENT = "silent"
    PASSED = "passed"
    OFFERED = "offered"
    GONE = "gone"


@dataclass
class Person:
    seq: int
    poll: float  # seconds
    reaction: float  # seconds from being told to entering; more than the offer lasts: does not come
    quiet: tuple[float, float] | None  # between these they do not poll
    leaves: float  # the moment they press "leave"
    state: Is = Is.GONE
    offer: int = 0
    told: bool = False
    samples: list["Sample"] = field(default_factory=list)
    shown: list[int] = field(default_factory=list)  # each two seconds, of some

    def mute(self, now: float) -> bool:
        return self.quiet is not None and self.quiet[0] <= now < self.quiet[1]


@dataclass(frozen=True)
class Sample:
    """What a live person was told at a moment, and how long they then waited for the offer."""

    at: float
    ahead: int
    position: int
    told: eta.Eta
    waited: float = -1.0


@dataclass(frozen=True)
class Scenario:
    name: str
    capacity: Sequence[tuple[float, int]]  # from this second on
    stays: Callable[[random.Random], Callable[[float], float]]  # when a person who enters now gives the place back
    arrivals: Callable[[random.Random], Iterator[float]]
    per_minute: float | None = None
    opens: float = 0.0
    ghosts: float = 0.05  # part of the people who stop polling
    impatience: float = 3600.0  # within this they do, evenly
    back: float = 0.3  # part of those who come back
    measured: tuple[float, float] = (0.0, float("inf"))  # what was told between these is looked at
    steady: bool = False


class Room:
    def __init__(self, scenario: Scenario, seed: int) -> None:
        self.scenario = scenario
        self.random = random.Random(f"{scenario.name} {seed}")
        self.people: list[Person] = []
        self.line: list[int] = []
        self.live: list[int] = []
        self.passed: list[int] = []
        self.taken: dict[int, float] = {}
        self.next_grant = 0.0
        self.offers = itertools.count(1)
        self.events: list[tuple[float, int, Callable[[float], None]]] = []
        self.order = itertools.count()
        self.until = scenario.stays(self.random)
        self.estimate = eta_rate.Estimate()
        self.written = ""
        self.tables = 0

    def run(self) -> list[Person]:
        arrivals = list(self.scenario.arrivals(self.random))
        for at in arrivals:
            self._at(at, self._join)
        last = arrivals[-1]
        now = 0.0
        while now < LONGEST and (now <= last or self.live):
            while self.events and self.events[0][0] <= now:
                at, _, act = heapq.heappop(self.events)
                act(at)
            self._pump(now)
            now += 1.0
        return self.people

    def _at(self, when: float, act: Callable[[float], None]) -> None:
        heapq.heappush(self.events, (when, next(self.order), act))

    # What people do

    def _join(self, now: float) -> None:
        dice, scenario = self.random, self.scenario
        quiet = None
        if dice.random() < scenario.ghosts:
            begin = now + dice.uniform(0, scenario.impatience)
            back = begin + dice.uniform(20, 280) if dice.random() < scenario.back else float("inf")
            quiet = (begin, back)
        leaves = now + dice.uniform(0, scenario.impatience) if dice.random() < scenario.ghosts / 4 else float("inf")
        reaction = 600.0 if dice.random() < 0.03 else dice.lognormvariate(1.5, 0.7)
        poll = HIDDEN if dice.random() < 0.15 else POLL
        person = Person(len(self.people) + 1, poll, reaction, quiet, leaves)
        self.people.append(person)
        self.line.append(person.seq)
        self._put(person, Is.LIVE)
        self._at(now, lambda at: self._sample(person, at))
        if person.seq % 10 == 0:
            self._at(now, lambda at: self._show(person, at))
        if quiet:
            self._at(quiet[0] + SILENT, lambda at: self._silent(person, at))
            self._at(quiet[0] + EXPIRED, lambda at: self._expire(person, at))
            if quiet[1] < float("inf"):
                self._at(quiet[1], lambda at: self._return(person, at))
        if leaves < float("inf"):
            self._at(leaves, lambda at: self._leave(person, at))

    def _put(self, person: Person, state: Is) -> None:
        for kind, members in ((Is.LIVE, self.live), (Is.PASSED, self.passed)):
            if person.state is kind:
                del members[bisect_left(members, person.seq)]
            if state is kind:
                insort(members, person.seq)
        if state is Is.GONE:
            del self.line[bisect_left(self.line, person.seq)]
        person.state = state

    def _silent(self, person: Person, now: float) -> None:
        if person.mute(now) and person.state in {Is.LIVE, Is.PASSED}:
            self._put(person, Is.SILENT)

    def _expire(self, person: Person, now: float) -> None:
        if person.mute(now) and person.state in {Is.LIVE, Is.PASSED, Is.SILENT}:
            self._put(person, Is.GONE)

    def _return(self, person: Person, now: float) -> None:
        if person.state is Is.SILENT:
            self._put(person, Is.LIVE)

    def _leave(self, person: Person, now: float) -> None:
        if person.state is not Is.GONE and not person.mute(now):
            self.taken.pop(person.seq, None)
            self._put(person, Is.GONE)

    # What the pump does

    def _pump(self, now: float) -> None:
        granted = 0
        while now >= self.scenario.opens and len(self.taken) < self._capacity(now):
            members = self.live or self.passed
            if not members or (self.scenario.per_minute and self.next_grant > now):
                break
            if self.scenario.per_minute:
                self.next_grant = max(self.next_grant, now - 1) + 60 / self.scenario.per_minute
            granted += 1
            self._grant(self.people[members[0] - 1], now)
        seen = eta_rate.Seen(
            at=EPOCH + now,
            live=len(self.live),
            joined=len(self.people),
            granted=granted,
            capacity=self._capacity(now),
            taken=list(self.taken.values()),
            per_minute=self.scenario.per_minute,
            next_grant_at=EPOCH + self.next_grant,
            not_before=EPOCH + self.scenario.opens if self.scenario.opens else 0.0,
        )
        before = self.estimate.table
        self.estimate = eta_rate.observe(self.estimate, seen)
        if self.estimate.table is not before:
            self.written = self.estimate.text
            self.tables += 1
            if self.tables % 100 == 0:  # the pump starts anew or moves
                self.estimate = eta_rate.resumed(self.written)

    def _capacity(self, now: float) -> int:
        return [count for since, count in self.scenario.capacity if since <= now][-1]

    def _grant(self, person: Person, now: float) -> None:
        person.samples = [
            Sample(s.at, s.ahead, s.position, s.told, now - s.at) if s.waited < 0 else s for s in person.samples
        ]
        self._put(person, Is.OFFERED)
        person.offer, person.told = next(self.offers), False
        self.taken[person.seq] = EPOCH + now
        offer = person.offer
        if person.mute(now):
            assert person.quiet
            self._at(max(now, person.quiet[0] + SILENT) + LATE, lambda at: self._lapse(person, offer, at))
            return
        told = now + self.random.uniform(0, person.poll)
        deadline = told + max(OFFER, 2 * person.poll)
        person.told = True
        if told + person.reaction < deadline and not person.mute(told + person.reaction):
            self._at(told + person.reaction, lambda at: self._enter(person, offer, at))
        else:
            self._at(deadline + LATE, lambda at: self._lapse(person, offer, at))

    def _enter(self, person: Person, offer: int, now: float) -> None:
        if person.state is Is.OFFERED and person.offer == offer:
            self._put(person, Is.GONE)
            self._at(self.until(now), lambda _: self._release(person))

    def _release(self, person: Person) -> None:
        del self.taken[person.seq]

    def _lapse(self, person: Person, offer: int, now: float) -> None:
        if person.state is Is.OFFERED and person.offer == offer:
            del self.taken[person.seq]
            self._put(person, Is.SILENT if person.mute(now) else Is.PASSED)
            if person.quiet and now > person.quiet[0] + EXPIRED:
                self._expire(person, now)

    # What is measured

    def _told(self, person: Person, now: float) -> eta.Eta:
        return eta.predict(eta.read(self.written), bisect_left(self.live, person.seq), EPOCH + now)

    def _sample(self, person: Person, now: float) -> None:
        if person.state is Is.LIVE and not person.quiet:
            position = bisect_left(self.line, person.seq) + 1
            ahead = bisect_left(self.live, person.seq)
            person.samples.append(Sample(now, ahead, position, self._told(person, now)))
        if person.state is Is.LIVE:
            self._at(now + self.random.uniform(20, 100), lambda at: self._sample(person, at))

    def _show(self, person: Person, now: float) -> None:
        if person.state is Is.LIVE and not person.quiet:
            person.shown.append(self._told(person, now).eta_sec or 0)
            self._at(now + POLL, lambda at: self._show(person, at))
