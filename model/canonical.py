"""One state for all that behave alike: the same under other names, and without what nobody can come back to."""

from collections.abc import Container
from typing import NamedTuple

from codehub.workspaces.model import Operation
from model import naming
from model.steps import Stepper
from model.tables import BITS, NONE
from model.world import Archive

MASK = (1 << BITS) - 1
Names = dict[str, str]


class State(NamedTuple):
    """Numbers stand for values in the tables. What may still go wrong and be asked for is not part of it."""

    row: int
    world: int
    leader: int
    stale: int  # a former leader that does not know it yet
    work: int  # the version that the person made last
    timer: int  # it has found the workspace idle (1), and somebody did something since (2)


def pack(row: int, there: int, leader: int, stale: int, work: int, timer: int) -> int:
    """As one number: millions of them fit."""
    return ((((row << BITS | there) << BITS | leader) << BITS | stale + 1) << BITS | work) << 2 | timer


def unpack(packed: int) -> State:
    timer, packed = packed & 3, packed >> 2
    work, packed = packed & MASK, packed >> BITS
    stale, packed = packed & MASK, packed >> BITS
    leader, packed = packed & MASK, packed >> BITS
    return State(packed >> BITS, packed & MASK, leader, stale - 1, work, timer)


class Canonical:
    def __init__(self, stepper: Stepper, known: Container[int]) -> None:
        self._stepper = stepper
        self._tables = stepper.tables
        self._known = known  # states that are canonical
        self._others: dict[int, int] = {}  # states that are not → the one that is
        self._names: dict[tuple[str, ...], Names | None] = {}  # None: as they are

    def state(self, row: int, there: int, leader: int, stale: int, work: int, timer: int) -> int:
        packed = pack(row, there, leader, stale, work, timer)
        if packed in self._known:
            return packed
        found = self._others.get(packed)
        if found is None:
            found = self._find(row, there, leader, stale, work, timer)
            if found != packed:
                self._others[packed] = found
        return found

    def _find(self, row: int, there: int, leader: int, stale: int, work: int, timer: int) -> int:
        tables = self._tables
        if stale != NONE:
            stale = self._late(row, there, leader, stale)
        there = self._without_what_is_over(row, there, leader, stale)
        order = tables.rows.names[row] + tables.worlds.names[there] + tables.leaders.names[leader]
        order += (tables.leaders.names[stale] if stale != NONE else ()) + tables.works.names[work]
        try:
            to = self._names[order]
        except KeyError:
            to = naming.canonical(order)
            to = self._names[order] = None if all(old == new for old, new in to.items()) else to
        if to is None:
            return pack(row, there, leader, stale, work, timer)
        return pack(
            tables.rows.renamed(row, to),
            tables.worlds.renamed(there, to),
            tables.leaders.renamed(leader, to),
            tables.leaders.renamed(stale, to),
            tables.works.renamed(work, to),
            timer,
        )

    def _late(self, row: int, there: int, leader: int, stale: int) -> int:
        """A former leader, after what it does that nobody can disturb or notice; NONE: that was all."""
        going = self._stepper.former(stale)
        while going != NONE:
            stale = going
            if self._is_over(row, leader, stale):
                return NONE
            looked = self._stepper.look_of_its_own(row, there, stale)
            if looked == NONE:
                return stale
            going = self._stepper.former(looked)
        return NONE

    def _is_over(self, row: int, leader: int, stale: int) -> bool:
        """A former leader that stores an archive of an operation that nobody works at any more."""
        own = self._stepper.stores_only(stale)
        if own is None:
            return False
        the_row, order = self._tables.rows.values[row], self._tables.leaders.values[leader].order
        working, keys = [], [the_row.archive_key]
        if the_row.operation is not Operation.NONE:
            working.append(the_row.op_id)
        if order != NONE:
            working.append(self._tables.orders.values[order].op_id)
            keys.append(self._tables.orders.values[order].archive_key)
        return own.split("/")[1] not in working and not any(key and key.startswith(own) for key in keys)

    def _without_what_is_over(self, row: int, there: int, leader: int, stale: int) -> int:
        """Archives and leftovers that nobody can come back to are forgotten."""
        tables = self._tables
        the_row, the_world = tables.rows.values[row], tables.worlds.values[there]
        if not the_world.archives and not the_world.staged:
            return there
        needed = tables.leaders.operations[leader]
        if stale != NONE:
            needed |= tables.leaders.operations[stale]
        if self._stepper.plain:
            needed |= tables.rows.operations[row]
        elif the_row.op_id and the_row.operation is not Operation.NONE:
            needed |= {the_row.op_id}
        writing = {tables.leaders.values[number].epoch for number in (leader, stale) if number != NONE}
        archives = tuple(
            a
            for a in the_world.archives
            if a.key == the_row.archive_key or _is_needed(a, needed, None if self._stepper.plain else writing)
        )
        staged = tuple(s for s in the_world.staged if s[0].split("-")[0] in needed)
        if len(archives) == len(the_world.archives) and len(staged) == len(the_world.staged):
            return there
        return tables.worlds.number(the_world._replace(archives=archives, staged=staged))


def _is_needed(archive: Archive, operations: frozenset[str], writing: set[int] | None) -> bool:
    """By those that work at its operation. Without its meta it counts for nothing, except to who is writing it."""
    _, operation, epoch, _ = archive.key.split("/")
    counts = archive.meta is not None or writing is None or int(epoch) in writing
    return operation in operations and counts
