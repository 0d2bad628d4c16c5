"""Housekeeping, tick by tick: events go after their hours, a bounded number at a time."""

from codehub.db import Database
from codehub.events import outbox
from codehub.events.model import Event
from codehub.retention import housekeeping
from codehub.settings import CoordinatorConfig, SessionConfig
from tests.leading import lead
from tests.virtual_time import ManualClock

HOUR = 3600.0


async def test_events_are_kept_for_their_hours_and_removed_in_steps(database: Database, clock: ManualClock) -> None:
    lease = await lead(database)
    async with database.connection() as c:
        await outbox.write(c, clock.now(), [Event("admins", "said", "x")] * (housekeeping.BATCH + 1))
        loop = housekeeping.loop(lease, clock, CoordinatorConfig(event_hours=2), SessionConfig())
        await clock.advance(2 * HOUR)
        assert (await loop.tick()).stats["events"] == 0
        await clock.advance(1)
        tick = await loop.tick()
        assert (tick.stats["events"], tick.again_in) == (housekeeping.BATCH, 1.0)
        tick = await loop.tick()
        assert (tick.stats["events"], tick.again_in) == (1, None)
