"""How far a class is: one state for each learner and session, by one statement, and as a sheet."""

import csv
import io
import re
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from codehub.assignments import rules
from codehub.assignments.model import CellState
from codehub.auth.profiles import Profile
from codehub.command import operator
from tests.assignments.given import a_taught_class, assigned, fill, statements, the_plan
from tests.classes.conftest import Enrol
from tests.classes.test_classes import a_class
from tests.courses.writing import course, made, session
from tests.sessions.learning import CHECK, RIGHT, Learner
from tests.virtual_time import ManualClock
from tests.web.server import Site

WRONG = {"answers": {"loop-count": "a"}}
WRITTEN = course(session("one"), {**session("two", 2), "blueprint": CHECK}, session("three", 3))


async def cells_of(teacher: Learner, class_id: str, name: str) -> dict[str, Any]:
    found = await teacher.get(f"/classes/{class_id}/progress")
    (learner,) = [one for one in found["learners"] if one["name"] == name]
    return {cell["key"]: cell for cell in learner["cells"]}


async def test_each_cell_has_one_state_with_step_and_tries(kim: Learner, mina: Learner) -> None:
    found, _ = await a_taught_class(kim, "mina", written=WRITTEN)
    one, two, three = (s["id"] for s in (await the_plan(mina))["sessions"])
    before = await cells_of(kim, found["id"], "mina")
    assert [cell["state"] for cell in before.values()] == ["NOT_STARTED"] * 3
    await mina.finish(await mina.started(one), [{}, {}])
    run = await mina.started(two)
    cell = (await cells_of(kim, found["id"], "mina"))["two"]
    assert (cell["state"], cell["step_index"], cell["step"], cell["steps"]) == ("IN_PROGRESS", 0, "LEARN", 3)
    assert (await mina.complete(run, 0))[0] == 200
    for _ in range(2):
        assert (await mina.complete(run, 1, WRONG))[0] == 422
    cell = (await cells_of(kim, found["id"], "mina"))["two"]
    assert (cell["state"], cell["step"], cell["tries"], cell["check_tries"]) == ("FAILING", "CHECK", 2, 2)
    assert cell["last_activity_at"]
    (tried,) = (await kim.get(f"/runs/{run['id']}/tries"))["items"]
    assert (tried["tries"], tried["wrong"], tried["answers"]) == (2, ["loop-count"], {"loop-count": "a"})
    assert (await mina.complete(run, 1, RIGHT))[0] == 200
    cell = (await cells_of(kim, found["id"], "mina"))["two"]
    assert (cell["state"], cell["tries"], cell["check_tries"]) == ("IN_PROGRESS", 0, 2)
    await mina.ask("POST", f"/sessions/{three}/skip")
    progress = await kim.get(f"/classes/{found['id']}/progress")
    (learner,) = progress["learners"]
    assert (learner["completed"], learner["total"]) == (1, 3)
    assert [cell["state"] for cell in learner["cells"]] == ["COMPLETED", "IN_PROGRESS", "SKIPPED"]
    assert [column["title"] for column in progress["sessions"]] == ["One", "Two", "Three"]


async def test_a_run_that_was_given_up_is_not_started_again_yet(kim: Learner, mina: Learner) -> None:
    found, _ = await a_taught_class(kim, "mina", written=WRITTEN)
    run = await mina.started((await the_plan(mina))["sessions"][1]["id"])
    await mina.complete(run, 0)
    await mina.complete(run, 1, WRONG)
    assert (await mina.abandon(run))[0] == 200
    cell = (await cells_of(kim, found["id"], "mina"))["two"]
    assert (cell["state"], cell["step_index"], cell["tries"]) == ("NOT_STARTED", None, 0)


async def test_a_cell_is_about_the_run_that_began_last_whatever_the_clock_says(
    kim: Learner, mina: Learner, site: Site, clock: ManualClock
) -> None:
    """It stands still, and is set back; and there were many."""
    found, _ = await a_taught_class(kim, "mina", written=WRITTEN)
    session_id = (await the_plan(mina))["sessions"][1]["id"]
    for n in range(60):
        if n == 50:
            clock.set_back(3600)
        run = await mina.started(session_id)
        if n > 45:
            assert (await cells_of(kim, found["id"], "mina"))["two"]["run_id"] == run["id"]
            await mina.complete(run, 0)
            await mina.complete(run, 1, WRONG)
        await mina.abandon(run)
        if n > 45:
            assert (await cells_of(kim, found["id"], "mina"))["two"]["run_id"] == run["id"]
    await mina.started(session_id)
    async with site.browser("kim") as teacher, teacher.get(f"/classes/{found['id']}/board/{session_id}") as shown:
        assert "Nothing failed here so far" in await shown.text()


async def test_its_teachers_and_admins_see_it_and_no_others(
    kim: Learner, lee: Learner, mina: Learner, admin: Learner
) -> None:
    found, _ = await a_taught_class(kim, "mina")
    for path in ("progress", "progress.csv", "hands"):
        assert (await mina.request("GET", f"/classes/{found['id']}/{path}")).status == 403
        assert (await lee.request("GET", f"/classes/{found['id']}/{path}")).status == 404
        assert (await admin.request("GET", f"/classes/{found['id']}/{path}")).status == 200
    assert (await kim.ask("GET", f"/classes/{found['id']}/progress?assignment=nothing"))[0] == 404


async def test_an_empty_class_and_one_without_courses_can_be_looked_at(kim: Learner, mina: Learner) -> None:
    found = await a_class(kim)
    assert await kim.get(f"/classes/{found['id']}/progress") == {"assignments": [], "sessions": [], "learners": []}
    other = await a_class(kim, "mina")
    (learner,) = (await kim.get(f"/classes/{other['id']}/progress"))["learners"]
    assert (learner["name"], learner["total"], learner["cells"]) == ("mina", 0, [])


async def test_who_left_the_class_and_what_has_ended_are_not_shown(kim: Learner, mina: Learner, person: Enrol) -> None:
    await person("jun")
    found, _ = await a_taught_class(kim, "mina", "jun")
    await kim.request("DELETE", f"/classes/{found['id']}/members/jun")
    progress = await kim.get(f"/classes/{found['id']}/progress")
    assert [one["name"] for one in progress["learners"]] == ["mina"]
    await kim.request("DELETE", f"/classes/{found['id']}/assignments/{progress['assignments'][0]['id']}")
    progress = await kim.get(f"/classes/{found['id']}/progress")
    assert (progress["assignments"], progress["sessions"]) == ([], [])
    assert progress["learners"][0]["cells"] == []


async def test_two_hundred_learners_with_twelve_sessions_are_read_by_one_statement(
    kim: Learner, site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = await a_class(kim)
    await fill(site.services, found["id"], 200)
    written = await made(kim, course(*(session(f"s{n}", n) for n in range(1, 13))))
    await assigned(kim, found, written)
    with statements(site.services, monkeypatch) as sent:
        progress = await kim.get(f"/classes/{found['id']}/progress")
    assert sum(len(one["cells"]) for one in progress["learners"]) == 2400
    assert len([one for one in sent if "session_runs" in one]) == 1
    assert len(sent) < 10, sent


async def test_the_sheet_opens_in_excel_with_korean_and_computes_nothing(
    kim: Learner, mina: Learner, site: Site
) -> None:
    found, _ = await a_taught_class(kim, "mina", written=course(session("one", title="=HYPERLINK(1)"), title="파이썬"))
    async with site.services.database.connection() as c:
        await c.execute("UPDATE users SET display_name = '@SUM(A1) 김미나' WHERE name = 'mina'")
    for path in ("progress.csv", "progress?format=csv"):
        async with kim.client.get(f"/api/v1/classes/{found['id']}/{path}", headers={"Accept-Language": "ko"}) as answer:
            raw = await answer.read()
            assert answer.content_type == "text/csv"
            assert "attachment" in answer.headers["content-disposition"]
        assert raw.startswith(b"\xef\xbb\xbf")
        head, line = csv.reader(io.StringIO(raw.decode("utf-8-sig")))
        assert head[5] == "'=HYPERLINK(1)"
        assert line == ["mina", "'@SUM(A1) 김미나", "0", "1", "", "시작 전"]


async def test_the_boards_sheet_speaks_its_readers_language_and_tells_their_time(
    kim: Learner, mina: Learner, lee: Learner, site: Site
) -> None:
    found, _ = await a_taught_class(kim, "mina", written=course(session("one")))
    run = await mina.started((await the_plan(mina))["sessions"][0]["id"])
    await site.services.profiles.change(operator(), "kim", Profile(language="ko", time_zone="Asia/Seoul"))
    async with site.browser("kim") as browser:
        async with browser.get(f"/classes/{found['id']}/board") as answer:
            (link,) = re.findall(r'href="([^"]*csv[^"]*)"', await answer.text())
        async with browser.get(link) as answer:
            head, line = csv.reader(io.StringIO((await answer.read()).decode("utf-8-sig")))
    assert "이름" in head[1]
    there = datetime.fromisoformat(run["last_activity_at"]).astimezone(ZoneInfo("Asia/Seoul"))
    assert line[4] == there.strftime("%Y-%m-%d %H:%M:%S")
    for name, status in (("lee", 404), ("mina", 403)):
        async with site.browser(name) as browser, browser.get(link) as answer:
            assert answer.status == status


@pytest.mark.parametrize(
    ("status", "failed", "expected"),
    [
        ("SCHEDULED", False, CellState.NOT_STARTED),
        ("IN_PROGRESS", False, CellState.IN_PROGRESS),
        ("IN_PROGRESS", True, CellState.FAILING),
        ("COMPLETED", True, CellState.COMPLETED),
        ("SKIPPED", False, CellState.SKIPPED),
        ("CANCELED", False, CellState.CANCELED),
    ],
)
def test_a_state_comes_from_the_session_and_its_tries(status: str, failed: bool, expected: CellState) -> None:
    assert rules.state(status, failed=failed) is expected
