"""Databases for tests: a copy of the migrated template for each, and, once a test is done with it, for the next one.

Making a copy takes a tenth of a second of a core, emptying one a few thousandths: the connection for that stays open,
in a thread of its own, as every test has another event loop. Only a database that is again exactly like the template is
used again: nobody else connected, the same schema, no rows.
"""

import asyncio
import contextlib
import functools
import itertools
import os
import threading
from collections.abc import AsyncIterator, Coroutine, Iterable
from dataclasses import dataclass
from typing import TypeVar

import asyncpg

from tests.servers import TEMPLATE, TestServers

T = TypeVar("T")
_numbers = itertools.count(1)
_brooms: dict[str, asyncpg.Connection] = {}  # to each database that is used again; used in their thread only
_spare: list[str] = []  # of this process, like the template
_like: list["Likeness"] = []  # the template's, once it is known

# Object numbers are the same in every copy. What a test adds, drops or changes shows here.
SCHEMA = """
SELECT md5(string_agg(line, E'\\n' ORDER BY line)) FROM (
    SELECT concat_ws(' ', 'class', oid, relname, relkind, relpersistence, reloptions) FROM pg_class
        WHERE relnamespace NOT IN ('pg_catalog'::regnamespace, 'pg_toast'::regnamespace)
    UNION ALL SELECT concat_ws(' ', 'column', attrelid, attnum, attname, atttypid, attnotnull, atthasdef, attisdropped)
        FROM pg_attribute WHERE attrelid IN (SELECT oid FROM pg_class WHERE relnamespace = 'public'::regnamespace)
    UNION ALL SELECT concat_ws(' ', 'constraint', oid, conname, convalidated) FROM pg_constraint
    UNION ALL SELECT concat_ws(' ', 'trigger', oid, tgenabled) FROM pg_trigger
    UNION ALL SELECT concat_ws(' ', 'function', oid, proname, md5(prosrc)) FROM pg_proc
        WHERE pronamespace = 'public'::regnamespace
    UNION ALL SELECT concat_ws(' ', 'setting', setrole, setconfig) FROM pg_db_role_setting
        WHERE setdatabase IN (0, (SELECT oid FROM pg_database WHERE datname = current_database()))
) AS everything (line)
"""
TABLES = """
SELECT array_agg(relname::text ORDER BY relname) FROM pg_class
WHERE relnamespace = 'public'::regnamespace AND relkind = 'r'
"""
USED = f"{TABLES} AND pg_relation_size(oid) > 0"  # whatever was never written to needs no emptying
ROWS = "SELECT md5(string_agg(t::text, E'\\n' ORDER BY t::text)) FROM "
LEAVE = "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity WHERE datname = $1 AND pid <> pg_backend_pid()"
REWIND = "SELECT setval(seqrelid::regclass, seqstart, false) FROM pg_sequence"


@dataclass(frozen=True)
class Likeness:
    """What a database has to be like again: its schema, and the rows that migrations put there."""

    schema: str
    filled: dict[str, str]  # table → what is in it; all others are empty


async def _look(connection: asyncpg.Connection, tables: Iterable[str]) -> Likeness:
    rows = {table: await connection.fetchval(f'{ROWS}"{table}" t') for table in tables}
    filled = {table: found for table, found in rows.items() if found}
    return Likeness(await connection.fetchval(SCHEMA), filled)


async def take(servers: TestServers) -> str:
    """The name of one that is migrated, empty, and nobody else's."""
    if _spare:
        return _spare.pop()
    name = f"test_{os.getpid()}_{next(_numbers)}"
    await _run(servers, f"CREATE DATABASE {name} TEMPLATE {TEMPLATE}")
    if not _like:
        connection = await asyncpg.connect(servers.database(name))
        _like.append(await _look(connection, await connection.fetchval(TABLES)))
        await connection.close()
    return name


@contextlib.asynccontextmanager
async def without_tables(servers: TestServers) -> AsyncIterator[str]:
    """The URL of one that CodeHub never saw."""
    name = f"empty_{os.getpid()}_{next(_numbers)}"
    await _run(servers, f"CREATE DATABASE {name}")
    yield servers.database(name)
    await _run(servers, f"DROP DATABASE {name} WITH (FORCE)")


async def give_back(servers: TestServers, name: str) -> None:
    if await _in_their_thread(_empty(servers, name)):
        _spare.append(name)
    else:
        await _run(servers, f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")


@functools.cache
def _loop() -> asyncio.AbstractEventLoop:
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, daemon=True).start()
    return loop


async def _in_their_thread(work: Coroutine[None, None, T]) -> T:
    return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, _loop()))


async def _broom(servers: TestServers, name: str) -> asyncpg.Connection:
    kept = _brooms.get(name)
    if kept is None or kept.is_closed():
        # Without triggers and references: everything goes, in whatever order.
        settings = {"session_replication_role": "replica"}
        kept = _brooms[name] = await asyncpg.connect(servers.database(name), server_settings=settings)
    return kept


async def _empty(servers: TestServers, name: str) -> bool:
    """False: it is not what it was, and not to be used again."""
    try:
        connection = await _broom(servers, name)
        await connection.execute(LEAVE.replace("$1", f"'{name}'"))
        used = [table for table in await connection.fetchval(USED) or () if table not in _like[0].filled]
        deletions = "; ".join(f'DELETE FROM "{table}"' for table in used)
        await connection.execute(f"{REWIND}; {deletions}")
        return await _look(connection, _like[0].filled) == _like[0]
    except (asyncpg.PostgresError, asyncpg.InterfaceError, OSError):
        return False


async def _run(servers: TestServers, statement: str) -> None:
    admin = await asyncpg.connect(servers.database("postgres"))
    try:
        await admin.execute(statement)
    finally:
        await admin.close()
