"""Logging in at a school's own login, in a real browser: there and back, with and without JavaScript, and its pages."""

import re
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import dataclass

import pytest
import pytest_asyncio
from playwright.async_api import Browser, Page, expect

from codehub.command import operator
from codehub.policy.model import Role
from codehub.settings import Settings
from codehub.wiring.api import open_services
from tests.browser.conftest import IN_ONE_LOOP, WAIT_MS
from tests.browser.looking import FEW, LOOKS, PICTURES, Scheme, look, look_from
from tests.openid import wicked
from tests.openid.visits import with_providers
from tests.openid.wicked import CLIENT_ID, CLIENT_SECRET, Wicked
from tests.virtual_time import ManualClock
from tests.web.server import Site, serving

pytestmark = IN_ONE_LOOP
TITLE = "Hanbit School"
LONG_TITLE = "Hochschule-fuer-Angewandte-Wissenschaften-und-Kuenste-Nord-1"


@dataclass
class World:
    site: Site
    provider: Wicked
    chromium: Browser


@pytest_asyncio.fixture(loop_scope="session")
async def world(settings: Settings, clock: ManualClock, chromium: Browser) -> AsyncIterator[World]:
    async with AsyncExitStack() as stack:
        provider = await stack.enter_async_context(wicked.running(clock))
        other = await stack.enter_async_context(wicked.running(clock))
        school = {"issuer": provider.issuer, "client_id": CLIENT_ID, "client_secret": CLIENT_SECRET, "create": "true"}
        named = with_providers(
            settings, school={**school, "title": TITLE}, far={**school, "issuer": other.issuer, "title": LONG_TITLE}
        )
        services = await stack.enter_async_context(open_services(named, clock))
        await services.people.ensure_first_admin()
        await services.people.create_user(operator(), "kim", Role.TEACHER)
        yield World(await stack.enter_async_context(serving(services)), provider, chromium)


@pytest.mark.parametrize("with_script", [True, False])
async def test_there_and_back_and_out_again(world: World, with_script: bool) -> None:
    context = await world.chromium.new_context(
        base_url=world.site.url, java_script_enabled=with_script, locale="en-GB", reduced_motion="reduce"
    )
    context.set_default_timeout(WAIT_MS)
    page = await context.new_page()
    await page.goto("/login")
    button = page.get_by_role("button", name=f"Log in with {TITLE}")
    await button.focus()
    await page.keyboard.press("Enter")
    await page.wait_for_url(f"{world.site.url}/")
    await expect(page.locator("header")).to_contain_text("김미나")
    await page.go_back()
    assert page.url == f"{world.site.url}/login", "the page in between is not one to come back to"
    await page.goto("/account")
    await expect(page.locator("#providers")).to_contain_text("mina@school.example")
    await page.get_by_role("button", name=f"Unlink: {TITLE}").click()
    await expect(page.locator("#providers [role=alert]")).to_be_visible()
    await page.goto("/")
    await page.get_by_role("button", name="Log out").click()
    await page.wait_for_url("**/login")
    assert len(world.provider.logouts) == 1
    await expect(button).to_be_visible()
    await context.close()


async def log_in_by_link(world: World, page: Page, name: str) -> None:
    await page.goto((await world.site.login_link(name)).url(world.site.url))
    await page.get_by_role("button").click()
    await page.wait_for_url("**/")


@pytest.mark.parametrize(("language", "scheme", "width"), LOOKS if PICTURES else FEW)
async def test_its_pages_are_whole_named_and_legible(world: World, language: str, scheme: Scheme, width: int) -> None:
    page = await look_from(world.chromium, world.site.url, language, scheme, width)
    wants = language, scheme, width
    found: list[str] = []
    await page.goto("/login?away=far")
    found += await look(page, "provider-away", *wants)
    for kind, change in {
        "token": {"claims": {"aud": "another"}},
        "denied": {"answer": {"code": "", "error": "access_denied"}},
        "mixed": {"answer": {"iss": "https://evil.example"}},
        "provider": {"answer": {"code": "", "error": "unauthorized_client"}},
    }.items():
        world.provider.claims, world.provider.answer = change.get("claims", {}), change.get("answer", {})
        await page.goto("/login")
        await page.locator("ul.providers button").first.click()
        await page.wait_for_url(re.compile(r"/callback\?"))
        found += await look(page, f"provider-{kind}", *wants)
    world.provider.claims, world.provider.answer = {}, {}
    await page.goto("/login/school/callback?state=x&code=y")
    found += await look(page, "provider-over", *wants)
    await log_in_by_link(world, page, "kim")
    await page.goto("/account")
    found += await look(page, "provider-account", *wants)
    await page.locator("#providers form button").first.click()
    await page.wait_for_url(re.compile(r"/account/link\?"))
    found += await look(page, "provider-link", *wants)
    await page.locator("main form button").click()
    await page.wait_for_url(re.compile(r"/account\?at=providers"))
    found += await look(page, "provider-linked", *wants)
    await page.context.close()
    assert not found, "\n".join(found)
