"""Everybody's workspaces in two admins' browsers, on a platform that runs: what one does, the other sees."""

from playwright.async_api import Locator, Page, expect

from tests.browser.conftest import IN_ONE_LOOP, WAIT_MS, Lab

pytestmark = IN_ONE_LOOP
expect.set_options(timeout=WAIT_MS)


def row(page: Page, name: str) -> Locator:
    return page.locator("ul.found > li", has=page.get_by_text(name, exact=True))


async def test_what_one_admin_asks_of_several_another_sees_live_and_keeps_their_ticks(lab: Lab) -> None:
    await lab.login_link("hana")  # an account
    for name in ("Essay", "Robot"):
        await lab.workspace("hana", name, "tiny", "STANDBY")
    async with lab.somebody("boss", role="admin") as first, lab.somebody("chief", role="admin") as second:
        here, there = await first.new_page(), await second.new_page()
        for page in (here, there):
            await page.goto("/workspaces?owner=hana")
            await expect(row(page, "Essay").locator(".pill")).to_contain_text("Asleep")
        await there.get_by_role("checkbox", name="Choose Robot").check()

        await here.get_by_role("checkbox", name="Choose Essay").check()
        await here.get_by_role("button", name="Wake").click()
        await expect(here.locator("p.lead", has_text="That was all")).to_be_visible()
        await expect(row(here, "Essay").locator(".pill")).to_contain_text("Done")
        await expect(row(there, "Essay").locator(".pill")).to_contain_text("Running")
        await expect(there.locator(".chips")).to_contain_text("Running 1")
        await expect(there.get_by_role("checkbox", name="Choose Robot")).to_be_checked()
        await expect(there.get_by_role("checkbox", name="Choose Essay")).not_to_be_checked()

        await there.get_by_role("checkbox", name="Choose Essay").check()
        await there.get_by_role("button", name="Delete").click()
        await expect(there.locator("p.lead", has_text="That was all")).to_be_visible()
        await there.get_by_role("button", name="Undo").click()
        await expect(there.get_by_role("heading", name="Bring back: 2")).to_be_visible()
        await expect(there.locator("p.lead", has_text="That was all")).to_be_visible()
        for name in ("Essay", "Robot"):
            await expect(row(there, name).locator(".pill")).to_contain_text("Done")


async def test_the_same_without_javascript(lab: Lab) -> None:
    await lab.login_link("duri")
    await lab.workspace("duri", "Notes", "tiny", "STANDBY")
    async with lab.somebody("boss", role="admin", java_script_enabled=False) as browser:
        page = await browser.new_page()
        await page.goto("/workspaces?owner=duri")
        await page.get_by_role("checkbox", name="All 1 that match").check()
        await page.get_by_role("button", name="Store away").click()
        await expect(page.get_by_role("heading", name="Store away: 1")).to_be_visible()
        while not await page.get_by_text("That was all of them").count():
            await page.reload()
        await expect(row(page, "Notes").locator(".pill")).to_contain_text("Done")
