"""The lease: one leader, a higher epoch for each, and no write by one whose time is over."""

import asyncio
import contextlib

import asyncpg
import pytest

from codehub.clock import SystemClock
from codehub.coordinator import leader
from codehub.coordinator.leader import Leader, Lease
from codehub.coordinator.store import sql
from codehub.db import Database
from codehub.errors import LeaseLostError, UnavailableError
from tests.leading import try_to_lead


async def acquire(database: Database, holder: str) -> int | None:
    return await try_to_lead(database, holder, leader.LEASE_SECONDS)


async def expire(database: Database) -> None:
    async with database.connection() as c:
        await c.execute("UPDATE system_locks SET expires_at = clock_timestamp() - interval '1 s'")


async def test_of_many_who_ask_at_once_one_leads(database: Database) -> None:
    epochs = await asyncio.gather(*(acquire(database, f"c{n}") for n in range(10)))
    assert sorted(e for e in epochs if e is not None) == [1]


async def test_a_lease_that_ran_out_goes_to_the_next_with_a_higher_epoch(database: Database) -> None:
    assert await acquire(database, "a") == 1
    assert await acquire(database, "b") is None
    await expire(database)
    epochs = await asyncio.gather(*(acquire(database, f"c{n}") for n in range(10)))
    assert sorted(e for e in epochs if e is not None) == [2]


async def test_a_write_of_an_earlier_epoch_is_refused(database: Database) -> None:
    await acquire(database, "a")
    stale = Lease(database, "a", 1)
    await expire(database)
    await acquire(database, "b")
    with pytest.raises(LeaseLostError):
        async with stale.transaction() as c:
            await c.execute("INSERT INTO users (name, role, created_at) VALUES ('mina', 'learner', now())")
    async with database.connection() as c:
        assert await c.fetchval("SELECT count(*) FROM users") == 0


async def test_an_epoch_that_a_standby_gives_out_again_lets_only_its_new_holder_write(database: Database) -> None:
    await acquire(database, "a")
    async with database.connection() as c:  # the standby that was promoted had not heard of the election
        await c.execute("UPDATE system_locks SET holder = 'before', epoch = 0, expires_at = '-infinity'")
    assert await acquire(database, "b") == 1
    with pytest.raises(LeaseLostError):
        await Lease(database, "a", 1).require()
    await Lease(database, "b", 1).require()


async def test_taking_over_waits_for_a_write_that_has_begun_and_a_renewal_does_not(database: Database) -> None:
    await acquire(database, "a")
    lease = Lease(database, "a", 1)
    async with lease.transaction() as c:
        await c.execute("INSERT INTO users (name, role, created_at) VALUES ('mina', 'learner', now())")
        async with database.connection() as other:
            renewed = await other.fetchval(sql.renew, leader.LEASE_NAME, "a", 1, 6.0, {}, timeout=2)
            assert renewed is True
        await expire(database)
        taking_over = asyncio.create_task(acquire(database, "b"))
        done, _ = await asyncio.wait({taking_over}, timeout=0.3)
        assert not done  # it would otherwise lead while the old one still writes
    assert await taking_over == 2


async def test_the_database_ends_a_write_whose_leader_stopped_in_the_middle(
    database_url: str, database: Database
) -> None:
    stopped = await Database.open(database_url, size=2, session=leader.SESSION_SETTINGS)
    await acquire(database, "a")
    with pytest.raises(UnavailableError):
        async with Lease(stopped, "a", 1).transaction() as c:
            await c.execute("INSERT INTO users (name, role, created_at) VALUES ('mina', 'learner', now())")
            await expire(database)
            assert await asyncio.wait_for(acquire(database, "b"), 6) == 2  # although "a" never let go
            await c.execute("SELECT 1")
    async with database.connection() as c:
        assert await c.fetchval("SELECT count(*) FROM users") == 0
    await stopped.close()


class Worker:
    """Work that notes whether it runs."""

    def __init__(self) -> None:
        self.running = False
        self.epochs: list[int] = []

    async def __call__(self, lease: Lease) -> None:
        self.running = True
        self.epochs.append(lease.epoch)
        try:
            await asyncio.Event().wait()
        finally:
            self.running = False


@contextlib.asynccontextmanager
async def standing(database: Database, holder: str, worker: Worker):  # type: ignore[no-untyped-def]  # noqa: ANN201
    task = asyncio.create_task(Leader(database, SystemClock(), holder, worker, dict).run())
    try:
        yield task
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def until(condition, seconds: float = 10.0) -> None:  # type: ignore[no-untyped-def]  # noqa: ANN001
    async with asyncio.timeout(seconds):
        while not condition():
            await asyncio.sleep(0.02)


async def test_a_leader_that_stops_lets_the_next_one_in_without_waiting(database: Database) -> None:
    first, second = Worker(), Worker()
    async with standing(database, "a", first) as task:
        await until(lambda: first.running)
        async with standing(database, "b", second):
            await asyncio.sleep(0.2)
            assert not second.running
            task.cancel()
            await until(lambda: second.running, 3)
            assert not first.running
    assert (first.epochs, second.epochs) == ([1], [2])


async def test_work_ends_before_the_lease_does_when_the_database_cannot_be_reached(
    database_url: str, database: Database
) -> None:
    worker = Worker()
    own = await Database.open(database_url, size=2)
    async with standing(own, "a", worker):
        await until(lambda: worker.running)
        admin = await asyncpg.connect(database_url)
        # From now on it can neither renew nor ask.
        await admin.execute("ALTER TABLE system_locks RENAME TO hidden")
        await admin.execute("UPDATE hidden SET expires_at = clock_timestamp() + interval '6 s'")
        begun = asyncio.get_running_loop().time()
        await until(lambda: not worker.running, 6)
        assert asyncio.get_running_loop().time() - begun < leader.LEASE_SECONDS
        await admin.close()
    await own.close()


async def test_somebody_elses_epoch_in_the_row_ends_the_work(database: Database) -> None:
    worker = Worker()
    async with standing(database, "a", worker):
        await until(lambda: worker.running)
        await expire(database)
        assert await acquire(database, "b") == 2
        await until(lambda: not worker.running, 5)
