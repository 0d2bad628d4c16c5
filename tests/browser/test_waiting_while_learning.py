"""A learner waits for a place in the lab without stopping to learn: LEARN and CHECK go on, only PRACTICE needs it.

Real `codehub serve` with one place, which another person's workspace has when a test begins; real browsers.
"""

import asyncio
import os
import re
import signal
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass

import aiohttp
import pytest
import pytest_asyncio
from playwright.async_api import BrowserContext, Locator, Page, expect

from tests.browser.conftest import IN_ONE_LOOP, WAIT_MS, Lab
from tests.browser.learning import SESSION, answer, begin, check, give_plan, read_all
from tests.places import a_place
from tests.platform import Platform, running
from tests.workspaces.ides import write_templates

pytestmark = IN_ONE_LOOP
expect.set_options(timeout=WAIT_MS)


@pytest.fixture(scope="module")
def small_platform() -> Iterator[Platform]:
    """With one place."""
    with (
        a_place() as folder,
        running(
            folder / "data",
            CODEHUB_TEMPLATES_DIR=str(write_templates(folder / "templates")),
            CODEHUB_MAX_RUNNING_GLOBAL="1",
            CODEHUB_DRAIN_SECONDS="1",
        ) as started,
    ):
        yield started


@dataclass
class FullLab:
    lab: Lab
    taken: str  # the workspace that has the place

    async def session(self, browser: BrowserContext, name: str) -> Page:
        session = (await give_plan(self.lab, name, SESSION))["sessions"][0]["id"]
        page = await browser.new_page()
        await begin(page, session)
        return page

    async def free_the_place(self) -> None:
        await self.lab.put_to_sleep(self.taken)


@pytest_asyncio.fixture(loop_scope="session")
async def full(lab: Lab) -> AsyncIterator[FullLab]:
    await lab.login_link("other")
    async with lab.platform.client() as admin:
        async with asyncio.timeout(WAIT_MS / 1000):
            while (taken := await take_the_place(admin)) is None:  # the pump has not seen yet that nobody waits
                await asyncio.sleep(0.05)
        yield FullLab(lab, taken)
        async with admin.get("/api/v1/workspaces") as listed:
            found = (await listed.json())["items"]
        for w in (w for w in found if w["desired_state"] == "RUNNING"):
            async with asyncio.timeout(WAIT_MS / 1000):
                while (await lab.state(admin, w["id"])) != ("RUNNING", "NONE"):
                    await asyncio.sleep(0.05)
            await lab.put_to_sleep(w["id"])


async def take_the_place(admin: aiohttp.ClientSession) -> str | None:
    wanted = {"name": "w", "template": "tiny", "owner": "other", "desired_state": "RUNNING"}
    async with admin.post("/api/v1/workspaces", json=wanted) as made:
        assert made.status in {201, 429}
        return str((await made.json())["id"]) if made.status == 201 else None


def bar(page: Page) -> Locator:
    return page.locator("[data-line]")


async def join(page: Page) -> None:
    await expect(bar(page)).to_contain_text("The lab is full right now.")
    await page.get_by_role("button", name="Wait in line").click()
    await expect(bar(page)).to_contain_text("You are number 1.")


async def take(page: Page) -> None:
    await expect(bar(page)).to_contain_text("It's your turn")
    await page.get_by_role("button", name="Take the place").click()


async def test_a_learner_goes_on_while_waiting_and_takes_the_place_from_any_step(full: FullLab) -> None:
    async with full.lab.somebody("mina") as browser:
        page = await full.session(browser, "mina")
        await join(page)
        await read_all(page)
        await expect(bar(page)).to_contain_text("You are number 1.")
        await answer(page)
        await page.get_by_label("Your answer").focus()
        await full.free_the_place()
        await expect(bar(page)).to_contain_text("It's your turn")
        await expect(page).to_have_title(re.compile("^Your turn!"))
        await expect(page.get_by_label("Your answer")).to_be_focused()
        await take(page)
        await expect(bar(page)).to_contain_text("your workspace is ready for the practice")
        await expect(page.get_by_label("Your answer")).to_have_value("range")
        await check(page)
        await expect(page.locator(".lab .pill")).to_contain_text("Running")
        await expect(page.get_by_role("button", name="Open the workspace")).to_be_visible()
        await expect(bar(page)).to_have_count(0)


async def test_at_the_practice_the_line_stands_in_place_of_a_refusal(full: FullLab) -> None:
    async with full.lab.somebody("jun") as browser:
        page = await full.session(browser, "jun")
        await read_all(page)
        await answer(page)
        await check(page)
        await expect(page.get_by_role("heading", name="This step needs a place in the lab")).to_be_visible()
        await expect(page.get_by_text("Write card.txt.")).to_be_visible()
        await expect(page.get_by_text("The card is there")).to_be_visible()
        await expect(page.get_by_role("button", name="Open the workspace")).to_have_count(0)
        await expect(page.get_by_role("button", name="Check my work")).to_have_count(0)
        await join(page)
        await page.reload()
        await expect(bar(page)).to_contain_text("You are number 1.")
        await page.get_by_role("button", name="Leave the line").click()
        await join(page)
        await full.free_the_place()
        await take(page)
        await expect(page.locator(".lab .pill")).to_contain_text("Running")
        await expect(page.get_by_role("button", name="Check my work")).to_be_visible()


async def test_two_tabs_and_the_waiting_page_share_one_place(full: FullLab) -> None:
    async with full.lab.somebody("sora") as browser:
        first = await full.session(browser, "sora")
        second = await browser.new_page()
        await second.goto(first.url)
        await expect(bar(second)).to_contain_text("The lab is full right now.")
        await join(first)
        await expect(bar(second)).to_contain_text("You are number 1.")
        waiting = await browser.new_page()
        await waiting.goto("/wait/lab")
        await expect(waiting.locator("#position")).to_have_text("1")
        await second.get_by_role("button", name="Leave the line").click()
        await expect(bar(first)).to_contain_text("The lab is full right now.")
        await join(second)
        await expect(bar(first)).to_contain_text("You are number 1.")
        await waiting.close()
        await full.free_the_place()
        await expect(bar(first)).to_contain_text("It's your turn")
        await take(second)
        await expect(bar(first)).to_contain_text("your workspace is ready for the practice")
        await expect(bar(second)).to_contain_text("your workspace is ready for the practice")


async def test_waiting_while_learning_works_without_javascript(full: FullLab) -> None:
    async with full.lab.somebody("bada", java_script_enabled=False) as browser:
        page = await full.session(browser, "bada")
        await page.get_by_role("button", name="Wait in line").click()
        await page.get_by_role("button", name="Continue").click()
        frame = page.frame_locator("iframe")
        await expect(frame.locator("[data-line]")).to_contain_text("You are number 1.")
        await expect(page.get_by_role("button", name="Leave the line")).to_have_count(0)  # but for the frame's
        await answer(page)
        await full.free_the_place()
        await expect(frame.locator("[data-line]")).to_contain_text("It's your turn")  # the page around it stood still
        await expect(page.get_by_label("Your answer")).to_have_value("range")
        await check(page)
        await page.frame_locator("iframe").get_by_role("button", name="Take the place").click()
        await expect(page.get_by_role("button", name=re.compile("pen the workspace"))).to_be_visible()


async def test_without_redis_the_bar_says_so_and_the_session_goes_on(full: FullLab) -> None:
    async with full.lab.somebody("nari") as browser:
        page = await full.session(browser, "nari")
        await join(page)
        redis = full.lab.platform.children()["redis"]
        os.kill(redis, signal.SIGSTOP)
        try:
            await read_all(page)
            await expect(page.get_by_text("Question 1 of 3")).to_be_visible()
            await expect(bar(page)).to_contain_text("The line cannot be seen right now.")
            await answer(page)
        finally:
            os.kill(redis, signal.SIGCONT)
        await expect(bar(page)).to_contain_text("You are number 1.")
        await expect(page.get_by_label("Your answer")).to_have_value("range")
