"""The values that states are made of, each kept once and spoken of by number, and the same values under other names.

A state is then a handful of numbers: quick to compare, and small enough for millions of them.
"""

from collections.abc import Callable
from typing import Any, Generic, NamedTuple, TypeVar

from codehub.workspaces.model import Workspace
from model import machine, naming
from model.database import View
from model.machine import Answer, Order, Place
from model.world import World

T = TypeVar("T")
NONE = -1
BITS = 22  # of a number, in a state that is packed into one
Names = tuple[str, ...]


class Table(Generic[T]):
    def __init__(self, rename: Callable[[T, dict[str, str]], T] = naming.rename) -> None:
        self._numbers: dict[T, int] = {}
        self._rename = rename
        self._renamed: dict[tuple[Any, ...], int] = {}
        self.values: list[T] = []
        self.names: list[Names] = []
        self.operations: list[frozenset[str]] = []  # those of the names that are of operations

    def number(self, value: T, names: Names | None = None) -> int:
        found = self._numbers.get(value)
        if found is None:
            found = self._numbers[value] = len(self.values)
            assert found + 1 < 1 << BITS
            self.values.append(value)
            names = tuple(dict.fromkeys(naming.names(value))) if names is None else names
            self.names.append(names)
            self.operations.append(frozenset(name for name in names if name[0] == "o"))
        return found

    def renamed(self, number: int, to: dict[str, str]) -> int:
        """The number of the same value under other names."""
        if number == NONE:
            return NONE
        key = (number, *(to[name] for name in self.names[number]))
        found = self._renamed.get(key)
        if found is None:
            value = self._rename(self.values[number], to)
            found = self._renamed[key] = self.number(value, tuple(to[name] for name in self.names[number]))
        return found


class Heard(NamedTuple):
    """One more answer: after the answers of `before`. The row of a transaction is a number."""

    before: int
    kind: str
    value: Any
    row: int = NONE


class Leader(NamedTuple):
    """A leader's place. `heard` NONE: it does nothing; `order` NONE: it ticks."""

    epoch: int
    order: int = NONE
    heard: int = NONE
    changed: bool = False  # was the row written since this tick looked?


class Tables:
    def __init__(self) -> None:
        self.rows: Table[Workspace] = Table()
        self.worlds: Table[World] = Table(_rename_world)
        self.orders: Table[Order] = Table()
        self.heard: Table[Heard] = Table(self._rename_heard)
        self.leaders: Table[Leader] = Table(self._rename_leader)
        self.works: Table[str] = Table()  # what the person made last
        self.nothing = self.heard.number(Heard(NONE, "", None))
        self._places: dict[int, Place] = {}

    def leader(self, leader: Leader) -> int:
        names: Names = ()
        if leader.heard != NONE:
            names = self.heard.names[leader.heard]
            if leader.order != NONE:
                names = tuple(dict.fromkeys(self.orders.names[leader.order] + names))
        return self.leaders.number(leader, names)

    def hear(self, leader: Leader, answer: Answer) -> int:
        """The same leader with one more answer."""
        kind, value = answer
        names, row = self.heard.names[leader.heard], NONE
        if isinstance(value, View) and value.row is not None:
            row, value = self.rows.number(value.row), value._replace(row=None)
            names += self.rows.names[row]
        names = tuple(dict.fromkeys([*names, *naming.names(value)]))
        return self.leader(leader._replace(heard=self.heard.number(Heard(leader.heard, kind, value, row), names)))

    def answers(self, heard: int) -> list[Answer]:
        found: list[Answer] = []
        while heard != self.nothing:
            step = self.heard.values[heard]
            value = step.value if step.row == NONE else step.value._replace(row=self.rows.values[step.row])
            found.append((step.kind, value))
            heard = step.before
        return found[::-1]

    def place(self, number: int) -> Place:
        """Where the product's code is after what this leader has heard."""
        found = self._places.get(number)
        if found is None:
            leader = self.leaders.values[number]
            order = None if leader.order == NONE else self.orders.values[leader.order]
            place = machine.find_place(leader.epoch, order, self.answers(leader.heard))
            found = self._places[number] = place
        return found

    def _rename_heard(self, step: Heard, to: dict[str, str]) -> Heard:
        before = NONE if step.before == NONE else self.heard.renamed(step.before, to)
        return Heard(before, step.kind, naming.rename(step.value, to), self.rows.renamed(step.row, to))

    def _rename_leader(self, leader: Leader, to: dict[str, str]) -> Leader:
        return leader._replace(order=self.orders.renamed(leader.order, to), heard=self.heard.renamed(leader.heard, to))


def _rename_world(there: World, to: dict[str, str]) -> World:
    renamed: World = naming.rename(there, to)
    return renamed._replace(archives=tuple(sorted(renamed.archives)), staged=tuple(sorted(renamed.staged)))
