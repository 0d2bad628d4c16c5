"""What changed, in an order in which nothing can appear behind what was read."""

import contextlib
from collections.abc import AsyncIterator

import asyncpg
from asyncpg.transaction import Transaction

from codehub.db import Database
from codehub.workspaces import routing
from tests.servers import TestServers

SAY = "INSERT INTO workspace_events (at, workspace_id, owner) VALUES (now(), $1, 'mina')"
WRITE = "SELECT pg_current_xact_id()"  # what every transaction has that wrote something
START = ("0", 0)


@contextlib.asynccontextmanager
async def unfinished(database_url: str, workspace: str) -> AsyncIterator[Transaction]:
    """A transaction that has written an event, and goes on."""
    connection = await asyncpg.connect(database_url)
    transaction = connection.transaction()
    await transaction.start()
    await connection.execute(SAY, workspace)
    yield transaction
    await connection.close()


async def test_what_is_written_but_not_committed_holds_up_what_came_after_it(
    database: Database, database_url: str
) -> None:
    async with unfinished(database_url, "first") as slow, database.connection() as c:
        await c.execute(SAY, "second")
        assert await routing.changed_since(c, START) == (set(), START)
        await slow.commit()
        ids, position = await routing.changed_since(c, START)
        assert ids == {"first", "second"}
        assert await routing.changed_since(c, position) == (set(), position)


async def test_a_transaction_that_is_undone_holds_up_nothing_any_more(database: Database, database_url: str) -> None:
    async with unfinished(database_url, "never") as slow, database.connection() as c:
        await c.execute(SAY, "second")
        await slow.rollback()
        assert (await routing.changed_since(c, START))[0] == {"second"}


async def test_a_long_transaction_in_another_database_of_the_server_holds_up_nothing(
    database: Database, servers: TestServers
) -> None:
    stranger = await asyncpg.connect(servers.database("postgres"))
    async with stranger.transaction():
        await stranger.execute(WRITE)
        async with database.connection() as c:
            await c.execute(SAY, "ours")
            assert (await routing.changed_since(c, START))[0] == {"ours"}
    await stranger.close()
