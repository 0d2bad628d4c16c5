"""Measuring homes, tick by tick: those that run again and again, one that sleeps once after it has changed."""

from datetime import timedelta

from codehub.db import Connection, Database
from codehub.retention import disk
from codehub.runtimes.base import RuntimeFailureError
from tests.leading import lead
from tests.null_runtime import NullRuntime
from tests.virtual_time import ManualClock

LONG = 24 * 3600.0


class Measured(NullRuntime):
    def __init__(self) -> None:
        super().__init__()
        self.measured: list[str] = []
        self.broken = False

    async def disk_usage(self, workspace_id: str) -> int:
        self.measured.append(workspace_id)
        if self.broken:
            raise RuntimeFailureError("not now")
        return 4096

    def taken(self) -> set[str]:
        measured, self.measured = set(self.measured), []
        return measured


async def add(c: Connection, clock: ManualClock, id_: str, status: str) -> None:
    await c.execute(
        "INSERT INTO workspaces (id, name, template, owner_id, created_at, updated_at, phase_changed_at,"
        " last_access_at, desired_state, desired_by, desired_at, observed_status, volume_generation)"
        " VALUES ($1, 'lab', 't', codehub_user_id('mina'), $2, $2, $2, $2, $3, 'user', $2, $3, 'g')",
        id_,
        clock.now(),
        status,
    )


async def test_a_sleeping_home_is_measured_once_and_again_after_it_has_run(
    database: Database, clock: ManualClock
) -> None:
    runtime = Measured()
    async with database.connection() as c:
        await c.execute("INSERT INTO users (name, role, created_at) VALUES ('mina', 'learner', now())")
        for id_, status in (("runs", "RUNNING"), ("sleeps", "STANDBY")):
            await add(c, clock, id_, status)
        loop = disk.loop(await lead(database), runtime, clock)
        await loop.tick()
        assert runtime.taken() == {"runs", "sleeps"}
        await clock.advance(LONG)
        await loop.tick()
        assert runtime.taken() == {"runs"}
        await clock.advance(1)
        at = clock.now()
        await c.execute("UPDATE workspaces SET observed_status = 'STANDBY', updated_at = $1 WHERE id = 'runs'", at)
        await clock.advance(1)
        await loop.tick()
        assert runtime.taken() == {"runs"}
        await clock.advance(LONG)
        await loop.tick()
        assert runtime.taken() == set()


async def test_a_home_that_could_not_be_measured_is_tried_again(database: Database, clock: ManualClock) -> None:
    runtime = Measured()
    runtime.broken = True
    async with database.connection() as c:
        await c.execute("INSERT INTO users (name, role, created_at) VALUES ('mina', 'learner', now())")
        await add(c, clock, "sleeps", "STANDBY")
        loop = disk.loop(await lead(database), runtime, clock)
        await loop.tick()
        runtime.broken = False
        runtime.taken()
        await clock.advance((disk.FRESH + timedelta(seconds=1)).total_seconds())
        await loop.tick()
        assert runtime.taken() == {"sleeps"}
        await clock.advance(LONG)
        await loop.tick()
        assert runtime.taken() == set()
