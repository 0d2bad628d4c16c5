"""The loop that abandons runs without activity, tick by tick: bounded, and through the lease."""

import asyncio
from dataclasses import dataclass

import pytest

from codehub.coordinator.leader import Lease
from codehub.db import Database
from codehub.errors import LeaseLostError
from codehub.retention import housekeeping
from codehub.sessions import sweeper
from codehub.sessions.model import Run
from codehub.sessions.sweeper import Sweeper
from codehub.settings import CoordinatorConfig, SessionConfig
from codehub.web.services import Services
from codehub.workspaces.admission import admitted
from codehub.workspaces.model import Desired
from codehub.workspaces.service import NewWorkspace
from tests.leading import lead
from tests.policy.test_table import MINA
from tests.sessions.learning import LEARN, Learner
from tests.virtual_time import ManualClock

DAY = 86400.0


@dataclass(frozen=True)
class House:
    database: Database
    clock: ManualClock

    async def lease(self, holder: str = "test") -> Lease:
        return await lead(self.database, holder)

    async def sweeper(self) -> Sweeper:
        return Sweeper(await self.lease(), self.clock, SessionConfig())


@pytest.fixture
def house(database: Database, clock: ManualClock) -> House:
    return House(database, clock)


async def test_a_run_without_activity_for_a_day_is_abandoned_and_its_session_scheduled(
    mina: Learner, house: House, clock: ManualClock
) -> None:
    plan = await mina.plan(LEARN, LEARN)
    idle, active = [await mina.started(s["id"]) for s in plan["sessions"]]
    loop = await house.sweeper()
    await clock.advance(DAY)
    await mina.ask("POST", f"/runs/{active['id']}/activity", {"fence": 1})
    assert (await loop.tick()).stats == {"looked_at": 0, "abandoned": 0}
    await clock.advance(1)
    assert (await loop.tick()).stats == {"looked_at": 1, "abandoned": 1}
    ended = await mina.get(f"/runs/{idle['id']}")
    assert (ended["status"], ended["end_reason"]) == ("ABANDONED", "inactive")
    assert (await mina.get(f"/sessions/{idle['session_id']}"))["status"] == "SCHEDULED"
    assert (await mina.get(f"/runs/{active['id']}"))["status"] == "RUNNING"
    status, again = await mina.start(idle["session_id"], resume_from=idle["id"])
    assert (status, again["predecessor_id"]) == (201, idle["id"])


async def test_a_tick_looks_at_a_bounded_number_and_goes_on_soon(
    mina: Learner, house: House, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sweeper, "BATCH", 2)
    plan = await mina.plan(*[LEARN] * 5)
    for session in plan["sessions"]:
        await mina.started(session["id"])
    await clock.advance(DAY + 1)
    loop = await house.sweeper()
    ticks = [await loop.tick() for _ in range(4)]
    assert [tick.stats["abandoned"] for tick in ticks] == [2, 2, 1, 0]
    assert [tick.again_in for tick in ticks] == [1.0, 1.0, None, None]


async def test_two_drivers_on_one_database_abandon_each_run_once_and_the_older_lease_none(
    mina: Learner, house: House, clock: ManualClock
) -> None:
    plan = await mina.plan(*[LEARN] * 6)
    for session in plan["sessions"]:
        await mina.started(session["id"])
    await clock.advance(DAY + 1)
    old = await house.sweeper()
    new = await house.sweeper()
    with pytest.raises(LeaseLostError):
        await old.tick()
    same = Sweeper(new._lease, clock, SessionConfig())
    ticks = await asyncio.gather(new.tick(), same.tick())
    assert sum(tick.stats["abandoned"] for tick in ticks) == 6
    found = await mina.get(f"/plans/{plan['id']}")
    assert found["progress"]["SCHEDULED"] == 6


async def test_a_run_that_is_recovered_while_the_sweeper_looks_stays(
    mina: Learner, house: House, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    id_ = await mina.session()
    run = await mina.started(id_)
    await clock.advance(DAY + 1)
    loop = await house.sweeper()
    sweep = loop._sweep

    async def late(found: Run) -> bool:
        """Its learner was quicker: a heartbeat comes between the look and the lock."""
        await mina.ask("POST", f"/runs/{run['id']}/activity", {"fence": 1})
        return await sweep(found)

    monkeypatch.setattr(loop, "_sweep", late)
    assert (await loop.tick()).stats == {"looked_at": 1, "abandoned": 0}
    assert (await mina.get(f"/runs/{run['id']}"))["status"] == "RUNNING"


async def test_a_run_goes_on_while_its_workspace_is_at_work(
    mina: Learner, house: House, clock: ManualClock, services: Services
) -> None:
    run = await mina.started(await mina.session())
    made = admitted(await services.workspaces.create(MINA, NewWorkspace("Week 1", "terminal", Desired.STANDBY)))
    async with services.database.connection() as c:
        await c.execute("UPDATE session_runs SET workspace_id = $1", made.id)
        await clock.advance(DAY)
        await c.execute("UPDATE workspaces SET last_access_at = $1", clock.now())
    await clock.advance(60)
    loop = await house.sweeper()
    assert (await loop.tick()).stats == {"looked_at": 1, "abandoned": 0}
    assert (await loop.tick()).stats == {"looked_at": 0, "abandoned": 0}  # its time has moved
    status, again = await mina.start(run["session_id"])
    assert (status, again["id"]) == (200, run["id"])


async def test_a_start_counts_the_workspaces_activity_too(
    mina: Learner, clock: ManualClock, services: Services
) -> None:
    run = await mina.started(await mina.session())
    made = admitted(await services.workspaces.create(MINA, NewWorkspace("Week 1", "terminal", Desired.STANDBY)))
    async with services.database.connection() as c:
        await c.execute("UPDATE session_runs SET workspace_id = $1", made.id)
        await clock.advance(DAY)
        await c.execute("UPDATE workspaces SET last_access_at = $1", clock.now())
    await clock.advance(DAY)
    status, again = await mina.start(run["session_id"])
    assert (status, again["id"], again["workspace_id"]) == (200, run["id"], made.id)
    await clock.advance(DAY + 1)
    assert (await mina.start(run["session_id"]))[0] == 201


async def test_keys_are_removed_after_their_day(mina: Learner, house: House, clock: ManualClock) -> None:
    await mina.start(await mina.session(), key="old")
    await clock.advance(DAY)
    await mina.start(await mina.session(), key="new")
    lease = await house.lease()
    loop = housekeeping.loop(lease, clock, CoordinatorConfig(), SessionConfig())
    assert (await loop.tick()).stats["keys"] == 0
    await clock.advance(1)
    assert (await loop.tick()).stats["keys"] == 1
    async with house.database.connection() as c:
        assert [row["key"] for row in await c.fetch("SELECT key FROM idempotency_keys")] == ["new"]
