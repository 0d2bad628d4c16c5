"""Breadth first through the states of a waiting room, each checked, each with the way that led to it."""

import random
import time
from dataclasses import dataclass

from lupa.lua51 import LuaError

from model.asks import BrokenError
from model.waiting_room import machine, properties
from model.waiting_room.lua import Engine
from model.waiting_room.moves import Bounds, Move, Moves, beginning
from model.waiting_room.world import State, World, describe


@dataclass(frozen=True)
class Found:
    problem: str
    trace: list[str]


class Explorer:
    def __init__(
        self, bounds: Bounds, *, capacity: int = 1, joined: tuple[str, ...] = (), engine: Engine | None = None
    ) -> None:
        self.world = World(engine or Engine(machine.CONFIG))
        self.bounds = bounds
        self._moves = Moves(self.world, bounds)
        self._capacity, self._joined = capacity, joined
        self.states: dict[State, tuple[State | None, str]] = {}
        self.transitions = 0
        self.complete = False
        self._rested: set[tuple[int, ...]] = set()

    def run(self, seconds: float = 1e9, most: int = 10**9) -> Found | None:
        with machine.driven():
            return self._search(time.monotonic() + seconds, most)

    def _start(self) -> State:
        return beginning(self.world, self.bounds, capacity=self._capacity, joined=self._joined)

    def _search(self, until: float, most: int) -> Found | None:
        first = self._start()
        self.states[first] = (None, "the beginning")
        waiting = [first]
        while waiting:
            following: list[State] = []
            for at in waiting:
                if found := self._leave(at, following):
                    return found
                if len(self.states) > most or time.monotonic() > until:
                    return None
            waiting = following
        self.complete = True
        return None

    def _leave(self, at: State, following: list[State]) -> Found | None:
        try:
            self._check(at)
        except (BrokenError, LuaError) as e:
            return Found(_words(e), self.trace(at))
        try:
            for move in self._moves.all(at):
                self.transitions += 1
                if move.state not in self.states:
                    self.states[move.state] = (at, move.label)
                    following.append(move.state)
        except (BrokenError, LuaError) as e:
            return Found(_words(e), [*self.trace(at), "and then"])
        return None

    def _check(self, at: State) -> None:
        properties.always(self.world, at)
        key = (at.redis, at.run, at.rows, int(at.now), at.ghosts)
        if not at.slots and key not in self._rested:
            self._rested.add(key)
            properties.at_rest(self.world, at)

    def trace(self, at: State | None) -> list[str]:
        lines: list[str] = []
        while at is not None:
            before, label = self.states[at]
            lines.append(f"{label}\n      {describe(self.world, at)}")
            at = before
        return lines[::-1]

    # --- deep instead of wide

    def walk(self, seed: int, steps: int) -> Found | None:
        """One random history."""
        chance, lines = random.Random(seed), []  # noqa: S311
        with machine.driven():
            at = self._start()
            try:
                for _ in range(steps):
                    moves: list[Move] = list(self._moves.all(at))
                    if not moves:
                        break
                    move = chance.choice(moves)
                    at = move.state
                    self.transitions += 1
                    lines.append(f"{move.label}\n      {describe(self.world, at)}")
                    self._check(at)
            except (BrokenError, LuaError) as e:
                return Found(_words(e), lines)
        return None


def _words(e: BaseException) -> str:
    """Of a script that fails, without the way through it."""
    return f"a script fails: {str(e).splitlines()[0]}" if isinstance(e, LuaError) else str(e)
