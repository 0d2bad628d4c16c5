"""Passkeys in Chromium, with its virtual authenticator: added, used, named, removed; and refused where they must be."""

import contextlib
from collections.abc import AsyncIterator
from typing import Any

import pytest
from playwright.async_api import BrowserContext, Page, expect

from tests.browser.authenticators import Device
from tests.browser.conftest import IN_ONE_LOOP, Lab

pytestmark = IN_ONE_LOOP


def home(lab: Lab) -> str:
    """Where passkeys work: at a name."""
    return lab.platform.url.replace("127.0.0.1", "localhost")


def address(lab: Lab) -> str:
    """The same without a name."""
    return lab.platform.url.replace("localhost", "127.0.0.1")


@contextlib.asynccontextmanager
async def somebody(lab: Lab, name: str, **more: Any) -> AsyncIterator[BrowserContext]:
    """Logged in by their link, at the name."""
    async with lab.browser(base_url=home(lab), **more) as context:
        page = await context.new_page()
        await page.goto((await lab.login_link(name)).replace("127.0.0.1", "localhost"))
        await page.get_by_role("button").first.click()
        await page.wait_for_url(f"{home(lab)}/**")
        await page.close()
        yield context


async def account(context: BrowserContext, **options: Any) -> tuple[Page, Device]:
    page = await context.new_page()
    device = await Device.plug_in(page, **options)
    await page.goto("/account")
    return page, device


async def add(page: Page, label: str = "") -> None:
    section = page.locator("#passkeys")
    await section.get_by_label("What is it called?").last.fill(label)
    await section.get_by_role("button", name="Add a passkey").click()
    await expect(section.get_by_text("The passkey is added.")).to_be_visible()


async def sign_in(context: BrowserContext, *passkeys: Any, offers: bool = False) -> tuple[Page, Device]:
    """The page to log in on, with these passkeys at hand, in a browser that offers them in fields or does not.

    The virtual authenticator takes what is offered at once: the button is for browsers that offer nothing.
    """
    page = await context.new_page()
    if not offers:
        await page.add_init_script("PublicKeyCredential.isConditionalMediationAvailable = async () => false")
    device = await Device.plug_in(page)
    for passkey in passkeys:
        await device.put(passkey)
    await page.goto("/login")
    return page, device


async def use(page: Page) -> None:
    await page.get_by_role("button", name="Log in with a passkey").click()


async def whose(context: BrowserContext) -> str | None:
    answer = await context.request.get("/api/v1/me")
    return (await answer.json())["name"] if answer.ok else None


async def made_by(lab: Lab, name: str) -> Any:
    """A passkey of this person."""
    async with somebody(lab, name) as context:
        page, device = await account(context)
        await add(page)
        return (await device.passkeys())[0]


async def test_a_passkey_is_added_and_logs_in_on_another_device(lab: Lab) -> None:
    async with somebody(lab, "mina") as context:
        page, device = await account(context)
        await add(page, "내 노트북")
        await expect(page.locator("#passkeys").get_by_text("내 노트북").first).to_be_visible()
        (passkey,) = await device.passkeys()
        assert passkey["isResidentCredential"]
        assert passkey["rpId"] == "localhost"
    async with lab.browser(base_url=home(lab)) as elsewhere:
        page, _ = await sign_in(elsewhere, passkey)
        await use(page)
        await page.wait_for_url(f"{home(lab)}/")
        assert await whose(elsewhere) == "mina"


async def test_a_passkey_is_offered_in_the_field_for_the_name(lab: Lab) -> None:
    passkey = await made_by(lab, "bora")
    async with lab.browser(base_url=home(lab)) as elsewhere:
        page, _ = await sign_in(elsewhere, passkey, offers=True)
        await page.wait_for_url(f"{home(lab)}/")
        assert await whose(elsewhere) == "bora"


async def test_a_login_leads_to_where_one_wanted_to_go(lab: Lab) -> None:
    passkey = await made_by(lab, "haru")
    async with lab.browser(base_url=home(lab)) as elsewhere:
        page = await elsewhere.new_page()
        await page.goto("/learn")
        page, _ = await sign_in(elsewhere, passkey)
        await use(page)
        await page.wait_for_url("**/learn")


async def test_several_are_named_and_removed_and_the_last_stays(lab: Lab) -> None:
    async with somebody(lab, "jun") as context:
        page, _ = await account(context)
        await add(page, "Phone")
        section = page.locator("#passkeys")
        # One device has one passkey of an account; a second device adds a second.
        await section.get_by_role("button", name="Add a passkey").click()
        await expect(section.get_by_text("This device has a passkey for your account already.")).to_be_visible()
        await page.close()
        page, second = await account(context)
        await add(page)
        section = page.locator("#passkeys")
        await expect(section.locator("li")).to_have_count(2)
        await expect(section.locator("li").nth(1)).to_contain_text("Chrome, Linux")

        await section.locator("summary").nth(1).click()
        await section.locator("li").nth(1).get_by_label("What is it called?").fill("Tablet")
        await section.locator("li").nth(1).get_by_role("button", name="Save").click()
        await expect(section.get_by_text("Renamed.")).to_be_visible()
        await section.get_by_role("button", name="Remove: Phone").click()
        await expect(section.get_by_text("Removed here.")).to_be_visible()
        await section.get_by_role("button", name="Remove: Tablet").click()
        await expect(section.get_by_text("This is your only way in")).to_be_visible()
        await expect(section.locator("li")).to_have_count(1)
        (kept,) = await second.passkeys()
    async with lab.browser(base_url=home(lab)) as elsewhere:
        page, _ = await sign_in(elsewhere, kept)
        await use(page)
        await page.wait_for_url(f"{home(lab)}/")


async def test_a_copy_whose_counter_is_behind_is_refused_and_its_person_told(lab: Lab) -> None:
    passkey = await made_by(lab, "sora")
    async with lab.browser(base_url=home(lab)) as hers, lab.browser(base_url=home(lab)) as thief:
        page, _ = await sign_in(hers, passkey)
        await use(page)
        await page.wait_for_url(f"{home(lab)}/")
        stolen, _ = await sign_in(thief, {**passkey, "signCount": 0})
        await use(stolen)
        await expect(stolen.get_by_text("This passkey is blocked")).to_be_visible()
        assert await whose(thief) is None
        await page.goto("/account")
        told = page.locator("#passkeys").get_by_role("alert").first
        await expect(told).to_contain_text("it may have been copied")
        await page.get_by_role("button", name="Remove: Chrome, Linux").click()
        await expect(page.locator("#passkeys").get_by_text("Removed here.")).to_be_visible()


async def test_a_workspaces_page_can_neither_use_nor_add_a_passkey(lab: Lab) -> None:
    """Chromium lets a page below `localhost` ask for passkeys of that name, or not: neither logs anybody in."""
    passkey = await made_by(lab, "yuna")
    async with somebody(lab, "yuna") as context:
        page = await context.new_page()
        device = await Device.plug_in(page)
        await device.put(passkey)
        workspace = home(lab).replace("localhost", "ws1.localhost")
        await page.route(f"{workspace}/**", lambda route: route.fulfill(body="<h1>IDE</h1>", content_type="text/html"))
        await page.goto(f"{workspace}/")
        question = await (await context.request.post("/api/v1/passkeys/question")).json()
        answered = await page.evaluate(SIGN, question["options"])
        if answered["credential"]:
            told = await context.request.post("/api/v1/passkeys/login", data={"credential": answered["credential"]})
            assert told.status == 403
            assert (await told.json())["code"] == "PASSKEY_ORIGIN"
        else:
            assert answered["error"] == "SecurityError"


async def test_an_answer_sent_again_is_refused(lab: Lab) -> None:
    passkey = await made_by(lab, "dani")
    async with lab.browser(base_url=home(lab)) as context:
        page = await context.new_page()
        device = await Device.plug_in(page)
        await device.put(passkey)
        await page.goto("/healthz")
        question = await (await context.request.post("/api/v1/passkeys/question")).json()
        credential = (await page.evaluate(SIGN, question["options"]))["credential"]
        answers = [
            await context.request.post("/api/v1/passkeys/login", data={"credential": credential}) for _ in range(2)
        ]
        assert [answer.status for answer in answers] == [200, 409]


async def test_who_does_not_unlock_it_is_told_that_nothing_was_done(lab: Lab) -> None:
    passkey = await made_by(lab, "eun")
    async with lab.browser(base_url=home(lab)) as context:
        page, device = await sign_in(context, passkey)
        await device.unlocks(yes=False)
        await use(page)
        await expect(page.get_by_text("Nothing was done")).to_be_visible()
        assert await whose(context) is None


async def test_at_an_address_the_page_says_where_to_go(lab: Lab) -> None:
    async with lab.browser(base_url=address(lab)) as context:
        page = await context.new_page()
        await page.goto("/login")
        there = page.get_by_role("link", name=home(lab))
        await expect(there).to_be_visible()
        await expect(page.get_by_role("button", name="Log in with a passkey")).to_be_hidden()
        await there.click()
        await page.wait_for_url(f"{home(lab)}/login")
        await expect(page.get_by_role("button", name="Log in with a passkey")).to_be_visible()


@pytest.mark.parametrize(
    ("locale", "words"), [("en-GB", "Passkeys need JavaScript."), ("ko-KR", "JavaScript가 필요합니다")]
)
async def test_without_javascript_the_page_says_what_is_needed(lab: Lab, locale: str, words: str) -> None:
    async with somebody(lab, "noa", java_script_enabled=False, locale=locale) as context:
        page = await context.new_page()
        for path in ("/account", "/login"):
            await page.goto(path)
            await expect(page.locator("[data-passkeys] noscript p")).to_contain_text(words)
            await expect(page.locator("[data-passkeys] form")).to_be_hidden()


async def test_a_passkey_is_the_admins_only_way_in(lab: Lab) -> None:
    """After the first start's link: nothing but a passkey is chosen, and it opens the lab again."""
    async with lab.browser(base_url=home(lab)) as context:
        page = await context.new_page()
        device = await Device.plug_in(page)
        await page.goto((await lab.login_link("admin")).replace("127.0.0.1", "localhost"))
        await page.get_by_role("button").first.click()
        await page.wait_for_url("**/welcome/way-in")
        await page.get_by_role("button", name="Add a passkey").click()
        await page.wait_for_url("**/welcome/workspace")
        (passkey,) = await device.passkeys()
        await page.close()
        await context.request.post("/logout")
        assert await whose(context) is None
        page, _ = await sign_in(context, passkey)
        await use(page)
        await page.wait_for_url(f"{home(lab)}/")
        assert await whose(context) == "admin"


# What a page can do by itself, whatever its origin: an answer to this question, or why not.
SIGN = """async (options) => {
  const bytes = (text) => Uint8Array.from(atob(text.replaceAll("-", "+").replaceAll("_", "/")), (c) => c.charCodeAt(0));
  try {
    const publicKey = { ...options, challenge: bytes(options.challenge) };
    return { credential: (await navigator.credentials.get({ publicKey })).toJSON() };
  } catch (error) {
    return { credential: null, error: error.name };
  }
}"""
