"""A loop that removes what has expired: sessions, links and tokens; old audit entries, history and events."""

from datetime import timedelta

from codehub.audit import service as audit
from codehub.auth import service as auth
from codehub.clock import Clock
from codehub.coordinator.driver import Loop, Tick
from codehub.coordinator.leader import Lease
from codehub.events import outbox
from codehub.settings import CoordinatorConfig
from codehub.workspaces import service as workspaces

BATCH = 5_000


def loop(lease: Lease, clock: Clock, config: CoordinatorConfig) -> Loop:
    async def tick() -> Tick:
        now = clock.now()
        horizon = now - timedelta(days=config.history_days)
        async with lease.transaction() as c:
            entries = await audit.prune(c, horizon, BATCH)
        async with lease.transaction() as c:
            credentials = await auth.prune(c, now, BATCH)
        async with lease.transaction() as c:
            history = await workspaces.prune(c, horizon, BATCH)
        async with lease.transaction() as c:
            told = await outbox.prune(c, now - timedelta(hours=config.event_hours), BATCH)
        # A full batch means there is more: go on soon instead of holding long transactions.
        again_in = 1.0 if BATCH in (entries, credentials, history, told) else None
        return Tick(
            {"audit_entries": entries, "credentials": credentials, "history": history, "events": told}, again_in
        )

    return Loop("housekeeping", tick, period=config.housekeeping_interval)
