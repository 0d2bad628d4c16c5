"""The application on a real server, in this process: uvicorn as `codehub api` runs it, on a free port."""

import asyncio
import contextlib
import dataclasses
import socket
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import uvicorn
from fastapi import FastAPI

from codehub.auth.service import LoginLink
from codehub.clock import Clock
from codehub.command import operator
from codehub.roles.api import server_config
from codehub.settings import Settings
from codehub.web.app import create_app
from codehub.web.services import Services
from codehub.wiring.api import open_services

ADMIN_TOKEN = "an-admin-token-for-tests"


@dataclasses.dataclass(frozen=True)
class Site:
    """A running application, its services, and clients for it."""

    url: str
    services: Services

    @contextlib.asynccontextmanager
    async def client(self, token: str | None = None, **headers: str) -> AsyncIterator[aiohttp.ClientSession]:
        """With a bearer token; without one, like a browser that is not logged in."""
        bearer = {"Authorization": f"Bearer {token}"} if token else {}
        jar = aiohttp.CookieJar(unsafe=True)  # cookies for an address without a name
        timeout = aiohttp.ClientTimeout(total=120)
        async with aiohttp.ClientSession(
            self.url, headers={**bearer, **headers}, cookie_jar=jar, timeout=timeout
        ) as session:
            yield session

    def admin(self, **headers: str) -> contextlib.AbstractAsyncContextManager[aiohttp.ClientSession]:
        return self.client(ADMIN_TOKEN, **headers)

    async def login_link(self, name: str) -> LoginLink:
        return await self.services.people.make_login_link(operator(), name)

    async def token(self, name: str, **wanted: Any) -> str:
        request = {"label": "", "scopes": None, "days": None, **wanted}
        made = await self.services.people.create_token(operator(), name, **request)
        return made.secret

    @contextlib.asynccontextmanager
    async def browser(self, name: str, **headers: str) -> AsyncIterator[aiohttp.ClientSession]:
        """Somebody who opened their login link and said yes."""
        link = await self.login_link(name)
        async with self.client(**headers) as session:
            async with session.post(link.url(""), allow_redirects=False) as answer:
                assert answer.status == 303
            yield session


@contextlib.asynccontextmanager
async def serving(services: Services, app: FastAPI | None = None, port: int = 0) -> AsyncIterator[Site]:
    """Until the block ends. Requests still under way are cut off."""
    # With its protocol named, as an inherited socket has it: asyncio sends small packets at once only then.
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # a port that was just another's
    listener.bind(("127.0.0.1", port))
    server = uvicorn.Server(server_config(app or create_app(services), services.settings))
    running = asyncio.create_task(server._serve([listener]))  # `serve` without taking the test run's signals
    while not server.started:
        await asyncio.sleep(0.005)
    try:
        yield Site(f"http://127.0.0.1:{listener.getsockname()[1]}", services)
    finally:
        server.should_exit = True
        await running


@contextlib.asynccontextmanager
async def serving_with(settings: Settings, clock: Clock, **changes: Any) -> AsyncIterator[Site]:
    """With other settings than the fixtures'; each goes to the group that has it."""
    for name in ("server", "storage", "auth", "limits"):
        group = getattr(settings, name)
        mine = {key: value for key, value in changes.items() if hasattr(group, key)}
        settings = dataclasses.replace(settings, **{name: dataclasses.replace(group, **mine)})
    async with open_services(settings, clock) as services:
        await services.people.ensure_first_admin()
        async with serving(services) as site:
            yield site
