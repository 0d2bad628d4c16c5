"""A person links a provider's login with the account they have, and unlinks it; trusted e-mails link by themselves."""

import asyncio
import re
from typing import Any

import aiohttp
import pytest

from codehub.command import operator
from codehub.policy.model import Role
from tests.auth.helpers import add, entries
from tests.openid import wicked
from tests.openid.conftest import Sites
from tests.openid.visits import Answer, callback, get, post, visit, whoami
from tests.openid.wicked import Wicked
from tests.virtual_time import ManualClock
from tests.web.server import Site

LINK = "/do/account/providers/school/link"
SECRET = re.compile(r'name="login" value="([^"]+)"')


async def say_yes(browser: aiohttp.ClientSession, answer: Answer) -> Answer:
    assert (answer.status, answer.location.startswith("/account/link?")) == (303, True), answer
    asked = await get(browser, answer.location)
    assert "mina@school.example at Hanbit School opens your account" in asked.text
    found = SECRET.search(asked.text)
    assert found
    return await post(browser, "/do/account/link", login=found[1])


async def identities(browser: aiohttp.ClientSession, name: str) -> list[dict[str, Any]]:
    async with browser.get(f"/api/v1/users/{name}/identities") as answer:
        assert answer.status == 200
        found: list[dict[str, Any]] = (await answer.json())["items"]
        return found


async def name_of(browser: aiohttp.ClientSession) -> str | None:
    me = await whoami(browser)
    return me["name"] if me else None


async def test_a_person_links_a_login_and_gets_in_by_it(sites: Sites) -> None:
    site = await sites.open(create="false")
    await add(site.services, "kim", Role.TEACHER)
    async with site.browser("kim") as kim:
        done = await say_yes(kim, await visit(kim, LINK))
        assert done.location == "/account?at=providers&done=LINKED#providers"
        page = (await get(kim, done.location)).text
        assert "Linked. You can log in with it from now on." in page
        [one] = await identities(kim, "kim")
        assert (one["provider"], one["label"]) == ("school", "mina@school.example")
    async with site.client() as browser:
        assert (await visit(browser)).status == 303
        assert await name_of(browser) == "kim"
    [entry] = await entries(site.services, "identity.link")
    assert (entry.actor, entry.subject, entry.data["provider"]) == ("kim", "kim", "school")


async def test_nothing_is_linked_before_its_person_says_yes(site: Site) -> None:
    await add(site.services, "kim")
    async with site.browser("kim") as kim:
        assert (await visit(kim, LINK)).status == 303
        assert await identities(kim, "kim") == []


async def test_a_yes_counts_once_and_only_in_the_session_that_was_asked(site: Site) -> None:
    await add(site.services, "kim")
    await add(site.services, "lee")
    async with site.browser("kim") as kim, site.browser("lee") as lee:
        answer = await visit(kim, LINK)
        secret = answer.location.partition("login=")[2]
        stolen = await post(lee, "/do/account/link", login=secret)
        assert stolen.location == "/account?at=providers&problem=LINK_OVER#providers"
        assert (await get(lee, answer.location)).status == 303
        await say_yes(kim, answer)
        again = await post(kim, "/do/account/link", login=secret)
        assert again.location == "/account?at=providers&problem=LINK_OVER#providers"
        assert [await identities(lee, "lee"), len(await identities(kim, "kim"))] == [[], 1]


async def test_a_login_of_another_account_is_not_linked(site: Site) -> None:
    await add(site.services, "kim")
    async with site.client() as mina:
        await visit(mina)
    async with site.browser("kim") as kim:
        answer = await visit(kim, LINK)
        assert (answer.status, "belongs to another account" in answer.text) == (409, True)
        assert await identities(kim, "kim") == []


async def test_who_logs_out_in_between_links_nothing(site: Site) -> None:
    await add(site.services, "kim")
    async with site.browser("kim") as kim:
        back = await callback(kim, LINK)
        await post(kim, "/logout")
        assert (await get(kim, back)).status == 409
        assert await name_of(kim) is None, "and it is no login either"
    async with site.services.database.connection() as c:
        assert await c.fetchval("SELECT count(*) FROM identities") == 0


async def test_linking_needs_a_login_with_a_browser(site: Site) -> None:
    await add(site.services, "kim")
    async with site.client() as nobody, site.client(await site.token("kim")) as program:
        assert (await post(nobody, LINK)).location == "/"
        assert (await post(program, LINK)).status == 403


async def test_the_last_way_in_stays(site: Site) -> None:
    async with site.client() as mina:
        await visit(mina)
        [one] = await identities(mina, "mina")
        refused = await post(mina, f"/do/account/providers/{one['id']}/unlink")
        assert refused.location == "/account?at=providers&problem=LAST_WAY_IN#providers"
        async with mina.delete(f"/api/v1/users/mina/identities/{one['id']}") as answer:
            assert (answer.status, (await answer.json())["code"]) == (409, "LAST_WAY_IN")
        async with site.services.database.connection() as c:
            await c.execute("INSERT INTO passwords SELECT id, 'a hash', now(), id FROM users WHERE name = 'mina'")
        done = await post(mina, f"/do/account/providers/{one['id']}/unlink")
        assert done.location == "/account?at=providers&done=UNLINKED#providers"
        assert await identities(mina, "mina") == []


async def test_another_persons_links_are_not_there(site: Site) -> None:
    await add(site.services, "kim", Role.TEACHER)
    async with site.client() as mina:
        await visit(mina)
        [one] = await identities(mina, "mina")
    async with site.browser("kim") as kim, site.admin() as admin:
        for method, path in (
            ("GET", "/api/v1/users/mina/identities"),
            ("DELETE", f"/api/v1/users/mina/identities/{one['id']}"),
        ):
            async with kim.request(method, path) as answer:
                assert answer.status == 404
        assert len(await identities(admin, "mina")) == 1
        refused = await post(kim, f"/do/account/providers/{one['id']}/unlink")
        assert refused.location == "/account?at=providers&problem=NOT_FOUND#providers"


@pytest.mark.parametrize(
    ("trusted", "verified", "same"),
    [(("true", "true"), True, True), (("true", "false"), True, False), (("true", "true"), False, False)],
)
async def test_a_verified_email_links_where_both_providers_are_trusted(
    sites: Sites, clock: ManualClock, trusted: tuple[str, str], verified: bool, same: bool
) -> None:
    async with wicked.running(clock) as company:
        company.claims = {"sub": "c-1", "email": "Mina@School.example", "email_verified": verified}
        site = await sites.open_with(
            school=sites.school(trust_email=trusted[1]),
            company=sites.school(issuer=company.issuer, trust_email=trusted[0]),
        )
        async with site.client() as first, site.client() as second:
            await visit(first)
            await visit(second, "/do/login/company")
            assert await name_of(first) == "mina"
            assert (await name_of(second) == "mina") is same


async def test_an_email_of_two_people_links_nobody(sites: Sites, provider: Wicked) -> None:
    site = await sites.open(trust_email="true", create="false")
    for name in ("kim", "lee"):
        await add(site.services, name)
        provider.claims = {"sub": f"s-{name}"}
        async with site.browser(name) as browser:
            await say_yes(browser, await visit(browser, LINK))
    provider.claims = {"sub": "s-new"}
    async with site.client() as browser:
        assert (await visit(browser)).status == 403


async def test_two_first_logins_at_once_make_one_account(site: Site) -> None:
    async with site.client() as one, site.client() as two:
        backs = [await callback(one), await callback(two)]
        answers = await asyncio.gather(get(one, backs[0]), get(two, backs[1]))
        assert [a.status for a in answers] == [303, 303]
        assert [await name_of(one), await name_of(two)] == ["mina", "mina"]
    found = await site.services.people.page_users(operator(), after="", role=None, limit=10)
    assert [p.name for p in found] == ["admin", "mina"]
