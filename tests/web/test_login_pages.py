"""Logging in and out by link, as browsers, previews and impatient people do it; cookies and where writes come from."""

from ipaddress import ip_network

import aiohttp
import pytest

from codehub.command import operator
from codehub.policy.model import Role
from codehub.settings import Settings
from tests.virtual_time import ManualClock
from tests.web.server import Site, serving_with

FLAGS = {"Path=/", "HttpOnly", "SameSite=Lax"}


@pytest.fixture(autouse=True)
async def mina(site: Site) -> None:
    await site.services.people.create_user(operator(), "mina", Role.LEARNER)


async def test_the_links_page_says_whose_it_is_and_its_button_logs_in_and_leads_home(site: Site) -> None:
    link = (await site.login_link("mina")).url("")
    async with site.client() as browser:
        async with browser.get("/") as answer:
            assert "mina" not in await answer.text()
        async with browser.get(link) as answer:
            page = await answer.text()
            assert (answer.status, "Log in as mina" in page) == (200, True)
            assert f'method="post" action="{link}"' in page
        async with browser.post(link, headers={"Origin": site.url}) as answer:
            assert (answer.status, answer.url.path) == (200, "/")
            assert "Hello, mina" in await answer.text()
        async with browser.get("/api/v1/me") as answer:
            assert (await answer.json())["name"] == "mina"


async def test_a_program_logs_in_with_one_post_of_the_address(site: Site) -> None:
    async with site.client() as program:
        async with program.post((await site.login_link("mina")).url("")) as answer:
            assert answer.status == 200
        async with program.get("/api/v1/me") as answer:
            assert (await answer.json())["name"] == "mina"


async def test_a_used_link_says_so_to_strangers_and_leads_home_on_a_double_click(site: Site) -> None:
    link = (await site.login_link("mina")).url("")
    async with site.client() as browser:
        async with browser.post(link, allow_redirects=False):
            pass
        for again in (browser.post, browser.get):
            async with again(link, allow_redirects=False) as answer:
                assert (answer.status, answer.headers["location"]) == (303, "/")
        async with browser.get("/api/v1/users/mina/sessions") as answer:
            assert len((await answer.json())["items"]) == 1
    async with site.client() as stranger:
        for again in (stranger.post, stranger.get):
            async with again(link) as answer:
                assert answer.status == 410
                assert answer.content_type == "text/html"
                page = await answer.text()
                assert "no longer works" in page
                assert 'href="/login"' in page  # there may be another way in


async def test_a_used_link_of_another_person_does_not_lead_into_the_account_that_is_open(site: Site) -> None:
    """Mina, at a computer that jun has left open, would take his pages for hers."""
    link = (await site.login_link("mina")).url("")
    async with site.client() as hers, hers.post(link):
        pass
    await site.services.people.create_user(operator(), "jun", Role.LEARNER)
    async with site.browser("jun") as his:
        for again in (his.get, his.post):
            async with again(link, allow_redirects=False) as answer:
                page = await answer.text()
                assert answer.status == 410
                assert "You are logged in as jun in this browser already." in page
                assert "mina" not in page


@pytest.mark.parametrize(("typed", "shown"), [("김민아", "김민아"), ('mi"na', "mi&#34;na")])
async def test_what_can_be_nobodys_user_name_is_said_at_that_field(site: Site, typed: str, shown: str) -> None:
    """Learners type what they are called. It tells a stranger nothing: no account has such a name."""
    password = "seven green boats sail"
    async with site.client() as browser, browser.post("/login", data={"name": typed, "password": password}) as answer:
        page = await answer.text()
    assert answer.status == 401
    assert "it is what you chose when you joined" in page
    assert f'value="{shown}"' in page
    assert 'aria-describedby="wrong-name"' in page
    assert password not in page


@pytest.mark.parametrize("path", ["/login/x", "/login/%00", "/login/%ff", "/login/" + "a" * 5000])
async def test_a_made_up_link_is_like_a_used_one(site: Site, path: str) -> None:
    async with site.client() as stranger:
        for method in ("GET", "HEAD", "POST"):
            async with stranger.request(method, path) as answer:
                assert answer.status == 410


CHROME = "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/156.0.0.0 Safari/537.36"
OPENED: list[dict[str, str]] = [
    {"User-Agent": CHROME},  # a mail scanner that looks like a browser
    {"User-Agent": CHROME, "Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"},
    {"User-Agent": CHROME, "Sec-Fetch-Site": "none", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"},
    {"User-Agent": CHROME, "Referer": "https://mail.example/"},
    {"Sec-Purpose": "prefetch"},
    {"User-Agent": "kakaotalk-scrap/1.0"},
    {"Sec-Fetch-Dest": "image"},
]


async def test_opening_a_link_in_whatever_way_neither_uses_it_up_nor_logs_in(site: Site) -> None:
    link = (await site.login_link("mina")).url("")
    async with site.client() as scanner:
        async with scanner.head(link) as answer:
            assert answer.status == 200
        for headers in OPENED:
            async with scanner.get(link, headers=headers) as answer:
                assert answer.status == 200, headers
                assert "set-cookie" not in answer.headers, headers
        async with scanner.get("/api/v1/me") as answer:
            assert answer.status == 401
    async with site.client() as browser, browser.post(link) as answer:
        assert "Hello, mina" in await answer.text()


async def test_another_sites_page_can_neither_end_a_session_nor_replace_it_by_somebody_elses(site: Site) -> None:
    await site.services.people.create_user(operator(), "jun", Role.LEARNER)
    link = (await site.login_link("mina")).url("")
    async with site.browser("jun") as browser:
        for headers in OPENED:
            async with browser.get(link, headers=headers) as answer:
                assert answer.status == 200, headers
        for headers in ({"Origin": "http://evil.example"}, {"Origin": "null"}, {"Sec-Fetch-Site": "cross-site"}):
            async with browser.post(link, data={"instead_of": "jun"}, headers=headers) as answer:
                assert answer.status == 403, headers
        async with browser.get("/api/v1/me") as answer:
            assert (answer.status, (await answer.json())["name"]) == (200, "jun")
    assert await site.services.people.owner_of_link(link.rpartition("/")[2]) == "mina"


async def test_a_session_ends_for_another_only_where_the_page_had_said_so(site: Site) -> None:
    await site.services.people.create_user(operator(), "jun", Role.LEARNER)
    link = (await site.login_link("mina")).url("")
    async with site.browser("jun") as browser:
        async with browser.post(link) as answer:  # a page that was opened before jun logged in
            page = await answer.text()
            assert (answer.status, "You are logged in as jun" in page) == (409, True)
            assert 'name="instead_of" value="jun"' in page
        async with browser.get("/api/v1/me") as answer:
            assert (await answer.json())["name"] == "jun"
        async with browser.post(link, data={"instead_of": "jun"}) as answer:
            assert "Hello, mina" in await answer.text()


async def test_an_expired_link_says_what_to_do(site: Site, clock: ManualClock) -> None:
    link = (await site.login_link("mina")).url("")
    await clock.advance(86400)
    async with site.client(**{"Accept-Language": "ko"}) as browser:
        for open_it in (browser.get, browser.post):
            async with open_it(link) as answer:
                assert answer.status == 410
                assert "새 링크를 부탁하세요" in await answer.text()


async def test_logging_out_ends_the_session_and_takes_the_cookie_away(site: Site) -> None:
    async with site.browser("mina") as browser:
        cookie = next(iter(browser.cookie_jar)).value
        async with browser.post("/logout", allow_redirects=False) as answer:
            assert answer.status == 303
            assert "Max-Age=0" in answer.headers["set-cookie"]
        assert [kept.value for kept in browser.cookie_jar] == []
    async with site.client(Cookie=f"codehub={cookie}") as thief, thief.get("/api/v1/me") as answer:
        assert answer.status == 401


async def test_logging_out_twice_or_without_a_session_is_no_error(site: Site) -> None:
    async with site.client() as browser:
        for cookie in ("", "codehub=nonsense", "codehub="):
            async with browser.post("/logout", allow_redirects=False, headers={"Cookie": cookie}) as answer:
                assert answer.status == 303


async def test_a_new_login_gets_a_new_session_whatever_cookie_the_browser_brought(site: Site) -> None:
    await site.services.people.create_user(operator(), "jun", Role.LEARNER)
    async with site.browser("jun") as browser:
        planted = next(iter(browser.cookie_jar)).value
        async with browser.post((await site.login_link("mina")).url(""), data={"instead_of": "jun"}) as answer:
            assert "Hello, mina" in await answer.text()
        assert next(iter(browser.cookie_jar)).value != planted
    async with site.client(Cookie=f"codehub={planted}") as other, other.get("/api/v1/me") as answer:
        assert answer.status == 401


async def test_an_ended_session_shows_the_page_to_log_in_on_and_not_an_error(site: Site) -> None:
    async with site.browser("mina") as browser:
        await site.services.people.change_user(operator(), "mina", role=None, active=False)
        async with browser.get("/") as answer:
            assert answer.status == 200
            assert "Log in to CodeHub" in await answer.text()


async def test_a_rotated_cookie_arrives_with_whatever_is_answered(site: Site, clock: ManualClock) -> None:
    async with site.browser("mina") as browser:
        before = next(iter(browser.cookie_jar)).value
        await clock.advance(3600)
        async with browser.get("/api/v1/users/nobody-here") as answer:
            assert answer.status == 404
            assert "set-cookie" in answer.headers
        assert next(iter(browser.cookie_jar)).value != before
        async with browser.get("/api/v1/me") as answer:
            assert answer.status == 200
            assert "set-cookie" not in answer.headers


async def test_the_cookie_is_out_of_reach_of_scripts_and_other_sites(site: Site) -> None:
    async with (
        site.client() as browser,
        browser.post((await site.login_link("mina")).url(""), allow_redirects=False) as answer,
    ):
        name, flags = _cookie(answer)
        assert (name, flags) == ("codehub", FLAGS | {"Max-Age=1209600"})


async def test_behind_tls_the_cookie_belongs_to_this_host_and_to_tls_alone(
    settings: Settings, clock: ManualClock, site: Site
) -> None:
    async with serving_with(settings, clock, public_url="https://codehub.example") as secure:
        link = (await secure.login_link("mina")).url("")
        async with secure.client() as browser, browser.post(link, allow_redirects=False) as answer:
            name, flags = _cookie(answer)
            cookie = answer.headers["set-cookie"].split(";")[0]
        assert (name, flags) == ("__Host-codehub", FLAGS | {"Max-Age=1209600", "Secure"})
        async with secure.client(Cookie=cookie) as browser, browser.get("/api/v1/me") as answer:
            assert answer.status == 200
        other_name = cookie.replace("__Host-", "")
        async with secure.client(Cookie=other_name) as browser, browser.get("/api/v1/me") as answer:
            assert answer.status == 401
        async with secure.admin() as admin, admin.post("/api/v1/users/mina/login-links") as answer:
            assert (await answer.json())["url"].startswith("https://codehub.example/login/")


def _cookie(answer: aiohttp.ClientResponse) -> tuple[str, set[str]]:
    (header,) = answer.headers.getall("set-cookie")
    pair, *flags = header.split("; ")
    return pair.partition("=")[0], set(flags)


async def test_a_browser_may_write_only_from_our_own_pages(site: Site) -> None:
    own = {"Origin": site.url}
    table: list[tuple[dict[str, str], int]] = [
        ({"Origin": "http://evil.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Sec-Fetch-Site": "same-site"}, 403),
        ({"Sec-Fetch-Site": "cross-site"}, 403),
        ({"Sec-Fetch-Site": "same-site", **own}, 403),
        ({"Sec-Fetch-Site": "same-origin", "Origin": "http://evil.example"}, 403),
        ({"Sec-Fetch-Site": "same-origin", **own}, 201),
        (own, 201),
        ({}, 201),
    ]
    async with site.browser("mina") as browser:
        for headers, status in table:
            async with browser.post("/api/v1/users/mina/tokens", headers=headers) as answer:
                assert answer.status == status, headers
        async with browser.post("/logout", headers={"Sec-Fetch-Site": "same-site"}) as answer:
            assert answer.status == 403
        async with browser.get("/api/v1/me", headers={"Sec-Fetch-Site": "cross-site"}) as answer:
            assert answer.status == 200  # reading is kept from other sites by the browser
    async with site.client(await site.token("mina")) as program:
        for headers, _ in table:
            async with program.post("/api/v1/users/mina/tokens", headers=headers) as answer:
                assert answer.status == 201, headers


@pytest.mark.parametrize("scheme", ["Basic eDp5", "Bearer", "Bearer x", "nonsense"])
async def test_an_authorization_that_logs_nobody_in_does_not_open_pages_to_other_sites(site: Site, scheme: str) -> None:
    """A browser sends `Basic` by itself, for an address with a name and password in it."""
    foreign = {"Origin": "http://evil.example", "Authorization": scheme}
    link = (await site.login_link("mina")).url("")
    async with site.client() as browser:
        async with browser.post(link, headers=foreign, allow_redirects=False) as answer:
            assert (answer.status, "set-cookie" in answer.headers) == (403, False)
        async with browser.post(link, allow_redirects=False) as answer:
            assert answer.status == 303  # it was not used up
        for path in ("/logout", "/_codehub/act/x"):
            async with browser.post(path, headers=foreign) as answer:
                assert answer.status == 403


async def test_the_address_in_the_audit_log_is_the_clients_only_behind_our_own_proxies(
    settings: Settings, clock: ManualClock, site: Site
) -> None:
    spoofed = {"X-Forwarded-For": "1.1.1.1, 198.51.100.9"}
    async with site.admin() as admin, admin.post("/api/v1/users", json={"name": "jun"}, headers=spoofed):
        pass
    loopback = (ip_network("127.0.0.0/8"),)
    async with serving_with(settings, clock, trusted_proxies=loopback) as behind, behind.admin() as admin:
        async with admin.post("/api/v1/users", json={"name": "sora"}, headers=spoofed):
            pass
        async with admin.get("/api/v1/admin/audit?actor=admin&limit=2") as answer:
            entries = (await answer.json())["items"]
    assert [(entry["subject"], entry["address"]) for entry in entries] == [
        ("sora", "198.51.100.9"),
        ("jun", "127.0.0.1"),
    ]
