"""Just before a workspace is stopped because a timer said so: has somebody come back meanwhile?

The controller calls `recheck` once a tick, with all it is about to stop. Nobody is stopped before every live proxy
has told what it saw, and tells at once what it sees from then on; so `recheck_locked`, one look at Redis while the
workspace's row is held, misses nothing but what is under way in that moment. While Redis does not answer, and until all
have come back after it lost its memory, nobody is stopped.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol

from codehub import logs
from codehub.activity.reader import ActivityReader, LostMemoryError, Snapshot
from codehub.clock import Clock
from codehub.db.redis import FAILURES
from codehub.templates.model import ActivityMode
from codehub.workspaces.model import Desired, DesiredBy, Operation, Phase, Workspace
from codehub.workspaces.ttl_policy import TtlPolicies

log = logs.get()
Unreachable = (*FAILURES, LostMemoryError)


@dataclass(frozen=True)
class Returned:
    """Who is back, with when they were at work; and of whom it cannot be said yet."""

    at: Mapping[str, datetime] = field(default_factory=dict)
    unsure: frozenset[str] = frozenset()


class IdleRecheck(Protocol):
    async def recheck(self, about_to_sleep: Sequence[Workspace], /) -> Returned: ...

    async def recheck_locked(self, w: Workspace, /) -> Returned: ...


def concerns(w: Workspace) -> bool:
    """Is it about to be stopped by nobody but a timer?"""
    asked = w.desired_by is DesiredBy.TTL and w.desired_state is Desired.STANDBY
    return asked and w.phase is Phase.RUNNING and w.operation is Operation.NONE and w.deleted_at is None


class ByActivity:
    def __init__(self, reader: ActivityReader, clock: Clock, ttl_policies: TtlPolicies) -> None:
        self._reader = reader
        self._clock = clock
        self._ttl_policies = ttl_policies
        self._asked: dict[str, tuple[datetime, int]] = {}  # about which request, in which round

    async def recheck(self, about_to_sleep: Sequence[Workspace]) -> Returned:
        if not about_to_sleep:
            return Returned()
        everybody = frozenset(w.id for w in about_to_sleep)
        try:
            asked = await self._ask(about_to_sleep)
            settled, flushed = await self._reader.settled(), await self._reader.flushed()
            seen = await self._reader.look(list(everybody))
        except Unreachable as e:
            log.warning("Nobody is put to sleep: Redis does not answer", error=str(e))
            return Returned(unsure=everybody)
        unheard = frozenset(id_ for id_, round_ in asked.items() if flushed and flushed.round < round_)
        return Returned(self._back(about_to_sleep, seen), unheard if settled else everybody)

    async def recheck_locked(self, w: Workspace) -> Returned:
        try:
            return Returned(self._back([w], await self._reader.look([w.id])))
        except Unreachable as e:
            log.warning("It is not put to sleep: Redis does not answer", workspace=w.id, error=str(e))
            return Returned(unsure=frozenset([w.id]))

    async def _ask(self, about_to_sleep: Sequence[Workspace]) -> Mapping[str, int]:
        """In which round the proxies were asked about each; about those whose request is new, now."""
        latest = await self._reader.round()  # counted anew by a Redis that has lost its memory
        asked = {w.id: self._asked.get(w.id, (None, 0)) for w in about_to_sleep}
        new = [w for w in about_to_sleep if asked[w.id][0] != w.desired_at or asked[w.id][1] > latest]
        if new:
            round_ = await self._reader.ask([w.id for w in about_to_sleep])
            asked |= {w.id: (w.desired_at, round_) for w in new}
        self._asked = {id_: (request, round_) for id_, (request, round_) in asked.items() if request}
        return {id_: round_ for id_, (_, round_) in asked.items()}

    def _back(self, about_to_sleep: Sequence[Workspace], seen: Mapping[str, Snapshot]) -> dict[str, datetime]:
        newest = {w.id: self._newest(w, seen[w.id]) for w in about_to_sleep}
        return {w.id: newest[w.id] for w in about_to_sleep if self._ttl_policies.came_back(w, newest[w.id])}

    def _newest(self, w: Workspace, glance: Snapshot) -> datetime:
        by_connections = self._ttl_policies.of_template(w.template).mode is ActivityMode.CONNECTIONS
        if by_connections and glance.connections:
            return self._clock.now()
        return max(w.last_access_at, glance.newest) if glance.newest else w.last_access_at
