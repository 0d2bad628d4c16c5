"""A class is given schedules by the API: who may, what is refused, what is paused, skipped and deleted."""

import asyncio
from typing import Any

import pytest

from codehub.policy.model import Role
from tests.auth.helpers import entries
from tests.classes.conftest import Enrol
from tests.classes.test_classes import a_class
from tests.schedules.lessons import BEGINS, TEN, a_workspace, added
from tests.sessions.learning import Learner
from tests.virtual_time import ManualClock
from tests.web.server import Site


async def test_a_teacher_gives_a_class_a_schedule_and_sees_who_is_left_out(
    kim: Learner, mina: Learner, person: Enrol, site: Site
) -> None:
    await person("jun")
    found, workspace = await a_class(kim, "mina", "jun"), await a_workspace(mina)
    made = await added(kim, found)
    assert (made["weekdays"], made["time"], made["time_zone"], made["for_all"]) == (["mon"], "10:00", "UTC", True)
    assert made["next_begins_at"] == BEGINS
    assert made["learners"] == [
        {"name": "jun", "workspace_id": None, "left_out": "no_workspace"},
        {"name": "mina", "workspace_id": workspace, "left_out": None},
    ]
    assert made["last"] is None
    (listed,) = (await kim.get(f"/classes/{found['id']}/schedules"))["items"]
    assert listed == made == await kim.get(f"/classes/{found['id']}/schedules/{made['id']}")
    (entry,) = await entries(site.services, "schedule.create")
    assert (entry.subject, entry.data["weekdays"], entry.data["time"]) == (found["id"], ["mon"], "10:00")


async def test_the_time_zone_is_the_teachers_own_unless_another_is_named(kim: Learner) -> None:
    found = await a_class(kim)
    body = {"weekdays": ["tue"], "time": "08:55"}
    status, made = await kim.ask("POST", f"/classes/{found['id']}/schedules", body)
    assert (status, made["time_zone"]) == (201, "UTC")
    assert (await kim.ask("PATCH", "/users/kim", {"time_zone": "Asia/Seoul"}))[0] == 200
    status, made = await kim.ask("POST", f"/classes/{found['id']}/schedules", body)
    assert (made["time_zone"], made["next_begins_at"]) == ("Asia/Seoul", "2026-03-02T23:55:00Z")
    berlin = await added(kim, found, time_zone="Europe/Berlin")
    assert berlin["next_begins_at"] == "2026-03-09T09:00:00Z"  # today's 10:00 is now, and is over


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({**TEN, "weekdays": []}, "weekdays"),
        ({**TEN, "weekdays": ["someday"]}, "weekdays"),
        ({**TEN, "time": "25:00"}, "time"),
        ({**TEN, "time": "8:55"}, "time"),
        ({**TEN, "time": "08:55:30"}, "time"),
        ({**TEN, "time": 855}, "time"),
        ({**TEN, "time_zone": "Mars/Olympus"}, "time_zone"),
        ({**TEN, "learners": []}, "learners"),
        ({**TEN, "learners": ["nobody"]}, "learners"),
        ({**TEN, "learners": ["kim"]}, "learners"),  # a teacher
        ({**TEN, "first_day": "tomorrow"}, "first_day"),
        ({**TEN, "first_day": "2026-03-09", "last_day": "2026-03-08"}, "last_day"),
        ({**TEN, "every": "week"}, "every"),
    ],
)
async def test_what_is_wrong_is_named(kim: Learner, mina: Learner, body: Any, field: str) -> None:
    found = await a_class(kim, "mina")
    status, problem = await kim.ask("POST", f"/classes/{found['id']}/schedules", body)
    assert (status, problem["code"]) == (400, "INVALID_REQUEST")
    assert field in problem["errors"][0]["field"]
    assert (await kim.get(f"/classes/{found['id']}/schedules"))["items"] == []


async def test_one_that_would_never_take_place_is_refused(kim: Learner) -> None:
    found = await a_class(kim)
    path = f"/classes/{found['id']}/schedules"
    for days in ({"last_day": "2026-03-01"}, {"first_day": "2026-03-03", "last_day": "2026-03-08"}):
        status, problem = await kim.ask("POST", path, {**TEN, **days})
        assert (status, problem["code"]) == (409, "NO_LESSON")
    assert (await kim.get(path))["items"] == []


async def test_others_classes_are_not_there_and_learners_may_not(
    kim: Learner, lee: Learner, mina: Learner, admin: Learner
) -> None:
    found = await a_class(kim, "mina")
    other, made = await a_class(lee), await added(kim, found)
    path, one = f"/classes/{found['id']}/schedules", f"/classes/{found['id']}/schedules/{made['id']}"
    asked = [
        ("GET", path, None),
        ("POST", path, TEN),
        ("GET", one, None),
        ("PATCH", one, {"paused": True}),
        ("POST", f"{one}/skip", {}),
        ("DELETE", f"{one}/skip", None),
        ("DELETE", one, None),
    ]
    for method, where, body in asked:
        assert (await lee.request(method, where, body)).status == 404
        assert (await mina.request(method, where, body)).status == 403
        # By the way of a class of one's own.
        if where != path:
            aside = where.replace(found["id"], other["id"])
            assert (await lee.request(method, aside, body)).status == 404
    assert (await kim.get(one)) == made
    assert (await admin.request("DELETE", one)).status == 204


async def test_an_archived_class_gets_none_and_there_are_not_too_many(kim: Learner) -> None:
    found = await a_class(kim)
    path = f"/classes/{found['id']}/schedules"
    for _ in range(20):
        await added(kim, found)
    status, problem = await kim.ask("POST", path, TEN)
    assert (status, problem["code"]) == (429, "SCHEDULE_LIMIT")
    assert (await kim.ask("PATCH", f"/classes/{found['id']}", {"archived": True}))[0] == 200
    status, problem = await kim.ask("POST", path, TEN)
    assert (status, problem["code"]) == (409, "CLASS_ARCHIVED")


async def test_lessons_are_skipped_one_after_the_other_and_that_is_taken_back(
    kim: Learner, site: Site, clock: ManualClock
) -> None:
    found = await a_class(kim)
    made = await added(kim, found)
    path = f"/classes/{found['id']}/schedules/{made['id']}/skip"
    status, skipped = await kim.ask("POST", path, {"begins_at": BEGINS})
    assert (status, skipped["next_begins_at"]) == (200, "2026-03-09T10:00:00Z")
    again = await asyncio.gather(*(kim.ask("POST", path, {"begins_at": BEGINS}) for _ in range(3)))
    assert {body["next_begins_at"] for _, body in again} == {"2026-03-09T10:00:00Z"}  # a second click skips no other
    assert (await kim.ask("POST", path, {}))[1]["next_begins_at"] == "2026-03-16T10:00:00Z"
    status, back = await kim.ask("DELETE", path)
    assert (status, back["next_begins_at"], back["skipped_through"]) == (200, BEGINS, None)
    assert (await kim.ask("DELETE", path))[1] == back
    assert len(await entries(site.services, "schedule.skip")) == 2
    assert len(await entries(site.services, "schedule.unskip")) == 1


async def test_one_that_is_paused_has_no_next_lesson_until_it_goes_on(kim: Learner, site: Site) -> None:
    found = await a_class(kim)
    made = await added(kim, found)
    path = f"/classes/{found['id']}/schedules/{made['id']}"
    for _ in range(2):
        status, paused = await kim.ask("PATCH", path, {"paused": True})
        assert (status, paused["next_begins_at"]) == (200, None)
    assert (await kim.ask("POST", f"{path}/skip", {}))[0] == 409
    status, back = await kim.ask("PATCH", path, {"paused": False})
    assert (status, back["next_begins_at"], back["paused_at"]) == (200, BEGINS, None)
    assert len(await entries(site.services, "schedule.pause")) == 1
    assert len(await entries(site.services, "schedule.resume")) == 1
    assert (await kim.request("DELETE", path)).status == 204
    assert (await kim.request("DELETE", path)).status == 404
    assert len(await entries(site.services, "schedule.delete")) == 1


async def test_who_was_chosen_and_left_is_named_and_who_was_removed_is_forgotten(
    kim: Learner, mina: Learner, person: Enrol, admin: Learner
) -> None:
    await person("jun")
    found = await a_class(kim, "mina", "jun")
    made = await added(kim, found, learners=["mina", "jun", "mina"])
    path = f"/classes/{found['id']}/schedules/{made['id']}"
    assert [one["name"] for one in made["learners"]] == ["jun", "mina"]
    assert (await kim.request("DELETE", f"/classes/{found['id']}/members/mina")).status == 204
    assert (await admin.request("DELETE", "/users/jun")).status in {200, 202, 204}
    assert (await kim.get(path))["learners"] == [{"name": "mina", "workspace_id": None, "left_out": "left"}]


async def test_schedules_go_with_their_class(kim: Learner, person: Enrol, site: Site) -> None:
    await person("vi", Role.TEACHER)
    found = await a_class(kim)
    await added(kim, found)
    assert (await kim.request("DELETE", f"/classes/{found['id']}")).status == 204
    async with site.services.database.connection() as c:
        assert await c.fetchval("SELECT count(*) FROM class_schedules") == 0
