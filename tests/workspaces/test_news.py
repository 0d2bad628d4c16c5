"""What changed, in an order in which nothing can appear behind what was read."""

import asyncpg

from codehub.db import Database
from codehub.workspaces import routing
from tests.servers import TestServers

SAY = "INSERT INTO workspace_events (at, workspace_id, owner) VALUES (now(), $1, 'mina')"
WRITE = "SELECT pg_current_xact_id()"  # what every transaction has that wrote something
START = ("0", 0)


async def test_what_is_written_but_not_committed_holds_up_what_came_after_it(
    database: Database, database_url: str
) -> None:
    slow = await asyncpg.connect(database_url)
    transaction = slow.transaction()
    await transaction.start()
    await slow.execute(SAY, "first")
    async with database.connection() as c:
        await c.execute(SAY, "second")
        assert await routing.changed_since(c, START) == (set(), START)
        await transaction.commit()
        ids, position = await routing.changed_since(c, START)
        assert ids == {"first", "second"}
        assert await routing.changed_since(c, position) == (set(), position)
    await slow.close()


async def test_a_transaction_that_is_undone_holds_up_nothing_any_more(database: Database, database_url: str) -> None:
    slow = await asyncpg.connect(database_url)
    transaction = slow.transaction()
    await transaction.start()
    await slow.execute(SAY, "never")
    async with database.connection() as c:
        await c.execute(SAY, "second")
        await transaction.rollback()
        assert (await routing.changed_since(c, START))[0] == {"second"}
    await slow.close()


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
