"""Migrations: forward only, once, whoever starts them."""

import asyncio
import re
from collections.abc import AsyncIterator

import asyncpg
import pytest

from codehub.db import migrate
from codehub.db.migrate import UNDECLARED, Applied, Migration
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
        migrate.pending(migrate.available(), {9999: Applied("x")})


def test_a_migration_changed_after_it_was_applied_is_refused() -> None:
    known = migrate.available()
    with pytest.raises(StartError, match="was changed after"):
        migrate.pending(known, {known[0].version: Applied("another checksum")})


def test_migrations_are_numbered_without_gaps() -> None:
    assert [m.version for m in migrate.available()] == list(range(1, len(migrate.available()) + 1))


@pytest.mark.parametrize(("needs", "goes_on"), [(0, True), (2, True), (3, False), (None, False)])
def test_older_code_goes_on_with_what_was_added_and_not_without_what_it_needs(needs: int | None, goes_on: bool) -> None:
    known = [Migration(1, "one", ""), Migration(2, "two", "")]
    applied = {1: Applied(known[0].checksum), 2: Applied(known[1].checksum), 3: Applied("x", needs)}
    if goes_on:
        assert migrate.pending(known, applied) == []
        with pytest.raises(StartError):
            migrate.pending(known, applied, exactly=True)
    else:
        with pytest.raises(StartError, match="install a newer one"):
            migrate.pending(known, applied)


async def test_code_from_before_a_migration_serves_on_and_has_nothing_to_migrate(empty_database: str) -> None:
    known = migrate.available()
    await migrate.migrate(empty_database, known=known)
    connection = await asyncpg.connect(empty_database)
    # As a database is that code from before these kinds has migrated.
    await connection.execute("ALTER TABLE schema_migrations DROP COLUMN needs")
    await migrate.require_current(connection)
    wider = Migration(known[-1].version + 1, "wider", "-- expand\nALTER TABLE users ADD COLUMN email text")
    assert await migrate.migrate(empty_database, known=[*known, wider]) == [wider]
    await migrate.require_current(connection)
    assert await migrate.migrate(empty_database, known=known) == []
    last = f"-- contract, needs {wider.version:04}\nALTER TABLE users DROP COLUMN email"
    narrower = Migration(wider.version + 1, "narrower", last)
    await migrate.migrate(empty_database, known=[*known, wider, narrower])
    with pytest.raises(StartError, match="install a newer one"):
        await migrate.require_current(connection)
    await connection.close()


FORBIDDEN_IN = {
    "expand": [
        r"\bDROP (TABLE|COLUMN|VIEW|TYPE|FUNCTION)\b",
        r"\bRENAME\b",
        r"\bALTER COLUMN \w+ (SET DATA )?TYPE\b",
        r"\bSET NOT NULL\b",
        r"\bADD COLUMN (?:IF NOT EXISTS )?\w+ (?:(?!\bDEFAULT\b)[^,;])*\bNOT NULL\b(?:(?!\bDEFAULT\b)[^,;])*[,;]",
        r"\b(TRUNCATE|DELETE FROM)\b",
    ],
    "contract": [r"\bCREATE (TABLE|VIEW)\b", r"\bADD COLUMN\b"],
}


def wrong_with(migration: Migration) -> list[str]:
    """Why this migration may not stand beside code from before it."""
    head, _, body = migration.sql.partition("\n")
    kind = head.removeprefix("-- ").partition(",")[0]
    if migration.needs is None:
        return ["its first line says neither `-- expand` nor `-- contract, needs 0035`"]
    plain = re.sub(r"--[^\n]*|'[^']*'", "", body) + ";"
    found = [pattern for pattern in FORBIDDEN_IN[kind] if re.search(pattern, plain, re.IGNORECASE)]
    if migration.needs >= migration.version:
        found.append("it needs what comes after it")
    return found


def test_each_migration_widens_or_narrows_and_never_both() -> None:
    assert {m.name: wrong_with(m) for m in migrate.available() if m.version > UNDECLARED and wrong_with(m)} == {}


@pytest.mark.parametrize(
    ("sql", "good"),
    [
        ("ALTER TABLE users ADD COLUMN email text;", False),
        ("-- expand\nALTER TABLE users ADD COLUMN email text;", True),
        ("-- expand\nALTER TABLE users ADD COLUMN a int NOT NULL DEFAULT 0;", True),
        ("-- expand\nALTER TABLE users ADD COLUMN a int NOT NULL;", False),
        ("-- expand\nALTER TABLE users ADD COLUMN a int NOT NULL, ADD COLUMN b int DEFAULT 0;", False),
        ("-- expand\nALTER TABLE users ALTER COLUMN name DROP NOT NULL;", True),
        ("-- expand\nCREATE TABLE more (id text NOT NULL);\n-- a comment about DROP TABLE", True),
        ("-- expand\nCREATE TABLE more (id text); DROP TABLE less;", False),
        ("-- expand\nALTER TABLE users RENAME COLUMN name TO called;", False),
        ("-- contract, needs 0035\nALTER TABLE users DROP COLUMN email;", True),
        ("-- contract, needs 0036\nALTER TABLE users DROP COLUMN email;", False),
        ("-- contract, needs 0035\nALTER TABLE users DROP COLUMN email, ADD COLUMN mail text;", False),
        ("-- contract\nALTER TABLE users DROP COLUMN email;", False),
    ],
)
def test_what_a_migration_may_do_by_its_kind(sql: str, good: bool) -> None:
    assert (wrong_with(Migration(36, "x", sql)) == []) is good
