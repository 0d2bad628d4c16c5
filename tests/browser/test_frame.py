"""A workspace inside a page of ours: the IDE in a frame on its own origin, and what is said when it sleeps."""

import asyncio
import re

from playwright.async_api import Page, expect

from tests.browser.conftest import IN_ONE_LOOP, START_SECONDS, WAIT_MS, Lab, inside
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


LOOK = "document.querySelector('[data-live]').dispatchEvent(new Event('look'))"


async def states_since(lab: Lab, id_: str) -> list[str]:
    """Where it went, the newest first."""
    async with lab.platform.client() as admin, admin.get(f"/api/v1/workspaces/{id_}/history") as answer:
        return [line["to_state"] for line in (await answer.json())["items"] if line["to_state"]]


async def test_who_is_put_to_sleep_while_a_page_with_instructions_is_open_stays_asleep(lab: Lab) -> None:
    """As soon as it runs, when the panel may just be asking for the session's files."""
    async with lab.somebody("stays") as context:
        plan = await give_plan(lab, "stays", {**SESSION, "steps": ["PRACTICE", "COMPLETE"]})
        page = await context.new_page()
        await begin(page, plan["sessions"][0]["id"])
        await page.get_by_role("button", name="Open the workspace").click()
        await page.wait_for_url(re.compile("/open/"))
        found = re.search(r"/open/([a-z0-9]+)", page.url)
        assert found
        async with lab.platform.client() as admin, asyncio.timeout(START_SECONDS):
            while (await lab.state(admin, found[1]))[0] != "RUNNING":
                await asyncio.sleep(0.05)
        await lab.put_to_sleep(found[1])
        before = await states_since(lab, found[1])
        await expect(page.locator("[data-cover=asleep]")).to_be_visible()
        panel = next(frame for frame in page.frames if "/sessions/" in frame.url)
        await expect(page.frame_locator("#panel iframe").locator(".lab .asleep")).to_be_visible()
        for frame, path in ((page.main_frame, "/open/"), (panel, "/sessions/")):
            async with page.expect_response(re.compile(path)):
                await frame.evaluate(LOOK)
        async with lab.platform.client() as admin:
            assert await lab.state(admin, found[1]) == ("STANDBY", "NONE")
        assert await states_since(lab, found[1]) == before
    forgive_the_ide(lab)


async def test_a_page_that_is_behind_wakes_nothing_to_put_files_there(lab: Lab) -> None:
    async with lab.somebody("behind", java_script_enabled=False) as context:
        plan = await give_plan(lab, "behind", {**SESSION, "steps": ["PRACTICE", "COMPLETE"]})
        page = await context.new_page()
        await begin(page, plan["sessions"][0]["id"])
        session = page.url
        await page.get_by_role("button", name="Open the workspace").click()
        found = re.search(r"/open/([a-z0-9]+)", page.url)
        assert found
        async with lab.platform.client() as admin, asyncio.timeout(START_SECONDS):
            while await lab.state(admin, found[1]) != ("RUNNING", "NONE"):
                await asyncio.sleep(0.05)
        await page.goto(session)
        await expect(page.get_by_role("button", name="Put the files there")).to_be_visible()
        await lab.put_to_sleep(found[1])
        before = await states_since(lab, found[1])
        await page.get_by_role("button", name="Put the files there").click()
        await expect(page.locator(".lab .asleep")).to_be_visible()
        async with lab.platform.client() as admin:
            assert await lab.state(admin, found[1]) == ("STANDBY", "NONE")
        assert await states_since(lab, found[1]) == before
