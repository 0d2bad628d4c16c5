"""Schedules on the class's page in a real browser: by keyboard, by a double click, and without JavaScript."""

import re
from datetime import datetime, timedelta

from playwright.async_api import Page, expect

from tests.browser.conftest import IN_ONE_LOOP, WAIT_MS, Lab

pytestmark = IN_ONE_LOOP
expect.set_options(timeout=WAIT_MS)


async def a_class(page: Page, title: str) -> None:
    await page.goto("/classes")
    await page.get_by_label("Name of the class").fill(title)
    await page.get_by_role("button", name="Make the class").click()
    await expect(page.get_by_role("heading", name=title)).to_be_visible()


async def test_a_schedule_is_added_by_the_keyboard_alone(lab: Lab) -> None:
    async with lab.somebody("kim-keys", role="teacher") as teacher:
        page = await teacher.new_page()
        await a_class(page, "Keys")
        await page.locator("#schedule-new > summary").focus()
        await page.keyboard.press("Enter")
        await page.keyboard.press("Tab")
        await expect(page.get_by_label("Monday")).to_be_focused()
        await page.keyboard.press("Space")
        for _ in range(7):
            await page.keyboard.press("Tab")
        await expect(page.get_by_label("The lesson begins at")).to_be_focused()
        await page.keyboard.type("0855AM")
        await page.get_by_label("Time zone").select_option("Asia/Seoul")
        await page.get_by_label("The lesson begins at").press("Enter")
        await expect(page.locator("article.schedule h3")).to_contain_text("Monday 08:55")
        await expect(page.locator("article.schedule")).to_contain_text("Next: ")


async def test_a_double_click_adds_one_and_skips_one_lesson(lab: Lab) -> None:
    async with lab.somebody("kim-twice", role="teacher") as teacher:
        page = await teacher.new_page()
        await a_class(page, "Twice")
        await page.locator("#schedule-new > summary").click()
        for day in ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"):
            await page.get_by_label(day).check()
        await page.get_by_label("The lesson begins at").fill("08:55")
        await page.locator("#schedule-new button").dblclick()
        await expect(page.locator("article.schedule")).to_have_count(1)
        await page.reload()
        await expect(page.locator("article.schedule")).to_have_count(1)
        before = await page.locator("article.schedule input[name=begins_at]").get_attribute("value")
        await page.get_by_role("button", name=re.compile("Skip the next one")).dblclick()
        await expect(page.locator("article.schedule")).to_contain_text("Left out: ")
        after = await page.locator("article.schedule input[name=begins_at]").get_attribute("value")
        assert before
        assert after
        days = datetime.fromisoformat(after).date() - datetime.fromisoformat(before).date()
        assert days == timedelta(days=1)  # not two


async def test_without_javascript_it_is_added_refused_paused_and_deleted(lab: Lab) -> None:
    async with lab.somebody("kim-plain", role="teacher", java_script_enabled=False) as teacher:
        page = await teacher.new_page()
        await a_class(page, "Plain")
        await page.locator("#schedule-new > summary").click()
        await page.get_by_label("The lesson begins at").fill("08:55")
        await page.locator("#schedule-new button").click()
        await expect(page.get_by_text("Choose at least one day of the week.")).to_be_visible()
        await expect(page.get_by_label("The lesson begins at")).to_have_value("08:55")
        await page.get_by_label("Friday").check()
        await page.locator("#schedule-new button").click()
        await expect(page.locator("article.schedule")).to_contain_text("Friday 08:55")
        await page.get_by_role("button", name="Pause").click()
        await expect(page.locator("article.schedule")).to_contain_text("Paused")
        await page.get_by_role("button", name="Go on").click()
        await expect(page.locator("article.schedule")).to_contain_text("Next: ")
        await page.locator("article.schedule summary", has_text="Delete").click()
        await page.locator("article.schedule .sure-body button").click()
        await expect(page.locator("article.schedule")).to_have_count(0)
