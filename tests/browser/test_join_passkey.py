"""Joining a class on a telephone with a passkey instead of a password, in Chromium, with its virtual authenticator."""

from typing import Any

from playwright.async_api import Page, expect

from tests.browser.authenticators import Device
from tests.browser.conftest import IN_ONE_LOOP, WAIT_MS, Lab
from tests.browser.test_classes import PHONE, a_code_on_the_wall
from tests.browser.test_passkeys import address, home, sign_in, use, whose

pytestmark = IN_ONE_LOOP
expect.set_options(timeout=WAIT_MS)
INSTEAD = "Use a passkey instead: your fingerprint, your face or a PIN"


async def a_code(lab: Lab, teacher: str) -> str:
    async with lab.somebody(teacher, role="teacher") as browser:
        return (await a_code_on_the_wall(await browser.new_page(), "Python, Mondays")).replace(" ", "")


async def fill(page: Page, code: str, name: str) -> None:
    await page.goto(f"/join/{code}")
    await page.get_by_label("Your name").fill("김민아")
    await page.get_by_label("User name").fill(name)


def go(page: Page) -> Any:
    return page.get_by_role("button", name="Join the class").click()


async def test_a_learner_joins_with_a_passkey_and_logs_in_with_it_again(lab: Lab) -> None:
    """A name that is taken is said first, with what was chosen and typed kept; nothing is on the device by then."""
    code = await a_code(lab, "kim-keys")
    async with lab.browser(base_url=home(lab), viewport=PHONE) as phone:
        page = await phone.new_page()
        device = await Device.plug_in(page)
        await fill(page, code, "kim-keys")
        await page.get_by_role("button", name=INSTEAD).click()
        await expect(page.get_by_label("Password", exact=True)).to_be_hidden()
        await go(page)
        await expect(page.get_by_label("User name")).to_have_value("kim-keys2")
        await expect(page.get_by_label("User name")).to_be_focused()
        await expect(page.get_by_label("Your name")).to_have_value("김민아")
        await expect(page.get_by_role("button", name="Use a password instead")).to_be_visible()
        assert await device.passkeys() == []
        await page.get_by_label("User name").fill("Mina-Keys")
        await go(page)
        await expect(page.get_by_text("Next time, log in with your passkey.")).to_be_visible()
        (passkey,) = await device.passkeys()
        assert await whose(phone) == "mina-keys"
        await page.close()
        await phone.request.post("/logout")
        page, _ = await sign_in(phone, passkey)
        await use(page)
        await page.wait_for_url(f"{home(lab)}/")
        assert await whose(phone) == "mina-keys"


async def test_who_does_not_unlock_the_device_is_not_in_and_can_take_a_password(lab: Lab) -> None:
    code = await a_code(lab, "kim-locked")
    async with lab.browser(base_url=home(lab), viewport=PHONE) as phone:
        page = await phone.new_page()
        device = await Device.plug_in(page)
        await device.unlocks(yes=False)
        await fill(page, code, "mina-locked")
        await page.get_by_role("button", name=INSTEAD).click()
        await go(page)
        await expect(page.get_by_text("You are not in yet")).to_be_visible()
        assert await whose(phone) is None
        await page.get_by_role("button", name="Use a password instead").click()
        await expect(page.get_by_label("Password", exact=True)).to_be_focused()
        await page.get_by_label("Password", exact=True).fill("seven green boats sail")
        await page.keyboard.press("Enter")
        await expect(page.get_by_text("You are in")).to_be_visible()
        assert await whose(phone) == "mina-locked"


async def test_where_passkeys_do_not_work_a_password_alone_is_offered(lab: Lab) -> None:
    code = await a_code(lab, "kim-plain")
    for base_url, script in ((address(lab), True), (home(lab), False)):
        async with lab.browser(base_url=base_url, viewport=PHONE, java_script_enabled=script) as phone:
            page = await phone.new_page()
            await page.goto(f"/join/{code}")
            await expect(page.get_by_label("Password", exact=True)).to_be_visible()
            await page.wait_for_load_state("networkidle")
            await expect(page.get_by_role("button", name=INSTEAD)).to_be_hidden()
