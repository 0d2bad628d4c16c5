"""Which workspaces' rows do not say what was seen of their containers. Asked by the controller, once a tick.

To compare all that run with all rows that say so costs by how many there are. So a tick compares what has come or gone
since the last one, what was begun, and what did not agree before; and now and then everything, whatever the cause.
"""

from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from codehub.clock import Clock
from codehub.db import Connection
from codehub.workspaces import store
from codehub.workspaces.model import Observed, Operation, Workspace

AT_ONCE = 2_000


@dataclass(frozen=True)
class Differences:
    rows: tuple[Workspace, ...] = ()  # RUNNING without a container, or the other way round, and nothing is under way
    strays: frozenset[str] = frozenset()  # containers of no workspace


class Comparing:
    def __init__(self, clock: Clock, period: float, node: str) -> None:
        self._clock = clock
        self._period = period  # between two comparisons of everything
        self._node = node
        self._due: float | None = None  # at once
        self._seen: frozenset[str] = frozenset()
        self._unsettled: set[str] = set()

    def begun(self, id_: str) -> None:
        """Work on it may make and end a container between two looks."""
        self._unsettled.add(id_)

    async def differences(self, c: Connection, seen: AbstractSet[str]) -> Differences:
        now, due = self._clock.monotonic(), self._due
        if due is None or now >= due:
            changed, due = await store.running(c) ^ seen, now + self._period
        else:
            changed = set(seen ^ self._seen)
        suspects = self._unsettled | changed
        at_once = sorted(suspects)[:AT_ONCE]
        found = await store.query(c, store.sql.find_many, at_once) if at_once else []
        rows = [w for w in found if w.node is None or w.node == self._node]
        differ = {w.id: w for w in rows if (w.observed_status is Observed.RUNNING) != (w.id in seen)}
        moving = {w.id for w in rows if w.operation is not Operation.NONE}
        strays = (set(at_once) & seen) - {w.id for w in found}
        # Not before: what has failed up to here is compared again.
        self._unsettled = {*strays, *differ, *moving, *(suspects - set(at_once))}
        self._seen, self._due = frozenset(seen), due
        return Differences(tuple(w for w in differ.values() if w.id not in moving), frozenset(strays))
