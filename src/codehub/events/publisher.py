"""Moves deferred events to the outbox, many in one transaction. Every API process runs one; one at a time works.

A capability whose changes come many at once writes its events to `deferred_events` in the transaction of the change,
and calls `wake` after it. An event is lost no more than the change is: where the process dies in between, another one
publishes it within seconds.
"""

from codehub.clock import Clock
from codehub.db import Database
from codehub.events.outbox import sql
from codehub.recurring import Recurring

BATCH = 1_000  # events of one transaction
PAUSE_SECONDS = 0.05  # after some were published: what comes meanwhile is published together, by one commit
LOOK_SECONDS = 2.0  # how long an event can wait whose process died, or that the coordinator wrote


class Publisher:
    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock
        self._loop = Recurring("events-publisher", self._publish_and_pause, clock, period=LOOK_SECONDS)
        self.wake = self._loop.wake
        self.start = self._loop.start
        self.stop = self._loop.stop

    async def publish(self) -> bool:
        """All that there are. False: there were none."""
        count = published = await self._publish_batch()
        while count == BATCH:
            count = await self._publish_batch()
        return published > 0

    async def _publish_and_pause(self) -> None:
        """The first after a while goes out at once."""
        if await self.publish():
            await self._clock.sleep(PAUSE_SECONDS)

    async def _publish_batch(self) -> int:
        async with self._database.transaction() as c:
            await c.execute(sql.one_publisher)
            return int(await c.fetchval(sql.publish, BATCH))
