"""The pool: errors that say what is wrong, nothing that waits for ever, recovery by itself."""

import asyncio
import pathlib
import re
import time

import asyncpg
import pytest

import codehub
from codehub.backup import store as backup
from codehub.db import Database, Listener
from codehub.errors import StartError, UnavailableError
from tests.sessions.cutting import cutting
from tests.virtual_time import ManualClock, settle


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://codehub:hunter2@127.0.0.1:9/codehub",
        "postgresql://codehub:hunter2@/codehub?host=/nonexistent",
        "postgresql://codehub:hunter2@no-such-host.invalid/codehub",
    ],
)
async def test_an_unreachable_database_is_one_line_without_the_password(url: str) -> None:
    begun = time.monotonic()
    with pytest.raises(StartError) as caught:
        await Database.open(url)
    assert "cannot use the database" in caught.value.detail
    assert "\n" not in caught.value.detail
    assert "hunter2" not in caught.value.detail
    assert time.monotonic() - begun < 20


async def test_a_wrong_password_is_one_line(database_url: str) -> None:
    with pytest.raises(StartError, match="password authentication failed"):
        await Database.open(database_url.replace("://codehub:", "://codehub:wrong"))


async def test_a_connection_the_server_ended_becomes_unavailable_and_then_works_again(database: Database) -> None:
    with pytest.raises(UnavailableError):
        async with database.connection() as c:
            await c.execute("SELECT pg_terminate_backend(pg_backend_pid())")
    async with database.connection() as c:
        assert await c.fetchval("SELECT 1") == 1


async def test_a_connection_that_the_server_is_about_to_end_is_unavailable_too(database_url: str) -> None:
    """asyncpg has read why it ends, and not yet that it has ended: it calls that an error of its own."""
    async with cutting(database_url) as (url, relay):
        database = await Database.open(url, size=1)
        with pytest.raises(UnavailableError):
            async with database.connection() as c:
                relay.announce_end()
                await settle()
                await c.fetchval("SELECT 1")
        async with database.connection() as c:  # where everything was done it stays so: the next user is told
            assert await c.fetchval("SELECT 1") == 1
            relay.announce_end()
            await settle()
        with pytest.raises(UnavailableError):
            async with database.connection() as c:
                await c.fetchval("SELECT 1")
        async with database.connection() as c:
            assert await c.fetchval("SELECT 1") == 1
        await database.close()


async def test_an_argument_of_the_wrong_type_is_a_bug_and_not_an_outage(database: Database) -> None:
    with pytest.raises(asyncpg.DataError):
        async with database.connection() as c:
            await c.fetchval("SELECT $1::int", "seven")


async def test_a_transaction_that_raises_is_rolled_back(database: Database) -> None:
    with pytest.raises(RuntimeError):
        async with database.transaction() as c:
            await c.execute("INSERT INTO users (name, role, created_at) VALUES ('mina', 'learner', now())")
            raise RuntimeError
    async with database.connection() as c:
        assert await c.fetchval("SELECT count(*) FROM users") == 0


@pytest.mark.parametrize("connect", ["the pool", "a backup"])
async def test_what_the_server_says_of_a_cancelled_statement_is_not_taken_for_an_outage(
    database: Database, database_url: str, connect: str
) -> None:
    """It may end the rollback instead of the statement that it was asked to end."""
    begun = asyncio.Event()

    async def work() -> None:
        async with database.connection() if connect == "the pool" else backup.connect(database_url):
            try:
                begun.set()
                await asyncio.sleep(60)
            except asyncio.CancelledError:
                raise asyncpg.QueryCanceledError("canceling statement due to user request") from None

    task = asyncio.create_task(work())
    await begun.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_one_at_a_time_of_all_processes(database: Database, database_url: str) -> None:
    another = await Database.open(database_url)
    order: list[str] = []

    async def work(who: Database, name: str) -> None:
        async with who.exclusive(1, "a line"):
            order.append(f"{name} begins")
            await asyncio.sleep(0.05)
            order.append(f"{name} ends")

    await asyncio.gather(work(database, "one"), work(another, "two"))
    assert order in (
        ["one begins", "one ends", "two begins", "two ends"],
        ["two begins", "two ends", "one begins", "one ends"],
    )
    async with database.exclusive(1, "a line"), another.exclusive(1, "another line"):
        order.append("both")
    assert order[-1] == "both"
    await another.close()


async def test_a_transaction_that_was_left_open_does_not_reach_the_next_user(database_url: str) -> None:
    database = await Database.open(database_url, size=1)
    async with database.connection() as c:
        await c.execute("BEGIN")
        await c.execute("SELECT pg_advisory_xact_lock(1), set_config('lock_timeout', '7s', true)")
    async with database.connection() as c:
        mine = "SELECT count(*) FROM pg_locks WHERE pid = pg_backend_pid() AND locktype = 'advisory'"
        assert await c.fetchval(mine) == 0
        assert await c.fetchval("SHOW lock_timeout") == "0"
        assert await c.fetchval("SELECT pg_current_xact_id_if_assigned()") is None
    await database.close()


def test_no_statement_leaves_anything_with_its_connection() -> None:
    """Connections go back to the pool as they are."""
    leaving = re.compile(
        r"pg_(try_)?advisory_(lock|unlock)|set_config\((?![^)]*, true\))|\bTEMP(ORARY)?\b"
        r"|(^--[^\n]*\n|;\s*)(SET(?! LOCAL)|LISTEN|PREPARE|DECLARE)\b",
        re.MULTILINE | re.IGNORECASE,
    )
    assert leaving.search("-- name: slow\nSET lock_timeout = 5;")
    package = pathlib.Path(codehub.__file__).parent
    found = [p for p in package.rglob("*.sql") if p.parent.name != "migrations" and leaving.search(p.read_text())]
    assert found == []


async def test_the_listener_calls_on_connection_on_notification_and_after_every_reconnection(
    database_url: str, database: Database
) -> None:
    clock, calls = ManualClock(), asyncio.Queue[str]()
    listener = Listener(database_url, clock)
    listener.subscribe("news", lambda: calls.put_nowait("called"))
    listener.start()
    await asyncio.wait_for(calls.get(), 5)
    async with database.connection() as c:
        await c.execute("NOTIFY news")
        await asyncio.wait_for(calls.get(), 5)
        await c.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'codehub-listener'"
            " AND datname = current_database()"
        )
    # It notices at its next sign of life, waits a moment, connects again and calls: something may have been missed.
    for _ in range(100):
        await clock.advance(5)
        await asyncio.sleep(0.02)
        if not calls.empty():
            break
    await asyncio.wait_for(calls.get(), 5)
    await listener.stop()
