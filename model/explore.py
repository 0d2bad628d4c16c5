"""Through every state that the bounds allow, each checked, each with the way that led to it.

How many faults may still happen and requests may still come is not part of a state. One that was met with more of both
has all ways on that it has with fewer, so it is left again only when it is met with more of one. Those with the most
come first.
"""

from array import array
from typing import NamedTuple

from codehub.workspaces.model import Operation, Workspace
from model import properties
from model.asks import BrokenError
from model.canonical import State, unpack
from model.moves import Moves
from model.properties import Violation
from model.steps import PremiseError, Stepper
from model.tables import NONE, Tables
from model.world import World

Beginning = tuple[Workspace, World, str]


class Bounds(NamedTuple):
    faults: int = 2
    requests: int = 3


class Left(NamedTuple):
    """How much may still come, and, as bits, everything that is no more than that."""

    faults: int
    requests: int
    covers: int


class Explorer:
    def __init__(self, bounds: Bounds, *, plain: bool = False) -> None:
        self.bounds = bounds
        self.plain = plain  # every step by itself, every state with each that is left: what `tests/model` compares with
        self.unusual: set[Operation] = set()  # do not end as operations do
        self._begin()

    def _begin(self) -> None:
        self.tables = Tables()
        self.index: dict[int, int] = {}  # state → its first visit
        self._moves = Moves(Stepper(self.tables, self.unusual, plain=self.plain), self.index)
        self._states: list[int] = []  # of every visit
        self._left = bytearray()
        self._parents = array("i")
        self._labels = array("i")
        self._on = array("i")  # where it goes when nothing goes wrong and nobody asks; itself: at rest
        self._covered = array("Q")  # of every first visit
        self._label_numbers: dict[str, int] = {}
        self.transitions = 0
        self._lefts = self._every_left()
        self._number_of = {(left.faults, left.requests): n for n, left in enumerate(self._lefts)}
        self._waiting = [array("i") for _ in self._lefts]

    def _every_left(self) -> list[Left]:
        pairs = [(f, r) for f in range(self.bounds.faults, -1, -1) for r in range(self.bounds.requests, -1, -1)]
        bits = {pair: 1 << n for n, pair in enumerate(pairs)}
        if self.plain:
            return [Left(*pair, bit) for pair, bit in bits.items()]
        return [Left(f, r, sum(bits[a, b] for a, b in pairs if a <= f and b <= r)) for f, r in pairs]

    # --- the search

    def run(self, initial: list[Beginning]) -> Violation | None:
        while True:
            try:
                return self._search(initial)
            except PremiseError as e:
                self.unusual.add(e.args[0])
                self._begin()

    def _search(self, initial: list[Beginning]) -> Violation | None:
        for beginning in initial:
            self._add(self._moves.beginning(*beginning), 0, -1, "the beginning")
        for waiting in self._waiting:
            for at in waiting:  # it grows while it is gone through
                try:
                    problem = self._visit(at)
                except BrokenError as e:
                    problem = str(e)
                if problem:
                    return Violation(problem, self.trace(at))
        return self._find_circle()

    def _visit(self, at: int) -> str | None:
        state, left = unpack(self._states[at]), self._lefts[self._left[at]]
        tables = self.tables
        row, there, work = (
            tables.rows.values[state.row],
            tables.worlds.values[state.world],
            tables.works.values[state.work],
        )
        order = tables.leaders.values[state.leader].order
        if problem := properties.always(row, there, None if order == NONE else tables.orders.values[order], work):
            return problem
        if left.faults == self.bounds.faults and (problem := properties.without_faults(row)):
            return problem
        on = self._states[at]
        for label, to, faults, requests, by_itself in self._moves.all(
            state, faults=left.faults > 0, asked=left.requests > 0
        ):
            self.transitions += 1
            self._add(to, self._number_of[left.faults - faults, left.requests - requests], at, label)
            if by_itself:
                on = to
        self._on[at] = self.index[on]
        return properties.at_rest(row, there, work) if on == self._states[at] else None

    def _add(self, state: int, left: int, parent: int, label: str) -> None:
        first, number = self.index.get(state), len(self._states)
        if first is None:
            first = self.index[state] = number
        elif self._covered[first] >> left & 1:
            return
        self._states.append(state)
        self._left.append(left)
        self._parents.append(parent)
        self._labels.append(self._label_numbers.setdefault(label, len(self._label_numbers)))
        self._on.append(-1)
        self._covered.append(0)
        self._covered[first] |= self._lefts[left].covers
        self._waiting[left].append(number)

    def _find_circle(self) -> Violation | None:
        """Without new faults and requests every state has one way on: it must end at rest."""
        done = bytearray(len(self._states))
        for start in self.index.values():
            path, at = [], start
            while not done[at]:
                done[at] = 2
                path.append(at)
                if self._on[at] == at:
                    break
                at = self._on[at]
                if done[at] == 2:
                    return Violation("it goes round in circles for ever", self.trace(at))
            for passed in path:
                done[passed] = 1
        return None

    def trace(self, at: int) -> list[str]:
        """How it came to this, step by step, with what each step changed."""
        way: list[int] = []
        while at >= 0:
            way.insert(0, at)
            at = self._parents[at]
        texts = list(self._label_numbers)
        lines, before = [], ("", "")
        for at in way:
            now = self._describe(unpack(self._states[at]))
            changed = [f"      {text}" for text, old in zip(now, before, strict=True) if text != old]
            lines.append("\n".join([texts[self._labels[at]], *changed]))
            before = now
        return lines

    def _describe(self, state: State) -> tuple[str, str]:
        row, there = self.tables.rows.values[state.row], self.tables.worlds.values[state.world]
        return properties.describe_row(row), properties.describe_world(there, self.tables.works.values[state.work])
