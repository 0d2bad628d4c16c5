"""A running application, browsers at `localhost`, and passkeys in software."""

import contextlib
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Any

import aiohttp
import pytest

from codehub.command import operator
from codehub.policy.model import Role
from codehub.web.services import Services
from tests.passkeys.authenticator import Authenticator
from tests.web.server import Site, serving

HOST = "localhost:8000"  # where the settings say that we listen; a browser there would say so
Reply = tuple[int, Any]


@dataclass(frozen=True)
class Visitor:
    """A browser, seen from its requests."""

    client: aiohttp.ClientSession
    name: str = ""

    async def ask(self, method: str, path: str, body: object = None) -> Reply:
        async with self.client.request(method, f"/api/v1{path}", json=body) as answer:
            return answer.status, await answer.json() if answer.status != 204 else None

    async def question(self) -> Any:
        status, found = await self.ask("POST", f"/users/{self.name}/passkey-question")
        assert status == 200, found
        return found

    async def login_question(self) -> Any:
        status, found = await self.ask("POST", "/passkeys/question")
        assert status == 200, found
        return found

    async def register(self, passkey: Authenticator, **more: Any) -> Reply:
        credential = passkey.create(await self.question())
        return await self.ask("POST", f"/users/{self.name}/passkeys", {"credential": credential, **more})

    async def add(self, passkey: Authenticator, **more: Any) -> Any:
        status, made = await self.register(passkey, **more)
        assert status == 201, made
        return made

    async def log_in(self, passkey: Authenticator, **more: Any) -> Reply:
        credential = passkey.get(await self.login_question())
        return await self.ask("POST", "/passkeys/login", {"credential": credential, **more})

    async def who(self) -> str | None:
        status, me = await self.ask("GET", "/me")
        return str(me["name"]) if status == 200 else None

    async def passkeys(self) -> Any:
        status, found = await self.ask("GET", f"/users/{self.name}/passkeys")
        assert status == 200, found
        return found["items"]


Open = Callable[[], AbstractAsyncContextManager[Visitor]]


@pytest.fixture
async def site(services: Services) -> AsyncIterator[Site]:
    await services.people.ensure_first_admin()
    for name in ("mina", "jun"):
        await services.people.create_user(operator(), name, Role.LEARNER)
    async with serving(services) as started:
        yield started


@contextlib.asynccontextmanager
async def logged_in(site: Site, name: str, **headers: str) -> AsyncIterator[Visitor]:
    async with site.browser(name, Host=HOST, **headers) as client:
        yield Visitor(client, name)


@contextlib.asynccontextmanager
async def stranger(site: Site, **headers: str) -> AsyncIterator[Visitor]:
    async with site.client(**{"Host": HOST, **headers}) as client:
        yield Visitor(client)


@pytest.fixture
async def mina(site: Site) -> AsyncIterator[Visitor]:
    """Logged in by her link."""
    async with logged_in(site, "mina") as visitor:
        yield visitor


@pytest.fixture
async def visitor(site: Site) -> AsyncIterator[Visitor]:
    """Not logged in."""
    async with stranger(site) as found:
        yield found
