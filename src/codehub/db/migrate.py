"""Migrations: numbered SQL files, forward only, one transaction each, under one advisory lock.

Called by `codehub migrate`, and by the supervisor when the database is the embedded one. Any number of processes may
call it at once: one applies, the others wait and find nothing to do.
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
CREATE_TABLE = """
CREATE TABLE IF NOT EXISTS schema_migrations (
    version int PRIMARY KEY,
    name text NOT NULL,
    checksum text NOT NULL,
    applied_at timestamptz NOT NULL DEFAULT clock_timestamp()
)
"""


@dataclass(frozen=True)
class Migration:
    version: int
    name: str
    sql: str

    @property
    def checksum(self) -> str:
        return hashlib.sha256(self.sql.encode()).hexdigest()


def available(package: str = "codehub.db.migrations") -> list[Migration]:
    found = [
        Migration(int(match[1]), match[2], entry.read_text(encoding="utf-8"))
        for entry in importlib.resources.files(package).iterdir()
        if (match := FILE_NAME.fullmatch(entry.name))
    ]
    return sorted(found, key=lambda m: m.version)


def pending(known: list[Migration], applied: dict[int, str]) -> list[Migration]:
    """What is left to apply; refuses a database that is newer, or whose past was rewritten."""
    newest = known[-1].version if known else 0
    if unknown := [version for version in applied if version > newest]:
        raise StartError(
            f"the database has schema version {max(unknown)}, this CodeHub knows {newest}: install a newer one"
        )
    for migration in known:
        if applied.get(migration.version, migration.checksum) != migration.checksum:
            raise StartError(f"migration {migration.version:04} was changed after it had been applied to this database")
    return [migration for migration in known if migration.version not in applied]


async def applied_versions(connection: Connection) -> dict[int, str]:
    if await connection.fetchval("SELECT to_regclass('schema_migrations')") is None:
        return {}
    return {
        r["version"]: r["checksum"] for r in await connection.fetch("SELECT version, checksum FROM schema_migrations")
    }


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
    todo = pending(known or available(), await applied_versions(connection))
    todo = [m for m in todo if up_to is None or m.version <= up_to]
    for migration in todo:
        await _apply(connection, migration)
    return todo


async def _apply(connection: Any, migration: Migration) -> None:
    async with connection.transaction():
        await connection.execute(migration.sql)
        await connection.execute(
            "INSERT INTO schema_migrations (version, name, checksum) VALUES ($1, $2, $3)",
            migration.version,
            migration.name,
            migration.checksum,
        )


async def require_current(connection: Connection) -> None:
    if todo := pending(available(), await applied_versions(connection)):
        raise StartError(
            f"the database lacks {len(todo)} migration(s), first {todo[0].version:04}: run `{command('migrate')}`"
        )
