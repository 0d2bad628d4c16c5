"""From a sleeping workspace to its IDE: the page that waits is told, whatever becomes of what tells it."""

import os
import re
import signal

import pytest
from playwright.async_api import Page, Request, expect

from tests.browser.conftest import IN_ONE_LOOP, WAIT_MS, Lab, inside

pytestmark = IN_ONE_LOOP
expect.set_options(timeout=WAIT_MS)
IDE = re.compile(r"\d+ /w/")


def listen(page: Page) -> list[str]:
    """The paths that it asks for, from now on."""
    asked: list[str] = []

    def note(request: Request) -> None:
        asked.append(re.sub(r"^https?://[^/]+|\?.*$", "", request.url))

    page.on("request", note)
    return asked


async def wakes(lab: Lab, id_: str) -> int:
    async with lab.platform.client() as admin, admin.get(f"/api/v1/workspaces/{id_}/history") as answer:
        return sum(line["code"] == "woken" for line in (await answer.json())["items"])


async def test_the_waking_page_is_told_and_asks_for_nothing(lab: Lab) -> None:
    async with lab.somebody("told") as context:
        page = await context.new_page()
        asked = listen(page)
        id_ = await lab.workspace("told", "Told", "late", "STANDBY")
        await page.goto(f"/w/{id_}/")
        await expect(page.get_by_role("heading", name="Told is waking up")).to_be_visible()
        await expect(page.locator("body")).to_have_text(IDE)
        assert asked.count(f"/_codehub/news/{id_}") == 1
        assert asked.count(f"/_codehub/status/{id_}") == 0
        assert await wakes(lab, id_) == 1


async def test_without_a_stream_the_waking_page_asks(lab: Lab) -> None:
    async with lab.somebody("asks") as context:
        page = await context.new_page()
        id_ = await lab.workspace("asks", "Asks", "late", "STANDBY")
        await page.route("**/_codehub/news/*", lambda route: route.abort())
        asked = listen(page)
        await page.goto(f"/w/{id_}/")
        await expect(page.locator("body")).to_have_text(IDE)
        assert asked.count(f"/_codehub/status/{id_}") > 0
    lab.complaints.clear()  # of the browser, about the stream


async def test_the_frame_waits_for_the_ide_and_its_page_is_loaded_once(lab: Lab) -> None:
    async with lab.somebody("held") as context:
        page = await context.new_page()
        id_ = await lab.workspace("held", "Held", "late", "STANDBY")
        asked = listen(page)
        navigations: list[str] = []
        page.on("framenavigated", lambda frame: navigations.append(frame.url) if frame == page.main_frame else None)
        await page.goto(f"/open/{id_}", wait_until="commit")
        await expect(page.locator("[data-cover=rising]")).to_contain_text("Held is waking up")
        await expect(inside(page)).to_have_text(IDE)
        await expect(page.locator("[data-cover]")).to_have_count(0)
        await expect(page.locator("#ide")).to_have_js_property("inert", False)
        assert len(navigations) == 1
        assert asked.count(f"/w/{id_}/") == 1
        assert not [path for path in asked if path.startswith(("/_codehub/status", "/_codehub/news"))]
        assert await wakes(lab, id_) == 1


MOVES_AT_ONCE = """() => document.getAnimations().filter((one) => one.effect.getTiming().delay < 1000)
  .map((one) => `${one.animationName} of ${one.effect.target.outerHTML}`)"""


@pytest.mark.parametrize("page_around", ["open", "w"])
async def test_nothing_is_drawn_anew_while_an_ide_starts_that_is_there_in_a_moment(lab: Lab, page_around: str) -> None:
    """It would be drawn by the cores that the IDE starts on. Later it moves, so that it does not look stuck."""
    who = f"still-{page_around}"
    async with lab.somebody(who, reduced_motion="no-preference") as context:
        page = await context.new_page()
        id_ = await lab.workspace(who, "Still", "hangs", "RUNNING")
        await page.goto(f"/{page_around}/{id_}", wait_until="commit")
        await expect(page.locator(".steps .now")).to_be_visible()
        assert await page.evaluate("document.getAnimations().length")
        assert await page.evaluate(MOVES_AT_ONCE) == []
        blurred = "[...document.querySelectorAll('*')].filter((e) => getComputedStyle(e).backdropFilter !== 'none')"
        assert await page.evaluate(f"{blurred}.map((e) => e.className)") == []


async def test_two_tabs_get_there_by_one_wake(lab: Lab) -> None:
    async with lab.somebody("twice") as context:
        id_ = await lab.workspace("twice", "Twice", "late", "STANDBY")
        framed, alone = await context.new_page(), await context.new_page()
        await framed.goto(f"/open/{id_}", wait_until="commit")
        await alone.goto(f"/w/{id_}/")
        await expect(alone.locator("body")).to_have_text(IDE)
        await expect(inside(framed)).to_have_text(IDE)
        await expect(framed.locator("[data-cover]")).to_have_count(0)
        assert await wakes(lab, id_) == 1


async def test_a_frame_that_lost_its_place_at_the_front_door_goes_on(lab: Lab) -> None:
    async with lab.somebody("lost") as context:
        page = await context.new_page()
        id_ = await lab.workspace("lost", "Lost", "late", "STANDBY")
        async with page.expect_request(lambda request: request.url.endswith(f"/w/{id_}/")):
            await page.goto(f"/open/{id_}", wait_until="commit")
        os.kill(lab.platform.children()["proxy"], signal.SIGKILL)
        await expect(inside(page)).to_have_text(IDE)
        await expect(page.locator("[data-cover]")).to_have_count(0)
        await expect(page.locator("#ide")).to_have_js_property("inert", False)
    lab.complaints.clear()  # of the browser, which lost its connections


async def test_a_start_is_called_off_over_the_frame(lab: Lab) -> None:
    async with lab.somebody("off") as context:
        page = await context.new_page()
        id_ = await lab.workspace("off", "Off", "late", "STANDBY")
        await page.goto(f"/open/{id_}", wait_until="commit")
        await page.get_by_role("button", name="Do not start it now").click()
        await page.wait_for_url(f"**/_codehub/cancelled/{id_}")
        await page.goto(f"/workspaces/{id_}")
        await expect(page.locator(".pill").first).to_contain_text("Asleep")
        assert await wakes(lab, id_) == 1
