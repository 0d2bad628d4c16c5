"""What the outbox is told of workspaces' changes, by whichever statement, and what does not hold it up."""

import asyncio

import asyncpg

from codehub.db import Database
from codehub.events import outbox
from tests.servers import TestServers

WRITE = "SELECT pg_current_xact_id()"  # what every transaction has that wrote something
BUSY = f"DO $$ BEGIN FOR i IN 1..1000 LOOP PERFORM ({WRITE}); COMMIT; END LOOP; END $$"
ADD_USER = "INSERT INTO users (name, role, created_at) VALUES ('mina', 'learner', now())"
ADD = """
INSERT INTO workspaces (id, name, template, owner_id, created_at, updated_at, phase_changed_at, last_access_at,
                        desired_state, desired_by, desired_at)
SELECT 'w' || n, 'lab', 't', codehub_user_id('mina'), now(), now(), now(), now(), 'STANDBY', 'user', now()
FROM generate_series(1, $1::int) n
"""


async def test_a_statement_that_changes_many_tells_of_each_and_activity_of_none(database: Database) -> None:
    async with database.connection() as c:
        await c.execute(ADD_USER)
        mina = await c.fetchval("SELECT id FROM users")
        begin = await outbox.newest(c)
        await c.execute(ADD, 3)
        added = await outbox.after(c, begin)
        begin = await outbox.newest(c)
        await c.execute("UPDATE workspaces SET desired_state = 'RUNNING'")
        await c.execute("UPDATE workspaces SET last_access_at = now(), disk_bytes = 1")
        changed = await outbox.after(c, begin)
    assert {(e.audience, e.kind, e.subject) for e in added.events} == {
        *((f"user:{mina}", "workspace_joined", f"w{n}") for n in (1, 2, 3)),
        *((f"workspace:w{n}", "workspace_updated", f"w{n}") for n in (1, 2, 3)),
    }
    assert [e.audience for e in changed.events] == ["workspace:w1", "workspace:w2", "workspace:w3"]


async def test_a_long_transaction_in_another_database_of_the_server_holds_up_nothing(
    database: Database, servers: TestServers
) -> None:
    stranger = await asyncpg.connect(servers.database("postgres"))
    async with stranger.transaction():
        await stranger.execute(WRITE)
        async with database.connection() as c:
            begin = await outbox.newest(c)
            await c.execute(ADD_USER)
            await c.execute(ADD, 1)
            assert {e.subject for e in (await outbox.after(c, begin)).events} == {"w1"}
    await stranger.close()


async def test_nor_do_a_thousand_short_ones(database: Database, servers: TestServers) -> None:
    done = asyncio.Event()

    async def work() -> None:
        stranger = await asyncpg.connect(servers.database("postgres"))
        while not done.is_set():
            await stranger.execute(BUSY)
        await stranger.close()

    strangers = [asyncio.create_task(work()) for _ in range(2)]
    read = []
    async with database.connection() as c:
        await c.execute(ADD_USER)
        await c.execute(ADD, 1)
        position = await outbox.newest(c)
        for number in range(100):
            await c.execute("UPDATE workspaces SET name = $1", f"n{number}")
            read.append(len((await outbox.after(c, position)).events))
            position = await outbox.newest(c)
    done.set()
    await asyncio.gather(*strangers)
    assert read == [1] * 100
