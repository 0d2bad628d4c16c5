"""Abandons runs without activity for too long, so that their sessions can be started again. A loop of the coordinator.

A run whose workspace was at work goes on: its time moves to the workspace's, so that it is not looked at again soon.
"""

from datetime import timedelta

from codehub.clock import Clock
from codehub.coordinator.driver import Loop, Tick
from codehub.coordinator.leader import Lease
from codehub.policy import rules as policy
from codehub.policy.actions import Action
from codehub.policy.model import System, system
from codehub.sessions import news, rules, store
from codehub.sessions.model import EndReason, Run, SessionStatus
from codehub.settings import SessionConfig
from codehub.workspaces import service as workspaces

BATCH = 100  # runs that one tick looks at
SWEEPER = system(System.SESSIONS)


class Sweeper:
    def __init__(self, lease: Lease, clock: Clock, config: SessionConfig) -> None:
        self._lease = lease
        self._clock = clock
        self._recovery = timedelta(seconds=config.recovery_seconds)

    async def tick(self) -> Tick:
        async with self._lease.database.connection() as c:
            found = await store.inactive(c, self._clock.now() - self._recovery, BATCH)
        abandoned = sum([await self._sweep(run) for run in found])
        # A full batch means there is more.
        return Tick({"looked_at": len(found), "abandoned": abandoned}, 1.0 if len(found) == BATCH else None)

    async def _sweep(self, run: Run) -> bool:
        """Each by itself, as it is now: what became active meanwhile stays."""
        now = self._clock.now()
        async with self._lease.transaction() as c:
            at_work = await workspaces.last_activity(c, run.workspace_id) if run.workspace_id else None
            if at_work and not rules.is_inactive(at_work, now, self._recovery):
                await store.note_activity(c, run, at_work)
                return False
            policy.require(SWEEPER, Action.RUN_ABANDON)
            ended = rules.abandoned(run, now, EndReason.INACTIVE)
            told = news.both(ended, SessionStatus.SCHEDULED)
            return await store.abandon_run(c, run, ended, until=run.last_activity_at, events=told)


def loop(lease: Lease, clock: Clock, config: SessionConfig) -> Loop:
    return Loop("sessions", Sweeper(lease, clock, config).tick, period=config.sweep_interval)
