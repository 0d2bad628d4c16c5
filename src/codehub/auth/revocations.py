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
        self.ids: dict[str, datetime] = {}  # and when each would have expired

    async def read(self) -> set[str]:
        """Those that are new.

        What expired by itself needs no mention, and is forgotten: passes and tokens carry an end of their own, which is
        never later than their session's or theirs.
        """
        now = self._clock.now()
        async with self._database.connection() as c:
            read = await c.fetch(sql.revoked_since, self._read_until, now - OVERLAP)
        self._read_until = max(self._read_until, now - OVERLAP)
        found = {record["id"]: record["expires_at"] for record in read}
        new = found.keys() - self.ids.keys()
        self.ids |= found
        for id_ in [id_ for id_, expires_at in self.ids.items() if expires_at <= now - OVERLAP]:
            del self.ids[id_]
        return new
