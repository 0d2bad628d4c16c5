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
LOOK_SECONDS = 2.0  # how long an event can wait whose process died, or that the coordinator wrote


class Publisher:
    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._loop = Recurring("events-publisher", self.publish, clock, period=LOOK_SECONDS)
        self.wake = self._loop.wake
        self.start = self._loop.start
        self.stop = self._loop.stop

    async def publish(self) -> None:
        """All that there are."""
        while await self._publish_batch() == BATCH:
            pass

    async def _publish_batch(self) -> int:
        async with self._database.transaction() as c:
            await c.execute(sql.one_publisher)
            return int((await c.execute(sql.publish, BATCH)).rsplit(" ", 1)[-1])
