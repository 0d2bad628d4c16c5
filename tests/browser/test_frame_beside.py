"""Instructions beside the IDE stay what one reads, whatever the workspace does; news has a place of its own."""

import asyncio
import re
from typing import Any

from playwright.async_api import BrowserContext, FrameLocator, Locator, Page, ViewportSize, expect

from tests.browser.conftest import AFTER_A_LINK, IN_ONE_LOOP, WAIT_MS, Lab
from tests.browser.learning import SESSION, begin, give_plan
from tests.browser.test_frame import forgive_the_ide

pytestmark = IN_ONE_LOOP
expect.set_options(timeout=WAIT_MS)
WIDE, PHONE = ViewportSize(width=1280, height=800), ViewportSize(width=390, height=780)
LONG = "# Cards\n\n" + "\n\n".join(f"Paragraph {n}: write `card.txt`." for n in range(40))
PRACTICE = {**SESSION["practiceActivity"], "template": "terminal", "instructions": LONG}
TO_PARAGRAPH = "() => { scrollTo(0, 700); window.mark = 'the same page'; return scrollY; }"
READS = "[scrollY, window.mark]"
FOCUSED = "document.activeElement.closest('#panel') ? 'panel' : document.activeElement.id"
IN_THE_BAR = """id => {
  const places = ["header", `#${id}`, "main"].map((at) => document.querySelector(at).getBoundingClientRect());
  const [header, news, main] = places;
  return news.height > 0 && header.top <= news.top && news.bottom <= main.top;
}"""
JUST_MS = 61_000  # after which nobody has "just" come in


async def practise(lab: Lab, context: BrowserContext, owner: str) -> tuple[Page, FrameLocator, str]:
    """The page with both, the instructions, the workspace's id."""
    plan = await give_plan(lab, owner, {**SESSION, "steps": ["PRACTICE", "COMPLETE"], "practiceActivity": PRACTICE})
    page = await context.new_page()
    await page.clock.install()
    await begin(page, plan["sessions"][0]["id"])
    await page.get_by_role("button", name="Open the workspace").click()
    panel = page.frame_locator("#panel iframe")
    await expect(panel.get_by_text("The files for this session are in your workspace.")).to_be_visible()
    await expect(terminal(page)).to_be_attached()
    found = re.search(r"/open/([a-z0-9]+)", page.url)
    assert found
    return page, panel, found[1]


def terminal(page: Page) -> Locator:
    return page.frame_locator("#ide").locator(".xterm-screen").first


async def box(locator: Locator) -> Any:
    found = await locator.bounding_box()
    assert found
    return found


async def read(page: Page) -> None:
    """Until the keyboard is there: an IDE that has just come takes it for itself."""
    async with asyncio.timeout(WAIT_MS / 1000):
        while await page.evaluate(FOCUSED) != "panel":
            await page.locator("#panel iframe").focus()


async def put_to_sleep(lab: Lab, page: Page, id_: str) -> None:
    await lab.put_to_sleep(id_)
    await expect(page.locator("[data-cover=asleep]")).to_be_attached()


async def test_who_reads_the_instructions_reads_on_while_the_workspace_sleeps_and_when_it_wakes(lab: Lab) -> None:
    async with lab.somebody("reads", viewport=WIDE) as context:
        page, panel, id_ = await practise(lab, context, "reads")
        instructions = next(frame for frame in page.frames if "/sessions/" in frame.url)
        await expect(page.frame_locator("#ide").locator(".xterm-rows")).to_contain_text(re.compile("[$#]"))
        await read(page)
        before = [await instructions.evaluate(TO_PARAGRAPH), "the same page"]
        await put_to_sleep(lab, page, id_)
        assert await page.evaluate(FOCUSED) == "panel"
        assert await instructions.evaluate(READS) == before
        cover, ide, beside = (
            await box(page.locator(".frame-cover")),
            await box(page.locator("#ide")),
            page.locator("#panel"),
        )
        assert {n: round(cover[n]) for n in cover} == {n: round(ide[n]) for n in ide}
        assert cover["x"] >= (await box(beside))["x"] + (await box(beside))["width"]

        await panel.get_by_role("button", name="Check my work").click()  # which wakes it, and then checks
        await expect(panel.get_by_text(re.compile("^Not yet."))).to_be_visible()
        await expect(terminal(page)).to_be_visible()
        await expect(page.locator("[data-cover]")).to_have_count(0)
        assert await instructions.evaluate("window.mark") == "the same page"

        await put_to_sleep(lab, page, id_)
        await page.get_by_role("link", name="Wake").dblclick()
        await expect(terminal(page)).to_be_visible()
        await expect(page.locator("[data-cover]")).to_have_count(0)
        await expect(page.locator("#ide")).to_be_focused()
        assert await instructions.evaluate("window.mark") == "the same page"
    forgive_the_ide(lab)


async def test_on_a_phone_the_instructions_are_seen_while_it_sleeps_and_waking_it_there_leads_to_the_ide(
    lab: Lab,
) -> None:
    async with lab.somebody("pocket", viewport=PHONE) as context:
        page, panel, id_ = await practise(lab, context, "pocket")
        await put_to_sleep(lab, page, id_)
        await expect(page.locator(".frame-cover")).to_be_hidden()
        await panel.get_by_text("Paragraph 12:").click()
        await panel.get_by_role("button", name="Wake and open the workspace").click()
        await expect(page.locator("#panel")).to_be_hidden()
        await expect(terminal(page)).to_be_visible()
        await expect(page.locator("[data-cover]")).to_have_count(0)
    forgive_the_ide(lab)


async def test_news_is_said_once_in_the_bar_lies_over_nothing_and_goes(lab: Lab) -> None:
    async with lab.somebody("told", viewport=WIDE) as context, lab.browser() as guest:
        page, panel, id_ = await practise(lab, context, "told")
        visitor = await guest.new_page()
        await visitor.goto(await lab.login_link("root-visits", "admin"))
        await visitor.get_by_role("button").click()
        await visitor.wait_for_url(AFTER_A_LINK)
        await visitor.goto(f"/open/{id_}")
        said = page.locator("#visited")
        await expect(said).to_contain_text("root-visits has just come into your workspace")
        await expect(panel.locator(".banner")).to_have_count(0)
        await lies_over_nothing(page, said)
        assert (await box(page.locator("header")))["height"] < 50  # in the bar's own place
        await page.set_viewport_size(PHONE)
        await lies_over_nothing(page, said)
        assert (await box(said))["y"] > (await box(page.locator(".frame-now")))["y"]  # below what the bar says
        await page.clock.fast_forward(JUST_MS)
        await expect(said).to_be_hidden()
        await context.set_offline(True)
        away = page.locator("#offline")
        for size in (PHONE, WIDE):
            await page.set_viewport_size(size)
            await expect(away).to_be_visible()
            await lies_over_nothing(page, away)
        await context.set_offline(False)
        await expect(away).to_be_hidden()
    forgive_the_ide(lab)


async def lies_over_nothing(page: Page, banner: Locator) -> None:
    """In the bar, and everything else below it; measured at one moment, in which it is seen."""
    await page.wait_for_function(IN_THE_BAR, arg=await banner.get_attribute("id"))
