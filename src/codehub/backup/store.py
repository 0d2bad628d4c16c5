"""Tables as `COPY` text, out of and into the database. Called by `service` and `restore`, inside their transaction."""

import asyncio
import re
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import asyncpg

from codehub.backup import rules
from codehub.backup.archive import Source
from codehub.db import Queries, connecting
from codehub.db.pool import AWAY, is_being_cancelled
from codehub.errors import StartError

sql = Queries("codehub.backup")
# Not kept: what this database went through, who leads right now, events, which are for those who listen now,
# whose object store it is, and what was to be collected from there; counters, which the next leader counts anew; and
# which backups lie on this machine.
NOT_KEPT = [
    "schema_migrations",
    "system_locks",
    "events",
    "event_floor",
    "deferred_events",
    "platform",
    "orphans",
    "setbacks",
    "counters",
    "counter_changes",
    "backups",
]
CONNECT_SECONDS = 10.0
# The same text for the same rows on every machine, and no bound that an administrator set for short statements.
SESSION = {
    "application_name": "codehub-backup",
    "timezone": "UTC",
    "datestyle": "ISO, YMD",
    "intervalstyle": "iso_8601",
    "bytea_output": "hex",
    "extra_float_digits": "1",
    "search_path": "public",
    "statement_timeout": "0",
    "idle_in_transaction_session_timeout": "0",
    "lock_timeout": "15s",
}


@dataclass(frozen=True)
class Table:
    name: str
    columns: tuple[str, ...]
    selection: str
    ordering: str
    size: int  # on disk, about

    @property
    def quoted(self) -> str:
        return "public." + quote(self.name)


def quote(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


@asynccontextmanager
async def connect(url: str) -> AsyncIterator[Any]:
    """One connection; whatever the database has to complain about becomes one line."""
    try:
        connection = await connecting.connect(url, timeout=CONNECT_SECONDS, server_settings=SESSION)
    except (*AWAY, asyncpg.PostgresError) as e:
        raise _complaint(e) from e
    try:
        yield connection
        await connection.close(timeout=CONNECT_SECONDS)
    except OSError as e:
        if not isinstance(e, (ConnectionError, TimeoutError)):  # a full disk, say, is not the database's
            raise
        raise _complaint(e) from e
    except (*AWAY, asyncpg.PostgresError) as e:
        if is_being_cancelled():
            raise asyncio.CancelledError from e
        raise _complaint(e) from e
    finally:
        connection.terminate()  # after an error nothing is left to say; after `close` this does nothing


def _complaint(error: BaseException) -> StartError:
    reason = "no answer in time" if isinstance(error, asyncio.TimeoutError) else str(error).split("\n", 1)[0]
    return StartError(f"the database: {reason or type(error).__name__}")


async def tables(c: Any) -> list[Table]:
    """What there is to keep, parents before the tables that refer to them."""
    found = {}
    for row in await c.fetch(sql.tables, NOT_KEPT):
        if row["ordering"] is None:
            raise StartError(f"the table {row['name']} has no primary key: two copies of it could not be compared")
        found[row["name"]] = Table(row["name"], tuple(row["columns"]), row["selection"], row["ordering"], row["size"])
    references = [(row["child"], row["parent"]) for row in await c.fetch(sql.references)]
    return [found[name] for name in rules.parents_first(found, references)]


async def sequences(c: Any) -> dict[str, int]:
    """The number that each sequence gives out next."""
    return {
        row["name"]: await c.fetchval(
            f"SELECT last_value + CASE WHEN is_called THEN {row['step']} ELSE 0 END FROM public.{row['quoted']}"  # noqa: S608
        )
        for row in await c.fetch(sql.sequences)
    }


async def set_sequence(c: Any, name: str, following: int) -> None:
    """Unlike setval, this is undone with its transaction."""
    await c.execute(f"ALTER SEQUENCE public.{quote(name)} RESTART WITH {following:d}")


async def dump(c: Any, table: Table, write: Callable[[bytes], object]) -> int:
    """The table's rows, in the primary key's order; returns how many."""

    async def sink(data: bytes) -> None:
        write(data)

    query = f"SELECT {table.selection} FROM {table.quoted} ORDER BY {table.ordering}"  # noqa: S608
    return _count(await c.copy_from_query(query, output=sink))


async def load(c: Any, table: Table, content: Source) -> int:
    """Without the table's triggers: what they do upon a new row was done when the row was new."""
    await c.execute(f"ALTER TABLE {table.quoted} DISABLE TRIGGER USER")
    status = await c.copy_to_table(table.name, source=content, columns=table.columns, schema_name="public")
    await c.execute(f"ALTER TABLE {table.quoted} ENABLE TRIGGER USER")
    return _count(status)


def _count(status: str) -> int:
    found = re.fullmatch(r"COPY (\d+)", status)
    if found is None:
        raise StartError(f"the database answered COPY with {status!r}")
    return int(found[1])


async def lock(c: Any, present: list[Table]) -> None:
    """No other session reads or writes these until we are done."""
    if present:
        await c.execute(f"LOCK TABLE {', '.join(t.quoted for t in present)} IN ACCESS EXCLUSIVE MODE")


async def with_rows(c: Any, present: list[Table]) -> list[str]:
    return [t.name for t in present if await c.fetchval(f"SELECT EXISTS (SELECT FROM {t.quoted})")]  # noqa: S608


async def empty(c: Any, present: list[Table]) -> None:
    """Without the tables' triggers: some rows are kept for ever, except where a backup takes the place of all."""
    if present:
        for table in present:
            await c.execute(f"ALTER TABLE {table.quoted} DISABLE TRIGGER USER")
        await c.execute(f"TRUNCATE {', '.join(t.quoted for t in present)}")
        for table in present:
            await c.execute(f"ALTER TABLE {table.quoted} ENABLE TRIGGER USER")


async def start_over(c: Any) -> None:
    """Migrations only go forward: a schema newer than the backup's is taken down, to be made again up to it."""
    await c.execute("DROP SCHEMA public CASCADE")
    await c.execute("CREATE SCHEMA public")
    await c.execute("GRANT USAGE ON SCHEMA public TO PUBLIC")
