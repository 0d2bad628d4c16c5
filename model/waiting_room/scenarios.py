"""What is searched: people, places, and what may happen. `__main__` runs all of them, tests small ones."""

from typing import Any, NamedTuple

from model.waiting_room.explore import Explorer
from model.waiting_room.lua import Engine
from model.waiting_room.moves import Bounds
from model.waiting_room.world import Left

TWO, THREE, FOUR = ("ann", "bob"), ("ann", "bob", "cy"), ("ann", "bob", "cy", "dan")
LOWERED = ((("capacity", 1),),)
PAUSED = ((("paused", True),), (("paused", False),))


class Scenario(NamedTuple):
    bounds: Bounds
    capacity: int = 1
    joined: tuple[str, ...] = TWO

    def explorer(self, engine: Engine | None = None) -> Explorer:
        return Explorer(self.bounds, capacity=self.capacity, joined=self.joined, engine=engine)


def _two(left: Left, **more: Any) -> Bounds:
    return Bounds(people=TWO, in_flight=2, left=left, **more)


# Small enough to be gone through to their end.
COMPLETE = {
    "entering": Scenario(_two(Left(2, 0, 0, 0), kinds=("enter",), pieces=("grant", "tell"))),
    "entering, with a crash": Scenario(_two(Left(1, 1, 0, 0), kinds=("enter",), pieces=("grant", "tell"))),
    "leaving and joining": Scenario(_two(Left(2, 0, 0, 0), kinds=("leave", "join"), pieces=("grant",))),
    "two pumps, three people": Scenario(
        Bounds(people=THREE, in_flight=2, kinds=(), pieces=("grant", "tell", "sweep"), left=Left(0, 1, 0, 0)),
        joined=THREE,
    ),
    "an offer that is not taken": Scenario(
        _two(Left(1, 0, 0, 1), kinds=("enter",), pieces=("grant", "sweep"), jumps=(66.0, 96.0))
    ),
    "emptied": Scenario(_two(Left(1, 0, 1, 0), kinds=("join",), pieces=("grant", "tell"), losses=("emptied",))),
    "emptied, from the beginning": Scenario(
        _two(Left(2, 0, 1, 0), kinds=("join",), pieces=("grant",), losses=("emptied",)), joined=()
    ),
    "failed over": Scenario(_two(Left(1, 0, 1, 0), kinds=("enter",), pieces=("grant",), losses=("failed over",))),
}

# As far as the time allows, breadth first; and random histories with the same in it.
WIDE = {
    "three people, three requests, a crash": Scenario(
        Bounds(people=THREE, left=Left(3, 1, 0, 0)), capacity=1, joined=THREE
    ),
    "three people, two places, emptied": Scenario(
        Bounds(people=THREE, losses=("emptied", "restarted"), jumps=(11.0, 91.0), left=Left(3, 1, 1, 2)),
        capacity=2,
        joined=THREE,
    ),
    "three people, failed over": Scenario(
        Bounds(people=THREE, losses=("failed over",), jumps=(11.0, 91.0), left=Left(3, 1, 1, 1)), joined=THREE
    ),
    "three people, time": Scenario(
        Bounds(people=THREE, jumps=(11.0, 66.0, 96.0, 301.0), left=Left(3, 1, 0, 3)), joined=THREE
    ),
    "from the beginning": Scenario(
        Bounds(people=THREE, losses=("emptied", "failed over"), jumps=(91.0,), left=Left(4, 1, 1, 1)), joined=()
    ),
    "capacity and pause": Scenario(
        Bounds(people=THREE, jumps=(66.0,), settings=LOWERED + PAUSED, left=Left(3, 1, 0, 1, 2)),
        capacity=2,
        joined=THREE,
    ),
}

# Random histories go deeper: four people, more of everything.
DEEP = {
    "emptied": Scenario(
        Bounds(people=FOUR, losses=("emptied", "restarted"), jumps=(6.0, 11.0, 66.0, 91.0), left=Left(10, 3, 2, 4)),
        capacity=2,
        joined=FOUR,
    ),
    "failed over": Scenario(
        Bounds(people=FOUR, losses=("failed over",), jumps=(6.0, 11.0, 66.0, 91.0), left=Left(10, 3, 2, 4)),
        joined=THREE,
    ),
    "time": Scenario(Bounds(people=FOUR, jumps=(11.0, 30.0, 66.0, 91.0, 301.0), left=Left(12, 3, 0, 6)), joined=FOUR),
    "settings": Scenario(
        Bounds(
            people=FOUR,
            losses=("emptied", "failed over"),
            jumps=(11.0, 66.0, 91.0),
            settings=(*LOWERED, (("capacity", 2),), *PAUSED),
            left=Left(10, 2, 1, 3, 4),
        ),
        capacity=2,
        joined=FOUR,
    ),
    "from the beginning": Scenario(
        Bounds(
            people=FOUR,
            losses=("emptied", "failed over", "restarted"),
            jumps=(11.0, 66.0, 91.0, 301.0),
            left=Left(14, 2, 2, 4),
        ),
        joined=(),
    ),
}
