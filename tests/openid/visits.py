"""What tests of logins by providers share: settings that name one, and a browser that goes there and comes back."""

import html
import re
from dataclasses import dataclass
from typing import Any

import aiohttp

from codehub import settings as config
from codehub.settings import Settings

REFRESH = re.compile(r'http-equiv="refresh" content="0; url=([^"]+)"')


def with_providers(settings: Settings, **providers: dict[str, str]) -> Settings:
    """By their names: what each says in the environment."""
    named = {
        f"CODEHUB_OPENID_{name.upper()}_{key.upper()}": value
        for name, said in providers.items()
        for key, value in said.items()
    }
    return config.load({**config.to_environ(settings), **named})


@dataclass(frozen=True)
class Answer:
    status: int
    location: str
    text: str


async def get(browser: aiohttp.ClientSession, url: str) -> Answer:
    async with browser.get(url, allow_redirects=False, headers={"Accept": "text/html"}) as answer:
        return Answer(answer.status, answer.headers.get("location", ""), await answer.text())


async def post(browser: aiohttp.ClientSession, path: str, **form: Any) -> Answer:
    async with browser.post(path, data=form, allow_redirects=False, headers={"Accept": "text/html"}) as answer:
        return Answer(answer.status, answer.headers.get("location", ""), await answer.text())


def leads_to(page: Answer) -> str:
    """Where the page goes on to by itself."""
    found = REFRESH.search(page.text)
    assert found, page
    return html.unescape(found[1])


async def leave(browser: aiohttp.ClientSession, path: str = "/do/login/school") -> str:
    """The address at the provider that a button leads to."""
    begun = await post(browser, path)
    assert begun.status == 303, begun
    return leads_to(await get(browser, begun.location))


async def callback(browser: aiohttp.ClientSession, path: str = "/do/login/school") -> str:
    """There, and as far as to the address that it leads back to."""
    there = await get(browser, await leave(browser, path))
    assert there.status == 302, there
    return there.location


async def visit(browser: aiohttp.ClientSession, path: str = "/do/login/school") -> Answer:
    """There and back again."""
    return await get(browser, await callback(browser, path))


async def whoami(browser: aiohttp.ClientSession) -> dict[str, Any] | None:
    async with browser.get("/api/v1/me") as answer:
        found: dict[str, Any] | None = await answer.json() if answer.status == 200 else None
        return found
