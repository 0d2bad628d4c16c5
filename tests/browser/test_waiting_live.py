"""The waiting page while it is open, on a whole platform: it follows the line, and says when it is one's turn."""

import asyncio
import itertools
import os
import pathlib
import re
import signal
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from playwright.async_api import BrowserContext, Error, Page, expect

from codehub.web import waiting_presentation
from tests.browser.conftest import IN_ONE_LOOP, WAIT_MS, Lab
from tests.web.test_waiting_presentation import ENGLISH, KOREAN

pytestmark = IN_ONE_LOOP
API = "/api/v1/queue"
DOCUMENTED = pathlib.Path(__file__).parents[2] / "docs" / "waiting-room.md"
PACES = """async () => {
  const { backoff, pace } = await import("/static/waiting-room.js");
  const told = [[null, false], [5000, false], [2000, true], [null, true], [60000, true]];
  const paces = told.map(([ms, hidden]) => pace(ms ? { poll_after_ms: ms } : null, hidden));
  return [paces, Array.from({ length: 12 }, (_, n) => [backoff(n + 1, 0), backoff(n + 1, 1)])];
}"""
WORDS = """async ([cases, words]) => {
  const { rangeOf } = await import("/static/waiting.js");
  return cases.map(([low, high]) => rangeOf(low, high, words));
}"""


async def call(lab: Lab, method: str, path: str, **sent: Any) -> Any:
    async with lab.platform.client() as admin, admin.request(method, f"{API}{path}", **sent) as answer:
        assert answer.status < 300, await answer.text()
        return await answer.json() if answer.status != 204 else None


async def event(lab: Lab, id_: str, **change: Any) -> None:
    await call(lab, "PUT", f"/events/{id_}", json=change)


async def crowd(lab: Lab, id_: str, count: int) -> list[str]:
    joined = [await call(lab, "POST", "/join", json={"event_id": id_, "user_id": f"p {n}"}) for n in range(count)]
    return [answer["waiting_token"] for answer in joined]


async def leave(lab: Lab, token: str) -> None:
    await call(lab, "DELETE", "/leave", params={"token": token})


async def join(browser: BrowserContext, id_: str) -> Page:
    page = await browser.new_page()
    await page.goto(f"/wait/{id_}")
    await page.get_by_role("button", name="Join the line").click()
    await expect(page.get_by_role("button", name="Leave the line")).to_be_visible()
    return page


async def test_the_number_follows_the_line_and_says_why_it_moved(lab: Lab) -> None:
    await event(lab, "following", capacity=0)
    ahead = await crowd(lab, "following", 4)
    async with lab.somebody("mina") as browser:
        page = await join(browser, "following")
        await expect(page.locator("#position")).to_have_text("5")
        await expect(page).to_have_title(re.compile(r"^5 · "))
        await expect(page.locator("#dots i")).to_have_count(4)
        await leave(lab, ahead[1])
        await expect(page.locator("#position")).to_have_text("4")
        await expect(page.locator("#dots i")).to_have_count(3)
        await expect(page.locator("#since")).to_have_text("0 went in, 1 left since you came.")
        await expect(page).to_have_title(re.compile(r"^4 · "))
        icon = await page.locator("link[rel=icon]").get_attribute("href")
        assert icon
        assert icon.startswith("data:image/svg+xml")
        await page.reload()
        await expect(page.locator("#position")).to_have_text("4")
        await expect(page.locator("#since")).to_have_text("0 went in, 1 left since you came.")


async def test_the_turn_is_told_and_only_the_persons_click_enters(lab: Lab) -> None:
    await event(lab, "turns", capacity=0)
    async with lab.somebody("mina") as browser:
        page = await join(browser, "turns")
        other = await browser.new_page()
        await other.goto("/learn")
        await event(lab, "turns", capacity=1)
        enter = page.get_by_role("button", name="Enter")
        await expect(enter).to_be_focused()
        await expect(page.locator("#countdown")).to_have_text(re.compile(r"^[01]:\d\d$"))
        await expect(page).to_have_title(re.compile("^Your turn!"))
        await expect(page.locator("#announce")).to_have_text("It's your turn")
        await expect(other.get_by_role("link", name="Go there")).to_be_visible()
        assert (await call(lab, "GET", "/events/turns"))["reserved"] == 0
        await enter.click()
        await expect(page.get_by_role("heading", name="You have a place")).to_be_visible()
        await expect(other.get_by_role("link", name="Go there")).to_be_hidden()
        assert (await call(lab, "GET", "/events/turns"))["reserved"] == 1
        await page.get_by_role("button", name="Give the place back").click()
        await page.wait_for_url("**/")
        assert (await call(lab, "GET", "/events/turns"))["reserved"] == 0


async def test_two_tabs_share_a_place_and_closing_or_reloading_one_costs_nothing(lab: Lab) -> None:
    await event(lab, "tabs", capacity=0)
    async with lab.somebody("mina") as browser:
        first = await browser.new_page()
        await first.goto("/wait/tabs")
        page = await join(browser, "tabs")
        await expect(first.locator("#position")).to_have_text("1")  # it heard of the other tab's joining
        await page.close()
        await first.reload()
        await expect(first.locator("#position")).to_have_text("1")
        assert (await call(lab, "GET", "/events/tabs"))["waiting"] == 1
        again = await browser.new_page()
        await again.goto("/wait/tabs")
        await again.get_by_role("button", name="Leave the line").click()
        await expect(again.get_by_text("You have left the line.")).to_be_visible()
        await expect(first.get_by_role("button", name="Join")).to_be_visible()
        assert (await call(lab, "GET", "/events/tabs"))["waiting"] == 0


async def test_a_pause_shows_and_goes(lab: Lab) -> None:
    await event(lab, "pauses", capacity=0)
    async with lab.somebody("mina") as browser:
        page = await join(browser, "pauses")
        await event(lab, "pauses", paused=True)
        await expect(page.locator("#waiting .note strong")).to_be_visible()
        await event(lab, "pauses", paused=False)
        await expect(page.locator("#waiting .note strong")).to_be_hidden()


async def test_the_first_in_line_sees_when_it_opens_and_that_it_opens_at_another_time(lab: Lab) -> None:
    soon = datetime.now(UTC) + timedelta(hours=5)
    await event(lab, "opening", capacity=1, order="lottery", opens_at=soon.isoformat())
    async with lab.somebody("mina") as browser:
        page = await join(browser, "opening")
        note = page.locator("#waiting .note strong")
        await expect(note).to_contain_text("It opens")
        before = await note.inner_text()
        await event(lab, "opening", opens_at=(soon + timedelta(minutes=90)).isoformat())
        await expect(note).not_to_have_text(before)
        await event(lab, "opening", opens_at=None)
        await expect(page.get_by_role("button", name="Enter")).to_be_visible(timeout=WAIT_MS)


async def test_a_page_that_cannot_see_the_line_asks_again_by_itself(lab: Lab) -> None:
    """Its line is in Redis; and the platform itself may be restarting when a page asks."""
    await event(lab, "unseen", capacity=0)
    async with lab.somebody("mina") as browser:
        page = await join(browser, "unseen")
        redis = lab.platform.children()["redis"]
        os.kill(redis, signal.SIGSTOP)
        try:
            await page.reload()
            await expect(page.get_by_role("heading", name="The line cannot be seen right now")).to_be_visible()
        finally:
            os.kill(redis, signal.SIGCONT)
        await expect(page.locator("#position")).to_have_text("1", timeout=WAIT_MS)
        await expect(page.locator("#announce")).to_contain_text("You are number")
        await browser.set_offline(True)
        await event(lab, "unseen", paused=True)
        await expect(page.locator("#offline")).to_be_visible(timeout=WAIT_MS)
        await browser.set_offline(False)
        await expect(page.locator("#waiting .note strong")).to_be_visible(timeout=WAIT_MS)
        await expect(page.locator("#offline")).to_be_hidden()
        await expect(page.locator("#announce")).to_contain_text("The line is paused.")


async def test_the_page_is_complete_without_javascript(lab: Lab) -> None:
    await event(lab, "plain", capacity=0)
    (ahead,) = await crowd(lab, "plain", 1)
    async with lab.somebody("mina") as logged_in:
        state = await logged_in.storage_state()
        async with lab.browser(java_script_enabled=False, storage_state=state) as browser:
            page = await join(browser, "plain")
            await expect(page.locator("#position")).to_have_text("2")
            await leave(lab, ahead)
            await expect(page.locator("#position")).to_have_text("1", timeout=WAIT_MS)  # it loads itself again
            await event(lab, "plain", capacity=1)
            await page.get_by_role("button", name="Enter").click()
            await expect(page.get_by_role("heading", name="You have a place")).to_be_visible()


async def test_the_script_words_and_draws_as_the_server_does(lab: Lab) -> None:
    async with lab.browser() as browser:
        page = await browser.new_page()
        await page.goto("/")
        cases = [(0, 59), (0, 60), (180, 360), (181, 301), (300, 300), (7200, 10900), (7199, 7300), (10, None)]
        cases += [(20, 80000), (600, 7200), (7200, 80000), (60, 600)]
        for locale in (ENGLISH, KOREAN):
            words = {
                "sayLess": "wait_less", "sayBetween": "wait_between", "sayOne": "wait_about_one",
                "sayAbout": "wait_about", "sayHoursBetween": "wait_hours_between",
                "sayHoursAbout": "wait_hours_about", "sayUnknown": "wait_unknown",
                "sayLeast": "wait_least", "sayHoursLeast": "wait_hours_least",
            }  # fmt: skip
            given = {name: locale.say(key, n="{n}", low="{low}", high="{high}") for name, key in words.items()}
            said = await page.evaluate(WORDS, [cases, given])
            assert said == [waiting_presentation.wait(low, high, locale) for low, high in cases]


async def test_a_hidden_page_asks_less_often_and_one_without_answers_less_and_less(lab: Lab) -> None:
    async with lab.browser() as browser:
        page = await browser.new_page()
        await page.goto("/")
        paces, waits = await page.evaluate(PACES)
    assert paces == [2000, 5000, 30_000, 30_000, 60_000]
    assert waits[0] == [1000, 2000]  # from half to all of it, so that not all come at once
    assert waits[-1] == [15_000, 30_000]
    assert all(later >= sooner for sooner, later in itertools.pairwise(most for _, most in waits))


async def test_the_example_of_the_documentation_works_as_it_stands(lab: Lab) -> None:
    (example,) = re.findall(r"```html\n(.*?)```", DOCUMENTED.read_text(encoding="utf-8"), re.DOTALL)
    body = f"<!doctype html><meta charset=utf-8><title>Workshop</title>{example}"
    async with lab.somebody("mina") as browser:
        await browser.route("**/my-page", lambda route: route.fulfill(content_type="text/html", body=body))
        page = await browser.new_page()
        await page.goto("/my-page")
        place, enter = page.locator("#place"), page.locator("#enter")
        await page.click("#join")
        await expect(place).to_have_text("there is no event workshop")
        await event(lab, "workshop", capacity=0)
        await page.click("#join")
        await expect(place).to_have_text("Number 1")
        await page.reload()
        await expect(place).to_have_text("Number 1")
        await page.click("#leave")
        await expect(place).to_have_text("Not in line any more: left")
        await browser.set_offline(True)
        await page.click("#join")
        await expect(place).to_have_text("no answer: try again in a moment")
        await browser.set_offline(False)
        await event(lab, "workshop", capacity=1)
        await page.click("#join")
        await expect(page).to_have_title("Your turn!", timeout=WAIT_MS)
        await enter.click()
        await expect(place).to_have_text("Not in line any more: entered")
        await expect(enter).to_be_hidden()
        await expect(page).to_have_title("Workshop")
        await page.click("#join")
        await expect(place).to_contain_text("you have a place at this event already")


async def test_a_page_of_anybody_can_use_the_client_and_it_leaves_only_when_told(lab: Lab) -> None:
    """As docs/waiting-room.md shows it: join, listen, enter, leave; by polling, too, where there is no stream."""
    await event(lab, "client", capacity=0)
    async with lab.somebody("mina") as browser:
        page = await browser.new_page()
        await page.goto("/docs")  # which has no script
        begin = """async (stream) => {
          if (!stream) delete globalThis.EventSource;
          const { WaitingRoom } = await import("/static/waiting-room.js");
          globalThis.told = [];
          globalThis.room = new WaitingRoom("client");
          const say = (word) => told.push(word);
          room.listen({ position: (status) => say(status.position), gone: say, ready: () => say("ready") });
          return (await room.join()).waiting_token;
        }"""
        token = await page.evaluate(begin, True)
        await page.reload()
        assert (await call(lab, "GET", "/events/client"))["waiting"] == 1
        assert await page.evaluate(begin, False) == token
        await event(lab, "client", capacity=1)
        async with asyncio.timeout(WAIT_MS / 1000):
            while not await page.evaluate("told.includes('ready')"):
                await asyncio.sleep(0.1)
        made = await page.evaluate("room.enter()")
        assert made["reservation_token"]
        assert await page.evaluate("[told.at(-1), room.token, localStorage.getItem('codehub:wait:client')]") == [
            "entered", None, None,
        ]  # fmt: skip
        await browser.request.delete(f"{API}/events/client/place")
        await page.evaluate("room.join()")
        await page.evaluate("room.leave()")
        async with asyncio.timeout(20):
            while (await call(lab, "GET", "/events/client"))["waiting"]:
                await asyncio.sleep(0.1)
        with pytest.raises(Error, match="not in line"):
            await page.evaluate("room.enter()")
