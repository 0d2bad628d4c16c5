"""Just before a workspace is stopped because a timer said so: has somebody come back meanwhile?

Called by the controller with all it is about to stop, once a tick. Nobody is stopped before every live proxy has told
what it saw up to the timer's wish; while Redis does not answer, nobody is.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol

import redis.exceptions

from codehub import logs
from codehub.activity.intake import Glance, Intake
from codehub.clock import Clock
from codehub.templates.model import ActivityMode
from codehub.workspaces.model import Desired, DesiredBy, Operation, Phase, Workspace
from codehub.workspaces.timetable import Timetable

log = logs.get()


@dataclass(frozen=True)
class Returned:
    """Who is back, with when they were at work; and of whom it cannot be said yet."""

    at: Mapping[str, datetime] = field(default_factory=dict)
    unsure: frozenset[str] = frozenset()


class SecondLook(Protocol):
    async def who_returned(self, about_to_sleep: Sequence[Workspace], /) -> Returned: ...


def concerns(w: Workspace) -> bool:
    """Is it about to be stopped by nobody but a timer?"""
    wished = w.desired_by is DesiredBy.TTL and w.desired_state is Desired.STANDBY
    return wished and w.phase is Phase.RUNNING and w.operation is Operation.NONE and w.deleted_at is None


class ByActivity:
    def __init__(self, intake: Intake, clock: Clock, timetable: Timetable) -> None:
        self._intake = intake
        self._clock = clock
        self._timetable = timetable

    async def who_returned(self, about_to_sleep: Sequence[Workspace]) -> Returned:
        if not about_to_sleep:
            return Returned()
        try:
            flushed = await self._intake.flushed()
            seen = await self._intake.look([w.id for w in about_to_sleep])
            unsure = frozenset(w.id for w in about_to_sleep if flushed and flushed <= w.desired_at)
            if unsure:
                await self._intake.want_flush()
        except (redis.exceptions.RedisError, OSError, TimeoutError) as e:
            log.warning("Nobody is put to sleep: Redis does not answer", error=str(e))
            return Returned(unsure=frozenset(w.id for w in about_to_sleep))
        newest = {w.id: self._newest(w, seen[w.id]) for w in about_to_sleep}
        back = {w.id: newest[w.id] for w in about_to_sleep if self._timetable.came_back(w, newest[w.id])}
        return Returned(back, unsure)

    def _newest(self, w: Workspace, glance: Glance) -> datetime:
        by_connections = self._timetable.of_template(w.template).mode is ActivityMode.CONNECTIONS
        if by_connections and glance.connections:
            return self._clock.now()
        return max(w.last_access_at, glance.newest) if glance.newest else w.last_access_at
