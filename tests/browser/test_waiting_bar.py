"""The bar of a session's page on every screen it has, reached as learners reach it: whole, named and legible.

Pictures as in `test_every_page`.
"""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from playwright.async_api import Browser, Page, expect

from codehub.settings import Settings
from tests.browser.conftest import IN_ONE_LOOP, WAIT_MS
from tests.browser.looking import FEW, LOOKS, PICTURES, Scheme, look
from tests.browser.small_lab import SmallLab, bar, small_lab
from tests.virtual_time import ManualClock

pytestmark = IN_ONE_LOOP


@pytest_asyncio.fixture(loop_scope="session")
async def small(settings: Settings, clock: ManualClock) -> AsyncIterator[SmallLab]:
    async with small_lab(settings, clock, "mina") as made:
        yield made


class Visit:
    """One look through all screens: a language, a scheme, a width."""

    def __init__(self, small: SmallLab, page: Page, language: str, scheme: Scheme, width: int) -> None:
        self.small, self.page = small, page
        self._look = (language, scheme, width)
        self.found: list[str] = []

    async def shows(self, screen: str, name: str = "") -> None:
        await self.page.reload()
        await expect(bar(self.page)).to_have_attribute("data-screen", screen)
        self.found += await look(self.page, f"bar-{name or screen}", *self._look)

    async def click(self, verb: str, screen: str) -> None:
        await self.page.locator(f"[data-line] form[data-verb={verb}] button").click()
        await expect(bar(self.page)).to_have_attribute("data-screen", screen)

    async def answer(self) -> None:
        """To the PRACTICE."""
        for _ in range(2):
            await self.page.locator("[data-next]").click()
        await self.page.locator("#complete").click()
        await self.page.locator("label.choice", has_text="three").click()
        for word in ("for", "while"):
            await self.page.locator("label.choice", has_text=word).click()
        await self.page.locator(".question input[type=text], .question .field input").fill("range")
        await self.page.locator("#complete").click()
        await expect(self.page.locator(".checks")).to_be_visible()


@pytest.mark.parametrize(("language", "scheme", "width"), LOOKS if PICTURES else FEW)
async def test_every_screen_of_the_bar_is_whole_named_and_legible(
    small: SmallLab, chromium: Browser, language: str, scheme: Scheme, width: int
) -> None:
    context = await chromium.new_context(
        base_url=small.queue.site.url,
        locale={"en": "en-GB", "ko": "ko-KR"}[language],
        color_scheme=scheme,
        viewport={"width": width, "height": 800},
        reduced_motion="reduce",
    )
    context.set_default_timeout(WAIT_MS)
    await small.fill()
    page = await small.session(context, "mina")
    visit = Visit(small, page, language, scheme, width)
    await visit.shows("join")
    ahead = await small.crowd(7)
    await visit.click("join", "waiting")
    await visit.shows("waiting")
    for token in ahead:
        await small.queue.leave(token)
    await small.queue.call("PUT", "/events/lab", "admin", json={"paused": True})
    await small.queue.tick()
    await visit.shows("paused")
    await small.queue.call("PUT", "/events/lab", "admin", json={"paused": False})
    await small.free()
    await small.queue.tick()
    await visit.shows("ready")
    await page.goto("about:blank")
    (other,) = await small.crowd(1)
    await small.queue.pass_time(80, other)
    await page.go_back()
    await visit.shows("passed")
    await page.goto("about:blank")
    await small.queue.pass_time(310, other)
    await page.go_back()
    await visit.shows("gone")
    await visit.answer()
    await visit.shows("gone", "practice-gone")
    await visit.click("leave", "join")
    await visit.shows("join", "practice-join")
    await visit.click("join", "waiting")
    await visit.shows("waiting", "practice-waiting")
    await small.queue.leave(other)
    await small.queue.tick(2)
    await visit.shows("ready", "practice-ready")
    await context.close()
    assert not visit.found, "\n".join(visit.found)
