"""One's account and the people of a lab, in a real Chromium: without JavaScript, and by keyboard alone."""

from playwright.async_api import expect

from tests.browser.conftest import IN_ONE_LOOP, Lab

pytestmark = IN_ONE_LOOP


async def test_an_admin_adds_a_person_who_then_comes_in_and_says_their_name_without_javascript(lab: Lab) -> None:
    async with lab.somebody("boss", role="admin", java_script_enabled=False) as boss:
        page = await boss.new_page()
        await page.goto("/people")
        await page.get_by_text("Add a person").click()
        await page.get_by_label("User name", exact=True).fill("seoyeon")
        await page.locator("details.adding").get_by_label("Display name").fill("김서연")
        await page.get_by_role("button", name="Add, and make a login link").click()
        link = await page.get_by_label("Login link", exact=True).input_value()
        await page.reload()
        assert await page.get_by_label("Login link", exact=True).count() == 0
        async with lab.browser(java_script_enabled=False) as hers:
            her_page = await hers.new_page()
            await her_page.goto(link)
            await her_page.get_by_role("button").click()
            await her_page.goto("/account")
            await her_page.get_by_label("Display name").fill("서연")
            await her_page.get_by_role("combobox", name="Language").select_option("ko")
            await her_page.get_by_role("button", name="Save").click()
            assert await her_page.get_attribute("html", "lang") == "ko"
            await page.goto("/people?q=서연")
            assert await page.locator("#p-seoyeon strong").text_content() == "서연"


async def test_a_person_is_removed_by_keyboard_alone_and_is_asked_first(lab: Lab) -> None:
    async with lab.somebody("chief", role="admin") as chief:
        await lab.login_link("leaver")
        page = await chief.new_page()
        await page.goto("/people?q=leaver")
        await page.locator("#menu-leaver > summary").focus()
        await page.keyboard.press("Enter")
        await page.locator("#menu-leaver details.sure > summary").last.focus()
        await page.keyboard.press("Enter")
        await page.keyboard.press("Tab")
        await page.keyboard.press("Space")
        await page.keyboard.press("Tab")
        await page.keyboard.press("Enter")
        await page.get_by_text("The person is removed").wait_for()
        await page.goto("/people?q=leaver")
        assert await page.locator("#p-leaver").count() == 0


async def test_what_came_of_a_form_is_seen_on_a_telephone_without_scrolling(lab: Lab) -> None:
    async with lab.somebody("far-down", viewport={"width": 360, "height": 640}, java_script_enabled=False) as browser:
        page = await browser.new_page()
        await page.goto("/account")
        await page.get_by_label("New password").fill("seven green boats sail")
        await page.get_by_role("button", name="Set the password").click()
        await expect(page.locator("#password .flash")).to_be_in_viewport()
        await page.get_by_label("Current password").fill("another one, wrong")
        await page.get_by_label("New password").fill("eight green boats sail")
        await page.get_by_role("button", name="Change the password").click()
        await expect(page.locator("#password .problem")).to_be_in_viewport()
        await page.get_by_label("Display name").fill("서연")
        await page.get_by_role("button", name="Save").click()
        await expect(page.locator("#profile .flash")).to_be_in_viewport()
        await expect(page.get_by_role("heading", level=1)).to_be_in_viewport()
