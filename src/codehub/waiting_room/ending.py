"""The end of places: a reservation that was not used in time, a lease that ran out, a workspace that sleeps.

Called by the pump in every tick, over all events: also an event without a line has places that end.
"""

from collections.abc import Awaitable, Callable, Collection
from datetime import timedelta

from codehub.clock import Clock
from codehub.db import Connection, Database
from codehub.waiting_room import rules, store
from codehub.waiting_room.model import Place
from codehub.waiting_room.rules import Keep
from codehub.waiting_room.store import sql
from codehub.workspaces import admission

BATCH = 500  # places that one tick looks at, of each kind
Alive = Callable[[Connection, Collection[str]], Awaitable[set[str]]]


class Endings:
    def __init__(self, database: Database, clock: Clock, running_runs: Alive) -> None:
        """`running_runs`: which of these runs of sessions go on; sessions know the waiting room, not the other way."""
        self._database = database
        self._clock = clock
        self._running_runs = running_runs
        self._after = ("", "")  # up to where held places were looked at: the next tick goes on from there

    async def end(self) -> int:
        """How many are over."""
        now = self._clock.now()
        async with self._database.connection() as c:
            over = await store.query_places(c, sql.over, now, BATCH)
            bound = await store.bound(c, self._after, BATCH)
            leases = {(place.event_id, place.pid): seconds for place, seconds in bound}
            places = {(place.event_id, place.pid): place for place in (*over, *(place for place, _ in bound))}
            alive = await self._alive(c, places.values())
        self._after = (bound[-1][0].event_id, bound[-1][0].pid) if len(bound) == BATCH else ("", "")
        ended = 0
        for key, place in places.items():
            seconds = leases.get(key, 0)
            match rules.keep(place, alive=alive(place), now=now, lease_seconds=seconds):
                case Keep.RELEASE:
                    ended += await self._release(place)
                case Keep.RENEW if seconds:
                    async with self._database.connection() as c:
                        until = now + timedelta(seconds=seconds)
                        await c.execute(sql.renew_lease, place.event_id, place.pid, place.offer_id, until)
        return ended

    async def _alive(self, c: Connection, places: Collection[Place]) -> Callable[[Place], bool | None]:
        """Does what holds a place go on? None: nothing holds it."""
        workspaces = await admission.counted(c, [p.workspace_id for p in places if p.workspace_id])
        runs = await self._running_runs(c, [p.run_id for p in places if p.run_id])

        def alive(place: Place) -> bool | None:
            if place.workspace_id is None and place.run_id is None:
                return None
            return place.workspace_id in workspaces or place.run_id in runs

        return alive

    async def _release(self, seen: Place) -> bool:
        """As it is now, under the event's lock: what was used or given back meanwhile stays as it is."""
        async with self._database.transaction() as c:
            await store.lock_event(c, seen.event_id)
            place = await store.find_place(c, seen.event_id, seen.pid)
            if place is None or (place.state, place.offer_id) != (seen.state, seen.offer_id):
                return False
            await store.save(c, rules.released(place, self._clock.now()))
            return True
