"""The dashboard in a real browser: the life of a workspace, live in two tabs; the same without JavaScript."""

import re

from playwright.async_api import Locator, Page, expect

from tests.browser.conftest import IN_ONE_LOOP, WAIT_MS, Lab, inside

pytestmark = IN_ONE_LOOP
expect.set_options(timeout=WAIT_MS)
IDE = re.compile(r"^\d+ /w/")  # what the small IDE says


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
    await expect(page).to_have_url(re.compile(r"/open/[a-z0-9]+$"))


async def test_a_workspaces_life_is_live_in_two_tabs(lab: Lab) -> None:
    async with lab.somebody("mina") as browser:
        here, there = await browser.new_page(), await browser.new_page()
        await there.goto("/")
        await expect(there.get_by_role("heading", name="Your first workspace")).to_be_visible()
        await here.goto("/")
        await create(here, "Week 3")
        await expect(inside(here)).to_contain_text(IDE)

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


async def test_the_same_life_without_javascript(lab: Lab) -> None:
    async with lab.somebody("jun", java_script_enabled=False) as browser:
        page = await browser.new_page()
        await page.goto("/")
        await create(page, "No script")
        await expect(inside(page)).to_contain_text(IDE)  # held until it answered, and then the page loads itself again

        async def reload_until(text: str) -> None:
            while text not in await card(page, "No script").inner_text():
                await page.reload()

        await page.goto("/")
        await reload_until("Running")
        await choose(page, "No script", "Put to sleep")
        await reload_until("Asleep")
        await choose(page, "No script", "Delete")
        await expect(page.get_by_text("is in the trash")).to_be_visible()
        await expect(card(page, "No script")).to_have_count(0)
        await page.get_by_role("button", name="Undo").click()
        await expect(card(page, "No script")).to_be_visible()
        await card(page, "No script").get_by_role("link", name="No script").click()
        await page.get_by_label("Name", exact=True).fill("Renamed")
        await page.get_by_role("button", name="Save the name").click()
        await expect(page.get_by_role("heading", name="Renamed")).to_be_visible()


async def test_a_sleeping_workspace_wakes_and_enters_without_a_click(lab: Lab) -> None:
    async with lab.somebody("sol") as browser:
        page = await browser.new_page()
        id_ = await lab.workspace("sol", "Nap", "tiny", "STANDBY")
        await page.goto("/")
        await expect(card(page, "Nap").locator(".pill")).to_contain_text("Asleep")
        await card(page, "Nap").get_by_role("link", name="Wake and open").click()
        await expect(inside(page)).to_contain_text(IDE)
        await expect(page).to_have_url(re.compile(rf"/open/{id_}$"))


async def test_an_ide_that_never_answers_ends_in_words_by_itself(lab: Lab) -> None:
    async with lab.somebody("hana") as browser:
        page = await browser.new_page()
        id_ = await lab.workspace("hana", "Stuck", "hangs", "RUNNING")
        await page.goto(f"/w/{id_}/")
        await expect(page.get_by_role("heading", name="Stuck is waking up")).to_be_visible()
        await expect(page.locator("[data-step=start].now")).to_be_visible()
        await expect(page.locator("#so-far")).to_contain_text(re.compile(r"[2-9] s so far"))
        await expect(page.get_by_role("heading", name="Something went wrong")).to_be_visible()
        await expect(page.get_by_text("Your files are safe.")).to_be_visible()
        await page.get_by_role("button", name="Try again").click()
        await expect(page.get_by_role("heading", name="Stuck is waking up")).to_be_visible()


async def test_the_waking_page_says_when_nothing_answers_and_goes_on_by_itself(lab: Lab) -> None:
    async with lab.somebody("ines") as browser:
        page = await browser.new_page()
        id_ = await lab.workspace("ines", "Cut off", "hangs", "RUNNING")
        await page.goto(f"/w/{id_}/")
        await browser.set_offline(True)
        await expect(page.get_by_text("No answer from CodeHub.")).to_be_visible()
        await expect(page.get_by_role("link", name="Try again")).to_be_visible()
        await browser.set_offline(False)
        await expect(page.get_by_role("heading", name="Something went wrong")).to_be_visible()


async def test_a_refusal_stands_beside_its_card_and_nothing_typed_is_lost(lab: Lab) -> None:
    async with lab.somebody("yuna") as browser:
        for name in ("One", "Two"):
            await lab.workspace("yuna", name, "tiny", "RUNNING")
        await lab.workspace("yuna", "Three", "tiny", "STANDBY")
        page = await browser.new_page()
        await page.goto("/")
        await choose(page, "Three", "Start in the background")
        await expect(card(page, "Three").get_by_role("alert")).to_contain_text("2 of 2 are running. Put one to sleep")
        await page.locator("details.adding > summary").click()
        await page.get_by_label("Name").fill("Four, with care")
        await page.get_by_label("tiny").check()
        await page.get_by_role("button", name="Create and open").click()
        await expect(page.get_by_role("alert").first).to_contain_text("No more may run at the moment.")
        await expect(page.get_by_label("Name")).to_have_value("Four, with care")
        await expect(page.get_by_label("tiny")).to_be_checked()
        await expect(page).to_have_url(re.compile(r"/$"))  # a reload does not say it again


async def test_offline_is_said_and_caught_up_with(lab: Lab) -> None:
    async with lab.somebody("noor") as browser:
        id_ = await lab.workspace("noor", "Far", "tiny", "STANDBY")
        page = await browser.new_page()
        await page.goto("/")
        await browser.set_offline(True)
        await choose(page, "Far", "Delete")
        await expect(page.get_by_text("No connection.")).to_be_visible()
        await expect(card(page, "Far")).to_be_visible()
        await expect(card(page, "Far").locator(".now")).to_have_text("Opens in seconds.")  # as before the click
        await lab.rename(id_, "Near")
        await browser.set_offline(False)
        await expect(card(page, "Near")).to_be_visible()
        await expect(page.get_by_text("No connection.")).to_be_hidden()


async def test_a_session_that_ended_elsewhere_is_said(lab: Lab) -> None:
    async with lab.somebody("ari") as browser:
        await lab.workspace("ari", "Mine", "tiny", "STANDBY")
        here, there = await browser.new_page(), await browser.new_page()
        await here.goto("/")
        await there.goto("/")
        await there.get_by_role("button", name="Log out").click()
        await expect(there.get_by_role("heading", name="Log in to CodeHub")).to_be_visible()
        await choose(here, "Mine", "Delete")
        await expect(here.get_by_text("Your session has ended.")).to_be_visible()
        await expect(card(here, "Mine").locator(".now")).to_have_text("Opens in seconds.")


async def test_the_menu_works_by_keyboard_and_stays_open_through_news(lab: Lab) -> None:
    async with lab.somebody("bo") as browser:
        id_ = await lab.workspace("bo", "Keys", "tiny", "STANDBY")
        page = await browser.new_page()
        await page.goto("/")
        menu = page.locator("details.menu")
        await menu.locator("summary").focus()
        await page.keyboard.press("Enter")
        await page.keyboard.press("ArrowDown")
        await expect(page.get_by_role("button", name="Start in the background")).to_be_focused()
        await lab.rename(id_, "Other keys")
        await expect(card(page, "Other keys")).to_be_visible()
        await expect(page.get_by_role("button", name="Start in the background")).to_be_focused()
        await page.keyboard.press("Escape")
        await expect(menu.locator("summary")).to_be_focused()
        await expect(menu).not_to_have_attribute("open", "")


async def test_a_double_click_asks_once(lab: Lab) -> None:
    async with lab.somebody("kai") as browser:
        id_ = await lab.workspace("kai", "Twice", "tiny", "STANDBY")
        page = await browser.new_page()
        await page.goto("/")
        await card(page, "Twice").locator("details.menu > summary").click()
        await card(page, "Twice").get_by_role("button", name="Start in the background").dblclick()
        await expect(card(page, "Twice").locator(".pill")).to_contain_text("Running")
        async with lab.platform.client() as client, client.get(f"/api/v1/workspaces/{id_}/history") as answer:
            events = [(e["event"], e["to_state"]) for e in (await answer.json())["items"]]
        assert events.count(("wish", "RUNNING")) == 1


async def test_a_half_typed_name_survives_the_news(lab: Lab) -> None:
    async with lab.somebody("theo") as browser:
        page = await browser.new_page()
        await page.goto("/")
        await page.get_by_label("Name").fill("Half a na")
        await lab.workspace("theo", "From elsewhere", "tiny", "STANDBY")
        await expect(card(page, "From elsewhere")).to_be_visible()
        await expect(page.get_by_label("Name")).to_have_value("Half a na")
        await expect(page.get_by_label("Name")).to_be_focused()


async def test_deleting_from_a_workspaces_own_page_leads_to_where_it_can_be_undone(lab: Lab) -> None:
    async with lab.somebody("uma") as browser:
        id_ = await lab.workspace("uma", "Gone", "tiny", "STANDBY")
        page = await browser.new_page()
        await page.goto(f"/workspaces/{id_}")
        await page.get_by_role("button", name="Delete").click()
        await expect(page.get_by_text("“Gone” is in the trash.")).to_be_visible()
        await page.get_by_role("button", name="Undo").click()
        await expect(card(page, "Gone")).to_be_visible()
