"""A completed session is read again: what was seen before and nothing else. And a run is begun anew."""

import re
from collections.abc import AsyncIterator

import aiohttp
import pytest

from codehub.command import operator
from codehub.policy.model import Role
from codehub.web.practice_view import CheckView, once
from tests.sessions.learning import CHECK, FULL, LEARN
from tests.web.server import Site
from tests.web.test_dashboard import page, post
from tests.web.test_learning import plan, runs, start

FEEDBACK = "It begins at 0."


@pytest.fixture
async def mina(site: Site) -> AsyncIterator[aiohttp.ClientSession]:
    await site.services.people.create_user(operator(), "mina", Role.LEARNER)
    async with site.browser("mina") as browser:
        yield browser


async def completed(browser: aiohttp.ClientSession, *answers: str) -> str:
    """A session of a text and a question, answered so until it was right."""
    id_: str = (await plan(browser, CHECK, LEARN))["sessions"][0]["id"]
    here = await start(browser, id_)
    for index, form in ((0, {}), *((1, {"q0": given}) for given in answers), (2, {})):
        await post(browser, f"/do/sessions/{id_}/complete", **here, index=str(index), **form)
    assert (await runs(browser, id_))[0]["status"] == "COMPLETED"
    return id_


async def test_a_completed_session_is_read_again_with_what_was_said_then(mina: aiohttp.ClientSession) -> None:
    id_ = await completed(mina, "a", "b")
    before = await runs(mina, id_)
    assert f'href="/sessions/{id_}?read=yes"' in await page(mina, f"/sessions/{id_}")
    text = await page(mina, f"/sessions/{id_}?read=yes")
    assert "<h3>Hello</h3>" in text
    assert f"/sessions/{id_}?read=yes&step=1" in text
    asked = await page(mina, f"/sessions/{id_}?read=yes&step=1")
    assert re.search(r'value="b" checked', asked)
    assert FEEDBACK in asked
    assert "Well done" in await page(mina, f"/sessions/{id_}?read=yes&step=2")
    for shown in (text, asked):
        assert not re.search(r'action="/do/sessions/[^"]*/(start|complete|skip|cancel|anew|workspace)"', shown)
    assert await runs(mina, id_) == before


async def test_reading_again_shows_nothing_that_was_not_said(site: Site, mina: aiohttp.ClientSession) -> None:
    id_ = await completed(mina, "b")
    assert FEEDBACK not in await page(mina, f"/sessions/{id_}?read=yes&step=1")
    begun, skipped = (session["id"] for session in (await plan(mina, FULL, FULL))["sessions"])
    await start(mina, begun)
    await post(mina, f"/do/sessions/{skipped}/skip", sure="yes")
    for other in (begun, skipped):
        shown = await page(mina, f"/sessions/{other}?read=yes&step=1")
        assert not [secret for secret in ("How many?", FEEDBACK, "Do it.", "secret-place") if secret in shown]
    async with site.browser("admin") as admin:
        assert "How many?" not in await page(admin, f"/sessions/{id_}?read=yes&step=1")


async def test_a_run_is_begun_anew_once_asked_and_the_old_one_stays_in_the_list(mina: aiohttp.ClientSession) -> None:
    id_ = (await plan(mina, CHECK))["sessions"][0]["id"]
    here = await start(mina, id_)
    await post(mina, f"/do/sessions/{id_}/complete", **here, index="0")
    form = {**here, "key": "anew-1"}
    assert (await post(mina, f"/do/sessions/{id_}/anew", **form))[0] == 400
    first = await post(mina, f"/do/sessions/{id_}/anew", **form, sure="yes")
    assert await post(mina, f"/do/sessions/{id_}/anew", **form, sure="yes") == first  # a double click
    old, new = sorted(await runs(mina, id_), key=lambda run: str(run["status"]))
    assert (old["status"], old["end_reason"], old["step_index"]) == ("ABANDONED", "by_learner", 1)
    assert (new["status"], new["step_index"]) == ("RUNNING", 0)
    assert first == (303, f"/sessions/{id_}", {"run": new["id"], "fence": "1"})
    late = await post(mina, f"/do/sessions/{id_}/anew", run=new["id"], fence="9", sure="yes")
    assert late[2]["problem"] == "RUN_TAKEN_OVER"


async def test_what_skipping_canceling_and_beginning_anew_mean_is_said_where_they_are_offered(
    mina: aiohttp.ClientSession,
) -> None:
    id_ = (await plan(mina, CHECK))["sessions"][0]["id"]
    here = await start(mina, id_)
    shown = await page(mina, f"/sessions/{id_}?run={here['run']}&fence=1")
    for said in (
        "For a break, just close the page",
        "A skipped session cannot be started any more.",
        "A canceled session cannot be started any more.",
        "You cannot go back to this attempt.",
        "stays in the list of attempts",
    ):
        assert said in shown
    assert "/anew" in await page(mina, f"/sessions/{id_}")


def test_the_same_output_of_several_checks_is_shown_once() -> None:
    missing = [CheckView(title, passed=False, output="no such file") for title in ("One", "Two")]
    passed = CheckView("Three", passed=True, output="no such file")
    empty = [CheckView(title, passed=False) for title in ("Four", "Five")]
    shown = once([*missing, passed, *empty])
    assert [(check.output, check.same_as) for check in shown] == [
        ("no such file", None),
        ("", "One"),
        ("no such file", None),
        ("", None),
        ("", None),
    ]
