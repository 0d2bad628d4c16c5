"""A workspace inside a page of ours: the IDE in a frame on its own origin, and what is said when it sleeps."""

import re

from playwright.async_api import Page, expect

from tests.browser.conftest import IN_ONE_LOOP, WAIT_MS, Lab

pytestmark = IN_ONE_LOOP
expect.set_options(timeout=WAIT_MS)


def forgive_the_ide(lab: Lab) -> None:
    """Its page cannot know that it sleeps, and goes on asking: that is what the cover is for."""
    lab.complaints[:] = [said for said in lab.complaints if "WebSocket connection" not in said]


async def opened(lab: Lab, page: Page, owner: str, template: str = "terminal") -> str:
    id_ = await lab.workspace(owner, "Lab 1", template, "RUNNING")
    await page.goto(f"/open/{id_}")
    return id_


async def test_an_ide_works_inside_the_page_and_is_woken_from_there(lab: Lab) -> None:
    async with lab.somebody("mina") as context:
        page = await context.new_page()
        id_ = await opened(lab, page, "mina")
        await expect(page).to_have_title("Lab 1 · CodeHub")
        ide = page.frame_locator("#ide")
        await expect(ide.locator(".xterm-screen").first).to_be_visible()
        await ide.locator(".xterm-helper-textarea").first.focus()
        await page.keyboard.type("echo fr''amed\n")
        await expect(ide.locator("body")).to_contain_text("framed")
        await lab.put_to_sleep(id_)
        cover = page.locator("[data-cover=asleep]")
        await expect(cover).to_be_visible()
        await expect(page.get_by_role("link", name="Wake")).to_be_focused()
        await expect(page.locator("#ide")).to_have_js_property("inert", True)
        await page.keyboard.press("Enter")
        await expect(ide.locator(".xterm-screen").first).to_be_visible()
        assert re.fullmatch(rf".*/open/{id_}", page.url)
    forgive_the_ide(lab)
