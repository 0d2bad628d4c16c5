"""A loop that removes what has expired: logins, links, tokens and idempotency keys; old audit, history and events."""

from datetime import timedelta

from codehub.audit import service as audit
from codehub.auth import service as auth
from codehub.classes import invitations
from codehub.clock import Clock
from codehub.coordinator.driver import Loop, Tick
from codehub.coordinator.leader import Lease
from codehub.events import outbox
from codehub.schedules import store as schedules
from codehub.sessions import idempotency
from codehub.settings import CoordinatorConfig, SessionConfig
from codehub.waiting_room import store as waiting_room
from codehub.workspaces import idle_history
from codehub.workspaces import service as workspaces

BATCH = 5_000
PLACES_KEPT = timedelta(days=1)  # of a waiting room's line that is empty: far longer than any of its tokens is good


def loop(lease: Lease, clock: Clock, config: CoordinatorConfig, sessions: SessionConfig) -> Loop:
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
        async with lease.transaction() as c:
            keys = await idempotency.prune(c, now - timedelta(seconds=sessions.idempotency_key_seconds), BATCH)
        async with lease.transaction() as c:
            places = await waiting_room.prune(c, now - PLACES_KEPT, BATCH)
        async with lease.transaction() as c:
            invited = await invitations.prune(c, now, BATCH)
        async with lease.transaction() as c:
            idle = await idle_history.prune(c, now, BATCH)
        async with lease.transaction() as c:
            lessons = await schedules.prune(c, horizon, BATCH)
        # A full batch means there is more: go on soon instead of holding long transactions.
        removed = {
            "audit_entries": entries,
            "credentials": credentials,
            "history": history,
            "events": told,
            "keys": keys,
            "places": places,
            "invitations": invited,
            "idle_periods": idle,
            "lessons": lessons,
        }
        return Tick(removed, 1.0 if BATCH in removed.values() else None)

    return Loop("housekeeping", tick, period=config.housekeeping_interval)
