"""A coordinator's lease for a loop under test or measurement, of which there is no process."""

from codehub.coordinator.leader import LEASE_NAME, Lease
from codehub.coordinator.store import sql
from codehub.db import Database

LONG = 1e6  # seconds: nobody renews it


async def try_to_lead(database: Database, holder: str, seconds: float = LONG) -> int | None:
    """The epoch; None where another holder's lease is good."""
    async with database.connection() as c:
        epoch: int | None = await c.fetchval(sql.acquire, LEASE_NAME, holder, seconds, {})
        return epoch


async def lead(database: Database, holder: str = "test") -> Lease:
    """Also where another one leads, which then has lost its lease."""
    async with database.connection() as c:
        await c.execute("UPDATE system_locks SET expires_at = '-infinity'")
    epoch = await try_to_lead(database, holder)
    assert epoch
    return Lease(database, holder, epoch)
