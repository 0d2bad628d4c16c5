"""A leader that was stopped and goes on later: what it makes is nobody's home, and it destroys nothing."""

from dataclasses import replace

import pytest
from redis.asyncio import Redis

from codehub.errors import LeaseLostError
from codehub.reconciler.operations import Operations
from codehub.runtimes.base import Volume
from codehub.workspaces.admission import admitted
from codehub.workspaces.model import Desired, Operation, Phase
from tests.reconciler.test_controller import MINA, House, NullArchives, OneTemplate, build
from tests.reconciler.test_controller import house as house  # noqa: PLC0414 (a fixture)


def operations(house: House) -> Operations:
    archives, templates = NullArchives(), OneTemplate()
    return Operations(house.lease, house.runtime, archives, templates, house.clock, house.config)  # type: ignore[arg-type]


async def archived(house: House) -> str:
    id_ = await house.create()
    await house.until(id_, Phase.RUNNING)
    admitted(await house.service.request(MINA, id_, Desired.ARCHIVED))
    await house.until(id_, Phase.ARCHIVED)
    return id_


async def test_a_volume_made_late_makes_way_for_what_was_archived(house: House) -> None:
    id_ = await archived(house)
    house.runtime.homes[id_] = Volume(id_, "late-1")
    admitted(await house.service.request(MINA, id_, Desired.RUNNING))
    w = await house.until(id_, Phase.RUNNING)
    assert house.runtime.homes[id_].restored_from == w.archive_key
    assert ("delete_volume", id_) in house.runtime.calls


async def test_a_home_from_the_trash_comes_back_under_a_new_generation(house: House) -> None:
    id_ = await house.create(Desired.STANDBY)
    before = await house.until(id_, Phase.STANDBY)
    assert before.volume_generation
    await house.runtime.park_volume(id_, before.volume_generation)  # by a leader that came late
    await house.tick()
    w = await house.until(id_, Phase.STANDBY)
    assert w.volume_generation not in {None, before.volume_generation}
    assert house.runtime.homes[id_] == Volume(id_, str(w.volume_generation))


async def test_a_home_that_is_put_aside_while_it_is_stopped_comes_back(house: House) -> None:
    id_ = await house.create()
    before = await house.until(id_, Phase.RUNNING)
    assert before.volume_generation
    admitted(await house.service.request(MINA, id_, Desired.STANDBY))
    await house.tick()  # it is stopped, and nobody has seen that yet
    await house.runtime.park_volume(id_, before.volume_generation)  # by a leader that came late
    await house.tick(3)
    w = await house.until(id_, Phase.STANDBY)
    assert house.runtime.homes[id_] == Volume(id_, str(w.volume_generation))
    assert (await house.events(id_))[-3:] == ["observed", "PROVISIONING begins", "PROVISIONING"]


async def test_a_former_leader_does_not_end_what_its_successor_started(house: House, redis_client: Redis) -> None:
    id_ = await house.create()
    w = await house.until(id_, Phase.RUNNING)
    successor = await build(house.database, redis_client, house.clock, house.runtime)
    starting = replace(w, operation=Operation.STARTING)
    with pytest.raises(LeaseLostError):
        await operations(house).give_up(starting)
    assert id_ in house.runtime.running
    await operations(successor).give_up(starting)
    assert id_ not in house.runtime.running
    await successor.controller.close()


async def test_a_former_leader_takes_nothing_out_of_the_trash(house: House, redis_client: Redis) -> None:
    id_ = await house.create(Desired.STANDBY)
    w = await house.until(id_, Phase.STANDBY)
    assert w.volume_generation
    await house.runtime.park_volume(id_, w.volume_generation)
    successor = await build(house.database, redis_client, house.clock, house.runtime)
    with pytest.raises(LeaseLostError):
        await operations(house).perform(replace(w, operation=Operation.PROVISIONING, volume_parked=True))
    assert house.runtime.homes[id_].parked
    await successor.controller.close()
