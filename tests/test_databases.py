"""The tests' own databases: what one test leaves behind, the next does not find."""

import asyncpg

from tests import databases
from tests.servers import TestServers

CHANGES = ("CREATE TABLE more (id int)", "ALTER TABLE users DISABLE TRIGGER ALL", "DELETE FROM schema_migrations")


async def test_a_used_database_is_empty_again_and_counts_from_one(servers: TestServers) -> None:
    name = await databases.take(servers)
    connection = await asyncpg.connect(servers.database(name))
    insert = "INSERT INTO audit_log (at, actor, code, subject, data) VALUES (now(), '', '', '', '{}') RETURNING id"
    first = await connection.fetchval(insert)
    await databases.give_back(servers, name)  # although somebody is connected
    connection.terminate()
    assert await databases.take(servers) == name
    again = await asyncpg.connect(servers.database(name))
    assert await again.fetchval("SELECT count(*) FROM audit_log") == 0
    assert await again.fetchval(insert) == first == 1
    await again.close()
    await databases.give_back(servers, name)


async def test_a_changed_database_is_not_used_again(servers: TestServers) -> None:
    for change in (
        "CREATE TABLE more (id int)",
        "ALTER TABLE users DISABLE TRIGGER ALL",
        "DELETE FROM schema_migrations",
    ):
        name = await databases.take(servers)
        connection = await asyncpg.connect(servers.database(name))
        await connection.execute(change)
        await connection.close()
        await databases.give_back(servers, name)
        another = await databases.take(servers)
        assert another != name
        await databases.give_back(servers, another)
