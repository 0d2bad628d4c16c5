"""The first steps of a new installation in Chromium: left out, done, come back to; in two tabs; by the back button."""

import re
from collections.abc import AsyncIterator
from typing import Literal

import pytest
import pytest_asyncio
from playwright.async_api import Browser, Page, expect

from codehub.command import operator
from codehub.courses import installation
from codehub.http import paging
from codehub.settings import Settings
from codehub.wiring.api import open_services
from codehub.workspaces.service import Filters
from tests.browser.looking import FEW, LOOKS, PICTURES, look, look_from
from tests.virtual_time import ManualClock
from tests.web.server import Site, serving

pytestmark = pytest.mark.asyncio(loop_scope="session")
PASSWORD = "a lamp over the river"


@pytest_asyncio.fixture(loop_scope="session")
async def site(settings: Settings, clock: ManualClock) -> AsyncIterator[Site]:
    """A new installation, with the courses that come with it."""
    async with open_services(settings, clock) as services:
        await services.people.ensure_first_admin()
        await installation.run(services.courses)
        async with serving(services) as site:
            yield site


async def admin(site: Site, page: Page) -> Page:
    """By the first link."""
    await page.goto((await site.login_link("admin")).url(site.url))
    await page.get_by_role("button").click()
    await page.wait_for_url("**/welcome/way-in")
    return page


TICKS = "nav.track li:has(.dot:text('✓'))"


async def test_steps_are_left_out_done_and_come_back_to(site: Site, chromium: Browser) -> None:
    page = await admin(site, await look_from(chromium, site.url, "en", "light", 1280))
    await page.locator("#skip").click()
    await page.wait_for_url("**/welcome/workspace")
    await page.locator("button:text('Create it')").dblclick(no_wait_after=True)
    await page.wait_for_url("**/welcome/course")
    await expect(page.locator(TICKS)).to_have_count(1)
    await expect(page.locator("p.meanwhile")).to_contain_text("My lab")
    other = await page.context.new_page()  # a second tab
    await other.goto("/welcome")
    await other.wait_for_url("**/welcome/way-in")  # which was left out
    await other.locator("input[type=password]").fill(PASSWORD)
    await other.locator("form[action$=password] button").click()
    await other.wait_for_url("**/welcome/workspace")
    await expect(other.locator(TICKS)).to_have_count(2)
    await page.locator("ul.cards button").first.click()
    await page.wait_for_url("**/welcome/class")
    await expect(page.locator(TICKS)).to_have_count(3)
    await page.locator("input[name=title]").fill("Python 101")
    await page.locator("form[action$='/class'] button").dblclick(no_wait_after=True)
    await expect(page.locator(".code-large")).to_be_visible()
    await expect(page.locator(TICKS)).to_have_count(4)
    await page.go_back()
    await page.locator("nav.track a").first.click()
    await expect(page.locator("h1")).to_have_text("Choose how you come back")
    await expect(page.locator("#onward")).to_have_attribute("href", "/welcome/end")
    await page.locator("#onward").click()
    await expect(page.locator(".lead")).to_have_text("Everything is ready.")
    await page.locator("#finish").click()
    await page.wait_for_url(re.compile(r":\d+/$"))
    # The other tab is over, too, as soon as it looks again.
    await other.evaluate("dispatchEvent(new Event('online')); document.dispatchEvent(new Event('visibilitychange'))")
    await other.wait_for_url(re.compile(r":\d+/$"), timeout=60_000)
    services = site.services
    found = await services.workspaces.page(operator(), Filters(), after=paging.place(None), limit=9)
    assert [w.name for w in found] == ["My lab"]
    assert await page.locator("#first-steps").count() == 0
    await page.context.close()


@pytest.mark.parametrize(("language", "scheme", "width"), LOOKS if PICTURES else FEW)
async def test_every_first_step_is_whole_named_and_legible(
    site: Site, chromium: Browser, language: str, scheme: Literal["light", "dark"], width: int
) -> None:
    page = await admin(site, await look_from(chromium, site.url, language, scheme, width))
    found: list[str] = []
    todo = {
        "welcome-way-in": "/welcome/way-in?problem=PASSWORD_COMMON",
        "welcome-workspace": "/welcome/workspace",
        "welcome-workspace-refused": "/welcome/workspace?problem=NAME&name=Lab&template=terminal",
        "welcome-course": "/welcome/course",
        "welcome-class": "/welcome/class",
        "welcome-end": "/welcome/end",
    }
    for name, path in todo.items():
        await page.goto(path)
        found += await look(page, name, language, scheme, width)
    await page.goto("/welcome/workspace")
    await page.locator("form.create button").last.click()
    await page.wait_for_url("**/welcome/course")
    await page.locator("ul.cards button").first.click()
    await page.wait_for_url("**/welcome/class")
    await page.locator("input[name=title]").fill("파이썬 첫걸음 (Python 101)")
    await page.locator("form[action$='/class'] button").click()
    await expect(page.locator(".code-large")).to_be_visible()
    await page.goto("/welcome/way-in")
    await page.locator("input[type=password]").fill(PASSWORD)
    await page.locator("form[action$=password] button").click()
    await page.wait_for_url("**/welcome/workspace")
    for step in ("way-in", "workspace", "course", "class", "end"):
        await page.goto(f"/welcome/{step}")
        found += await look(page, f"welcome-{step}-done", language, scheme, width)
    await page.goto("/")
    found += await look(page, "welcome-home", language, scheme, width)
    await page.context.close()
    assert not found, "\n".join(found)
