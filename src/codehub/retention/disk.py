"""A loop that measures how much disk homes take, the longest unmeasured first, a few at a time.

Those that run are measured again and again, one that sleeps once: on a cluster, to look at it takes a pod.
"""

import contextlib
from datetime import timedelta

from codehub.clock import Clock
from codehub.coordinator.driver import Loop, Tick
from codehub.coordinator.leader import Lease
from codehub.errors import CodeHubError
from codehub.runtimes.base import Runtime
from codehub.workspaces.store import sql

PERIOD_SECONDS = 60.0
FRESH = timedelta(minutes=10)
PER_TICK = 20


def loop(lease: Lease, runtime: Runtime, clock: Clock) -> Loop:
    async def tick() -> Tick:
        async with lease.database.connection() as c:
            due = [row["id"] for row in await c.fetch(sql.oldest_disk_figures, clock.now() - FRESH, PER_TICK)]
        for id_ in due:
            size: int | None = None
            begun = clock.now()  # what changes while it is measured is measured again
            with contextlib.suppress(CodeHubError):  # on its way somewhere else: the next round finds it
                size = await runtime.disk_usage(id_)
            async with lease.transaction() as c:
                await c.execute(sql.note_disk, id_, size, begun)
        return Tick({"measured": len(due)}, 1.0 if len(due) == PER_TICK else None)

    return Loop("disk", tick, period=PERIOD_SECONDS)
