"""Three months of figures to look at: days with a rush in the morning, a night in which nothing was written down."""

import math
from datetime import datetime, timedelta

from codehub.db import Database
from codehub.monitoring import rules, store
from codehub.monitoring.model import Resolution, Sample

GB = 10**9
NIGHT = 15  # hours ago: no leader for some hours then


def figures(
    at: datetime, now: datetime, resolution: Resolution, *, archives: int = 180 * GB, free: int = 220 * GB
) -> Sample:
    """As of then; the same each time."""
    ago = (now - at).total_seconds() / 3600
    rush = max(0.0, math.sin((at.hour + at.minute / 60 - 6) / 24 * 2 * math.pi)) ** 2
    noise = (math.sin(at.timestamp() / 137) + 1) / 2
    wakes = [1.2 + noise, 2.5, 3 + 6 * noise] * int(1 + 4 * rush) if rush > 0.1 else []
    return Sample(
        at=at,
        taken_at=at,
        minutes=resolution // 60,
        running=round(2 + 40 * rush + 3 * noise),
        asleep=round(60 - 30 * rush),
        stored=round(120 - ago / 40),
        pending=2,
        broken=1 if noise > 0.97 else 0,
        active_workspaces=round(30 * rush + 2 * noise),
        active_people=round(26 * rush + 2 * noise),
        waiting=round(12 * rush * noise) if rush > 0.8 else 0,
        archive_bytes=int(archives * (1 - ago / 4500)),
        disk_free_bytes=int(free * (1 + ago / 7333)),
        loop_lag_seconds=0.02 + (2.5 if noise > 0.99 else 0.3 * rush),
        slowest_loop="controller",
        wakes=rules.histogram(wakes),
    )


async def furnish(database: Database, now: datetime, **sizes: int) -> None:
    """`sizes`: what archives take now, and what is free."""
    async with database.transaction() as c:
        for resolution, length in (
            (Resolution.MINUTE, timedelta(hours=2)),
            (Resolution.QUARTER_HOUR, timedelta(days=1)),
            (Resolution.HOUR, timedelta(days=92)),
        ):
            at, step = rules.beginning(now, resolution), timedelta(seconds=resolution)
            for _ in range(length // step):
                if not NIGHT <= (now - at).total_seconds() / 3600 < NIGHT + 3:
                    await store.write(c, resolution, figures(at, now, resolution, **sizes))
                at -= step
