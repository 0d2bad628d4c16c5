"""A teacher's board as a browser without JavaScript has it."""

import re

from codehub.auth.profiles import Profile
from codehub.command import operator
from tests.assignments.given import a_taught_class, the_plan
from tests.classes.conftest import Enrol
from tests.courses.writing import course, made, session
from tests.sessions.learning import Learner
from tests.virtual_time import ManualClock
from tests.web.server import Site


async def test_a_course_that_is_not_given_comes_back_as_it_was_chosen_with_what_is_wrong(
    site: Site, kim: Learner, mina: Learner
) -> None:
    found, _ = await a_taught_class(kim, "mina")
    others = [await made(kim, course(session("one"), title=title, key=title.lower())) for title in ("Java", "Rust")]
    do = f"/do/classes/{found['id']}/assign"
    form = {"course_id": others[1]["id"], "starts_on": "2026-13-01"}
    async with site.browser("kim") as browser, browser.post(do, data=form) as answer:
        page = await answer.text()
    given = page.partition('id="give"')[2]
    assert given.startswith(' data-key="give" open')
    assert "That is not a date." in given
    assert f'value="{others[1]["id"]}" selected' in given
    assert 'value="2026-13-01"' in given


async def test_a_course_in_two_languages_and_people_of_a_class_are_told_apart(
    site: Site, kim: Learner, clock: ManualClock
) -> None:
    found, _ = await a_taught_class(kim, written=course(session("one"), title="Git", key="git-en"))
    korean = await made(kim, course(session("one"), title="Git", key="git-ko", language="ko"))
    async with site.browser("kim") as browser:
        async with browser.get(f"/classes/{found['id']}/board") as answer:
            page = await answer.text()
            assert "Git · 한국어</option>" in page
            assert "Add people" in page  # nobody is there yet
        await clock.jump(1)
        await kim.ask("POST", f"/classes/{found['id']}/assignments", {"course_id": korean["id"]})
        for called, name in (("최윤", "aa"), ("가람", "zz")):
            await kim.ask("POST", f"/classes/{found['id']}/people", {"display_name": called, "name": name})
        async with browser.get(f"/classes/{found['id']}/board") as answer:
            page = await answer.text()
    assert re.findall(r'scope="colgroup" lang="(\w+)">([^<]+)<', page) == [
        ("en", "Git · English"),
        ("ko", "Git · 한국어"),
    ]
    assert re.findall(r'<tr data-key="(\w+)">', page) == ["zz", "aa"]


async def test_two_learners_of_one_name_are_told_apart_also_when_they_ask(
    site: Site, kim: Learner, mina: Learner, person: Enrol
) -> None:
    jun = await person("jun")
    found, _ = await a_taught_class(kim, "mina", "jun")
    for name in ("mina", "jun"):
        await site.services.profiles.change(operator(), name, Profile("김민수"))
    run = await jun.started((await the_plan(jun))["sessions"][0]["id"])
    await jun.ask("POST", f"/runs/{run['id']}/help", {"message": "?"})
    async with site.browser("kim") as browser, browser.get(f"/classes/{found['id']}/board") as answer:
        page = await answer.text()
    assert re.findall(r'<span title="\w+">([^<]+)</span>', page) == ["김민수 (jun)", "김민수 (mina)"]
    assert "<strong>김민수 (jun)</strong>" in page


async def test_a_learner_reads_what_the_teacher_is_called_who_answered_and_who_wrote_a_course(
    site: Site, kim: Learner, mina: Learner
) -> None:
    await site.services.profiles.change(operator(), "kim", Profile("김선생"))
    found, _ = await a_taught_class(kim, "mina")
    await made(kim, course(session("one"), title="Java", key="java"))
    session_id = (await the_plan(mina))["sessions"][0]["id"]
    run = await mina.started(session_id)
    await mina.ask("POST", f"/runs/{run['id']}/help", {"message": "?"})
    (hand,) = (await kim.get(f"/classes/{found['id']}/hands"))["items"]
    await kim.ask("POST", f"/classes/{found['id']}/hands/{hand['id']}/answer", {"message": "Look again"})
    async with site.browser("mina") as browser:
        path = f"/sessions/{session_id}?run={run['id']}&fence={run['fence']}"
        async with browser.get(path) as answer:
            assert "김선생 (kim) answered at" in await answer.text()
        async with browser.get("/learn") as answer:
            assert "김선생 (kim)" in await answer.text()
