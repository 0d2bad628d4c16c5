"""A workspace inside a page of ours: the IDE in a frame on its own origin, and what is said when it sleeps."""

import re

from playwright.async_api import Page, expect

from tests.browser.conftest import IN_ONE_LOOP, WAIT_MS, Lab, inside
from tests.browser.learning import SESSION, begin, give_plan
from tests.browser.test_player import type_in_terminal

pytestmark = IN_ONE_LOOP
expect.set_options(timeout=WAIT_MS)


def forgive_the_ide(lab: Lab) -> None:
    """Its page cannot know that it sleeps, and goes on asking: that is what the cover is for."""
    its_own = ("WebSocket connection", "Invalid response: 50")
    lab.complaints[:] = [said for said in lab.complaints if not any(part in said for part in its_own)]


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


async def test_a_session_is_practised_beside_the_ide(lab: Lab) -> None:
    async with lab.somebody("beside") as context:
        plan = await give_plan(lab, "beside", {**SESSION, "steps": ["PRACTICE", "COMPLETE"]})
        page = await context.new_page()
        await begin(page, plan["sessions"][0]["id"])
        await page.get_by_role("button", name="Open the workspace").click()
        await expect(inside(page)).to_contain_text("/w/")
        panel = page.frame_locator("#panel iframe")
        await expect(panel.get_by_text("The files for this session are in your workspace.")).to_be_visible()
        await expect(panel.get_by_role("button", name="Open the workspace")).to_be_hidden()
        await panel.get_by_role("button", name="Check my work").click()
        await expect(panel.get_by_text(re.compile("^Not yet."))).to_be_visible()
        toggle = page.get_by_role("button", name="Instructions")
        await toggle.click()
        await expect(page.locator("#panel")).to_be_hidden()
        await expect(toggle).to_have_attribute("aria-expanded", "false")
        await toggle.click()
        splitter = page.get_by_role("separator")
        await splitter.focus()
        for _ in range(3):
            await page.keyboard.press("ArrowRight")
        await expect(splitter).to_have_attribute("aria-valuenow", "40")
        await page.reload()
        await expect(splitter).to_have_attribute("aria-valuenow", "40")
        found = re.search(r"/open/([a-z0-9]+)", page.url)
        assert found
        await type_in_terminal(lab, found[1], "touch card.txt")
        await panel.get_by_role("button", name="Check my work").click()
        await panel.get_by_role("button", name="Finish the session").click()
        await expect(panel.get_by_role("heading", name="Session completed")).to_be_visible()
