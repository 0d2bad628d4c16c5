"""Migrations: numbered SQL files, forward only, one transaction each, under one advisory lock.

Called by `codehub migrate`, and by the supervisor when the database is the embedded one. Any number of processes may
call it at once: one applies, the others wait and find nothing to do.

During an upgrade, code that does not know the newest migrations goes on working. So each says in its first line what it
is: `-- expand` adds what older code does not mind; `-- contract, needs 0035` takes away what nothing uses any more that
knows migration 35. It is one or the other, and the database remembers which.
"""

import hashlib
import importlib.resources
import re
from dataclasses import dataclass
from typing import Any

import asyncpg

from codehub.db.connecting import connect
from codehub.db.pool import Connection
from codehub.errors import StartError
from codehub.invocation import command

LOCK_KEY = 0x636F6465687562  # "codehub"
FILE_NAME = re.compile(r"(\d{4})_(\w+)\.sql")
KIND = re.compile(r"-- (?:expand|contract, needs (\d{4}))\n")
UNDECLARED = 34  # the last one from before that had to be said: older code cannot do with any of these
CREATE_TABLE = """
CREATE TABLE IF NOT EXISTS schema_migrations (
    version int PRIMARY KEY,
    name text NOT NULL,
    checksum text NOT NULL,
    applied_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    needs int
)
"""
# Databases from before that column. Looked for first: the change waits for everybody who reads the table.
HAS_NEEDS = """
SELECT EXISTS (
    SELECT FROM pg_attribute
    WHERE attrelid = 'schema_migrations'::regclass AND attname = 'needs' AND NOT attisdropped
)
"""
ADD_NEEDS = "ALTER TABLE schema_migrations ADD COLUMN IF NOT EXISTS needs int"


@dataclass(frozen=True)
class Migration:
    version: int
    name: str
    sql: str

    @property
    def checksum(self) -> str:
        return hashlib.sha256(self.sql.encode()).hexdigest()

    @property
    def needs(self) -> int | None:
        """The newest migration that code has to know to work after this one; None: this one."""
        said = KIND.match(self.sql)
        return int(said[1] or 0) if said else None


@dataclass(frozen=True)
class Applied:
    checksum: str
    needs: int | None = None


def available(package: str = "codehub.db.migrations") -> list[Migration]:
    found = [
        Migration(int(match[1]), match[2], entry.read_text(encoding="utf-8"))
        for entry in importlib.resources.files(package).iterdir()
        if (match := FILE_NAME.fullmatch(entry.name))
    ]
    return sorted(found, key=lambda m: m.version)


def pending(known: list[Migration], applied: dict[int, Applied], *, exactly: bool = False) -> list[Migration]:
    """What is left to apply; refuses a database that has lost what we need, or whose past was rewritten.

    `exactly`: and every database that is newer than we are.
    """
    newest = known[-1].version if known else 0
    newer = {version: made.needs for version, made in applied.items() if version > newest}
    if unfit := [version for version, needs in newer.items() if exactly or needs is None or needs > newest]:
        raise StartError(
            f"the database has schema version {max(unfit)}, this CodeHub knows {newest}: install a newer one"
        )
    for migration in known:
        made = applied.get(migration.version)
        if made and made.checksum != migration.checksum:
            raise StartError(f"migration {migration.version:04} was changed after it had been applied to this database")
    return [migration for migration in known if migration.version not in applied]


async def applied_versions(connection: Connection) -> dict[int, Applied]:
    if await connection.fetchval("SELECT to_regclass('schema_migrations')") is None:
        return {}
    found = await connection.fetch(
        # The column is not there before the first migration by code that knows it.
        "SELECT version, checksum, (to_jsonb(m) ->> 'needs')::int AS needs FROM schema_migrations m"
    )
    return {row["version"]: Applied(row["checksum"], row["needs"]) for row in found}


async def migrate(url: str, *, up_to: int | None = None, known: list[Migration] | None = None) -> list[Migration]:
    """Apply what is pending and return it. `up_to` stops at a version: a restore starts from the backup's own."""
    try:
        connection = await connect(url, timeout=10)
    except (OSError, TimeoutError, ValueError, asyncpg.PostgresError, asyncpg.InternalClientError) as e:
        raise StartError(f"cannot migrate: {e}") from e
    try:
        # Held by the connection: a process that dies in the middle lets go of it.
        await connection.execute("SELECT pg_advisory_lock($1)", LOCK_KEY)
        return await advance(connection, up_to=up_to, known=known)
    finally:
        await connection.close()


async def advance(
    connection: Any, *, up_to: int | None = None, known: list[Migration] | None = None
) -> list[Migration]:
    """The same on a connection that holds the lock: a restore does it within its one transaction."""
    await connection.execute(CREATE_TABLE)
    if not await connection.fetchval(HAS_NEEDS):
        await connection.execute(ADD_NEEDS)
    todo = pending(known or available(), await applied_versions(connection))
    todo = [m for m in todo if up_to is None or m.version <= up_to]
    for migration in todo:
        await _apply(connection, migration)
    return todo


async def _apply(connection: Any, migration: Migration) -> None:
    async with connection.transaction():
        await connection.execute(migration.sql)
        await connection.execute(
            "INSERT INTO schema_migrations (version, name, checksum, needs) VALUES ($1, $2, $3, $4)",
            migration.version,
            migration.name,
            migration.checksum,
            migration.needs,
        )


async def require_current(connection: Connection) -> None:
    if todo := pending(available(), await applied_versions(connection)):
        raise StartError(
            f"the database lacks {len(todo)} migration(s), first {todo[0].version:04}: run `{command('migrate')}`"
        )
