"""Logging in at a provider, through HTTP: first login, again, names, the session, the way back, logout."""

import asyncio
from urllib.parse import parse_qs, urlsplit

from codehub.auth.service import FROM_THE_START, People
from codehub.command import operator
from codehub.policy.model import Role
from tests.auth.helpers import add, deactivate, entries, eventually, everything_stored
from tests.openid.conftest import Sites
from tests.openid.visits import callback, get, leads_to, leave, post, visit, whoami
from tests.openid.wicked import CLIENT_ID, CLIENT_SECRET, Wicked, half_hash
from tests.virtual_time import ManualClock
from tests.web.server import Site


async def people(site: Site) -> list[str]:
    service: People = site.services.people
    return [p.name for p in await service.page_users(operator(), after="", role=None, limit=100)]


async def test_a_first_login_makes_an_account_and_the_next_finds_it(site: Site) -> None:
    for _ in range(2):
        async with site.client() as browser:
            answer = await visit(browser)
            assert (answer.status, answer.location) == (303, "/")
            me = await whoami(browser)
            assert me
            assert (me["name"], me["role"]) == ("mina", "learner")
    assert await people(site) == ["admin", "mina"]
    made = (await entries(site.services, "user.create"))[0]
    assert (made.actor, made.subject) == ("openid", "mina")
    assert [e.data["way"] for e in await entries(site.services, "login")] == ["provider", "provider"]


async def test_a_name_that_is_taken_gets_a_number(site: Site, provider: Wicked) -> None:
    await add(site.services, "mina")
    await add(site.services, "mina-2")
    provider.claims = {"email": "mina@school.example"}
    async with site.client() as browser:
        await visit(browser)
        me = await whoami(browser)
        assert me
        assert me["name"] == "mina-3"


async def test_a_person_whose_names_have_no_latin_letters_gets_one_made_up(site: Site, provider: Wicked) -> None:
    provider.claims = {"preferred_username": "김미나", "email": "김미나@학교.kr"}
    async with site.client() as browser:
        await visit(browser)
        me = await whoami(browser)
        assert me
        assert me["name"].startswith("person-")
        assert (await site.services.people.get_user(operator(), me["name"])).display_name == "김미나"


async def test_where_new_people_may_not_come_a_page_says_what_to_do(sites: Sites, provider: Wicked) -> None:
    site = await sites.open(create="false")
    async with site.client() as browser:
        answer = await visit(browser)
        assert answer.status == 403
        assert "no account for you here yet" in answer.text
        assert await whoami(browser) is None
    assert await people(site) == ["admin"]


async def test_a_deactivated_person_stays_out(site: Site) -> None:
    async with site.client() as browser:
        await visit(browser)
    await deactivate(site.services, "mina")
    async with site.client() as browser:
        answer = await visit(browser)
        assert (answer.status, await whoami(browser)) == (403, None)
        assert "switched off" in answer.text


async def test_what_the_id_token_leaves_out_is_asked_for(site: Site, provider: Wicked) -> None:
    provider.left_out = {"name", "preferred_username", "email", "email_verified"}
    provider.userinfo = {"name": "Mina Kim", "preferred_username": "mkim"}
    async with site.client() as browser:
        await visit(browser)
    assert (await site.services.people.get_user(operator(), "mkim")).display_name == "Mina Kim"


async def test_a_provider_without_a_secret_is_asked_with_pkce_alone(sites: Sites, provider: Wicked) -> None:
    said = sites.school()
    del said["client_secret"]
    site = await sites.open_with(school=said)
    async with site.client() as browser:
        answer = await visit(browser)
        assert answer.status == 502, "this one wants a secret, and says so"
    assert provider.asked.count("/token") == 1


async def test_the_way_back_leads_to_the_page_that_was_wanted(site: Site) -> None:
    async with site.client() as browser:
        assert (await get(browser, "/learn")).status == 303
        assert (await visit(browser)).location == "/learn"


async def test_logging_out_here_logs_out_there(site: Site, provider: Wicked) -> None:
    async with site.client() as browser:
        await visit(browser)
        page = await post(browser, "/logout")
        assert page.status == 200
        there = await get(browser, leads_to(page))
        assert (there.status, there.location) == (302, f"{site.url}/login")
        assert await whoami(browser) is None
    [asked] = provider.logouts
    assert asked["id_token_hint"].count(".") == 2


async def test_a_copy_of_the_database_has_no_id_token(site: Site, provider: Wicked) -> None:
    async with site.client() as browser:
        await visit(browser)
        stored = await everything_stored(site.services)
        page = await post(browser, "/logout")
        await get(browser, leads_to(page))
    [asked] = provider.logouts
    for part in asked["id_token_hint"].split("."):
        assert part not in stored
        assert part.encode().hex() not in stored


async def test_where_the_token_does_not_open_the_provider_is_told_who_we_are_instead(
    site: Site,
) -> None:
    """It was sealed with a key that is gone, or moved there from another session."""
    async with site.client() as browser:
        await visit(browser)
        async with site.services.database.transaction() as c:
            await c.execute("UPDATE provider_logins SET sealed_id_token = sha256(sealed_id_token)")
        there = leads_to(await post(browser, "/logout"))
    assert parse_qs(urlsplit(there).query) == {
        "client_id": [CLIENT_ID],
        "post_logout_redirect_uri": [f"{site.url}/login"],
    }


async def test_a_session_ends_before_the_provider_is_asked(site: Site, provider: Wicked, clock: ManualClock) -> None:
    """It may take its time. Whoever closes the page meanwhile is logged out."""
    async with site.client() as browser:
        await visit(browser)
        await clock.advance(7200)  # what was read of it is old
        provider.hangs = True
        leaving = asyncio.create_task(post(browser, "/logout"))

        async def is_out() -> bool:
            return await whoami(browser) is None

        await eventually(is_out, 8)
        assert not leaving.done()
        leaving.cancel()
        provider.hangs = False  # the server ends what it has begun


async def test_two_clicks_log_out_once(site: Site) -> None:
    async with site.client() as browser:
        await visit(browser)
        answers = await asyncio.gather(*(post(browser, "/logout") for _ in range(4)))
        assert {answer.status for answer in answers} <= {200, 303}
        assert await whoami(browser) is None


async def test_logging_out_here_works_when_the_provider_is_away(site: Site, provider: Wicked, clock: object) -> None:
    async with site.client() as browser:
        await visit(browser)
        provider.discovery = {"end_session_endpoint": None}
        await site.services.clock.advance(90_000)  # type: ignore[attr-defined]
        provider.status = 503
        page = await post(browser, "/logout")
        assert (page.status, page.location) == (303, "/")
        assert await whoami(browser) is None


async def test_who_stays_logged_in_there_is_not_sent_there(sites: Sites, provider: Wicked) -> None:
    site = await sites.open(logout="false")
    async with site.client() as browser:
        await visit(browser)
        assert (await post(browser, "/logout")).status == 303
    assert provider.logouts == []


async def test_a_session_that_began_meanwhile_is_not_replaced(site: Site) -> None:
    await add(site.services, "kim", Role.TEACHER)
    async with site.client() as browser:
        back = await callback(browser)
        await post(browser, (await site.login_link("kim")).url(""))
        answer = await get(browser, back)
        assert answer.status == 409
        assert "Logged in now: kim" in answer.text
        me = await whoami(browser)
        assert me
        assert me["name"] == "kim"


async def test_the_session_that_was_there_before_ends(site: Site) -> None:
    await add(site.services, "kim")
    async with site.browser("kim") as browser:
        await visit(browser)
        me = await whoami(browser)
        assert me
        assert me["name"] == "mina"
        ended = await site.services.people.page_sessions(operator(), "kim", after=FROM_THE_START, limit=9)
        assert ended == []


async def test_two_tabs_can_both_be_finished(site: Site) -> None:
    async with site.client() as browser:
        first, second = await callback(browser), await callback(browser)
        assert (await get(browser, second)).status == 303
        assert (await get(browser, first)).status == 303
        assert await whoami(browser)


async def test_a_reload_of_the_way_back_does_no_harm(site: Site) -> None:
    async with site.client() as browser:
        back = await callback(browser)
        assert (await get(browser, back)).status == 303
        again = await get(browser, back)
        assert (again.status, again.location) == (303, "/")


async def test_no_secret_is_stored_or_put_into_an_address(site: Site, provider: Wicked) -> None:
    async with site.client() as browser:
        there = await leave(browser)
        assert CLIENT_SECRET not in there
        await visit(browser)
    stored = await everything_stored(site.services)
    assert "mina@school.example" in stored
    for secret in (CLIENT_SECRET, "open-sesame", half_hash("x")):
        assert secret not in stored
