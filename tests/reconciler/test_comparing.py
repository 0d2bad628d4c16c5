"""What is compared with what was seen, on the real database: what changed, and now and then everything."""

from typing import Any

import pytest

from codehub.db import Connection, Database
from codehub.reconciler.comparing import Comparing, Differences
from codehub.workspaces.store import sql
from tests.virtual_time import ManualClock

PERIOD = 15.0
FILL = """
INSERT INTO workspaces (id, name, template, owner_id, created_at, updated_at, phase_changed_at, last_access_at,
                        desired_state, desired_by, desired_at, observed_status, volume_generation, node)
SELECT 'w' || n, 'lab', 't', codehub_user_id('mina'), now(), now(), now(), now(),
       'RUNNING', 'user', now(), 'RUNNING', 'g', 'here'
FROM generate_series(1, 1000) n
"""
ALL = frozenset(f"w{n}" for n in range(1, 1001))


class Listened:
    """A connection of which is known what was asked."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self.asked: list[tuple[str, tuple[Any, ...]]] = []

    async def fetch(self, query: str, *args: Any) -> Any:
        self.asked.append((query, args))
        return await self._connection.fetch(query, *args)


class Table:
    def __init__(self, connection: Connection, clock: ManualClock) -> None:
        self.listened = Listened(connection)
        self.comparing = Comparing(clock, PERIOD, "here")

    async def compare(self, seen: frozenset[str]) -> tuple[Differences, list[tuple[str, tuple[Any, ...]]]]:
        self.listened.asked.clear()
        found = await self.comparing.differences(self.listened, seen)  # type: ignore[arg-type]
        return found, list(self.listened.asked)


@pytest.fixture
async def connection(database: Database) -> Any:
    async with database.connection() as c:
        await c.execute("INSERT INTO users (name, role, created_at) VALUES ('mina', 'learner', now())")
        await c.execute(FILL)
        yield c


@pytest.fixture
def table(connection: Connection, clock: ManualClock) -> Table:
    return Table(connection, clock)


def ids(found: Differences) -> set[str]:
    return {w.id for w in found.rows}


async def test_where_nothing_changes_nothing_is_asked_for_a_period(table: Table, clock: ManualClock) -> None:
    assert await table.compare(ALL) == (Differences(), [(sql.running, ())])
    assert await table.compare(ALL) == (Differences(), [])
    await clock.advance(PERIOD)
    assert await table.compare(ALL) == (Differences(), [(sql.running, ())])


async def test_of_a_thousand_only_what_has_come_or_gone_is_asked_for(table: Table) -> None:
    await table.compare(ALL)
    found, asked = await table.compare(ALL - {"w7"} | {"stray"})
    assert (ids(found), found.strays) == ({"w7"}, frozenset({"stray"}))
    assert asked == [(sql.find_many, (["stray", "w7"],))]


async def test_what_did_not_agree_is_asked_for_until_it_does(table: Table, connection: Connection) -> None:
    await table.compare(ALL)
    await table.compare(ALL - {"w7"})
    assert ids((await table.compare(ALL - {"w7"}))[0]) == {"w7"}
    await connection.execute("UPDATE workspaces SET observed_status = 'STANDBY' WHERE id = 'w7'")
    assert (await table.compare(ALL - {"w7"}))[0] == Differences()
    assert await table.compare(ALL - {"w7"}) == (Differences(), [])


async def test_what_is_under_way_is_no_difference_until_it_is_over(table: Table, connection: Connection) -> None:
    await table.compare(ALL)
    await connection.execute("UPDATE workspaces SET operation = 'STOPPING', op_id = 'o' WHERE id = 'w7'")
    assert (await table.compare(ALL - {"w7"}))[0] == Differences()
    await connection.execute("UPDATE workspaces SET operation = 'NONE' WHERE id = 'w7'")  # it was given up
    assert ids((await table.compare(ALL - {"w7"}))[0]) == {"w7"}


async def test_that_one_came_and_went_between_two_looks_is_noticed(table: Table, connection: Connection) -> None:
    await connection.execute("UPDATE workspaces SET observed_status = 'STANDBY' WHERE id = 'w7'")
    await table.compare(ALL - {"w7"})
    table.comparing.begun("w7")
    await connection.execute("UPDATE workspaces SET observed_status = 'RUNNING' WHERE id = 'w7'")
    assert ids((await table.compare(ALL - {"w7"}))[0]) == {"w7"}


async def test_a_comparison_that_failed_is_made_again(
    table: Table, connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    await table.compare(ALL)

    async def fails(_query: str, *_args: Any) -> Any:
        raise ConnectionError

    with monkeypatch.context() as broken:
        broken.setattr(table.listened, "fetch", fails)
        with pytest.raises(ConnectionError):
            await table.compare(ALL - {"w7"})
    assert ids((await table.compare(ALL - {"w7"}))[0]) == {"w7"}


async def test_a_row_that_another_made_to_say_running_is_found_within_the_period(
    table: Table, connection: Connection, clock: ManualClock
) -> None:
    await table.compare(ALL)
    await connection.execute(
        FILL.replace("'w' || n", "'restored'").replace("generate_series(1, 1000)", "generate_series(1, 1)")
    )
    await clock.advance(PERIOD)
    assert ids((await table.compare(ALL))[0]) == {"restored"}


async def test_what_is_on_another_node_is_none_of_ours(table: Table, connection: Connection) -> None:
    await connection.execute("UPDATE workspaces SET node = 'there' WHERE id = 'w7'")
    assert (await table.compare(ALL - {"w7"}))[0] == Differences()
    assert (await table.compare(ALL - {"w7"}))[1] == []
