"""The loop that takes a sample every minute. `wiring.coordinator` runs it, so the leader alone does.

A tick costs what changed since the last one, and what runs: counters are added up from changes, wakes are read from
history by their time. The running quarter of an hour and the running hour are made anew from what they consist of.
"""

from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta

from codehub.clock import Clock
from codehub.coordinator.driver import Loop, Tick
from codehub.coordinator.leader import Lease
from codehub.db import Connection
from codehub.monitoring import rules, store
from codehub.monitoring.model import Readings, Resolution, Sample
from codehub.monitoring.store import sql

NAME = "monitoring"
ACTIVE = timedelta(minutes=5)  # a person was at work so lately
# What is written down with an earlier time than ours may be committed a moment later.
SETTLED = timedelta(seconds=5)
FARTHEST = timedelta(hours=1)  # that a sample looks back for wakes, after there was no leader
Read = Callable[[], Awaitable[Readings]]
MADE_OF = ((Resolution.QUARTER_HOUR, Resolution.MINUTE), (Resolution.HOUR, Resolution.QUARTER_HOUR))


class Sampler:
    def __init__(self, lease: Lease, clock: Clock, read: Read) -> None:
        self._lease = lease
        self._clock = clock
        self._read = read
        self._counted = False

    def loop(self) -> Loop:
        """Without jitter: each minute gets one."""
        return Loop(NAME, self.tick, period=float(Resolution.MINUTE), timeout=30.0, jitter=0.0)

    async def tick(self) -> Tick:
        readings = await self._read()
        now = self._clock.now()
        async with self._lease.transaction() as c:
            await c.execute(sql.add_up if self._counted else sql.count_anew)
            sample = await self._sample(c, now, readings)
            await self._keep(c, sample)
            for resolution, kept in rules.KEPT.items():
                await c.execute(sql.prune, resolution, rules.beginning(now - kept, resolution))
        self._counted = True
        stats = {"running": sample.running, "wakes": sum(sample.wakes), "lag": sample.loop_lag_seconds}
        return Tick(stats, rules.until_next_minute(self._clock.now()))

    async def _sample(self, c: Connection, now: datetime, readings: Readings) -> Sample:
        figures = await store.figures(c, now - ACTIVE)
        before: datetime | None = await c.fetchval(sql.newest)
        since = max(before - SETTLED, now - FARTHEST) if before else now - timedelta(minutes=1)
        slowest = max(readings.lags, key=lambda name: readings.lags[name], default=None)
        return Sample(
            at=rules.beginning(now, Resolution.MINUTE),
            taken_at=now,
            minutes=1,
            running=figures.phase("RUNNING"),
            asleep=figures.phase("STANDBY"),
            stored=figures.phase("ARCHIVED"),
            pending=figures.phase("PENDING"),
            broken=figures.phase("ERROR"),
            active_workspaces=figures.active_workspaces,
            active_people=figures.active_people,
            waiting=readings.waiting,
            archive_bytes=figures.counters.get("archive_bytes", 0),
            disk_free_bytes=readings.disk_free_bytes,
            loop_lag_seconds=None if slowest is None else readings.lags[slowest],
            slowest_loop=slowest,
            wakes=rules.histogram(await store.wakes(c, since, now - SETTLED)),
        )

    async def _keep(self, c: Connection, sample: Sample) -> None:
        minute = timedelta(minutes=1)
        before = await store.between(c, Resolution.MINUTE, sample.at, sample.at + minute, 1)
        await store.write(c, Resolution.MINUTE, rules.same_minute(before[0] if before else None, sample))
        for resolution, finer in MADE_OF:
            at = rules.beginning(sample.at, resolution)
            parts = await store.between(c, finer, at, at + timedelta(seconds=resolution), resolution // finer)
            await store.write(c, resolution, rules.merge(parts, at))
