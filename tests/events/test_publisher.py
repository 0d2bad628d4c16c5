"""Deferred events: each is published once, in the order of its subject's changes, also where a publisher dies."""

import asyncio

import asyncpg

from codehub.clock import SystemClock
from codehub.db import Database
from codehub.events import publisher
from codehub.events.outbox import sql
from codehub.events.publisher import Publisher
from tests.auth.helpers import eventually
from tests.virtual_time import ManualClock

DEFER = (
    "INSERT INTO deferred_events (at, audience, kind, subject, data) "
    "SELECT now(), 'user:u1', 'said', $1, jsonb_build_object('n', n) FROM generate_series($2::int, $3) AS n"
)


async def published(database: Database) -> list[int]:
    async with database.connection() as c:
        return [row["data"]["n"] for row in await c.fetch("SELECT data FROM events ORDER BY position")]


async def left(database: Database) -> int:
    async with database.connection() as c:
        return int(await c.fetchval("SELECT count(*) FROM deferred_events"))


async def test_many_publishers_at_once_publish_each_once_and_in_order(database: Database) -> None:
    async with database.connection() as c:
        await c.execute(DEFER, "x", 1, publisher.BATCH * 2 + 7)
    await asyncio.gather(*(Publisher(database, SystemClock()).publish() for _ in range(4)))
    assert await published(database) == list(range(1, publisher.BATCH * 2 + 8))
    assert await left(database) == 0


async def test_what_is_not_committed_holds_up_no_other(database: Database, database_url: str) -> None:
    open_one = await asyncpg.connect(database_url)
    transaction = open_one.transaction()
    await transaction.start()
    await open_one.execute(DEFER, "slow", 1, 1)
    async with database.connection() as c:
        await c.execute(DEFER, "x", 2, 3)
    await Publisher(database, SystemClock()).publish()
    assert await published(database) == [2, 3]
    await transaction.commit()
    await Publisher(database, SystemClock()).publish()
    assert await published(database) == [2, 3, 1]
    await open_one.close()


async def test_one_that_died_in_the_middle_leaves_everything_to_the_next(database: Database, database_url: str) -> None:
    async with database.connection() as c:
        await c.execute(DEFER, "x", 1, 3)
    dying = await asyncpg.connect(database_url)
    await dying.execute("BEGIN")
    await dying.execute(sql.one_publisher)
    await dying.execute(sql.publish, 2)
    next_one = asyncio.create_task(Publisher(database, SystemClock()).publish())
    dying.terminate()
    await next_one
    assert await published(database) == [1, 2, 3]


async def test_it_looks_by_itself_for_what_no_process_woke_it_for(database: Database) -> None:
    running = Publisher(database, SystemClock())
    running.start()
    try:
        async with database.connection() as c:
            await c.execute(DEFER, "x", 1, 1)

        async def done() -> bool:
            return await left(database) == 0

        await eventually(done, 10)
    finally:
        await running.stop()
    assert await published(database) == [1]


async def test_what_comes_soon_after_others_is_published_together(database: Database, clock: ManualClock) -> None:
    running = Publisher(database, clock)
    running.start()
    try:
        async with database.connection() as c:
            await c.execute(DEFER, "x", 1, 1)

            async def first() -> bool:
                running.wake()
                return await published(database) == [1]

            await eventually(first, 10)  # at once, though no time passes
            for number in (2, 3):
                await c.execute(DEFER, "x", number, number)
                running.wake()
                for _ in range(20):  # long enough for it, if it did not wait
                    await c.fetchval("SELECT 1")

            async def all_of_them() -> bool:
                await clock.advance(publisher.PAUSE_SECONDS)
                return await published(database) == [1, 2, 3]

            await eventually(all_of_them, 10)
            assert await c.fetchval("SELECT count(DISTINCT xmin::text) FROM events") == 2
    finally:
        await running.stop()
