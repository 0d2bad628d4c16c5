"""A waiting page that its browser lets do little: a hidden tab, a laptop that slept, a phone on another network.

Time is virtual on both sides: the server's clock is the test's, and the page's timers run when the test says so, at the
pace that Chromium documents for pages that were hidden for five minutes.
"""

from collections.abc import AsyncIterator

import aiohttp
import pytest_asyncio
from playwright.async_api import Browser, Page, expect

from codehub.settings import Settings
from tests.browser.conftest import IN_ONE_LOOP, WAIT_MS
from tests.browser.small_lab import SmallLab, bar, small_lab
from tests.virtual_time import ManualClock

pytestmark = IN_ONE_LOOP
MINUTE = 60
HIDE = """(hidden) => {
  Object.defineProperty(document, "hidden", { value: hidden, configurable: true });
  Object.defineProperty(document, "visibilityState", { value: hidden ? "hidden" : "visible", configurable: true });
  document.dispatchEvent(new Event("visibilitychange"));
}"""


@pytest_asyncio.fixture(loop_scope="session")
async def small(settings: Settings, clock: ManualClock) -> AsyncIterator[SmallLab]:
    async with small_lab(settings, clock, "mina") as made:
        await made.fill()
        yield made


@pytest_asyncio.fixture(loop_scope="session")
async def waiting(small: SmallLab, chromium: Browser) -> AsyncIterator[Page]:
    """Mina's session, in which she waits in line and is heard of by a stream; its timers are the test's."""
    context = await chromium.new_context(base_url=small.queue.site.url, locale="en-GB", reduced_motion="reduce")
    context.set_default_timeout(WAIT_MS)
    page = await small.session(context, "mina")
    await page.clock.install()
    await page.reload()
    async with page.expect_response(lambda answer: "/queue/stream" in answer.url):
        await page.get_by_role("button", name="Wait in line").click()
    await expect(bar(page)).to_contain_text("You are number 1.")
    yield page
    await context.close()


async def a_throttled_minute(small: SmallLab, page: Page) -> None:
    """As Chromium treats a page that was hidden for five minutes: its timers run once a minute."""
    async with page.expect_response(lambda answer: "/queue/status" in answer.url):
        await page.clock.fast_forward(MINUTE * 1000)
    await small.queue.pass_time(MINUTE)


async def test_a_hidden_tab_keeps_its_place_for_an_hour_and_then_its_turn(small: SmallLab, waiting: Page) -> None:
    await waiting.evaluate(HIDE, True)
    await small.crowd(2)
    for _ in range(60):
        await a_throttled_minute(small, waiting)
    await small.free()
    await a_throttled_minute(small, waiting)  # in which it is told
    await expect(waiting).to_have_title("Your turn! Day 1 · CodeHub")
    await a_throttled_minute(small, waiting)
    await waiting.evaluate(HIDE, False)
    await waiting.get_by_role("button", name="Take the place").click()
    await expect(bar(waiting)).to_contain_text("your workspace is starting")


async def test_a_laptop_that_slept_is_told_that_its_place_is_gone_and_how_to_join_again(
    small: SmallLab, waiting: Page
) -> None:
    cdp = await waiting.context.new_cdp_session(waiting)
    await waiting.context.set_offline(True)  # a page that is not frozen yet might still ask
    await cdp.send("Page.setWebLifecycleState", {"state": "frozen"})
    await small.services.waiting_streams.stop()  # no connection outlives that for long
    await small.queue.pass_time(10 * MINUTE)
    await cdp.send("Page.setWebLifecycleState", {"state": "active"})
    await waiting.context.set_offline(False)
    await waiting.clock.fast_forward(10 * MINUTE * 1000)
    await expect(bar(waiting)).to_contain_text("Your place in line is gone.")
    await waiting.get_by_role("button", name="Join again").click()
    await expect(bar(waiting)).to_contain_text("You are number 1.")


async def test_a_phone_that_changes_networks_keeps_its_place(small: SmallLab, waiting: Page) -> None:
    (behind,) = await small.crowd(1)
    token = await bar(waiting).get_attribute("data-token")
    await waiting.context.set_offline(True)
    await small.queue.pass_time(2 * MINUTE, behind)
    await waiting.clock.fast_forward(2 * MINUTE * 1000)
    await waiting.context.set_offline(False)
    async with waiting.expect_response(lambda answer: "/queue/" in answer.url and answer.ok):
        await waiting.clock.fast_forward(1000)
    elsewhere = aiohttp.TCPConnector(local_addr=("127.0.0.2", 0))
    async with (
        aiohttp.ClientSession(small.queue.site.url, connector=elsewhere) as other,
        other.get("/api/v1/queue/status", params={"token": token or ""}) as answer,
    ):
        assert (await answer.json())["position"] == 1
    await small.free()
    await small.queue.pass_time(5)
    await waiting.get_by_role("button", name="Take the place").click()
    await expect(bar(waiting)).to_contain_text("your workspace is starting")
