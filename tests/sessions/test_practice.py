"""PRACTICE on a whole platform: real workspaces, opened, filled and checked through the API like by a page."""

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from tests.platform import Platform
from tests.sessions.practice_lab import PRACTICE, Pupil, practice, pupil
from tests.workspaces.test_lifecycle import lab, until

SECRET = "the-answer-is-in-this-command"
# Waits in the workspace until the test lets it go on.
HELD = "echo begun >> begun; until [ -e go ]; do sleep 0.05; done"


@pytest.fixture(scope="module")
def platform() -> Iterator[Platform]:
    with lab() as started:
        yield started


@pytest.fixture
async def mina(platform: Platform) -> AsyncIterator[Pupil]:
    async with pupil(platform) as made:
        yield made


async def begun(mina: Pupil, workspace: Any, times: int = 1) -> None:
    async with asyncio.timeout(30):
        while (await mina.sh(workspace, "cat begun 2>/dev/null || true")).count("begun") < times:
            await asyncio.sleep(0.05)


async def test_a_practice_is_solved_in_a_workspace_of_its_plan(mina: Pupil) -> None:
    task = practice("python3 main.py | grep -x 42", files={"main.py": "print(41)\n", "notes/a.md": "# Notes\n"})
    run, w = await mina.begun(task, title="Python for beginners")
    assert (w["template"], w["url"]) == ("tiny", f"/w/{w['workspace_id']}/")
    assert [(file["path"], file["put"], file["as"]) for file in w["files"]] == [
        ("main.py", "written", "main.py"),
        ("notes/a.md", "written", "notes/a.md"),
    ]
    status, refused = await mina.complete(run, PRACTICE)
    assert (status, refused["code"]) == (422, "PRACTICE_FAILED")
    assert refused["checks"] == [
        {
            "id": "c0",
            "title": "Check 0",
            "passed": False,
            "output": "",
            "hint": "Hint 0",
            "timed_out": False,
            "truncated": False,
            "left_out": 0,
        }
    ]
    await mina.sh(w, "echo 'print(6 * 7)' > main.py")
    finished = await mina.finish(run, [{}, {}])
    assert (finished["status"], finished["workspace_id"]) == ("COMPLETED", w["workspace_id"])
    shown = await mina.get(f"/workspaces/{w['workspace_id']}")
    assert (shown["name"], shown["owner"], shown["desired_by"]) == ("Python for beginners", mina.name, "session")
    history = await mina.get(f"/workspaces/{w['workspace_id']}/history")
    assert history["items"][-1]["actor"] == "sessions"


async def test_what_a_check_printed_is_shown_and_what_it_is_stays_hidden(mina: Pupil, platform: Platform) -> None:
    task = practice(
        f": {SECRET}; echo 안녕; echo oops >&2; exit 1", f": {SECRET}; echo fine", f": {SECRET}; sleep 60", seconds=1
    )
    run, _ = await mina.begun(task)
    answer = await mina.request("POST", f"/runs/{run['id']}/steps/0/complete", {"fence": 1, "state": {}})
    said = await answer.text()
    failed, passed, late = (await answer.json())["checks"]
    assert (failed["passed"], failed["output"], failed["hint"]) == (False, "안녕\noops\n", "Hint 0")
    assert (passed["passed"], passed["output"], passed["hint"]) == (True, "fine\n", None)
    assert (late["passed"], late["timed_out"]) == (False, True)
    session = run["session_id"]
    for path in (f"/runs/{run['id']}", f"/sessions/{session}", f"/sessions/{session}/runs", "/plans"):
        said += await (await mina.request("GET", path)).text()
    async with platform.client() as admin:
        for path in ("/api/v1/admin/audit", "/metrics", "/api/v1/admin/loops"):
            async with admin.get(path) as shown:
                said += await shown.text()
    said += "".join(path.read_text(errors="replace") for path in platform.data_dir.rglob("*.log"))
    said += platform.errors() + platform.output()
    assert SECRET not in said
    assert "codehub_practice_tasks_total" in said


async def test_later_sessions_of_a_plan_have_the_same_workspace_and_a_learners_files_stay(mina: Pupil) -> None:
    plan = await mina.plan(
        practice("true", files={"main.py": "one"}),
        practice("true", files={"main.py": "two"}),
        practice("true", files={"main.py": "three", "more.py": "new"}),
    )
    runs = [await mina.started(session["id"]) for session in plan["sessions"]]
    first = await mina.opened(runs[0])
    again = await mina.opened(runs[0])
    second = await mina.opened(runs[1])
    assert [file["put"] for w in (again, second) for file in w["files"]] == ["unchanged", "written"]
    await mina.sh(first, "echo my own > main.py")
    third = await mina.opened(runs[2])
    assert {w["workspace_id"] for w in (first, again, second, third)} == {first["workspace_id"]}
    assert [(file["put"], file["as"]) for file in third["files"]] == [("beside", "main.new.py"), ("written", "more.py")]
    assert await mina.sh(first, "cat main.py main.new.py") == "my own\nthree"


async def test_many_opens_at_once_make_one_workspace(mina: Pupil) -> None:
    plan = await mina.plan(*[practice("true") for _ in range(3)])
    runs = [await mina.started(session["id"]) for session in plan["sessions"]]
    opened = await asyncio.gather(*(mina.open(run) for run in runs * 4))
    assert {status for status, _ in opened} == {200}, opened
    assert len({found["workspace_id"] for _, found in opened}) == 1
    assert len((await mina.get("/workspaces"))["items"]) == 1
    await until(mina.client, opened[0][1]["workspace_id"], "RUNNING")


async def test_checks_want_a_workspace_that_runs_and_opening_wakes_it(mina: Pupil) -> None:
    task = practice("test -e here")
    run = await mina.started(await mina.session(task))
    assert (await mina.complete(run, PRACTICE))[1]["code"] == "WORKSPACE_NOT_RUNNING"
    w = await mina.opened(run)
    await mina.sh(w, "touch here")
    await mina.ask("PATCH", f"/workspaces/{w['workspace_id']}", {"desired_state": "STANDBY"})
    await until(mina.client, w["workspace_id"], "STANDBY")
    status, refused = await mina.complete(run, PRACTICE)
    assert (status, refused["code"]) == (409, "WORKSPACE_NOT_RUNNING")
    assert (await mina.opened(run))["workspace_id"] == w["workspace_id"]
    assert (await mina.complete(run, PRACTICE))[0] == 200


async def test_a_workspace_in_the_trash_is_taken_back_and_one_that_is_gone_made_anew(mina: Pupil) -> None:
    run, w = await mina.begun(practice("test -e kept"))
    id_ = w["workspace_id"]
    await mina.sh(w, "touch kept")
    assert (await mina.ask("DELETE", f"/workspaces/{id_}"))[0] == 202
    await until(mina.client, id_, "DELETED")
    back = await mina.opened(run)
    assert back["workspace_id"] == id_
    assert (await mina.complete(run, PRACTICE))[0] == 200
    assert (await mina.ask("DELETE", f"/workspaces/{id_}?purge=true"))[0] == 202
    await until(mina.client, id_, "DELETED")
    anew = await mina.opened(run)
    assert anew["workspace_id"] != id_
    assert (await mina.get(f"/runs/{run['id']}"))["workspace_id"] == anew["workspace_id"]


async def test_only_the_learner_opens_and_checks(mina: Pupil, platform: Platform) -> None:
    run = await mina.started(await mina.session(practice("true")))
    async with pupil(platform, "teacher") as teacher, platform.client() as admins:
        admin = Pupil(admins)
        for other in (teacher, admin):
            for status, refused in (await other.open(run), await other.complete(run, PRACTICE)):
                assert (status, refused["code"]) in {(404, "RUN_NOT_FOUND"), (403, "FORBIDDEN")}, refused
        assert (await teacher.get("/workspaces"))["items"] == []
    assert (await mina.open({**run, "id": "nothing"}))[1]["code"] == "RUN_NOT_FOUND"
    no_practice = await mina.started(await mina.session())
    assert (await mina.open(no_practice))[0] == 400


async def test_a_run_taken_over_during_its_checks_saves_nothing(mina: Pupil) -> None:
    run, w = await mina.begun(practice(HELD, seconds=60))
    waiting = asyncio.create_task(mina.complete(run, PRACTICE))
    await begun(mina, w)
    taken = await mina.started(run["session_id"])
    assert taken["fence"] == run["fence"] + 1
    await mina.sh(w, "touch go")
    status, refused = await waiting
    assert (status, refused["code"]) == (409, "RUN_TAKEN_OVER")
    assert (await mina.open(run))[1]["code"] == "RUN_TAKEN_OVER"
    now = await mina.get(f"/runs/{run['id']}")
    assert (now["step_index"], now["snapshot"]) == (0, None)
    assert (await mina.finish(taken, [{}, {}]))["status"] == "COMPLETED"


async def test_a_second_request_joins_the_checks_that_run(mina: Pupil) -> None:
    run, w = await mina.begun(practice(HELD, seconds=60))
    first = asyncio.create_task(mina.complete(run, PRACTICE))
    await begun(mina, w)
    second = asyncio.create_task(mina.complete(run, PRACTICE))
    await mina.sh(w, "touch go")
    answers = await asyncio.gather(first, second)
    assert [status for status, _ in answers] == [200, 200]
    assert await mina.sh(w, "cat begun") == "begun\n"


async def test_a_workspace_that_stops_during_its_checks_is_said_so(mina: Pupil) -> None:
    run, w = await mina.begun(practice(HELD, seconds=60))
    waiting = asyncio.create_task(mina.complete(run, PRACTICE))
    await begun(mina, w)
    await mina.ask("PATCH", f"/workspaces/{w['workspace_id']}", {"desired_state": "STANDBY"})
    status, refused = await waiting
    assert (status, refused["code"]) == (409, "WORKSPACE_NOT_RUNNING")
    await until(mina.client, w["workspace_id"], "STANDBY")


async def test_checks_go_on_when_the_coordinator_is_killed_in_the_middle(mina: Pupil, platform: Platform) -> None:
    run, w = await mina.begun(practice(HELD, "echo again", seconds=60))
    waiting = asyncio.create_task(mina.complete(run, PRACTICE))
    await begun(mina, w)
    os.kill(platform.children()["coordinator"], signal.SIGKILL)
    await begun(mina, w, times=2)  # by the next leader
    await mina.sh(w, "touch go")
    assert (await waiting)[0] == 200


async def test_hostile_checks_are_ended_and_another_learner_does_not_notice(mina: Pupil, platform: Platform) -> None:
    """Each learner's program has its own step's time and its workspace's share, and nothing after that."""
    hostile = (
        "setsid sh -c 'sleep 1000' >/dev/null 2>&1 & disown 2>/dev/null; kill -9 $PPID; kill -9 -1",
        "trap '' TERM INT HUP; while :; do sleep 1; done",
        "yes",
        "while :; do (setsid sleep 1000 &) ; done",
    )
    run, w = await mina.begun(practice(*hostile, seconds=2))
    attack = asyncio.create_task(mina.complete(run, PRACTICE))
    async with pupil(platform) as jun:
        theirs, _ = await jun.begun(practice("echo fine"))
        assert (await jun.complete(theirs, PRACTICE))[0] == 200
    status, refused = await attack
    assert (status, refused["code"]) == (422, "PRACTICE_FAILED")
    assert all(len(check["output"].encode()) <= 16384 for check in refused["checks"])
    assert "sleep" not in await mina.sh(w, "cat /proc/[0-9]*/comm | sort -u")
    assert (await mina.get(f"/workspaces/{w['workspace_id']}"))["phase"] == "RUNNING"
