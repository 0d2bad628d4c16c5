"""Ten real minutes in hidden tabs of a whole Chromium, with its own throttling: neither the place nor the turn is lost.

`test_sleeping_tabs` has an hour of it in virtual time. Here time, timers and the platform are real, so it takes a
quarter of an hour. (`apt install chromium`: the headless shell hides no tab.)
"""

import asyncio
import itertools
import time
from collections.abc import AsyncIterator, Iterator
from typing import Any

import aiohttp
import pytest
import pytest_asyncio
from playwright.async_api import Browser

from tests.browser.conftest import IN_ONE_LOOP, Lab
from tests.browser.learning import SESSION, give_plan
from tests.browser.whole_chromium import DEEP_TIMERS, Tab, WholeChromium, whole_chromium
from tests.places import a_place
from tests.platform import Platform, running

pytestmark = [IN_ONE_LOOP, pytest.mark.soak]
HIDDEN_MINUTES = 10
TOLD_WITHIN = 180  # seconds; a poll is due after one minute
LESSON = {**SESSION, "practiceActivity": {**SESSION["practiceActivity"], "template": "terminal"}}
POLLS = """performance.getEntriesByType("resource")
  .filter((entry) => entry.name.includes("/queue/status")).map((entry) => entry.startTime / 1000)"""
PLACE = "document.querySelector('#position, [data-number]').textContent"


@pytest.fixture
def small_platform() -> Iterator[Platform]:
    with (
        a_place() as folder,
        running(folder / "data", CODEHUB_MAX_RUNNING_GLOBAL="2", CODEHUB_DRAIN_SECONDS="1") as started,
    ):
        yield started


@pytest_asyncio.fixture(loop_scope="session")
async def whole() -> AsyncIterator[WholeChromium]:
    async with whole_chromium() as browser:
        yield browser


async def test_hidden_tabs_keep_place_and_turn_for_ten_real_minutes(
    lab: Lab, whole: WholeChromium, chromium: Browser
) -> None:
    """The first waits on the waiting page, the second in the bar of a session, with timers that Chromium throttles to
    one a minute. The third, who is always there, would get the place of either if it were silent.
    """
    for name in ("first", "second", "third"):
        await lab.login_link(name)
    taken = [
        await lab.workspace(name, "w", "terminal", "RUNNING")
        for name in ("holder1", "holder2")
        if await lab.login_link(name)
    ]
    first, second = await _waits_on_its_page(lab, whole), await _waits_in_a_session(lab, whole)
    heard: list[dict[str, Any]] = []  # by the third
    async with lab.platform.client() as admin, asyncio.TaskGroup() as tasks:
        third = tasks.create_task(_poll(admin, heard))
        for tab in (first, second):
            await tab.hide()
        began = time.monotonic()
        while time.monotonic() - began < HIDDEN_MINUTES * 60:
            await asyncio.sleep(15)
            assert [await tab.read("document.hidden") for tab in (first, second)] == [True, True]
            assert "number 1" in (await first.read("document.querySelector('h1').textContent"))
            assert "number 2" in (await second.read(PLACE))
        for id_ in taken:
            await lab.put_to_sleep(id_)
        for tab in (first, second):
            await tab.wait_for("document.title.startsWith('Your turn!')", TOLD_WITHIN)
        third.cancel()
        assert [await tab.read("document.hidden") for tab in (first, second)] == [True, True]
    gaps = [_gaps(await tab.read(POLLS)) for tab in (first, second)]
    print("seconds between polls, plain timers:", gaps[0], "deep timers:", gaps[1])
    assert max(gaps[1]) > 50, "Chromium throttled it"
    assert not any(status["ready_for_entry"] for status in heard)
    for tab, button in ((first, "form[data-verb=enter] button"), (second, "#place-take")):
        await tab.show()
        await tab.click(button)
    await first.wait_for(
        "location.pathname !== '/wait/lab' || document.querySelector('#waiting').dataset.screen === 'held'"
    )
    await second.wait_for("document.querySelector('[data-line]').textContent.includes('workspace is')")


def _gaps(polls: list[float]) -> list[int]:
    return [round(after - before) for before, after in itertools.pairwise(polls)]


async def _log_in(lab: Lab, tab: Tab, name: str) -> None:
    await tab.send("Network.enable")
    await tab.send("Network.setExtraHTTPHeaders", headers={"Accept-Language": "en-GB"})
    await tab.go(await lab.login_link(name))
    await tab.click("main form button")
    await tab.wait_for("location.pathname === '/'")


async def _waits_on_its_page(lab: Lab, whole: WholeChromium) -> Tab:
    tab = await whole.open()
    await _log_in(lab, tab, "first")
    await tab.go(f"{lab.platform.url}/wait/lab")
    await tab.click("form[data-verb=join] button")
    await tab.wait_for("document.querySelector('h1').textContent.includes('number 1')")
    return tab


async def _waits_in_a_session(lab: Lab, whole: WholeChromium) -> Tab:
    session = (await give_plan(lab, "second", LESSON))["sessions"][0]["id"]
    tab = await whole.open()
    await tab.send("Page.enable")
    await tab.send("Page.addScriptToEvaluateOnNewDocument", source=DEEP_TIMERS)
    await _log_in(lab, tab, "second")
    await tab.go(f"{lab.platform.url}/sessions/{session}")
    await tab.click("article.player form[action$='/start'] button")
    await tab.click("#place-join")
    await tab.wait_for(f"{PLACE}.includes('number 2')")
    return tab


async def _poll(admin: aiohttp.ClientSession, heard: list[dict[str, Any]]) -> None:
    async with admin.post("/api/v1/queue/join", json={"event_id": "lab", "user_id": "third"}) as answer:
        token = (await answer.json())["waiting_token"]
    while True:
        async with admin.get("/api/v1/queue/status", params={"token": token}) as answer:
            heard.append(await answer.json())
        await asyncio.sleep(2)
