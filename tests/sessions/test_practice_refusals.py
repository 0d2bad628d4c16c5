"""What opening a run's workspace, and checking in it, is refused for; while no coordinator answers."""

import asyncio
from typing import Any

import pytest

from codehub import settings as config
from codehub.db import Database
from codehub.errors import SettingsError
from codehub.sessions.practice import workspace_name
from codehub.settings import Settings
from codehub.wiring.api import open_services
from tests.sessions.learning import Learner
from tests.sessions.practice_lab import PRACTICE, practice
from tests.virtual_time import ManualClock
from tests.web.server import Site

RUNS = "UPDATE workspaces SET observed_status = 'RUNNING', phase_changed_at = now() WHERE id = $1"
BLUEPRINT = practice("true", template="terminal")


@pytest.fixture
def settings(settings: Settings) -> Settings:
    """A request does not wait long here: there is no coordinator."""
    environment = {**config.to_environ(settings), "CODEHUB_PRACTICE_WAIT_SECONDS": "1"}
    return config.load({**environment, "CODEHUB_MAX_RUNNING_PER_USER": "2", "CODEHUB_MAX_WORKSPACES_PER_USER": "3"})


async def open_(mina: Learner, run: Any) -> tuple[int, Any]:
    return await mina.ask("POST", f"/runs/{run['id']}/workspace", {"fence": run["fence"]})


async def test_without_a_place_it_is_refused_as_by_the_workspaces_api(mina: Learner) -> None:
    run = await mina.started(await mina.session(BLUEPRINT))
    others = [await mina.ask("POST", "/workspaces", {"name": f"{n}", "template": "terminal"}) for n in range(2)]
    ordinary = await mina.ask("POST", "/workspaces", {"name": "one more", "template": "terminal"})
    status, refused = await open_(mina, run)
    assert (status, refused["code"], refused["limit"]) == (429, "RUNNING_LIMIT", 2)
    assert (refused["title"], refused["running"]) == (ordinary[1]["title"], ordinary[1]["running"])
    assert {one["id"] for one in refused["running"]} == {made["id"] for _, made in others}
    assert len((await mina.get("/workspaces"))["items"]) == 2


async def test_a_learner_makes_no_more_workspaces_by_plans_than_otherwise(mina: Learner) -> None:
    for n in range(3):
        asleep = {"name": f"{n}", "template": "terminal", "desired_state": "STANDBY"}
        assert (await mina.ask("POST", "/workspaces", asleep))[0] == 201
    run = await mina.started(await mina.session(BLUEPRINT))
    assert (await open_(mina, run))[1]["code"] == "WORKSPACE_LIMIT"


async def test_while_no_coordinator_answers_one_is_told_to_ask_again_and_nothing_is_held(
    mina: Learner, database: Database, site: Site
) -> None:
    run = await mina.started(await mina.session(BLUEPRINT))
    status, opened = await open_(mina, run)
    assert (status, opened["files"]) == (200, None)
    async with database.connection() as c:
        await c.execute(RUNS, opened["workspace_id"])
    waiting = asyncio.create_task(
        mina.request("POST", f"/runs/{run['id']}/steps/{PRACTICE}/complete", {"fence": 1, "state": {}})
    )
    async with database.connection() as c:
        while not await c.fetchval("SELECT count(*) FROM practice_tasks"):
            await asyncio.sleep(0.01)
        held = await c.fetch(
            "SELECT state, query FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid() "
            "AND state LIKE 'idle in transaction%'"  # one that is active asks just now whether the task is done
        )
        assert held == []
    answer = await waiting
    assert (answer.status, answer.headers["Retry-After"]) == (503, "5")
    assert "place in the line is kept" in (await answer.json())["detail"]
    async with database.connection() as c:
        before = await c.fetchval("SELECT id FROM practice_tasks")
        await mina.complete(run, PRACTICE)
        assert await c.fetchval("SELECT array_agg(id) FROM practice_tasks") == [before]
    assert (await mina.get(f"/runs/{run['id']}"))["step_index"] == 0


async def test_what_ended_after_a_request_was_told_to_ask_again_is_its_result(
    mina: Learner, database: Database, clock: ManualClock
) -> None:
    """Else checks that take longer than a request waits would begin anew each time, for ever."""
    run = await mina.started(await mina.session(BLUEPRINT))
    opened = (await open_(mina, run))[1]
    async with database.connection() as c:
        await c.execute(RUNS, opened["workspace_id"])
        assert (await mina.complete(run, PRACTICE))[0] == 503
        failed = {"id": "c0", "exit_code": 1, "output": "no", "timed_out": False, "left_out": 0}
        ended = "UPDATE practice_tasks SET status = 'DONE', ended_at = $1, result = $2"
        await c.execute(ended, clock.now(), {"outcome": "done", "checks": [failed]})
        status, refused = await mina.complete(run, PRACTICE)
        assert (status, refused["checks"][0]["output"]) == (422, "no")
        assert (await mina.complete(run, PRACTICE))[0] == 503  # once: the next one runs them again
        assert await c.fetchval("SELECT count(*) FROM practice_tasks") == 2


@pytest.mark.parametrize(
    ("title", "template", "name"),
    [
        ("Python for beginners", None, "Python for beginners"),
        ("파이썬 첫걸음", "code-server", "파이썬 첫걸음 (code-server)"),
        ("x" * 200, "tiny", "x" * 93 + " (tiny)"),
        ("turned \u202earound", None, "Practice"),
    ],
)
def test_a_workspace_is_called_like_its_plan(title: str, template: str | None, name: str) -> None:
    assert workspace_name(title, template) == name


async def test_a_default_template_that_is_not_there_stops_the_start(settings: Settings, clock: ManualClock) -> None:
    wrong = config.load({**config.to_environ(settings), "CODEHUB_PRACTICE_TEMPLATE": "jupiterlab"})
    with pytest.raises(SettingsError, match=r"CODEHUB_PRACTICE_TEMPLATE=jupiterlab: .*there are: .*jupyterlab"):
        async with open_services(wrong, clock):
            pass
