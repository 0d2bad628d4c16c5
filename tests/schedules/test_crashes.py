"""The coordinator dies at each statement of a tick: a lesson is prepared once, each workspace is started once.

Every message to the database is a point, once before the server gets it and once after it was done. After each, another
coordinator goes on.
"""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import pytest

from codehub.db import Database
from codehub.errors import UnavailableError
from codehub.schedules.loop import SchedulesLoop
from codehub.schedules.model import Weekday
from tests.classes.conftest import Enrol
from tests.classes.test_classes import a_class
from tests.schedules.lessons import a_workspace, added, elect, last, loop_on, minutes
from tests.sessions.cutting import CuttingRelay, cutting
from tests.sessions.learning import Learner
from tests.virtual_time import ManualClock
from tests.web.server import Site

MOST_POINTS = 120


@dataclass(frozen=True)
class Stage:
    site: Site
    teacher: Learner
    class_: Any
    workspaces: list[str]
    database: Database  # by way of the relay
    relay: CuttingRelay
    clock: ManualClock

    async def dying(self, epoch: int) -> SchedulesLoop:
        lease = await elect(self.site.services.database, epoch)
        return loop_on(type(lease)(self.database, lease.holder, epoch), self.site.services)

    async def lesson(self) -> Any:
        """One in ten minutes; everything sleeps."""
        async with self.site.services.database.connection() as c:
            await c.execute("DELETE FROM class_schedules")
            await c.execute("DELETE FROM workspace_history WHERE code = 'started_for_lesson'")
            await c.execute("UPDATE workspaces SET desired_state = 'STANDBY', desired_by = 'user'")
        clock = f"{self.clock.now() + minutes(10):%H:%M}"
        return await added(self.teacher, self.class_, weekdays=list(Weekday), time=clock)

    async def started(self) -> list[str]:
        async with self.site.services.database.connection() as c:
            found = await c.fetch("SELECT workspace_id FROM workspace_history WHERE code = 'started_for_lesson'")
            states = await c.fetch("SELECT id FROM workspaces WHERE desired_state = 'RUNNING' ORDER BY id")
            done = await c.fetch(
                "SELECT workspace_id FROM class_lesson_starts WHERE outcome = 'started' ORDER BY workspace_id"
            )
        lines = sorted(record["workspace_id"] for record in found)
        assert lines == [record["id"] for record in states] == [record["workspace_id"] for record in done]
        return lines


@pytest.fixture
async def stage(
    kim: Learner, mina: Learner, person: Enrol, site: Site, clock: ManualClock, database_url: str
) -> AsyncIterator[Stage]:
    jun = await person("jun")
    class_ = await a_class(kim, "mina", "jun")
    ids = sorted([await a_workspace(mina), await a_workspace(jun)])
    async with cutting(database_url) as (url, relay):
        database = await Database.open(url, size=2)
        yield Stage(site, kim, class_, ids, database, relay, clock)
        await database.close()


@pytest.mark.parametrize("answered", [False, True], ids=["before", "after"])
async def test_a_crash_at_any_point_loses_no_start_and_doubles_none(stage: Stage, answered: bool) -> None:
    seen, point = set(), 0
    while True:
        point += 1
        assert point < MOST_POINTS, "it never ends"
        schedule = await stage.lesson()
        await stage.clock.advance(600.0)  # it begins: everybody is due at once
        stage.relay.arm(point, answered=answered)
        try:
            await (await stage.dying(2 * point)).tick()
        except UnavailableError:
            assert stage.relay.cut
        finally:
            stage.relay.disarm()
        broken, first = stage.relay.cut, await stage.started()
        assert set(first) <= set(stage.workspaces)
        seen.add(len(first))
        await loop_on(await elect(stage.site.services.database, 2 * point + 1), stage.site.services).tick()
        assert await stage.started() == stage.workspaces
        assert await last(stage.teacher, stage.class_, schedule) == {"jun": "started", "mina": "started"}
        if not broken:
            break
    assert point > 20
    assert seen == {0, 1, 2}
