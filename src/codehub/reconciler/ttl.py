"""The TTL runner, a loop of the coordinator: activity into the database, then what nobody uses goes to sleep.

It never takes longer because more workspaces exist, only because more were used or more ran out. It only asks; the
controller acts, after a recheck.
"""

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence

from codehub.activity.reader import ActivityReader, Watermark
from codehub.clock import Clock
from codehub.coordinator.driver import Tick
from codehub.coordinator.leader import Lease
from codehub.templates.model import ActivityMode
from codehub.workspaces import idle_store
from codehub.workspaces.idle_store import Idle
from codehub.workspaces.model import Work
from codehub.workspaces.ttl_policy import TtlPolicies

AT_MOST = 10_000  # workspaces that one tick puts to sleep, or stores away
SOON = 1.0
Busy = Callable[[Sequence[Idle]], Awaitable[tuple[Mapping[str, Work], Collection[str]]]]


class TtlRunner:
    def __init__(
        self,
        lease: Lease,
        reader: ActivityReader,
        clock: Clock,
        ttl_policies: TtlPolicies,
        busy: Busy,
        nudge: Callable[[], None],
    ) -> None:
        self._lease = lease
        self._reader = reader
        self._clock = clock
        self._ttl_policies = ttl_policies
        self._busy = busy  # which of these are at work although nothing passes, and which could not be asked yet
        self._nudge = nudge

    async def tick(self) -> Tick:
        watermark = await self._reader.watermark()
        synced = await self._sync()
        slept, more = await self._put_to_sleep(watermark) if watermark.settled else ([], False)
        stored = await self._store_away(watermark)
        if slept or stored:
            self._nudge()
        stats = {"synced": synced, "put_to_sleep": len(slept), "stored_away": len(stored), "settled": watermark.settled}
        return Tick(stats, SOON if more or len(stored) >= AT_MOST else None)

    async def _sync(self) -> int:
        """Repeatable: a set is thrown away only when all of it is in the database, where nothing goes backwards."""
        moved = 0
        for name in await self._reader.take(self._lease.epoch):
            async for newest in self._reader.read(name):
                async with self._lease.transaction() as c:
                    moved += await idle_store.note_activity(c, newest)
            await self._reader.finish(name)
        return moved

    async def _put_to_sleep(self, watermark: Watermark) -> tuple[list[str], bool]:
        """Whom it put to sleep, and whether there are more."""
        async with self._lease.database.connection() as c:
            names = await idle_store.awake_templates(c)
            seconds = {name: self._ttl_policies.of_template(name).standby_seconds for name in names}
            seconds = {name: s for name, s in seconds.items() if s and _apart(watermark, s)}
            found = await idle_store.idle(
                c, seconds, as_of=watermark.as_of, not_before=watermark.not_before, limit=AT_MOST
            )
        found = await self._without_the_connected(found)
        busy, not_asked = await self._busy(found)
        if busy:
            await self._note_busy(found, busy)
        idle = [w for w in found if w.id not in busy and w.id not in not_asked]
        if not idle:
            return [], bool(not_asked)
        async with self._lease.transaction() as c:
            slept = await idle_store.put_to_sleep(c, idle, self._clock.now())
        return slept, bool(not_asked) or len(found) >= AT_MOST

    async def _without_the_connected(self, found: Sequence[Idle]) -> list[Idle]:
        """By the newest that Redis knows: who did something since, and, where that is the mode, who is connected."""
        seen = await self._reader.look([w.id for w in found])

        def is_idle(w: Idle) -> bool:
            glance = seen[w.id]
            if glance.newest and glance.newest > w.idle_since:
                return False
            by_connections = self._ttl_policies.of_template(w.template).mode is ActivityMode.CONNECTIONS
            return not (by_connections and (glance.connections or glance.timer))

        return [w for w in found if is_idle(w)]

    async def _note_busy(self, found: Sequence[Idle], busy: Mapping[str, Work]) -> None:
        now = self._clock.now()
        async with self._lease.transaction() as c:
            await idle_store.keep_busy(c, [w for w in found if w.id in busy], busy, now)
            await idle_store.note_activity(c, dict.fromkeys(busy, now))
        await self._reader.note_busy(list(busy))

    async def _store_away(self, watermark: Watermark) -> list[str]:
        now = self._clock.now()
        async with self._lease.transaction() as c:
            names = await idle_store.asleep_templates(c)
            seconds = {name: self._ttl_policies.of_template(name).archive_seconds for name in names}
            return await idle_store.store_away(
                c,
                {name: s for name, s in seconds.items() if s and _apart(watermark, s)},
                as_of=now,
                not_before=watermark.not_before,
                now=now,
                limit=AT_MOST,
            )


def _apart(watermark: Watermark, seconds: int) -> bool:
    """Has so much time passed since the clock last jumped?"""
    return (watermark.as_of - watermark.not_before).total_seconds() > seconds
