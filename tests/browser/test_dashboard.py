"""The dashboard in a real browser: the life of a workspace, live in two tabs; the same without JavaScript."""

import re

from playwright.async_api import Locator, Page, expect

from tests.browser.conftest import IN_ONE_LOOP, WAIT_MS, Lab

pytestmark = IN_ONE_LOOP
expect.set_options(timeout=WAIT_MS)


def card(page: Page, name: str) -> Locator:
    return page.locator("li.workspace", has=page.get_by_role("heading", name=name, exact=True))


async def choose(page: Page, name: str, action: str) -> None:
    """From the menu of a card."""
    await card(page, name).locator("details.menu > summary").click()
    await card(page, name).get_by_role("button", name=action).click()


async def create(page: Page, name: str) -> None:
    """As a person who has none yet, or some; ends in the workspace."""
    if await page.locator("details.adding").count():
        await page.locator("details.adding > summary").click()
    await page.get_by_label("tiny").check()
    await page.get_by_label("Name").fill(name)
    await page.get_by_role("button", name="Create and open").click()
    await expect(page).to_have_url(re.compile(r"/w/[a-z0-9]+/$"))


async def test_a_workspaces_life_is_live_in_two_tabs(lab: Lab) -> None:
    async with lab.somebody("mina") as browser:
        here, there = await browser.new_page(), await browser.new_page()
        await there.goto("/")
        await expect(there.get_by_role("heading", name="Your first workspace")).to_be_visible()
        await here.goto("/")
        await create(here, "Week 3")
        await expect(here.locator("body")).to_contain_text(re.compile(r"^\d+ /w/"))  # what the small IDE says

        await expect(card(there, "Week 3").locator(".pill")).to_contain_text("Running")
        await here.goto("/")
        await choose(here, "Week 3", "Put to sleep")
        for tab in (here, there):
            await expect(card(tab, "Week 3").locator(".pill")).to_contain_text("Asleep")
        await choose(there, "Week 3", "Delete")
        for tab in (here, there):
            await expect(card(tab, "Week 3")).to_have_count(0)
        await expect(here.get_by_text("Trash (1)")).to_be_visible()
        await there.get_by_role("button", name="Undo").click()
        for tab in (here, there):
            await expect(card(tab, "Week 3")).to_be_visible()
            await expect(tab.get_by_text("Trash (")).to_have_count(0)
