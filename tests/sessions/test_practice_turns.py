"""People take turns with their checks: who asks for much delays others by one turn at most. Nothing outdated runs."""

import asyncio
from typing import Any

import pytest

from codehub import settings as config
from codehub.db import Database
from codehub.sessions.errors import PracticeBusyError
from codehub.sessions.practice_store import MOST_WAITING
from codehub.settings import Settings
from tests.sessions.learning import Learner
from tests.sessions.practice_house import House, open_house
from tests.sessions.practice_lab import PRACTICE, practice

HELD = "until [ -e go ]; do sleep 0.05; done; rm go"
RUNS = "UPDATE workspaces SET observed_status = 'RUNNING', phase_changed_at = now() WHERE id = $1"
ENDED = "status = 'ABANDONED', ended_at = now(), end_reason = 'session_canceled'"
END = """
WITH ended AS (UPDATE practice_tasks SET status = 'DONE', ended_at = now(), result = '{"outcome": "not_running"}'
               WHERE status = 'WAITING')
SELECT pg_notify('codehub_practice_done', '')
"""
TASKS = "SELECT status, fence, result FROM practice_tasks ORDER BY fence"


@pytest.fixture
def settings(settings: Settings) -> Settings:
    """No coordinator answers here: a request waits until it is told something else."""
    return config.load({**config.to_environ(settings), "CODEHUB_PRACTICE_WAIT_SECONDS": "60"})


async def status(house: House, *tasks: str) -> list[str]:
    return [(await house.row(task))["status"] for task in tasks]


async def many(house: House, owner: str, workspace: str) -> list[str]:
    await house.workspace(workspace, owner)
    for n in range(4):
        await house.run(f"{owner}{n}", owner, workspace)
    return [await house.check(HELD, seconds=60, of=f"{owner}{n}", workspace=workspace) for n in range(4)]


async def test_a_first_request_does_not_wait_for_the_second_of_others(database: Database) -> None:
    async with open_house(database, checks_at_once=2) as house:
        alice, bob = await many(house, "alice", "w1"), await many(house, "bob", "w2")
        await house.loop.tick()
        assert await status(house, alice[0], bob[0]) == ["RUNNING", "RUNNING"]
        await house.workspace("w3", "carol")
        carol = await house.check(HELD, seconds=60, of="w3")  # which is there to be seen
        await house.sh("touch go", of="w1")
        await asyncio.wait(house.working(), return_when=asyncio.FIRST_COMPLETED)
        await house.loop.tick()
        assert await status(house, alice[0], carol, alice[1], bob[1]) == ["DONE", "RUNNING", "WAITING", "WAITING"]


async def test_those_who_wait_are_served_in_turns(database: Database) -> None:
    async with open_house(database, checks_at_once=1) as house:
        for workspace, owner in (("w1", "alice"), ("w2", "bob")):
            await house.workspace(workspace, owner)
            for n in range(3):
                await house.run(f"{owner}{n}", owner, workspace)
        alice = [await house.check("true", of=f"alice{n}", workspace="w1") for n in range(3)]
        bob = [await house.check("true", of=f"bob{n}", workspace="w2") for n in range(3)]
        await house.settle()
        begun = {task: (await house.row(task))["started_at"] for task in (*alice, *bob)}
    assert sorted(begun, key=lambda task: begun[task]) == [alice[0], bob[0], alice[1], bob[1], alice[2], bob[2]]


async def test_a_run_that_was_taken_over_has_one_task_waiting_and_a_person_few(database: Database) -> None:
    async with open_house(database) as house:
        await house.workspace()
        first, second = await house.check("touch first"), await house.check("touch second", fence=2)
        assert await status(house, first, second) == ["DONE", "WAITING"]
        assert await house.result(first) == {"outcome": "superseded"}
        for n in range(MOST_WAITING - 1):
            await house.run(f"more{n}", "alice", "w1")
            await house.check("true", of=f"more{n}", workspace="w1")
        await house.run("last", "alice", "w1")
        with pytest.raises(PracticeBusyError, match="wait for their turn already"):
            await house.check("true", of="last", workspace="w1")
        assert await house.check("touch second", fence=2) == second
        await house.check("touch third", fence=3)  # in its place


@pytest.mark.parametrize("change", ["fence = 2", ENDED])
async def test_what_is_outdated_when_its_turn_comes_is_not_run(database: Database, change: str) -> None:
    async with open_house(database) as house:
        await house.workspace()
        checks, files = await house.check("touch checked"), await house.put({"put": ""})
        async with database.connection() as c:
            await c.execute(f"UPDATE session_runs SET {change}")
        found = await house.loop.tick()
        assert (found.stats["begun"], found.stats["waiting"]) == (0, 0)
        assert [await house.result(task) for task in (checks, files)] == [{"outcome": "superseded"}] * 2
        assert await house.sh("ls") == ""


async def test_a_page_whose_run_was_taken_over_while_its_checks_waited_is_told(
    mina: Learner, database: Database
) -> None:
    session = await mina.session(practice("true", template="terminal"))
    run = await mina.started(session)
    _, opened = await mina.ask("POST", f"/runs/{run['id']}/workspace", {"fence": 1})
    async with database.connection() as c:
        await c.execute(RUNS, opened["workspace_id"])
        earlier = asyncio.create_task(mina.complete(run, PRACTICE))
        await _until_asked(c, 1)
        again = await mina.started(session)
        assert again["fence"] == 2
        later = asyncio.create_task(mina.complete(again, PRACTICE))
        status_, refused = await earlier
        assert (status_, refused["code"]) == (409, "RUN_TAKEN_OVER")
        assert [(row["status"], row["fence"]) for row in await c.fetch(TASKS)] == [("DONE", 1), ("WAITING", 2)]
        await c.execute(END)
        assert (await later)[1]["code"] == "WORKSPACE_NOT_RUNNING"


async def _until_asked(c: Any, tasks: int) -> None:
    while await c.fetchval("SELECT count(*) FROM practice_tasks") != tasks:
        await asyncio.sleep(0.01)
