"""What changed, in an order in which nothing can appear behind what was read."""

import asyncio
import contextlib
from collections.abc import AsyncIterator

import asyncpg
from asyncpg.transaction import Transaction

from codehub.command import operator
from codehub.db import Database
from codehub.policy.model import ALL_SCOPES, Principal, Role
from codehub.web.services import Services
from codehub.workspaces import routing, store
from codehub.workspaces.admission import admitted
from codehub.workspaces.model import Desired
from codehub.workspaces.service import NewWorkspace
from tests.servers import TestServers

SAY = "INSERT INTO workspace_events (at, workspace_id, owner) VALUES (now(), $1, 'mina')"
WRITE = "SELECT pg_current_xact_id()"  # what every transaction has that wrote something
BUSY = f"DO $$ BEGIN FOR i IN 1..1000 LOOP PERFORM ({WRITE}); COMMIT; END LOOP; END $$"
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


async def test_nor_do_a_thousand_short_ones(database: Database, servers: TestServers) -> None:
    """One that ends while we look has been seen to be a stranger's before."""
    done = asyncio.Event()

    async def work() -> None:
        stranger = await asyncpg.connect(servers.database("postgres"))
        while not done.is_set():
            await stranger.execute(BUSY)
        await stranger.close()

    strangers = [asyncio.create_task(work()) for _ in range(2)]
    read = []
    async with database.connection() as c:
        position = START
        for number in range(100):
            await c.execute(SAY, f"w{number}")
            ids, position = await routing.changed_since(c, position)
            read.append(ids)
    done.set()
    await asyncio.gather(*strangers)
    assert read == [{f"w{number}"} for number in range(100)]


async def test_all_that_is_new_is_read_however_often_one_workspace_changed(services: Services) -> None:
    await services.people.create_user(operator(), "mina", Role.LEARNER)
    mina = Principal("mina", Role.LEARNER, ALL_SCOPES)
    w = admitted(await services.workspaces.create(mina, NewWorkspace("lab", "terminal", Desired.STANDBY)))
    relay = services.relay
    while await relay._read():
        pass
    async with services.database.transaction() as c:
        await c.executemany(SAY, [(w.id,)] * (2 * store.EVENTS_AT_ONCE + 1))  # type: ignore[attr-defined]
        end = await c.fetchval("SELECT max(id) FROM workspace_events")
    while await relay._read():
        pass
    assert relay._position
    assert relay._position[1] == end
