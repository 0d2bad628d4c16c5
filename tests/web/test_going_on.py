"""The start page remembers what is learnt: the session to go on with comes first, with the step where one stopped."""

import re
from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import aiohttp
import pytest

from codehub.command import operator
from codehub.courses import installation
from codehub.policy.model import Role
from tests.sessions.learning import CHECK, LEARN, RIGHT, Learner
from tests.virtual_time import ManualClock
from tests.web.server import Site
from tests.web.test_dashboard import make, page

DAY = 86400
Browser = aiohttp.ClientSession


@pytest.fixture
async def mina(site: Site) -> AsyncIterator[Browser]:
    await site.services.people.create_user(operator(), "mina", Role.LEARNER)
    async with site.browser("mina") as browser:
        yield browser


def top(shown: str) -> str:
    """What is told before anything of workspaces."""
    return shown.partition('data-key="going-on"')[2].partition("</section>")[0]


async def step_done(learner: Learner, session_id: str, index: int = 0, state: Any = None) -> None:
    status, said = await learner.complete(await learner.started(session_id), index, state)
    assert status == 200, said


async def test_who_has_a_session_to_go_on_with_is_asked_for_one_thing(site: Site, mina: Browser) -> None:
    """A first workspace is offered only where there is nothing else to do: the practice makes its own."""
    await installation.run(site.services.courses)
    shown = await page(mina)
    assert 'data-key="first"' in shown
    assert 'data-key="offer"' in shown
    await Learner(mina).plan(LEARN)
    shown = await page(mina)
    assert 'data-key="first"' not in shown
    assert 'data-key="offer"' not in shown
    assert 'data-key="new"' in shown


async def test_what_was_begun_is_first_with_its_course_and_step(site: Site, mina: Browser) -> None:
    await make(site)
    learner = Learner(mina)
    assert 'data-key="going-on"' not in await page(mina)
    first, second = (s["id"] for s in (await learner.plan(LEARN, CHECK, title="Python"))["sessions"])
    shown = top(await page(mina))
    assert "Start: Day 1" in shown
    assert "Python" in shown
    assert "Was planned for" in shown
    for index in (0, 1):
        await step_done(learner, first, index)
    await step_done(learner, second)
    shown = await page(mina)
    assert shown.index('data-key="going-on"') < shown.index("Week 3")
    assert "Go on: Day 2" in top(shown)
    assert "1 of 2 completed" in top(shown)
    assert "Where you stopped: Step 2 of 3, Answer (" in top(shown)
    assert f'action="/do/sessions/{second}/start"' in top(shown)
    async with site.browser("mina", **{"Accept-Language": "ko"}) as korean:
        shown = top(await page(korean))
    assert "이어서 하기: Day 2" in shown
    assert "3단계 중 2단계(문제 풀기)에서 멈췄습니다." in shown


async def test_of_several_it_is_the_one_that_was_worked_on_last(mina: Browser, clock: ManualClock) -> None:
    learner = Learner(mina)
    sessions = []
    for title in ("Old", "Middle", "New"):
        sessions.append((await learner.plan(CHECK, title=title))["sessions"][0]["id"])
        await clock.advance(60)
    assert "New" in top(await page(mina))
    for id_ in (sessions[0], sessions[1]):
        await step_done(learner, id_)
        await clock.advance(60)
    shown = top(await page(mina))
    assert "Middle" in shown
    assert "Your other plans (2)" in shown
    await step_done(learner, sessions[0], 1, RIGHT)
    assert "Old" in top(await page(mina))


async def test_what_was_begun_and_ended_by_itself_is_gone_on_with_too(
    site: Site, mina: Browser, clock: ManualClock
) -> None:
    learner = Learner(mina)
    id_ = await learner.session(CHECK)
    await step_done(learner, id_)
    await clock.advance(DAY + 60)
    (run,) = (await learner.get(f"/sessions/{id_}/runs"))["items"]
    assert (await learner.ask("POST", f"/runs/{run['id']}/abandon", {"fence": run["fence"]}))[0] == 200
    shown = top(await page(mina))
    assert "Go on: Day 1" in shown
    assert "Where you stopped: Step 2 of 3, Answer (yesterday" in shown
    async with site.admin() as admin:
        assert 'data-key="going-on"' not in await page(admin, "/?everybody=1")


async def test_dates_beside_states_say_when_it_happened_and_plans_only_what_is_ahead(
    mina: Browser, clock: ManualClock
) -> None:
    """Planned for the days from 2 March on; everything happens on two days in 2026 of the test's own clock."""
    learner = Learner(mina)
    made = await learner.plan(*([LEARN] * 5))
    done, skipped, canceled, begun, _ = (session["id"] for session in made["sessions"])
    for index in (0, 1):
        await step_done(learner, done, index)
    await clock.advance(2 * DAY)
    await learner.ask("POST", f"/sessions/{skipped}/skip")
    await learner.ask("POST", f"/sessions/{begun}/runs")
    await clock.advance(DAY)
    await learner.ask("POST", f"/sessions/{canceled}/cancel")
    lines = (await page(mina, f"/plans/{made['id']}")).split('<li data-key="')[1:]
    said = [re.sub(r"<[^>]*>|\s+", " ", line).split("Attempts")[0].strip() for line in lines]
    happened = clock.now() - timedelta(days=3)
    completed = f"Completed {happened.day} {happened:%b}"
    for line, expected in zip(said, (completed, "Skipped yesterday", "Canceled today"), strict=False):
        assert expected in re.sub(" +", " ", line)
    assert "In progress since yesterday" in re.sub(" +", " ", said[3])
    assert "lanned for" in said[4]
    assert not [line for line in said[:4] if "lanned" in line]


async def test_when_all_is_done_nothing_is_left_to_go_on_with(site: Site, mina: Browser) -> None:
    await installation.run(site.services.courses)
    learner = Learner(mina)
    id_ = await learner.session(LEARN)
    assert "/take" not in await page(mina)
    for index in (0, 1):
        await step_done(learner, id_, index)
    assert 'data-key="going-on"' not in await page(mina)
