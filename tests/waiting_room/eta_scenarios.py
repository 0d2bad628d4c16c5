"""The events that are simulated: steady, rated, bursty, with ghosts, with changing capacity, classes, an opening.

Used by `test_eta.py` and `bench/eta.py`.
"""

import random
from collections.abc import Callable, Iterator

from tests.waiting_room.eta_simulation import Scenario

Until = Callable[[float], float]


def alone(mean: float, spread: float = 0.6) -> Callable[[random.Random], Until]:
    """Each for as long as they like."""

    def made(dice: random.Random) -> Until:
        return lambda now: now + mean * dice.lognormvariate(-spread * spread / 2, spread)

    return made


def together(size: int, mean: float) -> Callable[[random.Random], Until]:
    """Groups that come after each other leave within a minute."""

    def made(dice: random.Random) -> Until:
        left, end = 0, 0.0

        def until(now: float) -> float:
            nonlocal left, end
            if left == 0 or end < now + 60:
                left, end = dice.randint(1, 2 * size - 1), now + mean * dice.lognormvariate(-0.08, 0.4)
            left -= 1
            return max(now + 30, end + dice.uniform(-30, 30))

        return until

    return made


def classes(length: float, varying: float) -> Callable[[random.Random], Until]:
    """Who enters within a quarter of an hour of the first is in the same class."""

    def made(dice: random.Random) -> Until:
        begun, end = float("-inf"), 0.0

        def until(now: float) -> float:
            nonlocal begun, end
            if now > begun + 900:
                begun, end = now, now + dice.gauss(length, varying)
            return max(now + 60, end + dice.uniform(-60, 120))

        return until

    return made


def coming(rate: float, seconds: float, crowd: int = 0) -> Callable[[random.Random], Iterator[float]]:
    """A crowd in the first minute, then so many a second."""

    def made(dice: random.Random) -> Iterator[float]:
        yield from sorted(dice.uniform(0, 60) for _ in range(crowd))
        now = 60.0
        while (now := now + dice.expovariate(rate)) < seconds:
            yield now

    return made


def in_bursts(size: int, every: float, seconds: float, crowd: int) -> Callable[[random.Random], Iterator[float]]:
    def made(dice: random.Random) -> Iterator[float]:
        found = [dice.uniform(0, 60) for _ in range(crowd)]
        now = 60.0
        while (now := now + dice.expovariate(1 / every)) < seconds:
            found += [now + dice.uniform(0, 20) for _ in range(dice.randint(1, 2 * size - 1))]
        yield from sorted(found)

    return made


ALL = (
    Scenario("steady", [(0, 100)], alone(600), coming(0.17, 4500, crowd=220), steady=True),
    Scenario("by its own rate", [(0, 5000)], alone(3600), coming(0.4, 2700, crowd=200), per_minute=30, steady=True),
    Scenario(
        "many ghosts", [(0, 60)], alone(600), coming(0.2, 4500, crowd=200), ghosts=0.5, impatience=900, steady=True
    ),
    Scenario("few places", [(0, 8)], alone(600), coming(0.012, 7200, crowd=25)),
    Scenario("an opening", [(0, 80)], alone(900), coming(0.1, 2700, crowd=200), opens=600),
    Scenario("bursty", [(0, 60)], together(8, 600), in_bursts(12, 120, 4500, crowd=120)),
    Scenario("capacity changes", [(0, 60), (1800, 90), (3900, 50)], alone(600), coming(0.12, 4500, crowd=160)),
    Scenario("a first class", [(0, 40)], classes(3000, 120), coming(0.012, 3600, crowd=90), measured=(0, 2700)),
    Scenario("later classes", [(0, 40)], classes(3000, 120), coming(0.012, 9000, crowd=90), measured=(3600, 20_000)),
)
