"""The routing table of a proxy worker: it follows the outbox, and neither late answers nor bad rows mislead it."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from datetime import UTC, datetime

import pytest

from codehub.db import Connection, Database
from codehub.events import outbox
from codehub.gate.routes import Route, Routes
from codehub.workspaces.routing import Entry
from tests.virtual_time import ManualClock

SOON = 20
ADD = """
INSERT INTO workspaces (id, name, template, owner_id, created_at, updated_at, phase_changed_at, last_access_at,
                        desired_state, desired_by, desired_at)
SELECT 'w' || n, 'lab', 't', codehub_user_id('mina'), now(), now(), now(), now(), 'STANDBY', 'user', now()
FROM generate_series(1, 3) n
"""


class Delayed(Database):
    """A database whose answers to one task are held up on their way."""

    slow: asyncio.Task[Route | None] | None = None

    def __init__(self, pool: object) -> None:
        super().__init__(pool)
        self.read = asyncio.Event()
        self.go_on = asyncio.Event()

    @contextlib.asynccontextmanager
    async def connection(self) -> AsyncIterator[Connection]:
        async with super().connection() as c:
            yield c
        if asyncio.current_task() is self.slow:
            self.read.set()
            await self.go_on.wait()


@pytest.fixture
async def database(database_url: str) -> AsyncIterator[Delayed]:
    opened = await Delayed.open(database_url, size=10)
    assert isinstance(opened, Delayed)
    async with opened.connection() as c:
        await c.execute("INSERT INTO users (name, role, created_at) VALUES ('mina', 'learner', now())")
        await c.execute(ADD)
    yield opened
    await opened.close()


@pytest.fixture
async def routes(database: Delayed, clock: ManualClock) -> AsyncIterator[Routes]:
    def changed(_route: Route, _before: Entry) -> None: ...

    started = Routes(database, clock, changed)
    await started.start()
    yield started
    await started.stop()


async def change(database: Database, routes: Routes, id_: str, desired: str) -> None:
    async with database.transaction() as c:
        await c.execute("UPDATE workspaces SET desired_state = $2 WHERE id = $1", id_, desired)
    routes.wake()


async def until(routes: Routes, clock: ManualClock, id_: str, desired: str) -> None:
    async with asyncio.timeout(SOON):
        while not (route := routes.get(id_)) or route.entry.desired != desired:
            await clock.advance(1)
            await asyncio.sleep(0.005)


async def test_an_answer_that_was_read_before_a_change_and_comes_after_it_is_not_believed(
    database: Delayed, routes: Routes, clock: ManualClock
) -> None:
    database.slow = asyncio.create_task(routes.find("w1"))
    await database.read.wait()  # as it was; the answer is on its way
    await change(database, routes, "w1", "RUNNING")
    await until(routes, clock, "w1", "RUNNING")
    database.go_on.set()
    found = await database.slow
    assert found
    assert found.entry.desired == "RUNNING"


async def test_a_row_that_cannot_be_read_is_not_there_and_the_others_go_on(
    database: Delayed, routes: Routes, clock: ManualClock
) -> None:
    await change(database, routes, "w1", "RUNNING")
    await until(routes, clock, "w1", "RUNNING")
    async with database.transaction() as c:
        await c.execute("ALTER TABLE workspaces DROP CONSTRAINT workspaces_desired_state_check")
        await c.execute("UPDATE workspaces SET desired_state = 'SOMETHING NEW' WHERE id = 'w1'")
    await change(database, routes, "w2", "RUNNING")
    await until(routes, clock, "w2", "RUNNING")
    assert routes.get("w1") is None
    assert await routes.find("w1") is None


async def test_a_failure_is_outlived(database: Delayed, routes: Routes, clock: ManualClock) -> None:
    async with database.connection() as c:
        await c.execute("ALTER TABLE workspaces RENAME COLUMN standby_ttl_seconds TO elsewhere")
    await change(database, routes, "w1", "RUNNING")
    async with asyncio.timeout(SOON):
        while not clock._sleepers:  # it failed, and waits to try again
            await asyncio.sleep(0.005)
    async with database.connection() as c:
        await c.execute("ALTER TABLE workspaces RENAME COLUMN elsewhere TO standby_ttl_seconds")
    await until(routes, clock, "w1", "RUNNING")


async def test_events_that_were_removed_unread_make_it_read_everything_again(
    database: Delayed, routes: Routes, clock: ManualClock
) -> None:
    await routes.find("w1")
    async with database.transaction() as c:
        await c.execute("UPDATE workspaces SET desired_state = 'RUNNING' WHERE id = 'w1'")
    async with database.transaction() as c:  # before it is woken
        assert await outbox.prune(c, datetime.max.replace(tzinfo=UTC), 100) > 0
    routes.wake()
    await until(routes, clock, "w1", "RUNNING")
