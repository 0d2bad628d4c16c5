"""Two data directories, one database: a coordinator that cannot see a workspace's files leaves it alone."""

import pathlib

import pytest
from redis.asyncio import Redis

from codehub.clock import SystemClock
from codehub.db import Database
from codehub.errors import StartError
from codehub.reconciler import sight
from codehub.runtimes.nodes import node_of
from codehub.runtimes.process import ProcessRuntime
from codehub.settings import RuntimeConfig
from codehub.workspaces.model import Desired, Health, Phase
from tests.null_runtime import NullRuntime
from tests.reconciler.test_controller import MINA, House, build
from tests.virtual_time import ManualClock


class Elsewhere(NullRuntime):
    """Another machine: another disk."""

    node = "elsewhere"


async def a_house(database: Database, redis_client: Redis, clock: ManualClock) -> House:
    async with database.connection() as c:
        await c.execute("INSERT INTO users (name, role, created_at) VALUES ('mina', 'learner', now())")
    return await build(database, redis_client, clock, NullRuntime())


async def test_who_cannot_see_a_workspaces_files_does_not_call_them_lost(
    database: Database, redis_client: Redis, clock: ManualClock
) -> None:
    house = await a_house(database, redis_client, clock)
    asleep, awake = await house.create(Desired.STANDBY), await house.create()
    await house.until(asleep, Phase.STANDBY)
    w = await house.until(awake, Phase.RUNNING)
    assert w.node == "here"
    await house.service.request(MINA, asleep, Desired.RUNNING)
    other = await build(database, redis_client, clock, Elsewhere())
    await other.tick(3)
    for id_, phase in ((asleep, Phase.STANDBY), (awake, Phase.RUNNING)):
        w = await house.service.get(MINA, id_)
        assert (w.phase, w.health_status, w.error_info) == (phase, Health.OK, None)
    assert other.runtime.calls == []
    with pytest.raises(StartError, match="2 workspaces of this database have their files below another data directory"):
        await sight.require(database, other.runtime)
    again = await build(database, redis_client, clock, house.runtime)
    await sight.require(database, again.runtime)
    await again.until(asleep, Phase.RUNNING)


async def test_one_that_is_stored_away_is_nowhere_and_comes_back_wherever_it_is_led(
    database: Database, redis_client: Redis, clock: ManualClock
) -> None:
    house = await a_house(database, redis_client, clock)
    id_ = await house.create(Desired.STANDBY)
    await house.until(id_, Phase.STANDBY)
    await house.service.request(MINA, id_, Desired.ARCHIVED)
    assert (await house.until(id_, Phase.ARCHIVED)).node is None
    other = await build(database, redis_client, clock, Elsewhere())
    await sight.require(database, other.runtime)
    await house.service.request(MINA, id_, Desired.STANDBY)
    assert (await other.until(id_, Phase.STANDBY)).node == "elsewhere"


async def test_rows_that_do_not_say_where_their_files_are_are_taken_up_where_they_are_seen(
    database: Database, redis_client: Redis, clock: ManualClock
) -> None:
    house = await a_house(database, redis_client, clock)
    id_ = await house.create(Desired.STANDBY)
    await house.until(id_, Phase.STANDBY)
    async with database.connection() as c:
        await c.execute("UPDATE workspaces SET node = NULL")  # of an earlier version, or brought back from a backup
    await sight.require(database, Elsewhere())
    assert (await house.service.get(MINA, id_)).node is None
    await sight.require(database, house.runtime)
    assert (await house.service.get(MINA, id_)).node == "here"


def test_a_data_directory_is_one_node_and_another_one_is_another(tmp_path: pathlib.Path) -> None:
    first = ProcessRuntime(tmp_path / "one", RuntimeConfig(), None, SystemClock()).node
    assert first == node_of(tmp_path / "one")
    assert first != node_of(tmp_path / "two")
