"""Sessions and tokens that ended before their time, for processes that must know without asking: the proxy's workers.

Read as they are announced, and every few seconds in case an announcement was lost.
"""

from datetime import UTC, datetime, timedelta

from codehub.auth.store import sql
from codehub.clock import Clock
from codehub.db import Database

# A transaction may date a revocation earlier than it commits.
OVERLAP = timedelta(minutes=2)


class Revocations:
    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock
        self._read_until = datetime.min.replace(tzinfo=UTC)
        self.ids: set[str] = set()

    async def read(self) -> set[str]:
        """Those that are new. What expired by itself needs no mention: whatever stands on it carries its own end."""
        now = self._clock.now()
        async with self._database.connection() as c:
            found = {record["id"] for record in await c.fetch(sql.revoked_since, self._read_until)}
        self._read_until = max(self._read_until, now - OVERLAP)
        new = found - self.ids
        self.ids |= new
        return new
