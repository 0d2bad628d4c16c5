"""A backup with a course, a plan and its runs: the learner goes on at the same step, on another machine."""

import contextlib
import dataclasses
import pathlib
from collections.abc import AsyncIterator
from datetime import datetime
from typing import Any

import asyncpg

from codehub.policy.model import Role
from codehub.settings import Settings
from codehub.wiring.api import open_services
from tests.backup.conftest import back_up, bring_back
from tests.courses.conftest import person
from tests.sessions.learning import CHECK, RIGHT, Learner, Reply
from tests.virtual_time import ManualClock
from tests.web.server import Site, serving

COURSE = {
    "title": "Loops",
    "language": "en",
    "sessions": [{"key": f"s{day}", "title": f"Day {day}", "day": day, "blueprint": CHECK} for day in (1, 2)],
}
# In the order in which their references ask for them.
TABLES = (
    *("blueprints", "courses", "course_versions", "course_sessions", "plans", "sessions", "session_runs"),
    *("run_snapshots", "run_tries", "idempotency_keys", "plan_workspaces", "practice_tasks", "delivered_files"),
)
STATE = {"read": "한국어 ✓", "n": 1e308}
TASK = """
INSERT INTO practice_tasks (id, kind, run_id, workspace_id, owner_id, step_index, fence, request, created_at)
SELECT 'a-task', 'checks', r.id, w.id, w.owner_id, 1, r.fence, '{}', $3 FROM session_runs r, workspaces w
WHERE w.id = $1 AND r.session_id = $2 AND r.status = 'RUNNING'
"""


@contextlib.asynccontextmanager
async def site_on(settings: Settings, url: str, clock: ManualClock) -> AsyncIterator[Site]:
    storage = dataclasses.replace(settings.storage, database_url=url)
    async with (
        open_services(dataclasses.replace(settings, storage=storage), clock) as services,
        serving(services) as site,
    ):
        yield site


async def rows(url: str) -> dict[str, list[Any]]:
    connection = await asyncpg.connect(url)
    try:
        return {name: await connection.fetch(f"SELECT * FROM {name} ORDER BY {name}::text") for name in TABLES}
    finally:
        await connection.close()


async def begin(kim: Learner, mina: Learner) -> tuple[str, Reply]:
    """A course's session, tried, abandoned and taken up again with a key."""
    status, course = await kim.ask("POST", "/courses", COURSE)
    assert status == 201, course
    status, plan = await mina.ask("POST", f"/courses/{course['id']}/plans", {"starts_on": "2026-03-02"})
    assert status == 201, plan
    session = plan["sessions"][0]["id"]
    run = await mina.started(session)
    assert (await mina.complete(run, 0, STATE))[0] == 200
    assert (await mina.complete(run, 1, {"answers": {"loop-count": "a"}}))[0] == 422
    await mina.abandon(run)
    return session, await mina.start(session, key="a-key", resume_from=run["id"])


async def open_workspace(mina: Learner, url: str, session: str, now: datetime) -> None:
    """And what the coordinator noted about it."""
    status, workspace = await mina.ask("POST", "/workspaces", {"name": "practice", "template": "terminal"})
    assert status == 201, workspace
    connection = await asyncpg.connect(url)
    ids = (workspace["id"], session)
    await connection.execute(
        "INSERT INTO plan_workspaces SELECT plan_id, 'terminal', $1 FROM sessions WHERE id = $2", *ids
    )
    await connection.execute("INSERT INTO delivered_files VALUES ($1, 'loop.py', 'digest', $2)", workspace["id"], now)
    await connection.execute(TASK, *ids, now)
    await connection.close()


async def goes_on(mina: Learner, session: str, answered: Reply) -> None:
    """The key is known, the run is at its step with what was saved, and can be completed."""
    assert await mina.start(session, key="a-key", resume_from=answered[1]["predecessor_id"]) == answered
    status, run = await mina.start(session)
    before = answered[1]
    assert (status, run["id"], run["fence"]) == (200, before["id"], before["fence"] + 1)
    assert (run["step_index"], run["snapshot"], run["predecessor_id"]) == (1, STATE, before["predecessor_id"])
    assert (await mina.complete(run, 1, RIGHT, fence=before["fence"]))[1]["code"] == "RUN_TAKEN_OVER"
    for index, state in ((1, RIGHT), (2, {})):
        assert (await mina.complete(run, index, state))[0] == 200
    saved = (await mina.get(f"/runs/{run['id']}/snapshots"))["items"]
    assert [one["state"] for one in saved] == [STATE, RIGHT, {}]
    assert (await mina.get(f"/sessions/{session}"))["status"] == "COMPLETED"


async def test_a_restored_learner_goes_on_at_the_same_step(
    settings: Settings, clock: ManualClock, database_url: str, empty_url: str, file: pathlib.Path
) -> None:
    async with site_on(settings, database_url, clock) as site:
        tokens = [await person(site, name, role) for name, role in (("kim", Role.TEACHER), ("mina", Role.LEARNER))]
        async with site.client(tokens[0]) as kim, site.client(tokens[1]) as mina:
            session, answered = await begin(Learner(kim), Learner(mina))
            assert answered[0] == 201, answered
            await open_workspace(Learner(mina), database_url, session, clock.now())
    before = await rows(database_url)
    assert [name for name, found in before.items() if not found] == []
    await back_up(database_url, file)
    await bring_back(empty_url, file)
    assert await rows(empty_url) == before
    async with site_on(settings, empty_url, clock) as site, site.client(tokens[1]) as client:
        await goes_on(Learner(client), session, answered)
    await bring_back(empty_url, file, replace=True)  # also over runs, which are kept from all else
    assert await rows(empty_url) == before
