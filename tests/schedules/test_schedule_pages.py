"""The schedules on a class's page, and their forms, as a browser without JavaScript sends them."""

import re

import pytest

from tests.classes.conftest import Enrol
from tests.classes.test_classes import a_class
from tests.schedules.lessons import UNTIL_SPREAD, a_workspace, added, loop_of, until_the_lesson
from tests.sessions.learning import Learner
from tests.virtual_time import ManualClock
from tests.web.server import Site

FORM = {"day-mon": "1", "time": "10:00", "time_zone": "UTC", "whom": "all"}


async def test_a_teacher_adds_a_schedule_and_reads_the_next_lesson_and_who_is_left_out(
    site: Site, kim: Learner, mina: Learner, person: Enrol
) -> None:
    await person("jun")
    await a_workspace(mina)
    found = await a_class(kim, "mina", "jun")
    path = f"/classes/{found['id']}"
    async with site.browser("kim") as browser:
        async with browser.get(path) as answer:
            assert "Add a schedule" in await answer.text()
        async with browser.post(f"/do{path}/schedules", data={**FORM, "day-wed": "1", "once": "n1"}) as answer:
            page = await answer.text()
        assert "Monday, Wednesday 10:00" in page
        assert "Next: 10:00" in page  # today
        assert "Left out next time: 1" in page
        assert re.search(r"<strong>jun</strong> <span class=\"soft\">has no workspace", page)
    async with site.browser("kim", **{"Accept-Language": "ko"}) as browser, browser.get(path) as answer:
        page = await answer.text()
    assert "월요일, 수요일 10:00" in page
    assert "다음 수업: " in page


async def test_sent_twice_it_is_one_schedule(site: Site, kim: Learner) -> None:
    found = await a_class(kim)
    async with site.browser("kim") as browser:

        async def send() -> int:
            async with browser.post(f"/do/classes/{found['id']}/schedules", data={**FORM, "once": "n2"}) as answer:
                return answer.status

        assert [await send() for _ in range(3)] == [200] * 3
    assert len((await kim.get(f"/classes/{found['id']}/schedules"))["items"]) == 1


@pytest.mark.parametrize(
    ("form", "said"),
    [
        ({**FORM, "day-mon": ""}, "at least one day"),
        ({**FORM, "time": "soon"}, "a time like 08:55"),
        ({**FORM, "time_zone": "Mars/Olympus"}, "time zone from the list"),
        ({**FORM, "whom": "some"}, "at least one learner"),
        ({**FORM, "whom": "some", "learners": "nobody"}, "at least one learner"),
        ({**FORM, "first_day": "soon"}, "dates like"),
        ({**FORM, "last_day": "2026-03-01"}, "There would be no lesson"),
    ],
)
async def test_what_is_wrong_is_said_and_what_was_typed_comes_back(
    site: Site, kim: Learner, form: dict[str, str], said: str
) -> None:
    found = await a_class(kim)
    path = f"/do/classes/{found['id']}/schedules"
    async with site.browser("kim") as browser, browser.post(path, data=form) as answer:
        page = await answer.text()
    assert said in page
    assert f'value="{form["time"]}" required' in page
    assert '<details id="schedule-new" open>' in page
    assert (await kim.get(f"/classes/{found['id']}/schedules"))["items"] == []


async def test_only_those_who_are_ticked(site: Site, kim: Learner, mina: Learner, person: Enrol) -> None:
    await person("jun")
    found = await a_class(kim, "mina", "jun")
    async with site.browser("kim") as browser:
        data = {**FORM, "whom": "some", "who-mina": "1"}
        async with browser.post(f"/do/classes/{found['id']}/schedules", data=data) as answer:
            assert "Chosen learners (1)" in await answer.text()
    (listed,) = (await kim.get(f"/classes/{found['id']}/schedules"))["items"]
    assert [one["name"] for one in listed["learners"]] == ["mina"]


async def test_buttons_skip_pause_and_delete_and_a_second_click_changes_nothing(site: Site, kim: Learner) -> None:
    found = await a_class(kim)
    made = await added(kim, found)
    do = f"/do/classes/{found['id']}/schedules/{made['id']}"
    async with site.browser("kim") as browser:
        for verb, form, said in [
            ("skip", {"begins_at": made["next_begins_at"]}, "Next: Monday, 9 Mar, 10:00"),
            ("skip", {"begins_at": made["next_begins_at"]}, "Next: Monday, 9 Mar, 10:00"),
            ("skip", {"begins_at": "when"}, "not understood"),
            ("unskip", {}, "Next: 10:00"),
            ("pause", {}, "Paused"),
            ("pause", {}, "Paused"),
            ("resume", {}, "Next: 10:00"),
            ("delete", {}, "The schedule is deleted"),
            ("delete", {}, "The schedule is deleted"),
            ("pause", {}, "not there any more"),
        ]:
            async with browser.post(f"{do}/{verb}", data=form) as answer:
                assert said in await answer.text(), verb
        async with browser.post(f"{do}/nothing") as answer:
            assert answer.status == 404


async def test_others_cannot_send_its_forms(site: Site, kim: Learner, lee: Learner, mina: Learner) -> None:
    found = await a_class(kim, "mina")
    made = await added(kim, found)
    for name in ("lee", "mina"):
        async with site.browser(name) as browser:
            for path in ("schedules", f"schedules/{made['id']}/delete", f"schedules/{made['id']}/pause"):
                async with browser.post(f"/do/classes/{found['id']}/{path}", data=FORM) as answer:
                    await answer.read()
    (listed,) = (await kim.get(f"/classes/{found['id']}/schedules"))["items"]
    assert listed == made


async def test_afterwards_the_page_says_how_many_were_ready_and_who_was_not(
    site: Site, kim: Learner, mina: Learner, person: Enrol, clock: ManualClock
) -> None:
    await person("jun")
    await a_workspace(mina)
    found = await a_class(kim, "mina", "jun")
    await added(kim, found)
    await clock.advance(UNTIL_SPREAD)
    await until_the_lesson(clock, await loop_of(site.services))
    async with site.browser("kim") as browser, browser.get(f"/classes/{found['id']}") as answer:
        page = await answer.text()
    assert "1 of 2 were ready" in page
    assert "Left out then: 1" in page
