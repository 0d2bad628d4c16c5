"""The parts of pages that are about passkeys, looked at as `test_every_page` does, where they work and where not."""

import pytest
from playwright.async_api import Browser

from tests.browser.authenticators import Device
from tests.browser.conftest import IN_ONE_LOOP, Lab
from tests.browser.looking import FEW, LOOKS, PICTURES, Scheme, look, look_from
from tests.browser.test_join_passkey import a_code
from tests.browser.test_passkeys import account, add, address, home, sign_in, somebody, use

pytestmark = IN_ONE_LOOP


async def make_three(lab: Lab, name: str) -> None:
    """Passkeys of this person: one with a long name, one that is blocked, one that was never used."""
    async with somebody(lab, name) as context:
        page, device = await account(context)
        await add(page, "A-name-without-any-place-to-break-it-which-was-pasted-from-somewhere")
        (passkey,) = await device.passkeys()
        await page.close()
        page, device = await account(context)
        await add(page, "예전 휴대폰")
        blocked = (await device.passkeys())[0]
        await page.close()
        page, _ = await account(context)
        await add(page)
    for used in (passkey, blocked, {**blocked, "signCount": 0}):
        async with lab.browser(base_url=home(lab)) as elsewhere:
            page, _ = await sign_in(elsewhere, used)
            await use(page)
            await page.wait_for_url("**/passkey-login" if used["signCount"] == 0 else f"{home(lab)}/")


@pytest.mark.parametrize(("language", "scheme", "width"), LOOKS if PICTURES else FEW)
async def test_pages_about_passkeys_are_whole_named_and_legible(
    lab: Lab, chromium: Browser, language: str, scheme: Scheme, width: int
) -> None:
    name = f"look-{language}-{scheme}-{width}"
    await make_three(lab, name)
    page = await look_from(chromium, home(lab), language, scheme, width)
    await Device.plug_in(page, hasUserVerification=False)
    found: list[str] = []
    await page.goto("/login")
    await page.locator("[data-passkeys] form").wait_for()
    found += await look(page, "passkey-login", language, scheme, width)
    await page.locator("[data-passkeys] button").click()
    await page.locator("[data-when]:visible").wait_for()
    found += await look(page, "passkey-cancelled", language, scheme, width)
    await page.goto(f"/join/{await a_code(lab, f'kim-{name}')}")
    await page.locator("[data-choose=passkey]").wait_for()
    found += await look(page, "join-password", language, scheme, width)
    await page.locator("[data-choose=passkey]").click()
    await page.locator("[name=display_name]").fill("김민아")
    await page.locator("[name=name]").fill(f"joins-{name}")
    await page.locator("[data-waiting]").click()
    await page.locator("[data-when]:visible").wait_for()
    found += await look(page, "join-passkey-cancelled", language, scheme, width)
    await page.goto((await lab.login_link(f"new-{name}")).replace("127.0.0.1", "localhost"))
    await page.get_by_role("button").first.click()
    await page.wait_for_url(f"{home(lab)}/**")
    await page.goto("/account/way-in")
    await page.locator("[data-passkeys] form").wait_for()
    found += await look(page, "way-in", language, scheme, width)
    await page.context.clear_cookies()
    await page.goto((await lab.login_link(name)).replace("127.0.0.1", "localhost"))
    await page.get_by_role("button").first.click()
    await page.wait_for_url(f"{home(lab)}/**")
    for state, path in (("passkeys", "/account"), ("passkeys-refused", "/account?at=passkeys&problem=LAST_WAY_IN")):
        await page.goto(path)
        await page.locator("#passkeys summary").first.click()
        found += await look(page, state, language, scheme, width)
    await page.goto(f"{address(lab)}/login")
    await page.locator("[data-when]:visible").wait_for()
    found += await look(page, "passkey-elsewhere", language, scheme, width)
    await page.context.close()
    assert not found, "\n".join(found)
