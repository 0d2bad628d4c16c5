"""Migrations: forward only, once, whoever starts them."""

import asyncio
from collections.abc import AsyncIterator

import asyncpg
import pytest

from codehub.db import migrate
from codehub.db.migrate import Migration
from codehub.errors import StartError
from tests import databases
from tests.servers import TestServers


@pytest.fixture
async def empty_database(servers: TestServers) -> AsyncIterator[str]:
    """A database without any of our tables."""
    async with databases.without_tables(servers) as url:
        yield url


async def test_two_starting_processes_migrate_once(empty_database: str) -> None:
    applied = await asyncio.gather(*(migrate.migrate(empty_database) for _ in range(6)))
    assert sorted(len(each) for each in applied) == [0] * 5 + [len(migrate.available())]


async def test_an_old_database_upgrades_and_keeps_its_rows(empty_database: str) -> None:
    known = migrate.available()
    await migrate.migrate(empty_database, up_to=known[0].version)
    connection = await asyncpg.connect(empty_database)
    await connection.execute("INSERT INTO users (name, role, created_at) VALUES ('mina', 'learner', now())")
    newer = Migration(known[-1].version + 1, "add_email", "ALTER TABLE users ADD COLUMN email text")
    applied = await migrate.migrate(empty_database, known=[*known, newer])
    assert applied[-1] == newer
    assert await connection.fetchval("SELECT email IS NULL FROM users WHERE name = 'mina'") is True
    await connection.close()


async def test_a_migration_that_fails_leaves_nothing_behind(empty_database: str) -> None:
    broken = Migration(9000, "broken", "CREATE TABLE half (id int); SELECT 1 / 0")
    with pytest.raises(asyncpg.DivisionByZeroError):
        await migrate.migrate(empty_database, known=[*migrate.available(), broken])
    connection = await asyncpg.connect(empty_database)
    assert await connection.fetchval("SELECT to_regclass('half')") is None
    assert set(await migrate.applied_versions(connection)) == {m.version for m in migrate.available()}
    await connection.close()


def test_a_database_from_the_future_is_refused() -> None:
    with pytest.raises(StartError, match="install a newer one"):
        migrate.pending(migrate.available(), {9999: "x"})


def test_a_migration_changed_after_it_was_applied_is_refused() -> None:
    known = migrate.available()
    with pytest.raises(StartError, match="was changed after"):
        migrate.pending(known, {known[0].version: "another checksum"})


def test_migrations_are_numbered_without_gaps() -> None:
    assert [m.version for m in migrate.available()] == list(range(1, len(migrate.available()) + 1))
