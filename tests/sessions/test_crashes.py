"""The connection ends at each point of a start and of a step: everything of it is there, or nothing; and it goes on.

Every message of the client to the database is a point, once before the server gets it and once after it was done.
"""

from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from datetime import date
from typing import Any

import pytest

from codehub.clock import Clock
from codehub.command import operator
from codehub.db import Database
from codehub.errors import UnavailableError
from codehub.policy.model import ALL_SCOPES, Principal, Role
from codehub.sessions import blueprint
from codehub.sessions.blueprints import Blueprints
from codehub.sessions.model import Run
from codehub.sessions.runs import Answer, Runs
from codehub.sessions.service import NewPlan, NewSession
from codehub.settings import SessionConfig
from codehub.web.services import Services
from tests.sessions.cutting import CuttingRelay, cutting
from tests.sessions.learning import CHECK, RIGHT
from tests.virtual_time import ManualClock

MOST_POINTS = 60
DAY = 86400.0
POINTS = pytest.mark.parametrize("answered", [False, True], ids=["before", "after"])


@dataclass(frozen=True)
class Stage:
    services: Services
    database: Database  # by way of the relay
    relay: CuttingRelay
    clock: Clock
    mina: Principal

    @property
    def runs(self) -> Runs:
        """As in a process that has just begun: nothing is remembered."""
        return Runs(self.database, self.clock, SessionConfig(), Blueprints(), None, lambda: None)

    async def session(self) -> str:
        new = NewSession("One", date(2026, 3, 2), blueprint.parse(CHECK))
        plan = await self.services.sessions.create_plan(self.mina, NewPlan("Plan", [new]))
        return plan.sessions[0].id

    async def state(self, session_id: str) -> tuple[Any, ...]:
        """What is there of it, read past the relay."""
        async with self.services.database.connection() as c:
            found = await c.fetchrow(
                "SELECT s.status, (SELECT count(*) FROM session_runs WHERE session_id = s.id) AS runs, "
                "(SELECT count(*) FROM idempotency_keys WHERE body LIKE '%' || s.id || '%') AS keys, "
                "(SELECT count(*) FROM (TABLE deferred_events UNION ALL SELECT id, at, audience, kind, subject, data "
                "FROM events) AS e WHERE data ->> 'session_id' = s.id) AS events "
                "FROM sessions s WHERE s.id = $1",
                session_id,
            )
        assert found
        return tuple(found.values())

    async def broken_at(self, point: int, *, answered: bool, act: Callable[[], Awaitable[Any]]) -> bool:
        """False: it was over before this point."""
        self.relay.arm(point, answered=answered)
        try:
            await act()
        except UnavailableError:
            assert self.relay.cut
        finally:
            self.relay.disarm()
        return self.relay.cut


@pytest.fixture
async def stage(services: Services, database_url: str, clock: ManualClock) -> AsyncIterator[Stage]:
    person = await services.people.create_user(operator(), "mina", Role.LEARNER)
    mina = Principal("mina", Role.LEARNER, ALL_SCOPES, person.id)
    async with cutting(database_url) as (url, relay):
        database = await Database.open(url, size=2)
        yield Stage(services, database, relay, clock, mina)
        await database.close()


async def points_of(stage: Stage, *, answered: bool, one: Callable[[int], Awaitable[bool]]) -> int:
    """How many there are until it ends by itself."""
    for point in range(1, MOST_POINTS):
        if not await one(point):
            return point
    raise AssertionError("it never ends")


@POINTS
async def test_always_save_snapshot_a_crash_at_any_point_leaves_step_and_snapshot_or_neither(
    stage: Stage, answered: bool
) -> None:
    seen = set()

    async def one(point: int) -> bool:
        run = await _started(stage)
        await stage.services.runs.complete_step(stage.mina, run.id, 0, 1, {"n": 1})

        async def act() -> None:
            await stage.runs.complete_step(stage.mina, run.id, 1, 1, RIGHT)

        broken = await stage.broken_at(point, answered=answered, act=act)
        found = await stage.services.runs.get(stage.mina, run.id)
        saved, _ = await stage.services.runs.snapshots(stage.mina, run.id, after=-1, limit=10)
        assert [s.step_index for s in saved] == list(range(found.step_index))
        assert found.snapshot == saved[-1].state
        seen.add(found.step_index)
        again = await stage.services.runs.complete_step(stage.mina, run.id, 1, 1, RIGHT)
        assert (again.step_index, again.snapshot) == (2, RIGHT)
        return broken

    assert await points_of(stage, answered=answered, one=one) > 3
    assert seen == {1, 2}


@POINTS
async def test_a_crash_at_any_point_of_the_last_step_completes_run_and_session_or_neither(
    stage: Stage, answered: bool
) -> None:
    seen = set()

    async def one(point: int) -> bool:
        run = await _started(stage)
        states: list[dict[str, Any]] = [{"n": 1}, RIGHT]
        for index, state in enumerate(states):
            await stage.services.runs.complete_step(stage.mina, run.id, index, 1, state)

        async def act() -> None:
            await stage.runs.complete_step(stage.mina, run.id, 2, 1, {})

        broken = await stage.broken_at(point, answered=answered, act=act)
        found = await stage.services.runs.get(stage.mina, run.id)
        saved, _ = await stage.services.runs.snapshots(stage.mina, run.id, after=-1, limit=10)
        session = await stage.services.sessions.session(stage.mina, run.session_id)
        seen.add((found.status, session.status, len(saved)))
        again = await stage.services.runs.complete_step(stage.mina, run.id, 2, 1, {})
        assert again.status == "COMPLETED"
        return broken

    await points_of(stage, answered=answered, one=one)
    assert seen == {("RUNNING", "IN_PROGRESS", 2), ("COMPLETED", "COMPLETED", 3)}


@POINTS
async def test_a_crash_at_any_point_of_a_start_leaves_all_of_it_or_nothing_and_the_key_finds_it(
    stage: Stage, answered: bool
) -> None:
    seen = set()

    async def one(point: int) -> bool:
        id_ = await stage.session()
        seen_before = await stage.state(id_)
        assert seen_before == ("SCHEDULED", 0, 0, 0)

        async def act() -> Answer:
            return await stage.runs.start(stage.mina, id_, key=f"k-{answered}-{point}")

        broken = await stage.broken_at(point, answered=answered, act=act)
        there = await stage.state(id_)
        seen.add(there)
        answer = await stage.services.runs.start(stage.mina, id_, key=f"k-{answered}-{point}")
        assert (answer.status, answer.replayed) == (201, there != seen_before)
        assert await stage.state(id_) == ("IN_PROGRESS", 1, 1, 2)
        return broken

    await points_of(stage, answered=answered, one=one)
    assert seen == {("SCHEDULED", 0, 0, 0), ("IN_PROGRESS", 1, 1, 2)}


@POINTS
async def test_a_crash_at_any_point_of_a_start_after_a_day_leaves_the_old_run_or_the_new_one(
    stage: Stage, clock: ManualClock, answered: bool
) -> None:
    seen = set()

    async def one(point: int) -> bool:
        old = await _started(stage)
        await clock.advance(DAY + 1)

        async def act() -> Answer:
            return await stage.runs.start(stage.mina, old.session_id, key=f"k-{answered}-{point}")

        broken = await stage.broken_at(point, answered=answered, act=act)
        trail = await _trail(stage, old.session_id)
        assert (await stage.services.sessions.session(stage.mina, old.session_id)).status == "IN_PROGRESS"
        seen.add(tuple(run.status for run in trail))
        again = await stage.services.runs.start(stage.mina, old.session_id, key=f"k-{answered}-{point}")
        assert again.status == 201
        assert [run.status for run in await _trail(stage, old.session_id)] == ["ABANDONED", "RUNNING"]
        return broken

    await points_of(stage, answered=answered, one=one)
    assert seen == {("RUNNING",), ("ABANDONED", "RUNNING")}


async def _trail(stage: Stage, session_id: str) -> list[Run]:
    start = stage.clock.now().replace(year=2000)
    return await stage.services.runs.trail(stage.mina, session_id, after=(start, ""), limit=10)


async def _started(stage: Stage) -> Run:
    id_ = await stage.session()
    await stage.services.runs.start(stage.mina, id_)
    return (await _trail(stage, id_))[0]
