"""The controller's steps, tick by tick, on the real database; the machine below it is a dictionary."""

import asyncio
import itertools
from collections.abc import AsyncGenerator, AsyncIterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import pytest
from redis.asyncio import Redis

from codehub.activity.reader import ActivityReader
from codehub.archives.model import Archived, Meta, Quota
from codehub.coordinator.leader import Lease
from codehub.db import Database
from codehub.errors import LeaseLostError
from codehub.policy.model import ALL_SCOPES, Principal, Role
from codehub.reconciler import operations
from codehub.reconciler.controller import Controller
from codehub.reconciler.idle_recheck import ByActivity
from codehub.reconciler.operations import Operations
from codehub.runtimes.base import ImageNotFoundError, Runtime, RuntimeFailureError, Source, Workload
from codehub.settings import ActivityConfig, CoordinatorConfig, LimitsConfig, TtlConfig
from codehub.templates.model import StarterFile, Template
from codehub.workspaces import history, rules
from codehub.workspaces.admission import admitted
from codehub.workspaces.model import Desired, Health, Observed, Operation, Phase, Workspace
from codehub.workspaces.service import NewWorkspace, Workspaces
from codehub.workspaces.ttl_policy import TtlPolicies
from tests.leading import lead
from tests.null_runtime import NullRuntime
from tests.virtual_time import ManualClock
from tests.waiting_room.admission import a_line

MINA = Principal("mina", Role.LEARNER, ALL_SCOPES)


class OneTemplate:
    """Every name is the same template."""

    start_seconds = 20.0

    def find(self, name: str) -> Template:
        starter = (StarterFile("README.md", b"Hello"),)
        return Template(name, name, start_seconds=self.start_seconds, starter_files=starter)

    require = find


async def nothing() -> AsyncGenerator[bytes, None]:
    yield b""


class NullArchives:
    """Keeps keys only."""

    async def store(self, w: Workspace, _generation: str, epoch: int, _runtime: Any, _progress: Any) -> Archived:
        meta = Meta("0" * 64, 1, 1, 1, datetime(2026, 3, 2, 9, 0, tzinfo=UTC))
        return Archived(f"{w.id}/{w.op_id}/{epoch}/home.tar.zst", meta)

    async def fetch(self, w: Workspace, epoch: int, runtime: Runtime, _progress: Any) -> None:
        assert w.op_id
        assert w.archive_key
        made = rules.new_generation(w.op_id, epoch)
        await runtime.unpack(w.id, made, nothing(), Source(w.archive_key, Quota(1, 1)))

    async def remove_all(self, workspace_id: str) -> None: ...


@dataclass
class House:
    database: Database
    clock: ManualClock
    runtime: NullRuntime
    service: Workspaces
    controller: Controller
    config: CoordinatorConfig
    lease: Lease

    async def tick(self, times: int = 1) -> None:
        """A tick, and then whatever it began."""
        for _ in range(times):
            await self.controller.tick()
            tasks = list(self.controller._under_way.tasks().values())
            await asyncio.gather(*tasks, return_exceptions=True)

    async def until(self, id_: str, phase: Phase, ticks: int = 8) -> Workspace:
        for _ in range(ticks):
            w = await self.service.get(MINA, id_)
            if w.phase is phase and w.operation is Operation.NONE:
                return w
            await self.tick()
        w = await self.service.get(MINA, id_)
        assert (w.phase, w.operation) == (phase, Operation.NONE), w
        return w

    async def create(self, desired: Desired = Desired.RUNNING) -> str:
        return (admitted(await self.service.create(MINA, NewWorkspace("lab", "t", desired)))).id

    async def events(self, id_: str) -> list[str]:
        found = await self.service.history(MINA, id_, before=2**62, limit=100)
        return [history.event(e.code, e.data) for e in reversed(found)]


async def build(
    database: Database, redis_client: Redis, clock: ManualClock, runtime: NullRuntime, **settings: Any
) -> House:
    config = CoordinatorConfig(**settings)
    lease = await lead(database)
    does = Operations(lease, runtime, NullArchives(), OneTemplate(), clock, config)  # type: ignore[arg-type]
    reader = ActivityReader(redis_client, clock, 30.0, "this boot")
    ttl_policies = TtlPolicies(TtlConfig(), ActivityConfig(), OneTemplate())  # type: ignore[arg-type]
    recheck = ByActivity(reader, clock, ttl_policies)
    controller = Controller(lease, runtime, does, clock, config, lambda: None, recheck)
    service = Workspaces(database, clock, LimitsConfig(), OneTemplate(), a_line(clock))  # type: ignore[arg-type]
    return House(database, clock, runtime, service, controller, config, lease)


@pytest.fixture
async def house(database: Database, redis_client: Redis, clock: ManualClock) -> AsyncIterator[House]:
    async with database.connection() as c:
        await c.execute("INSERT INTO users (name, role, created_at) VALUES ('mina', 'learner', now())")
    built = await build(database, redis_client, clock, NullRuntime())
    yield built
    await built.controller.close()


async def test_a_new_home_begins_with_its_templates_starter_files(house: House) -> None:
    id_ = await house.create()
    await house.until(id_, Phase.RUNNING)
    assert house.runtime.starters == {id_: ["README.md"]}


async def test_a_new_workspace_gets_a_volume_and_then_an_ide(house: House) -> None:
    id_ = await house.create()
    w = await house.until(id_, Phase.RUNNING)
    assert house.runtime.calls == [("create_volume", id_), ("start", id_)]
    assert w.address == {"socket": f"/nonexistent/{id_}.sock", "host": None, "port": None, "key": None}
    assert w.attention_at is None
    assert await house.events(id_) == [
        "created",
        "PROVISIONING begins",
        "PROVISIONING",
        "STARTING begins",
        "STARTING",
    ]


async def test_it_sleeps_wakes_is_stored_away_and_comes_back(house: House) -> None:
    id_ = await house.create()
    await house.until(id_, Phase.RUNNING)
    for wanted, phase in (
        (Desired.STANDBY, Phase.STANDBY),
        (Desired.RUNNING, Phase.RUNNING),
        (Desired.ARCHIVED, Phase.ARCHIVED),
        (Desired.RUNNING, Phase.RUNNING),
    ):
        _, status = admitted(await house.service.request(MINA, id_, wanted))
        assert status == 202
        await house.until(id_, phase)
    events = await house.events(id_)
    assert events[events.index("STOPPING begins") :][:2] == ["STOPPING begins", "STOPPING"]
    verbs = [verb for verb, _ in house.runtime.calls]
    away = ["stop", "park_volume", "delete_volume"]
    assert verbs == ["create_volume", "start", "stop", "start", *away, "unpack", "start"]


async def test_a_deleted_one_steps_down_is_archived_and_comes_back_from_the_trash(house: House) -> None:
    id_ = await house.create()
    await house.until(id_, Phase.RUNNING)
    await house.service.delete(MINA, id_, purge=False)
    w = await house.until(id_, Phase.DELETED)
    assert w.archive_key
    assert house.runtime.homes == {}
    await house.service.undelete(MINA, id_)
    w = await house.until(id_, Phase.ARCHIVED)
    assert w.desired_state is Desired.ARCHIVED
    admitted(await house.service.request(MINA, id_, Desired.RUNNING))
    await house.until(id_, Phase.RUNNING)


async def test_deleting_from_error_parks_the_volume_and_undelete_brings_it_back(house: House) -> None:
    id_ = await house.create()
    await house.until(id_, Phase.RUNNING)
    house.runtime.fail["stop"] = ImageNotFoundError("stuck")
    admitted(await house.service.request(MINA, id_, Desired.STANDBY))
    await house.until(id_, Phase.ERROR)
    del house.runtime.fail["stop"]
    await house.service.delete(MINA, id_, purge=False)
    w = await house.until(id_, Phase.DELETED)
    assert w.volume_parked
    assert house.runtime.homes[id_].parked
    undeleted = await house.service.undelete(MINA, id_)
    assert undeleted.desired_state is Desired.STANDBY
    await house.until(id_, Phase.STANDBY)
    assert not house.runtime.homes[id_].parked


async def test_a_purge_destroys_at_once(house: House) -> None:
    id_ = await house.create(Desired.STANDBY)
    await house.until(id_, Phase.STANDBY)
    await house.service.delete(MINA, id_, purge=True)
    await house.until(id_, Phase.DELETED)
    assert house.runtime.homes == {}
    assert ("park_volume", id_) not in house.runtime.calls


async def test_a_failing_operation_is_retried_with_pauses_and_ends_in_error_with_its_reason(house: House) -> None:
    house.runtime.fail["start"] = RuntimeFailureError("no memory left")
    id_ = await house.create()
    await house.tick(2)
    attempts = []
    for _ in range(40):
        before = house.runtime.calls.count(("start", id_))
        await house.tick()
        if house.runtime.calls.count(("start", id_)) > before:
            attempts.append(house.clock.monotonic())
        await house.clock.advance(0.5)
    w = await house.service.get(MINA, id_)
    assert w.phase is Phase.ERROR
    assert w.operation is Operation.NONE
    assert w.op_id  # kept: it protects what the operation may have left
    assert w.error_info
    assert w.error_info["reason"] == "RetryExceeded"
    assert w.error_info["error_count"] == house.config.max_retry + 1
    assert "no memory left" in w.error_info["last_error"]
    pauses = [b - a for a, b in itertools.pairwise(attempts)]
    assert pauses == sorted(pauses)
    del house.runtime.fail["start"]
    admitted(await house.service.recover(MINA, id_))
    await house.until(id_, Phase.RUNNING)


async def test_a_terminal_failure_is_not_retried(house: House) -> None:
    house.runtime.fail["start"] = ImageNotFoundError("there is no such program")
    id_ = await house.create()
    w = await house.until(id_, Phase.ERROR)
    assert w.error_info
    assert w.error_info["reason"] == "ImageNotFound"
    assert house.runtime.calls.count(("start", id_)) == 1


async def test_an_ide_that_dies_is_started_again_and_given_up_when_it_keeps_dying(house: House) -> None:
    id_ = await house.create()
    await house.until(id_, Phase.RUNNING)
    for _ in range(40):
        house.runtime.running.clear()
        await house.tick(2)
        await house.clock.advance(2)
    w = await house.service.get(MINA, id_)
    assert w.phase is Phase.ERROR
    assert w.observed_status is Observed.STANDBY
    assert w.error_info
    assert "no such module" in w.error_info["last_error"]  # the tail of its own log


async def test_an_ide_that_is_gone_before_it_answers_is_quoted(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    async def ends_at_once(_workload: Workload) -> None: ...

    monkeypatch.setattr(house.runtime, "start", ends_at_once)
    id_ = await house.create()
    await house.tick(3)
    w = await house.service.get(MINA, id_)
    assert w.error_info
    assert "exit code 1. Its last words: no such module" in w.error_info["last_error"]


class Announces(NullRuntime):
    """Says after a long while that an IDE begins to listen, which answers after another one."""

    def __init__(self, clock: ManualClock) -> None:
        super().__init__()
        self.clock = clock
        self.pauses: list[float] = []

    async def begins_to_listen(self, workspace_id: str, pause: float) -> bool:
        self.pauses.append(pause)
        if len(self.pauses) == 4:
            self.silent.discard(workspace_id)
        await self.clock.advance(20)
        return len(self.pauses) == 1


async def test_an_ide_that_is_said_to_listen_is_asked_again_soon(
    database: Database, redis_client: Redis, clock: ManualClock
) -> None:
    async with database.connection() as c:
        await c.execute("INSERT INTO users (name, role, created_at) VALUES ('mina', 'learner', now())")
    runtime = Announces(clock)
    house = await build(database, redis_client, clock, runtime)
    id_ = await house.create()
    await house.tick()
    runtime.silent.add(id_)
    await house.until(id_, Phase.RUNNING)
    soon, late = operations.SHORTEST_PAUSE, operations.LONGEST_PAUSE
    assert runtime.pauses == [soon, soon, late, late]
    assert runtime.looks["container"] == 1 + len(runtime.pauses)
    await house.controller.close()


async def test_an_ide_that_dies_after_running_well_is_simply_started_again(house: House) -> None:
    id_ = await house.create()
    for _ in range(10):
        await house.until(id_, Phase.RUNNING)
        await house.clock.advance(120)
        house.runtime.running.clear()
        await house.tick()
        await house.clock.advance(2)
    assert (await house.until(id_, Phase.RUNNING)).health_status is Health.OK


async def test_a_volume_that_vanishes_is_data_lost_and_never_a_silent_older_copy(house: House) -> None:
    id_ = await house.create()
    await house.until(id_, Phase.RUNNING)
    admitted(await house.service.request(MINA, id_, Desired.ARCHIVED))
    await house.until(id_, Phase.ARCHIVED)
    admitted(await house.service.request(MINA, id_, Desired.STANDBY))
    await house.until(id_, Phase.STANDBY)
    house.runtime.homes.clear()
    await house.tick()
    w = await house.service.get(MINA, id_)
    assert w.phase is Phase.ERROR
    assert w.error_info
    assert w.error_info["reason"] == "DataLost"


async def test_a_container_without_volume_is_an_error(house: House) -> None:
    id_ = await house.create()
    await house.until(id_, Phase.RUNNING)
    house.runtime.homes.clear()
    admitted(await house.service.request(MINA, id_, Desired.RUNNING))  # makes the controller look
    await house.tick()
    w = await house.service.get(MINA, id_)
    assert w.error_info
    assert w.error_info["reason"] == "ContainerWithoutVolume"
    assert w.observed_status is Observed.RUNNING  # it keeps telling the truth


async def test_a_container_nobody_knows_is_stopped(house: House) -> None:
    id_ = await house.create()
    await house.until(id_, Phase.RUNNING)
    stray = house.runtime.running[id_]
    house.runtime.running["stray"] = stray
    await house.tick()
    assert ("stop", "stray") in house.runtime.calls
    assert id_ in house.runtime.running


async def test_only_so_many_start_at_a_time_and_the_oldest_request_goes_first(
    database: Database, redis_client: Redis, clock: ManualClock
) -> None:
    async with database.connection() as c:
        await c.execute("INSERT INTO users (name, role, created_at) VALUES ('mina', 'learner', now())")
    house = await build(database, redis_client, clock, NullRuntime(), max_concurrent_starts=2)
    house.service._limits = LimitsConfig(max_running_per_user=0)
    ids = []
    for _ in range(6):
        ids.append(await house.create())
        await clock.advance(1)
    house.runtime.silent = set(ids)  # they start and never answer
    for _ in range(4):
        await house.controller.tick()
        await asyncio.sleep(0.05)
    started = [id_ for verb, id_ in house.runtime.calls if verb == "start"]
    assert sorted(started) == sorted(ids[:2])  # both at once: which of the two comes first is chance
    assert await house.service.start_position(await house.service.get(MINA, ids[4])) == 2
    await house.controller.close()


async def test_what_a_leader_began_its_successor_carries_on(
    house: House, database: Database, redis_client: Redis, clock: ManualClock
) -> None:
    id_ = await house.create()
    house.runtime.silent.add(id_)
    for _ in range(3):
        await house.controller.tick()
        await asyncio.sleep(0.05)
    w = await house.service.get(MINA, id_)
    assert w.operation is Operation.STARTING
    await house.controller.close()  # as when leadership moves
    house.runtime.silent.clear()
    successor = await build(database, redis_client, clock, house.runtime)
    after = await successor.until(id_, Phase.RUNNING)
    assert after.op_id == w.op_id  # the same operation, carried on
    await successor.controller.close()


async def test_a_former_leader_saves_nothing(
    house: House, database: Database, redis_client: Redis, clock: ManualClock
) -> None:
    id_ = await house.create()
    successor = await build(database, redis_client, clock, house.runtime)
    with pytest.raises(LeaseLostError):
        await house.controller.tick()
    assert (await house.service.get(MINA, id_)).operation is Operation.NONE
    await successor.until(id_, Phase.RUNNING)
    await successor.controller.close()


async def test_a_start_that_hangs_ends_in_a_timeout_and_leaves_no_container(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(OneTemplate, "start_seconds", 0.5)
    id_ = await house.create()
    house.runtime.silent.add(id_)
    await house.tick()
    ticking = asyncio.create_task(house.tick(2))
    async with asyncio.timeout(30):
        while (w := await house.service.get(MINA, id_)).phase is not Phase.ERROR:
            await asyncio.sleep(0.05)
            await house.clock.advance(1)
    ticking.cancel()
    await asyncio.gather(ticking, return_exceptions=True)
    assert w.error_info
    assert w.error_info["reason"] == "Timeout"
    assert house.runtime.running == {}
