"""The outbox alone: the order of commits, what holds it up and what does not, and what is removed."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from datetime import timedelta

import asyncpg

from codehub.db import Connection, Database
from codehub.events import outbox
from codehub.events.model import CHANNEL, Event, Stored
from tests.virtual_time import ManualClock

WRITERS, EACH = 8, 40


def said(subject: str, audience: str = "user:mina") -> Event:
    return Event(audience, "said", subject, {"n": 1})


@contextlib.asynccontextmanager
async def own_connection(url: str) -> AsyncIterator[Connection]:
    """Not of a pool: transactions overlap as the test says."""
    database = await Database.open(url, size=1)
    async with database.connection() as c:
        yield c
    await database.close()


async def subjects(c: Connection, position: int) -> list[str]:
    return [event.subject for event in (await outbox.after(c, position)).events]


async def test_an_event_is_read_as_it_was_written(database: Database, clock: ManualClock) -> None:
    async with database.connection() as c:
        begin = await outbox.newest(c)
        await outbox.write(c, clock.now(), [Event("class:3", "said", "x", {"a": ["ü", 1]}), said("y")])
        batch = await outbox.after(c, begin)
    assert [(e.audience, e.kind, e.subject, e.data) for e in batch.events] == [
        ("class:3", "said", "x", '{"a": ["ü", 1]}'),
        ("user:mina", "said", "y", '{"n": 1}'),
    ]
    assert not batch.lost


async def test_who_commits_first_comes_first_however_transactions_overlap(
    database: Database, database_url: str, clock: ManualClock
) -> None:
    async with (
        own_connection(database_url) as first,
        own_connection(database_url) as second,
        database.connection() as c,
    ):
        begin = await outbox.newest(c)
        await first.execute("BEGIN")
        await outbox.write(first, clock.now(), [said("written first")])
        await second.execute("BEGIN")
        await outbox.write(second, clock.now(), [said("written second")])
        await second.execute("COMMIT")
        assert await subjects(c, begin) == ["written second"]
        position = await outbox.newest(c)
        await first.execute("COMMIT")
        assert await subjects(c, position) == ["written first"]  # not behind what was read
        assert await subjects(c, begin) == ["written second", "written first"]


async def test_a_transaction_that_stays_open_holds_up_nobody_even_if_it_wrote_events(
    database: Database, database_url: str, clock: ManualClock
) -> None:
    """An operator's psql, left open over lunch."""
    async with own_connection(database_url) as psql, database.connection() as c:
        begin = await outbox.newest(c)
        await psql.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
        await outbox.write(psql, clock.now(), [said("lunch")])
        for number in range(3):
            async with database.transaction() as writing:
                await outbox.write(writing, clock.now(), [said(str(number))])
        assert await subjects(c, begin) == ["0", "1", "2"]
        await psql.execute("ROLLBACK")
        assert await subjects(c, begin) == ["0", "1", "2"]


async def test_a_reader_that_follows_many_writers_sees_every_event_once_and_in_order(
    database: Database, database_url: str, clock: ManualClock
) -> None:
    """Each writes several in a transaction, and some are rolled back."""
    async with database.connection() as c:
        position = await outbox.newest(c)
    read: list[Stored] = []
    done = asyncio.Event()

    async def write(writer: int) -> None:
        async with own_connection(database_url) as c:
            for number in range(EACH):
                await c.execute("BEGIN")
                await outbox.write(c, clock.now(), [said(f"{writer}.{number}.a"), said(f"{writer}.{number}.b")])
                await c.execute("ROLLBACK" if number % 5 == 4 else "COMMIT")

    async def follow() -> None:
        nonlocal position
        while True:
            last = done.is_set()
            async with database.connection() as c:
                events = (await outbox.after(c, position)).events
            read.extend(events)
            position = events[-1].position if events else position
            if last and not events:
                return

    following = asyncio.create_task(follow())
    await asyncio.gather(*(write(writer) for writer in range(WRITERS)))
    done.set()
    await following
    assert [e.position for e in read] == sorted({e.position for e in read})
    by_writer = {w: [e.subject for e in read if e.subject.startswith(f"{w}.")] for w in range(WRITERS)}
    kept = [n for n in range(EACH) if n % 5 != 4]
    assert by_writer == {w: [f"{w}.{n}.{part}" for n in kept for part in "ab"] for w in range(WRITERS)}


async def test_a_transaction_wakes_readers_once_and_only_by_its_commit(
    database: Database, database_url: str, clock: ManualClock
) -> None:
    listener = await asyncpg.connect(database_url)
    heard: list[str] = []
    await listener.add_listener(CHANNEL, lambda *told: heard.append(told[3]))
    async with own_connection(database_url) as c:
        await c.execute("BEGIN")
        for number in range(20):
            await outbox.write(c, clock.now(), [said(f"{number}.{part}") for part in "ab"])
        await listener.execute("SELECT 1")
        assert heard == []
        await c.execute("COMMIT")
        await c.execute("BEGIN")
        await outbox.write(c, clock.now(), [said("never")])
        await c.execute("ROLLBACK")
        await c.execute("NOTIFY " + CHANNEL + ", 'last'")
    while "last" not in heard:
        await listener.execute("SELECT 1")
    assert heard == ["", "last"]
    await listener.close()


async def test_the_old_are_removed_a_few_at_a_time_and_a_reader_behind_them_is_told(
    database: Database, clock: ManualClock
) -> None:
    async with database.connection() as c:
        begin = await outbox.newest(c)
        await outbox.write(c, clock.now(), [said(str(number)) for number in range(5)])
        middle = (await outbox.after(c, begin)).events[2].position
        await outbox.write(c, clock.now() + timedelta(hours=2), [said("new")])
        horizon = clock.now() + timedelta(hours=1)
        assert await outbox.prune(c, horizon, 3) == 3
        assert (await outbox.after(c, begin)).lost
        assert not (await outbox.after(c, middle)).lost
        assert await outbox.missed(c, ["user:mina"], begin, 2**62) is None
        assert await outbox.prune(c, horizon, 3) == 2
        assert await outbox.prune(c, horizon, 3) == 0
        assert (await outbox.after(c, middle)).lost
        assert await subjects(c, middle) == ["new"]
        await outbox.prune(c, horizon + timedelta(hours=2), 3)
        assert await outbox.newest(c) > middle  # also when none is left


async def test_what_one_missed_is_read_for_its_audiences_only_and_within_a_bound(
    database: Database, clock: ManualClock
) -> None:
    async with database.connection() as c:
        begin = await outbox.newest(c)
        others = [said(str(n), f"user:other-{n}") for n in range(outbox.MISSED_AT_MOST + 1)]
        await outbox.write(c, clock.now(), [said("mine"), *others, said("ours", "class:3")])
        newest = await outbox.newest(c)
        mine = await outbox.missed(c, ["user:mina", "class:3"], begin, newest)
        assert mine
        assert [e.subject for e in mine] == ["mine", "ours"]
        assert await outbox.missed(c, ["user:*"], begin, newest) is None
        few = await outbox.missed(c, ["user:*"], newest - 2, newest)
        assert few
        assert [e.subject for e in few] == [others[-1].subject]
