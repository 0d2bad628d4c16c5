"""Courses by the API: who may write, read and take them up, and what comes of it."""

import asyncio
import json
from typing import Any

import pytest

from codehub.events import outbox
from tests.courses.writing import course, made, session, shown, taken
from tests.sessions.learning import CHECK, Learner
from tests.web.server import Site


async def test_a_course_is_written_listed_and_read_without_its_answers(kim: Learner, mina: Learner) -> None:
    written = await made(kim, course(key="python", author="Kim", description="For *all*"))
    assert (written["version"], written["owner"], written["shipped"]) == (1, "kim", False)
    (listed,) = (await mina.get("/courses?language=en"))["items"]
    assert listed == {name: value for name, value in written.items() if name != "sessions"}
    outline = await mina.get(f"/courses/{written['id']}")
    assert outline == written
    assert [(s["key"], s["day"], s["steps"]) for s in outline["sessions"]] == [
        ("one", 1, ["LEARN", "COMPLETE"]),
        ("two", 3, ["LEARN", "COMPLETE"]),
        ("three", 8, ["LEARN", "CHECK", "COMPLETE"]),
    ]
    assert "answer" not in str(outline)
    assert (await mina.get("/courses?language=ko"))["items"] == []
    assert (await mina.get("/courses?owner=kim&key=python"))["items"] == [listed]


async def test_answers_go_to_the_author_and_admins_only(kim: Learner, mina: Learner, admin: Learner) -> None:
    written = await made(kim)
    path = f"/courses/{written['id']}/source"
    for who in (kim, admin):
        found = await who.get(path)
        assert found["sessions"][2]["blueprint"]["checkQuestions"][0]["answer"] == "b"
    status, problem = await mina.ask("GET", path)
    assert (status, problem["code"]) == (403, "FORBIDDEN")
    assert (await mina.ask("PUT", f"/courses/{written['id']}", course()))[0] == 403
    assert (await mina.ask("POST", "/courses", course()))[0] == 403
    assert (await mina.ask("GET", "/courses/nowhere"))[1]["code"] == "COURSE_NOT_FOUND"
    assert (await kim.ask("GET", f"{path}?version=7"))[0] == 404


async def test_what_an_author_wrote_can_be_sent_again_and_changes_nothing(kim: Learner) -> None:
    written = await made(kim, course(key="python", description="x"))
    found = await kim.get(f"/courses/{written['id']}/source")
    again = {name: value for name, value in found.items() if name not in {"id", "version"}}
    status, same = await kim.ask("PUT", f"/courses/{written['id']}", again)
    assert (status, same) == (200, written)


async def test_everything_that_is_wrong_is_said_by_its_place(kim: Learner) -> None:
    wrong = course(session("one"), session("one"), {**session("Two"), "day": 0})
    status, problem = await kim.ask("POST", "/courses", wrong)
    assert status == 400
    assert {e["field"] for e in problem["errors"]} == {"sessions.2.key", "sessions.2.day"}
    wrong = course(session("one"), session("one"))
    wrong["sessions"][0]["blueprint"] = {**CHECK, "checkQuestions": [], "practiceActivity": {"x": 1}}
    status, problem = await kim.ask("POST", "/courses", wrong)
    assert {e["field"] for e in problem["errors"]} == {
        "sessions.0.blueprint.checkQuestions",
        "sessions.0.blueprint.practiceActivity.instructions",
        "sessions.0.blueprint.practiceActivity.x",
        "sessions.1.key",
    }
    activity = {"template": "no-such", "instructions": "x"}
    unknown = {**session("a"), "blueprint": {**CHECK, "steps": ["PRACTICE", "COMPLETE"], "practiceActivity": activity}}
    status, problem = await kim.ask("POST", "/courses", course(unknown))
    assert (status, problem["errors"][0]["field"]) == (400, "sessions.0.blueprint.practiceActivity.template")
    assert "there are: " in problem["detail"]


async def test_a_key_names_one_course_of_an_owner_and_language(kim: Learner, admin: Learner) -> None:
    first = await made(kim, course(key="python"))
    status, problem = await kim.ask("POST", "/courses", course(key="python"))
    assert (status, problem["code"], problem["course_id"]) == (409, "COURSE_EXISTS", first["id"])
    korean = await made(kim, course(key="python", language="ko"))
    await made(admin, course(key="python"))
    status, problem = await kim.ask("PUT", f"/courses/{korean['id']}", course(key="python", language="en"))
    assert (status, problem["code"], problem["course_id"]) == (409, "COURSE_EXISTS", first["id"])


async def test_a_plan_of_it_has_dates_from_the_day_it_starts(kim: Learner, mina: Learner) -> None:
    written = await made(kim)
    plan = await taken(mina, written["id"], starts_on="2026-03-02")
    assert (plan["title"], plan["owner"], plan["course_id"], plan["course_version"]) == (
        "Python",
        "mina",
        written["id"],
        1,
    )
    assert shown(plan) == [
        ("one", "One", "2026-03-02", "SCHEDULED"),
        ("two", "Two", "2026-03-04", "SCHEDULED"),
        ("three", "Three", "2026-03-09", "SCHEDULED"),
    ]
    view = await mina.get(f"/sessions/{plan['sessions'][2]['id']}/blueprint")
    assert "answer" not in str(view)


async def test_without_a_day_it_starts_today(site: Site, kim: Learner, mina: Learner) -> None:
    written = await made(kim)
    status, plan = await mina.ask("POST", f"/courses/{written['id']}/plans")
    assert status == 201
    assert plan["starts_on"] == site.services.clock.now().date().isoformat()


@pytest.mark.parametrize("day", ["1999-12-31", "2300-01-01", "2026-02-30", "", 5, "2026-03-02T00:00:00Z"])
async def test_a_day_that_is_none_is_refused(kim: Learner, day: object) -> None:
    written = await made(kim)
    status, problem = await kim.ask("POST", f"/courses/{written['id']}/plans", {"starts_on": day})
    assert (status, problem["errors"][0]["field"]) == (400, "starts_on")


async def test_a_double_click_makes_one_plan(kim: Learner, mina: Learner) -> None:
    written = await made(kim)
    path = f"/courses/{written['id']}/plans"
    answers = await asyncio.gather(*(mina.ask("POST", path, {"starts_on": "2026-03-02"}) for _ in range(8)))
    assert sorted(status for status, _ in answers) == [200] * 7 + [201]
    assert len({plan["id"] for _, plan in answers}) == 1
    assert len((await mina.get("/plans"))["items"]) == 1


async def test_what_is_finished_can_be_taken_up_again(kim: Learner, mina: Learner) -> None:
    written = await made(kim, course(session("one")))
    first = await taken(mina, written["id"])
    assert (await mina.ask("POST", f"/sessions/{first['sessions'][0]['id']}/skip"))[0] == 200
    second = await taken(mina, written["id"])
    assert second["id"] != first["id"]


async def test_an_admin_takes_it_up_for_another_and_others_do_not(kim: Learner, mina: Learner, admin: Learner) -> None:
    written = await made(kim)
    path = f"/courses/{written['id']}/plans"
    assert (await kim.ask("POST", path, {"owner": "mina"}))[0] == 403
    status, plan = await admin.ask("POST", path, {"owner": "mina"})
    assert (status, plan["owner"]) == (201, "mina")
    assert (await kim.ask("POST", path, {"owner": "mina"}))[0] == 403
    assert (await mina.ask("POST", path, {"owner": "mina"}))[0] == 200
    assert (await admin.ask("POST", path, {"owner": "nobody-here"}))[0] == 404


@pytest.mark.parametrize("owner", ["", "\x00", "mi\x00na", "\ud800"])
async def test_an_owner_who_cannot_be_is_refused(kim: Learner, admin: Learner, owner: str) -> None:
    written = await made(kim)
    for path, body in (("/courses", course()), (f"/courses/{written['id']}/plans", {})):
        status, problem = await admin.ask("POST", path, {**body, "owner": owner})
        assert (status, problem["errors"][0]["field"]) == (400, "owner"), path


async def test_a_course_is_a_line_of_the_audit_log_and_an_event(site: Site, kim: Learner, admin: Learner) -> None:
    written = await made(kim)
    await kim.ask("PUT", f"/courses/{written['id']}", course(session("one")))
    entries = (await admin.get(f"/admin/audit?subject={written['id']}"))["items"]
    assert [(e["code"], e["actor"], e["data"]) for e in entries] == [
        ("course.change", "kim", {"title": "Python", "version": 2}),
        ("course.create", "kim", {"title": "Python"}),
    ]
    assert entries[1]["sentence"] == f"kim made the course Python ({written['id']})"
    async with site.services.database.connection() as c:
        events = (await outbox.after(c, 0)).events
    told = [(e.audience.partition(":")[0], e.data) for e in events if e.kind == "course_updated"]
    assert [(audience, json.loads(data)["version"]) for audience, data in told] == [
        ("user", 1),
        ("admins", 1),
        ("user", 2),
        ("admins", 2),
    ]


async def test_one_person_has_so_many_courses(site: Site, kim: Learner) -> None:
    async with site.services.database.connection() as c:
        owner = await c.fetchval("SELECT id FROM users WHERE name = 'kim'")
        await c.execute(
            "INSERT INTO courses (id, owner_id, language, version, created_at, changed_at)"
            " SELECT 'c' || n, $1, 'en', 1, now(), now() FROM generate_series(1, 200) n",
            owner,
        )
    status, problem = await kim.ask("POST", "/courses", course())
    assert (status, problem["code"], problem["courses"]) == (429, "COURSE_LIMIT", 200)


async def test_lists_have_pages(kim: Learner) -> None:
    ids = [(await made(kim, course(title=f"C{n}")))["id"] for n in range(3)]
    found: list[Any] = []
    cursor = ""
    while True:
        page = await kim.get(f"/courses?limit=1{cursor}")
        found += page["items"]
        if page["next_cursor"] is None:
            break
        cursor = f"&cursor={page['next_cursor']}"
    assert sorted(c["id"] for c in found) == sorted(ids)


async def test_a_large_course_can_be_sent(kim: Learner) -> None:
    sessions = [session(f"s{n}", content="x" * 40_000) for n in range(15)]
    written = await made(kim, course(*sessions))
    source = await kim.get(f"/courses/{written['id']}/source")
    assert [s["blueprint"]["learningContent"] for s in source["sessions"]] == [["x" * 40_000]] * 15
