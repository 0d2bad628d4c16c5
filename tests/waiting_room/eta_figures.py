"""What simulated people were told, beside how long they waited. Used by `test_eta.py` and `bench/eta.py`."""

import itertools
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from tests.waiting_room.eta_simulation import Room, Sample, Scenario

SEED_PLACE_SECONDS = 2  # of the seed's formula: position x 2 s
SHORT = 10.0  # seconds: shorter waits count as this long where an error is given in parts of the wait
RISE, RISE_SECONDS = 0.05, 3


@dataclass(frozen=True)
class Figures:
    """Of one run."""

    samples: Sequence[Sample]
    polls: int
    rises: int  # of what is told, from one poll to the next

    @property
    def coverage(self) -> float:
        return sum(within(sample) for sample in self.samples) / len(self.samples)

    @property
    def error(self) -> float:
        return statistics.median(_error(sample.told.eta_sec or 0, sample) for sample in self.samples)

    @property
    def seed_error(self) -> float:
        return statistics.median(_error(SEED_PLACE_SECONDS * sample.position, sample) for sample in self.samples)

    @property
    def ratio(self) -> float:
        return statistics.median((s.told.high_sec or 0) / max(1, s.told.low_sec) for s in self.samples)

    @property
    def width(self) -> float:
        return statistics.median((s.told.high_sec or 0) - s.told.low_sec for s in self.samples)

    @property
    def waited(self) -> float:
        return statistics.median(sample.waited for sample in self.samples)


def within(sample: Sample) -> bool:
    return sample.told.low_sec <= sample.waited <= (sample.told.high_sec or 0)


def _error(told: float, sample: Sample) -> float:
    return abs(told - sample.waited) / max(SHORT, sample.waited)


def simulated(scenario: Scenario, seed: int) -> Figures:
    people = Room(scenario, seed).run()
    begin, end = scenario.measured
    samples = [s for person in people for s in person.samples if s.waited >= 0 and begin <= s.at < end]
    polls = [pair for person in people for pair in itertools.pairwise(person.shown)]
    rises = sum(after > before + max(RISE_SECONDS, RISE * before) for before, after in polls)
    return Figures(samples, len(polls), rises)


def together(runs: Sequence[Figures]) -> Figures:
    return Figures([s for run in runs for s in run.samples], sum(r.polls for r in runs), sum(r.rises for r in runs))
