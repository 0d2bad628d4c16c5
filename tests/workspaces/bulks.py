"""The coordinator's part of what is asked of many workspaces, for tests that send its ticks by hand."""

from codehub.coordinator.leader import Lease
from codehub.web.services import Services
from codehub.workspaces.bulk import BulkLoop


async def loop_of(services: Services) -> BulkLoop:
    async with services.database.connection() as c:
        await c.execute(
            "INSERT INTO system_locks (name, holder, epoch, expires_at) VALUES ('coordinator', 'test', 1, 'infinity')"
            " ON CONFLICT (name) DO NOTHING"
        )
    return BulkLoop(Lease(services.database, "test", 1), services.workspaces, services.clock)
