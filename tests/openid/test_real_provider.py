"""The main ways through, against a provider that others wrote: login, first login, linking, groups, keys, logout."""

import json
import pathlib
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack

import pytest

from codehub.clock import SystemClock
from codehub.command import operator
from codehub.policy.model import Role
from codehub.settings import Settings
from codehub.wiring.api import open_services
from tests.auth.helpers import add
from tests.openid import real_provider
from tests.openid.real_provider import CLIENT_ID, CLIENT_SECRET, RealProvider
from tests.openid.test_linking import LINK, identities, name_of, say_yes
from tests.openid.visits import callback, get, leads_to, post, visit, whoami, with_providers
from tests.web.server import Site, serving


@pytest.fixture
async def real(tmp_path: pathlib.Path) -> AsyncIterator[RealProvider]:
    async with real_provider.running(tmp_path) as started:
        yield started


class Opened:
    def __init__(self, settings: Settings, real: RealProvider, stack: AsyncExitStack) -> None:
        self._settings = settings
        self._real = real
        self._stack = stack

    async def open(self, **said: str) -> Site:
        """On real time, as the provider is."""
        school = {
            "issuer": self._real.issuer,
            "client_id": CLIENT_ID,
            "client_secret": CLIENT_SECRET,
            "title": "Hanbit School",
            "create": "true",
            "scopes": "openid,profile,email,groups",
            **said,
        }
        settings = with_providers(self._settings, school=school)
        services = await self._stack.enter_async_context(open_services(settings, SystemClock()))
        await services.people.ensure_first_admin()
        site = await self._stack.enter_async_context(serving(services))
        self._real.register(f"{site.url}/login/school/callback", f"{site.url}/login")
        return site


@pytest.fixture
async def opened(settings: Settings, real: RealProvider) -> AsyncIterator[Opened]:
    async with AsyncExitStack() as stack:
        yield Opened(settings, real, stack)


async def test_a_first_login_makes_an_account_and_the_next_finds_it(opened: Opened) -> None:
    site = await opened.open()
    for _ in range(2):
        async with site.client() as browser:
            assert (await visit(browser)).status == 303
            assert await name_of(browser) == "mina"
    assert (await site.services.people.get_user(operator(), "mina")).display_name == "김미나"


async def test_a_login_is_linked_by_its_person(opened: Opened) -> None:
    site = await opened.open(create="false")
    await add(site.services, "kim", Role.TEACHER)
    async with site.browser("kim") as kim:
        await say_yes(kim, await visit(kim, LINK))
        assert [one["label"] for one in await identities(kim, "kim")] == ["mina@school.example"]
    async with site.client() as browser:
        await visit(browser)
        assert await name_of(browser) == "kim"


async def test_groups_give_roles_and_classes(opened: Opened, real: RealProvider) -> None:
    first = await opened.open()
    class_id = (await first.services.classes.create(operator(), "3B")).id
    site = await opened.open(roles=json.dumps({"staff": "teacher"}), classes=json.dumps({"class-3b": class_id}))
    for name, role in (("mina", "learner"), ("kim", "teacher")):
        real.come_as(name)
        async with site.client() as browser:
            await visit(browser)
            me = await whoami(browser)
            assert me
            assert (me["name"], me["role"]) == (name, role)
    found = await site.services.classes.members(operator(), class_id, after="", limit=10)
    assert [m.name for m in found] == ["mina"]


async def test_keys_may_be_rotated(opened: Opened, real: RealProvider, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("codehub.openid.client.AGAIN_SECONDS", 0.0)
    site = await opened.open()
    async with site.client() as browser:
        assert (await visit(browser)).status == 303
    before = real.key_ids()
    real.rotate()
    assert not before & real.key_ids()
    async with site.client() as browser:
        assert (await visit(browser)).status == 303


async def test_logging_out_here_logs_out_there(opened: Opened, real: RealProvider) -> None:
    site = await opened.open()
    async with site.client() as browser:
        await visit(browser)
        there = await get(browser, leads_to(await post(browser, "/logout")))
        assert there.status == 302, there
        back = await get(browser, there.location)
        assert (back.status, back.location) == (302, f"{site.url}/login")
        assert await name_of(browser) is None
    assert real.goodbyes == ["mina"]


async def test_a_code_that_was_used_is_refused(opened: Opened) -> None:
    """By the provider, and said by a page."""
    site = await opened.open()
    async with site.client() as browser:
        first, second = await callback(browser), await callback(browser)
        assert (await get(browser, first)).status == 303
        code = first.partition("code=")[2].partition("&")[0]
        own = second.partition("code=")[2].partition("&")[0]
        replayed = await get(browser, second.replace(own, code))
        assert (replayed.status, "cannot be trusted" in replayed.text) == (502, True)


async def test_a_provider_that_is_down_keeps_nobody_out_who_has_another_way(opened: Opened, real: RealProvider) -> None:
    site = await opened.open()
    real.down = True
    async with site.client() as browser:
        begun = await post(browser, "/do/login/school")
        assert begun.location == "/login?away=school"
        page = await get(browser, begun.location)
        assert (page.status, "does not answer right now" in page.text) == (200, True)
    async with site.browser("admin") as admin:
        assert await name_of(admin) == "admin"
