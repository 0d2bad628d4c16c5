"""Swaps: one workspace goes to sleep, another one of the same owner starts in its place. Asked for by `service.swap`.

The loop of the coordinator in here starts the second when the first no longer counts as running, or gives up in time.
In between the place is promised, so that neither another start nor the waiting room gets it.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta

from codehub.clock import Clock
from codehub.coordinator.driver import Loop, Tick
from codehub.coordinator.leader import Lease
from codehub.db import Connection, Queries, one, rows
from codehub.workspaces import admission, history, rules, store
from codehub.workspaces.model import Desired, DesiredBy
from codehub.workspaces.store import Change

sql = Queries("codehub.workspaces", "swaps.sql")
NAME = "swaps"
PERIOD_SECONDS = 5.0
PATIENCE = timedelta(seconds=300)  # how long the first may take to sleep
BATCH = 100


@dataclass(frozen=True)
class Swap:
    open_id: str
    sleep_id: str
    sleep_name: str
    desired_by: str
    actor: str
    created_at: datetime
    expires_at: datetime
    waits: bool  # the first still counts as running


async def find(c: Connection, open_id: str) -> Swap | None:
    return one(Swap, await c.fetchrow(sql.find, open_id))


async def begin(
    c: Connection, open_id: str, sleep_id: str, owner: str, by: DesiredBy, actor: str, now: datetime
) -> None:
    """Under admission's lock. A workspace that was to be replaced by another one, or to replace one, is in this now."""
    await c.execute(sql.end, [open_id, sleep_id])
    await c.execute(sql.add, open_id, sleep_id, owner, by, actor, now, now + PATIENCE)


async def end(c: Connection, id_: str) -> None:
    """Whatever swap this workspace is part of is over."""
    await c.execute(sql.end, [id_])


class Swaps:
    def __init__(self, lease: Lease, clock: Clock) -> None:
        self._lease = lease
        self._clock = clock

    def loop(self) -> Loop:
        return Loop(NAME, self.tick, period=PERIOD_SECONDS, longest_pause=PERIOD_SECONDS)

    async def tick(self) -> Tick:
        async with self._lease.database.connection() as c:
            due = rows(Swap, await c.fetch(sql.due, self._clock.now(), BATCH))
        done = [await self._finish(swap.open_id) for swap in due]
        return Tick({"due": len(due), "done": sum(done)})

    async def _finish(self, open_id: str) -> bool:
        """As it is now, under the locks of its row and of admission: then nothing is counted twice, or not at all."""
        now = self._clock.now()
        async with self._lease.transaction() as c:
            w = await store.lock(c, open_id)
            await admission.serialize(c)
            swap = await find(c, open_id)
            if w is None or swap is None or (swap.waits and swap.expires_at > now):
                return False
            judged = rules.verdict(w, Desired.RUNNING)
            if not swap.waits and judged.code == "OPERATION_IN_PROGRESS" and swap.expires_at > now:
                return False  # it is being stored away, say: its turn comes when that is over
            await c.execute(sql.end, [open_id])
            active = await c.fetchval(store.sql.owner_is_active, w.owner)
            if swap.waits or judged.code or not active:
                await store.note(c, w.id, now, Change(swap.actor, history.SwapExpired(swap.sleep_name)))
                return True
            by = DesiredBy(swap.desired_by)
            await store.update(c, store.sql.set_desired, w.id, Desired.RUNNING, by, now)
            asked = history.requested(Desired.RUNNING, by)
            await store.note(c, w.id, now, Change(swap.actor, asked, w.desired_state, Desired.RUNNING))
            await c.execute(store.sql.wake_controller)
            return True
