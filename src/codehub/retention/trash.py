"""Empties the trash: workspaces that were deleted long enough ago, or purged. A loop of the coordinator.

First the row says that there is no way back (`purge`), then everything of it is destroyed, then the row says that
nothing is left (`emptied_at`). A crash in between repeats it; until the first of these, undelete still works.
"""

from datetime import timedelta

from codehub.archives import ownership
from codehub.archives import service as archives
from codehub.audit import service as audit
from codehub.audit.codes import Code
from codehub.clock import Clock
from codehub.coordinator.driver import Loop, Tick
from codehub.coordinator.leader import Lease
from codehub.coordinator.setbacks import Setbacks
from codehub.errors import LeaseLostError, UnavailableError
from codehub.policy.model import Origin
from codehub.retention.gc import Finder
from codehub.retention.store import sql
from codehub.workspaces import history
from codehub.workspaces import store as workspaces

ACTOR = "trash"
PERIOD_SECONDS = 60.0
PER_TICK = 50
STOP_SECONDS = 1.0


class Trash:
    def __init__(self, lease: Lease, finder: Finder, clock: Clock) -> None:
        self._lease = lease
        self._finder = finder
        self._clock = clock
        self._setbacks = Setbacks(lease, clock, ACTOR)

    async def tick(self) -> Tick:
        before = self._clock.now() - timedelta(seconds=self._finder.config.trash_seconds)
        async with self._lease.database.connection() as c:
            await self._setbacks.load(c)
            found = await c.fetch(sql.trash_due, before, self._setbacks.waiting(), PER_TICK, self._finder.runtime.node)
            due = [(row["id"], row["purge"]) for row in found]
        emptied = failed = 0
        for id_, purged in due:
            try:
                emptied += await self._empty(id_, history.Purged() if purged else history.TrashExpired())
                await self._setbacks.clear(id_)
            except (LeaseLostError, UnavailableError):
                raise
            except Exception as e:  # noqa: BLE001 (whatever is wrong with this one, the others are emptied)
                failed += 1
                await self._setbacks.note(id_, e)
        return Tick({"emptied": emptied, "failed": failed}, 1.0 if len(due) == PER_TICK else None)

    async def _empty(self, id_: str, why: history.Purged | history.TrashExpired) -> bool:
        before = self._clock.now() - timedelta(seconds=self._finder.config.trash_seconds)
        async with self._lease.transaction() as c:
            if await c.fetchval(sql.expire, id_, before, self._clock.now()) is None:
                return False  # somebody brought it back
        await self._destroy(id_)
        now = self._clock.now()
        async with self._lease.transaction() as c:
            if await c.fetchval(sql.emptied, id_, now) is None:
                return False
            await c.execute(sql.drop_points_of, id_)
            await workspaces.note(c, id_, now, workspaces.Change(ACTOR, why))
            await audit.record(c, now, Origin(ACTOR), Code.WORKSPACE_DESTROY, id_, why=why.code)
        return True

    async def _destroy(self, id_: str) -> None:
        """Container, then volumes, each by the generation it has; then the archives, where they are ours to delete."""
        runtime, objects = self._finder.runtime, self._finder.objects
        await runtime.stop(id_, STOP_SECONDS)
        for item in await runtime.disk_items([id_]):
            await runtime.delete_volume(id_, item.generation)
        if await ownership.owner(objects) in {None, await self._finder.platform()}:
            await archives.delete_all(objects, id_)


def loop(lease: Lease, finder: Finder, clock: Clock) -> Loop:
    return Loop("trash", Trash(lease, finder, clock).tick, period=PERIOD_SECONDS)
