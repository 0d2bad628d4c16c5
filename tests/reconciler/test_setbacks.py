"""One workspace's trouble is that workspace's: it is set aside, counted, tried again; everybody else moves."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
from redis.asyncio import Redis

from codehub import metrics
from codehub.archives.model import Archived
from codehub.coordinator import setbacks
from codehub.coordinator.setbacks import Setback
from codehub.db import Database
from codehub.errors import InvalidRequestError
from codehub.runtimes.base import Exit
from codehub.settings import LimitsConfig
from codehub.templates.model import Template
from codehub.workspaces.model import Desired, Health, Observed, Operation, Phase, Workspace
from tests.null_runtime import NullRuntime
from tests.reconciler.test_controller import MINA, House, NullArchives, OneTemplate, build
from tests.virtual_time import ManualClock


@pytest.fixture
async def house(database: Database, redis_client: Redis, clock: ManualClock) -> AsyncIterator[House]:
    async with database.connection() as c:
        await c.execute("INSERT INTO users (name, role, created_at) VALUES ('mina', 'learner', now())")
    built = await build(database, redis_client, clock, NullRuntime())
    built.service._limits = LimitsConfig(max_running_per_user=0)
    yield built
    await built.controller.close()


async def set_aside(house: House) -> list[Setback]:
    async with house.database.connection() as c:
        return await setbacks.listing(c, 100)


async def test_a_record_that_cannot_be_read_stops_nobody_else_and_is_tried_again_with_pauses(house: House) -> None:
    bad = await house.create()
    await house.until(bad, Phase.RUNNING)
    house.runtime.unreadable_containers[bad] = "its record cannot be read"
    await house.service.request(MINA, bad, Desired.STANDBY)  # it asks for attention
    before = metrics.SETBACKS.labels("workspace")._value.get()
    good = await house.create()
    tick = await house.controller.tick()
    assert (tick.stats["failed"], tick.stats["set_aside"], tick.stats["begun"]) == (1, 1, 1)
    await house.until(good, Phase.RUNNING)
    assert metrics.SETBACKS.labels("workspace")._value.get() == before + 1  # its next attempt is not due
    pauses = []
    for failures in (1, 2, 3):
        (found,) = await set_aside(house)
        assert (found.name, found.failures, found.error) == (bad, failures, "its record cannot be read")
        pauses.append((found.retry_at - house.clock.now()).total_seconds())
        await house.clock.advance(pauses[-1])
        await house.tick()
    assert pauses[0] < pauses[1] < pauses[2] <= 4
    w = await house.service.get(MINA, bad)
    assert (w.phase, w.observed_status) == (Phase.ERROR, Observed.RUNNING)
    del house.runtime.unreadable_containers[bad]
    await house.clock.advance(10)
    await house.until(bad, Phase.STANDBY)  # as was asked for before
    assert await set_aside(house) == []


async def test_what_runs_and_cannot_be_told_is_an_error_that_its_owner_sees_and_nothing_is_stopped(
    house: House,
) -> None:
    bad = await house.create()
    before = await house.until(bad, Phase.RUNNING)
    calls = list(house.runtime.calls)
    house.runtime.unreadable_containers[bad] = "it runs, but its record cannot be read"
    w = await house.until(bad, Phase.ERROR, ticks=1)
    assert w.error_info
    assert (w.error_info["reason"], w.error_info["last_error"]) == (
        "RecordUnreadable",
        "it runs, but its record cannot be read",
    )
    assert (w.observed_status, w.volume_generation) == (Observed.RUNNING, before.volume_generation)
    assert (await house.events(bad))[-1] == "RecordUnreadable"
    await house.service.recover(MINA, bad)  # which does not help as long as it is so
    await house.clock.advance(10)
    await house.until(bad, Phase.ERROR)
    del house.runtime.unreadable_containers[bad]
    await house.clock.advance(10)
    again = await house.until(bad, Phase.RUNNING, ticks=1)  # by itself
    assert (again.address, again.error_info, again.attention_at) == (before.address, None, None)
    assert (await house.events(bad))[-1] == "readable again"
    assert house.runtime.calls == calls
    assert await set_aside(house) == []


async def test_one_that_ended_while_it_could_not_be_told_is_started_again(house: House) -> None:
    bad = await house.create()
    await house.until(bad, Phase.RUNNING)
    house.runtime.unreadable_containers[bad] = "torn"
    await house.until(bad, Phase.ERROR)
    del house.runtime.unreadable_containers[bad], house.runtime.running[bad]
    await house.clock.advance(10)
    await house.tick(2)
    await house.clock.advance(10)
    again = await house.until(bad, Phase.RUNNING)
    assert (again.health_status, again.error_info) == (Health.OK, None)
    assert bad in house.runtime.running


@pytest.mark.parametrize("purge", [False, True])
async def test_one_that_is_deleted_while_it_cannot_be_told_goes_when_it_can(house: House, *, purge: bool) -> None:
    bad = await house.create()
    await house.until(bad, Phase.RUNNING)
    house.runtime.unreadable_containers[bad] = "torn"
    await house.until(bad, Phase.ERROR)
    await house.service.delete(MINA, bad, purge=purge)
    for _ in range(10):  # more often than an operation is tried
        await house.clock.advance(400)
        await house.tick()
    assert bad in house.runtime.running
    del house.runtime.unreadable_containers[bad]
    await house.clock.advance(400)
    await house.until(bad, Phase.DELETED)
    assert (house.runtime.running, house.runtime.homes) == ({}, {})


async def test_a_running_workspaces_volume_that_cannot_be_read_is_an_error_too_and_passes(house: House) -> None:
    bad = await house.create()
    before = await house.until(bad, Phase.RUNNING)
    house.runtime.unreadable_volumes[bad] = "torn"
    w = await house.until(bad, Phase.ERROR, ticks=1)
    assert w.error_info
    assert w.error_info["reason"] == "VolumeUnreadable"
    for _ in range(3):
        await house.clock.advance(10)
        await house.tick()
    w = await house.service.get(MINA, bad)
    assert (w.observed_status, w.volume_generation) == (Observed.RUNNING, before.volume_generation)
    del house.runtime.unreadable_volumes[bad]
    await house.clock.advance(20)
    assert (await house.until(bad, Phase.RUNNING, ticks=1)).address == before.address


async def test_an_error_that_passes_lets_no_more_run_than_may(house: House) -> None:
    bad = await house.create(Desired.STANDBY)
    await house.until(bad, Phase.STANDBY)
    await house.service.request(MINA, bad, Desired.RUNNING)
    house.runtime.unreadable_volumes[bad] = "torn"
    await house.until(bad, Phase.ERROR)
    del house.runtime.unreadable_volumes[bad]
    await house.clock.advance(20)
    await house.tick(2)
    assert (await house.service.get(MINA, bad)).phase is Phase.ERROR
    await house.service.recover(MINA, bad)
    await house.until(bad, Phase.RUNNING)
    assert await set_aside(house) == []


async def test_an_exception_while_one_is_advanced_stops_nobody_else(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    bad = await house.create()
    await house.until(bad, Phase.RUNNING)

    async def breaks(_id: str) -> Exit | None:
        raise ValueError("exit.json is no JSON")

    monkeypatch.setattr(house.runtime, "last_exit", breaks)
    del house.runtime.running[bad]
    good = await house.create()
    await house.until(good, Phase.RUNNING)
    (found,) = await set_aside(house)
    assert (found.kind, found.name, found.error) == ("workspace", bad, "ValueError: exit.json is no JSON")


async def test_what_an_attempt_does_not_expect_is_backed_off_too(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    tries = []

    def breaks(_w: Workspace) -> float:
        tries.append(1)
        raise KeyError("a template without seconds")

    monkeypatch.setattr(house.controller._operations, "start_seconds", breaks)
    await house.create()
    await house.tick(5)
    assert len(tries) == 1
    assert [s.error for s in await set_aside(house)] == ["KeyError: 'a template without seconds'"]


async def test_a_volume_that_cannot_be_read_is_an_error_with_its_reason_and_can_be_deleted(house: House) -> None:
    bad = await house.create(Desired.STANDBY)
    await house.until(bad, Phase.STANDBY)
    house.runtime.unreadable_volumes[bad] = "what its volume is cannot be read"
    good = await house.create()
    await house.until(good, Phase.RUNNING)
    w = await house.until(bad, Phase.ERROR)
    assert w.error_info
    assert (w.error_info["reason"], w.error_info["last_error"]) == (
        "VolumeUnreadable",
        "what its volume is cannot be read",
    )
    assert w.volume_generation  # known again, should it be readable again
    del house.runtime.unreadable_volumes[bad]
    await house.service.recover(MINA, bad)
    await house.until(bad, Phase.STANDBY)
    house.runtime.unreadable_volumes[bad] = "once more"
    await house.until(bad, Phase.ERROR)
    await house.service.delete(MINA, bad, purge=True)
    await house.until(bad, Phase.DELETED)


async def test_one_that_is_deleted_while_its_volume_cannot_be_read_comes_back_with_its_files(house: House) -> None:
    bad = await house.create(Desired.STANDBY)
    kept = await house.until(bad, Phase.STANDBY)
    house.runtime.unreadable_volumes[bad] = "torn"
    await house.until(bad, Phase.ERROR)
    await house.service.delete(MINA, bad, purge=False)
    w = await house.until(bad, Phase.DELETED)
    assert w.volume_generation == kept.volume_generation
    del house.runtime.unreadable_volumes[bad]
    await house.service.undelete(MINA, bad)
    w = await house.until(bad, Phase.ARCHIVED)  # where what has no volume in the trash rests
    assert w.op_id
    assert w.op_id in (w.archive_key or "")


async def test_a_template_that_vanished_is_an_error_at_once(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    def gone(_self: OneTemplate, name: str) -> Template:
        raise InvalidRequestError(f"there is no template {name!r}", field="template")

    bad = await house.create(Desired.STANDBY)
    await house.until(bad, Phase.STANDBY)
    await house.service.request(MINA, bad, Desired.RUNNING)
    monkeypatch.setattr(OneTemplate, "require", gone)
    w = await house.until(bad, Phase.ERROR)
    assert w.error_info
    assert w.error_info["reason"] == "ImageNotFound"
    assert "there is no template 't'" in w.error_info["last_error"]


# --- observing is never bounded, beginning is, by kind


async def test_an_ide_that_answers_runs_although_no_slot_to_start_is_free(
    house: House, database: Database, redis_client: Redis, clock: ManualClock
) -> None:
    waiting, started = await house.create(Desired.STANDBY), await house.create(Desired.STANDBY)
    await house.until(waiting, Phase.STANDBY)
    await house.until(started, Phase.STANDBY)
    await house.service.request(MINA, waiting, Desired.RUNNING)  # the older request
    await clock.advance(1)
    await house.service.request(MINA, started, Desired.RUNNING)
    house.runtime.silent = {waiting, started}
    for _ in range(3):
        await house.controller.tick()
        await asyncio.sleep(0.05)
    assert (await house.service.get(MINA, started)).operation is Operation.STARTING
    await house.controller.close()
    house.runtime.silent = {waiting}
    successor = await build(database, redis_client, clock, house.runtime, max_concurrent_starts=1)
    await successor.controller.tick()
    assert (await house.service.get(MINA, started)).phase is Phase.RUNNING
    assert (await house.service.get(MINA, waiting)).operation is Operation.STARTING
    await successor.controller.close()


async def test_a_start_looks_at_one_container_and_not_at_all_of_them(house: House) -> None:
    id_ = await house.create(Desired.STANDBY)
    await house.until(id_, Phase.STANDBY)
    house.runtime.silent.add(id_)
    await house.service.request(MINA, id_, Desired.RUNNING)
    await house.controller.tick()
    before, one = house.runtime.looks["containers"], house.runtime.looks["container"]
    async with asyncio.timeout(10):
        while house.runtime.looks["container"] < one + 20:
            await house.clock.advance(0.3)
    assert house.runtime.looks["containers"] == before


class SlowArchives(NullArchives):
    """Packs until it is told that it may end."""

    def __init__(self) -> None:
        self.packing: set[str] = set()
        self.most = 0
        self.may_end = asyncio.Event()

    async def store(self, w: Workspace, _generation: str, epoch: int, _runtime: Any, _progress: Any) -> Archived:
        self.packing.add(w.id)
        self.most = max(self.most, len(self.packing))
        await self.may_end.wait()
        self.packing.remove(w.id)
        return await super().store(w, _generation, epoch, _runtime, _progress)


async def store_eight_away_while_one_starts(house: House) -> tuple[SlowArchives, list[str]]:
    """Returns when the one runs that was asked for last."""
    slow = SlowArchives()
    house.controller._operations._archives = slow
    class_ = [await house.create(Desired.STANDBY) for _ in range(8)]
    for id_ in class_:
        await house.until(id_, Phase.STANDBY, ticks=30)
    for id_ in class_:
        await house.service.request(MINA, id_, Desired.ARCHIVED)
    await house.clock.advance(1)
    wakes = await house.create()
    async with asyncio.timeout(20):
        while (await house.service.get(MINA, wakes)).phase is not Phase.RUNNING:
            await house.controller.tick()
            await asyncio.sleep(0.01)
    return slow, class_


async def test_a_class_that_ends_is_packed_a_few_at_a_time_while_others_start(house: House) -> None:
    slow, class_ = await store_eight_away_while_one_starts(house)
    assert len(slow.packing) == house.config.max_concurrent_packs
    slow.may_end.set()
    for id_ in class_:
        await house.until(id_, Phase.ARCHIVED, ticks=30)
    assert slow.most == house.config.max_concurrent_packs


async def test_thousands_that_are_to_be_stored_away_keep_nobody_from_waking(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("codehub.reconciler.controller.ROWS_PER_TICK", 3)
    _, class_ = await store_eight_away_while_one_starts(house)
    waiting = [await house.service.get(MINA, id_) for id_ in class_]
    assert all(w.phase is not Phase.ARCHIVED for w in waiting)  # it did not start because they were done
