"""A page that was opened before logging in is where the login leads back to, and nothing else ever is."""

from http.cookies import SimpleCookie
from urllib.parse import quote

import aiohttp
import pytest

from codehub.command import operator
from codehub.policy.model import Role
from tests.web.server import Site

COOKIE = "codehub-next"


@pytest.fixture(autouse=True)
async def mina(site: Site) -> None:
    await site.services.people.create_user(operator(), "mina", Role.LEARNER)


async def log_in(site: Site, browser: aiohttp.ClientSession, instead_of: str = "", **cookies: str) -> str:
    """Where the button of a login link leads."""
    link = (await site.login_link("mina")).url("")
    form = {"instead_of": instead_of}
    async with browser.post(link, data=form, allow_redirects=False, cookies=cookies) as answer:
        assert answer.status == 303
        return answer.headers["location"]


async def opened(browser: aiohttp.ClientSession, path: str, **headers: str) -> tuple[int, str | None]:
    async with browser.get(path, allow_redirects=False, headers=headers) as answer:
        return answer.status, answer.headers.get("location")


@pytest.mark.parametrize(
    "path",
    [
        "/learn",
        "/learn?lang=ko",
        "/plans/k3jx7q2mzv5d",
        "/sessions/k3jx7q2mzv5d?run=a&fence=2",
        "/workspaces/k3jx7q2mzv5d/log",
    ],
)
async def test_the_page_that_was_opened_comes_after_the_login(site: Site, path: str) -> None:
    async with site.client() as browser:
        assert await opened(browser, path, Accept="text/html,*/*") == (303, "/")
        async with browser.get("/") as answer:
            assert "Then you get to the page you opened." in await answer.text()
        assert await log_in(site, browser) == path
        assert await log_in(site, browser, "mina") == "/"  # once
    async with site.client() as other:
        async with other.get("/") as answer:
            assert "the page you opened" not in await answer.text()
        assert await log_in(site, other) == "/"


@pytest.mark.parametrize(
    "path",
    [
        "//evil.example",
        "//evil.example/learn",
        "/\\evil.example",
        "/\\/evil.example",
        "\\\\evil.example",
        "https://evil.example/learn",
        "https:evil.example",
        "javascript:alert(1)",
        "/%2f/evil.example",
        "/%5cevil.example",
        "%2f%2fevil.example",
        "/learn@evil.example",
        "/learn.evil.example",
        "/learn/../../evil.example",
        "/learn\n//evil.example",
        "/learn?\r\nSet-Cookie: a=b",
        "\t//evil.example",
        " /learn",
        "/logout",
        "/do/courses/x/take",
        "/api/v1/users",
        "/_codehub/handover?workspace=x",
        "/plans/",
        "/plans/A",
        "/plans/x/y",
        "/learn?" + "a" * 5000,
    ],
)
async def test_nothing_but_our_own_pages_is_led_to(site: Site, path: str) -> None:
    """Whatever the cookie says, as it is and encoded twice; and what was opened is not always remembered."""
    for value in (quote(path), quote(quote(path, safe=""), safe=""), quote(path, safe="")):
        async with site.client() as browser:
            assert await log_in(site, browser, **{COOKIE: value}) == "/", value


async def test_forms_and_looks_of_our_script_are_not_remembered(site: Site) -> None:
    async with site.client() as browser:
        async with browser.post("/do/courses/x/take", allow_redirects=False) as answer:
            assert (answer.status, COOKIE in answer.cookies) == (303, False)
        assert await opened(browser, "/learn", **{"X-Requested-With": "fetch"}) == (303, "/")
        assert await log_in(site, browser) == "/"


async def test_who_logs_out_leaves_no_page_to_the_next_person(site: Site) -> None:
    async with site.client() as browser:
        await opened(browser, "/learn")
        async with browser.post("/logout", allow_redirects=False) as answer:
            forgotten = SimpleCookie("".join(h for h in answer.headers.getall("set-cookie") if h.startswith(COOKIE)))
            assert forgotten[COOKIE]["max-age"] == "0"
        assert await log_in(site, browser) == "/"
