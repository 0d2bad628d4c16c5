"""A class is given a course: every learner has a plan of it, with dates; those who come later, too."""

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from codehub.command import operator
from codehub.policy.model import Role
from tests.assignments.given import a_taught_class, assigned, fill, statements, the_plan
from tests.auth.helpers import entries
from tests.classes.conftest import Enrol
from tests.classes.test_classes import a_class
from tests.classes.test_invitations import PASSWORD, invite
from tests.courses.writing import course, made, session, shown, taken
from tests.sessions.learning import Learner
from tests.web.server import Site

DATES = [
    ("one", "One", "2026-03-02", "SCHEDULED"),
    ("two", "Two", "2026-03-04", "SCHEDULED"),
    ("three", "Three", "2026-03-09", "SCHEDULED"),
]


async def test_every_learner_gets_a_plan_with_dates_and_it_is_audited(
    kim: Learner, mina: Learner, person: Enrol, site: Site
) -> None:
    jun, other = await person("jun"), await person("other")
    found, written = await a_taught_class(kim, "mina", "jun")
    for learner in (mina, jun):
        plan = await the_plan(learner)
        assert (plan["course_id"], plan["starts_on"], plan["created_by"]) == (written["id"], "2026-03-02", "kim")
        assert shown(plan) == DATES
    assert (await other.get("/plans"))["items"] == []
    assert (await kim.get("/plans"))["items"] == []
    (entry,) = await entries(site.services, "assignment.create")
    assert (entry.subject, entry.data["learners"]) == (found["id"], 2)
    (listed,) = (await mina.get(f"/classes/{found['id']}/assignments"))["items"]
    assert (listed["title"], listed["starts_on"], listed["created_by"]) == ("Python", "2026-03-02", "kim")


async def test_the_same_again_changes_nothing_and_another_day_is_refused(kim: Learner, mina: Learner) -> None:
    found, written = await a_taught_class(kim, "mina")
    (before,) = (await kim.get(f"/classes/{found['id']}/assignments"))["items"]
    path = f"/classes/{found['id']}/assignments"
    for body in ({"course_id": written["id"]}, {"course_id": written["id"], "starts_on": "2026-03-02"}):
        status, again = await kim.ask("POST", path, body)
        assert (status, again) == (200, before)
    status, problem = await kim.ask("POST", path, {"course_id": written["id"], "starts_on": "2026-04-01"})
    assert (status, problem["code"]) == (409, "ASSIGNMENT_EXISTS")
    assert len((await mina.get("/plans"))["items"]) == 1


async def test_two_clicks_at_once_are_one_assignment(kim: Learner, mina: Learner) -> None:
    found, written = await a_class(kim, "mina"), await made(kim)
    body = {"course_id": written["id"], "starts_on": "2026-03-02"}
    answers = await asyncio.gather(*(kim.ask("POST", f"/classes/{found['id']}/assignments", body) for _ in range(6)))
    assert sorted(status for status, _ in answers) == [200] * 5 + [201]
    assert len({answer["id"] for _, answer in answers}) == 1
    assert len((await mina.get("/plans"))["items"]) == 1


async def test_who_joins_later_gets_it_and_who_comes_back_goes_on(kim: Learner, mina: Learner) -> None:
    found, _ = await a_taught_class(kim)
    assert (await mina.get("/plans"))["items"] == []
    members = f"/classes/{found['id']}/members"
    assert (await kim.ask("POST", members, {"name": "mina"}))[0] == 201
    plan = await the_plan(mina)
    assert shown(plan) == DATES
    await mina.started(plan["sessions"][0]["id"])
    assert (await kim.request("DELETE", f"{members}/mina")).status == 204
    assert (await kim.ask("POST", members, {"name": "mina"}))[0] == 201
    assert (await the_plan(mina))["id"] == plan["id"]


async def test_what_has_ended_stays_with_those_who_have_it(kim: Learner, mina: Learner, person: Enrol) -> None:
    found, written = await a_taught_class(kim, "mina")
    (listed,) = (await kim.get(f"/classes/{found['id']}/assignments"))["items"]
    path = f"/classes/{found['id']}/assignments/{listed['id']}"
    assert (await kim.request("DELETE", path)).status == 204
    status, problem = await kim.ask("DELETE", path)
    assert (status, problem["code"]) == (404, "ASSIGNMENT_NOT_FOUND")
    jun = await person("jun")
    assert (await kim.ask("POST", f"/classes/{found['id']}/members", {"name": "jun"}))[0] == 201
    assert (await jun.get("/plans"))["items"] == []
    assert len((await mina.get("/plans"))["items"]) == 1
    assert (await kim.get(f"/classes/{found['id']}/assignments"))["items"] == []
    again = await assigned(kim, found, written, "2026-05-04")  # on another day, now that it has ended
    assert again["id"] != listed["id"]
    assert len((await mina.get("/plans"))["items"]) == 1, "what she has begun goes on"
    assert (await the_plan(jun))["starts_on"] == "2026-05-04"


async def test_who_has_taken_it_up_goes_on_with_that_plan(kim: Learner, mina: Learner) -> None:
    found, written = await a_class(kim, "mina"), await made(kim)
    own = await taken(mina, written["id"], starts_on="2026-01-05")
    await assigned(kim, found, written)
    assert (await the_plan(mina))["id"] == own["id"]


async def test_only_its_teachers_and_admins_assign(
    kim: Learner, lee: Learner, mina: Learner, admin: Learner, person: Enrol
) -> None:
    stranger = await person("stranger")
    found, written = await a_class(kim, "mina"), await made(kim)
    path, body = f"/classes/{found['id']}/assignments", {"course_id": written["id"]}
    assert (await mina.ask("POST", path, body))[0] == 403
    for who in (lee, stranger):
        status, problem = await who.ask("POST", path, body)
        assert (status, problem["code"]) == (404, "CLASS_NOT_FOUND")
        assert (await who.ask("GET", path))[0] == 404
    assert (await admin.ask("POST", path, body))[0] == 201
    (listed,) = (await kim.get(path))["items"]
    assert (await mina.ask("DELETE", f"{path}/{listed['id']}"))[0] == 403
    assert (await lee.ask("DELETE", f"{path}/{listed['id']}"))[0] == 404
    other = await a_class(lee)
    assert (await lee.ask("DELETE", f"/classes/{other['id']}/assignments/{listed['id']}"))[0] == 404


async def test_what_cannot_be_given_is_said(kim: Learner) -> None:
    found, written = await a_class(kim), await made(kim)
    path = f"/classes/{found['id']}/assignments"

    async def refused(body: Any) -> tuple[int, str]:
        status, problem = await kim.ask("POST", path, body)
        return status, problem["code"]

    assert await refused({"course_id": "nothing"}) == (404, "COURSE_NOT_FOUND")
    assert await refused({"course_id": written["id"], "starts_on": "1970-01-01"}) == (400, "INVALID_REQUEST")
    assert await refused({"course_id": written["id"], "starts_on": 7}) == (400, "INVALID_REQUEST")
    assert await refused({}) == (400, "INVALID_REQUEST")
    assert (await kim.ask("POST", f"/courses/{written['id']}/withdraw"))[0] == 200
    assert await refused({"course_id": written["id"]}) == (409, "COURSE_WITHDRAWN")
    assert (await kim.ask("POST", f"/courses/{written['id']}/offer"))[0] == 200
    assert (await kim.ask("PATCH", f"/classes/{found['id']}", {"archived": True}))[0] == 200
    assert await refused({"course_id": written["id"]}) == (409, "CLASS_ARCHIVED")


async def test_a_new_version_reaches_what_no_learner_has_begun(kim: Learner, mina: Learner, person: Enrol) -> None:
    jun = await person("jun")
    _, written = await a_taught_class(kim, "mina", "jun")
    await mina.started((await the_plan(mina))["sessions"][1]["id"])
    newer = course(session("one", 2, "First"), session("two", 9, "Second"), session("four", 10))
    assert (await kim.ask("PUT", f"/courses/{written['id']}", newer))[0] == 200
    assert shown(await the_plan(mina)) == [
        ("one", "First", "2026-03-03", "SCHEDULED"),
        ("two", "Two", "2026-03-04", "IN_PROGRESS"),
        ("three", "Three", "2026-03-09", "CANCELED"),
        ("four", "Four", "2026-03-11", "SCHEDULED"),
    ]
    assert shown(await the_plan(jun))[1] == ("two", "Second", "2026-03-10", "SCHEDULED")


async def test_a_teacher_gives_a_course_to_one_learner_of_theirs_and_to_no_other(
    kim: Learner, lee: Learner, mina: Learner
) -> None:
    await a_class(kim, "mina")
    written = await made(kim)
    path, body = f"/courses/{written['id']}/plans", {"owner": "mina", "starts_on": "2026-03-02"}
    status, problem = await lee.ask("POST", path, body)
    assert (status, problem["code"]) == (403, "FORBIDDEN")
    assert (await mina.ask("POST", path, {"owner": "kim"}))[0] == 403
    status, plan = await kim.ask("POST", path, body)
    assert (status, plan["owner"]) == (201, "mina")
    assert (await kim.get("/plans?owner=mina"))["items"][0]["id"] == plan["id"]
    assert (await lee.get("/plans?owner=mina"))["items"] == []


async def test_a_large_class_is_given_a_course_by_a_few_statements(
    kim: Learner, site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    """200 learners with 12 sessions each; and the limit of plans that one person may make does not count them."""
    services = site.services
    found = await a_class(kim)
    written = await made(kim, course(*(session(f"s{n}", n) for n in range(1, 13))))
    await fill(services, found["id"], 200)
    monkeypatch.setattr(services.sessions, "_config", replace(services.settings.sessions, max_plans_per_user=1))
    with statements(services, monkeypatch) as sent:
        await assigned(kim, found, written)
    assert len([one for one in sent if "plans" in one or "sessions" in one]) < 15, sent
    async with services.database.connection() as c:
        assert await c.fetchval("SELECT count(*) FROM plans") == 200
        assert await c.fetchval("SELECT count(*) FROM sessions") == 2400
    assert (await kim.plan())["owner"] == "kim"


async def test_the_operator_assigns_too(site: Site, kim: Learner, mina: Learner) -> None:
    found, written = await a_class(kim, "mina"), await made(kim)
    made_by, new = await site.services.assignments.assign(operator(), found["id"], written["id"])
    assert new
    assert made_by.created_by.startswith("cli:")
    assert (await the_plan(mina))["created_by"].startswith("cli:")


async def test_a_learner_who_became_a_teacher_gets_nothing_more(kim: Learner, mina: Learner, site: Site) -> None:
    found, written = await a_class(kim, "mina"), await made(kim)
    await site.services.people.change_user(operator(), "mina", role=Role.TEACHER, active=None)
    await assigned(kim, found, written)
    async with site.services.database.connection() as c:
        assert await c.fetchval("SELECT count(*) FROM plans") == 0


async def test_who_joins_a_class_that_was_given_a_course_is_led_to_its_first_session(site: Site, kim: Learner) -> None:
    assert (await kim.ask("PATCH", "/users/kim", {"display_name": "김 선생님"}))[0] == 200
    found, _ = await a_taught_class(kim)
    code = (await invite(kim, found["id"]))["code"]
    async with site.client() as browser:
        form = {"display_name": "Ara", "name": "ara", "password": PASSWORD}
        async with browser.post(f"/join/{code}", data=form) as answer:
            page = await answer.text()
            assert answer.url.path == f"/classes/{found['id']}", page
        first = (await the_plan(Learner(browser)))["sessions"][0]["id"]
        assert f'action="/do/sessions/{first}/start"' in page
        assert 'class="button" href="/learn"' not in page  # one thing to do
        async with browser.get("/classes") as answer:
            listed = await answer.text()
        assert "김 선생님 (kim)" in listed
        assert "1 learners" not in listed
