"""An admin who was told nothing: from the bar to what runs, why, who did it, what is set, and who may come in.

By what the pages say alone, labels and roles, in a real Chromium on a platform that runs.
"""

from playwright.async_api import Page, expect

from tests.browser.conftest import IN_ONE_LOOP, WAIT_MS, Lab
from tests.platform import ADMIN_TOKEN

pytestmark = IN_ONE_LOOP
expect.set_options(timeout=WAIT_MS)


async def turn_to(page: Page, name: str, heading: str) -> None:
    """One of the admins' pages, which stand beside each other on all of them."""
    await page.get_by_role("navigation", name="Pages for admins").get_by_role("link", name=name).click()
    await expect(page.get_by_role("heading", level=1, name=heading)).to_be_visible()
    await expect(
        page.get_by_role("navigation", name="Pages for admins").get_by_role("link", name=name)
    ).to_have_attribute("aria-current", "page")


async def test_an_admin_finds_what_runs_why_and_who_and_lets_somebody_in(lab: Lab) -> None:
    await lab.login_link("sora")
    await lab.workspace("sora", "Essay", "tiny", "RUNNING")
    async with lab.somebody("boss", role="admin") as browser:
        page = await browser.new_page()
        await page.goto("/")
        await page.get_by_role("link", name="Operations").click()
        await expect(page.get_by_role("heading", level=1, name="Platform status")).to_be_visible()
        await page.get_by_label("Sleep after").fill("soon")
        await page.get_by_role("button", name="Work it out").click()
        await expect(page.get_by_role("alert")).to_contain_text("Type a time like 15m")
        await expect(page.get_by_label("Sleep after")).to_have_value("soon")
        await page.get_by_label("Sleep after").fill("15m")
        await page.get_by_role("button", name="Work it out").click()
        await expect(page.get_by_role("status").get_by_role("heading")).to_contain_text("Asleep after 15 min")

        await turn_to(page, "Workspaces", "Everybody's workspaces")
        await page.get_by_label("Name, owner or id").fill("sora")
        await page.get_by_role("button", name="Find").click()
        await page.get_by_role("checkbox", name="Choose Essay").check()
        await page.get_by_role("button", name="Put to sleep").dblclick()
        await expect(page.get_by_role("heading", name="Put to sleep: 1")).to_be_visible()
        await expect(page.get_by_role("paragraph").filter(has_text="That was all of them.")).to_be_visible()
        await page.get_by_role("link", name="Essay").click()
        await expect(page.get_by_text("boss put it to sleep").first).to_be_visible()
        await page.go_back()
        await expect(page.get_by_role("heading", name="Put to sleep: 1")).to_be_visible()

        await page.get_by_role("link", name="Operations").click()
        await turn_to(page, "Settings", "Settings in force")
        await page.get_by_role("link", name="All settings").click()
        await expect(page.get_by_text("CODEHUB_ADMIN_TOKEN", exact=True).first).to_be_visible()
        assert ADMIN_TOKEN not in await page.content()
        await turn_to(page, "Storage", "What would be removed")
        await page.get_by_role("button", name="Look now").click()
        await expect(page.get_by_role("button", name="Look again")).to_be_enabled()

        await turn_to(page, "People", "People")
        await page.get_by_text("Add a person").first.click()
        await page.get_by_label("User name", exact=True).fill("jiho")
        await page.get_by_role("button", name="Add, and make a login link").click()
        link = await page.get_by_role("textbox", name="Login link").input_value()
        async with lab.browser() as another:
            theirs = await another.new_page()
            await theirs.goto(link)
            await theirs.get_by_role("button", name="Log in as jiho").click()
            await expect(theirs.get_by_role("heading", level=1)).to_have_text("Hello, jiho")
        await turn_to(page, "Audit", "Who did what")
        await expect(page.get_by_text("jiho logged in").first).to_be_visible()
