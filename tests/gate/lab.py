"""The front door of a platform in this process: API and proxy as their roles run them, and an IDE that tells.

What the coordinator would write, the tests write: the proxy's only source is the database.
"""

import asyncio
import contextlib
import json
import pathlib
import socket
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import aiohttp
import aiohttp.abc
import uvicorn
from aiohttp import web

from codehub.activity.model import Watched
from codehub.clock import SystemClock
from codehub.command import operator
from codehub.gate.director import Activity, WorkspaceDirector
from codehub.policy.model import ALL_SCOPES, Principal, Role
from codehub.proxy.model import Address, RequestHead
from codehub.proxy.server import Engine
from codehub.proxy.single_upstream import SingleUpstream
from codehub.roles.api import server_config
from codehub.web.app import create_app
from codehub.web.services import Services
from codehub.wiring.proxy import build_director
from codehub.workspaces.admission import admitted
from codehub.workspaces.model import Desired, Workspace
from codehub.workspaces.service import NewWorkspace

PAGE = {"Accept": "text/html", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document", "Sec-Fetch-Site": "none"}


class ToThisMachine(aiohttp.abc.AbstractResolver):
    """As browsers resolve names below `localhost`; and every other name too."""

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[aiohttp.abc.ResolveResult]:
        del family
        found: aiohttp.abc.ResolveResult = {
            "hostname": host,
            "host": "127.0.0.1",
            "port": port,
            "family": socket.AF_INET,
            "proto": 0,
            "flags": 0,
        }
        return [found]

    async def close(self) -> None:
        pass


class Ide:
    """Answers with what reached it; echoes on WebSockets."""

    def __init__(self, path: pathlib.Path) -> None:
        self.path = path
        self.requests: list[dict[str, Any]] = []
        self.answer: dict[str, str] = {}  # headers it sends

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        seen = {"path": request.raw_path, "method": request.method, "headers": dict(request.headers)}
        self.requests.append(seen)
        if request.headers.get("Upgrade", "").lower() == "websocket":
            return await self._echo(request)
        if request.path.endswith("/endless"):
            return await self._go_on(request)
        return web.json_response(seen, headers=self.answer)

    async def _go_on(self, request: web.BaseRequest) -> web.StreamResponse:
        answer = web.StreamResponse()
        await answer.prepare(request)
        with contextlib.suppress(ConnectionError):
            while True:
                await answer.write(bytes(1 << 16))
        return answer

    async def _echo(self, request: web.BaseRequest) -> web.WebSocketResponse:
        socket_ = web.WebSocketResponse()
        await socket_.prepare(request)
        async for message in socket_:
            await socket_.send_str(message.data)
        return socket_


class Unwatched:
    """Records nothing."""

    def request(self, watched: Watched, head: RequestHead, /) -> None: ...

    def tunnel(self, _watched: Watched, _head: RequestHead, /) -> None:
        return None


@dataclass
class Lab:
    services: Services
    url: str
    director: WorkspaceDirector
    engine: Engine
    ide: Ide

    def origin(self, id_: str) -> str:
        return f"http://{id_}.localhost:{self.url.rpartition(':')[2]}"

    @contextlib.asynccontextmanager
    async def browser(self, name: str | None = None) -> AsyncIterator[aiohttp.ClientSession]:
        """Somebody's; with a name, after they followed their login link."""
        connector = aiohttp.TCPConnector(resolver=ToThisMachine())
        jar = aiohttp.CookieJar(unsafe=True)
        timeout = aiohttp.ClientTimeout(total=20)
        async with aiohttp.ClientSession(connector=connector, cookie_jar=jar, timeout=timeout) as session:
            if name:
                link = await self.services.people.make_login_link(operator(), name)
                async with session.post(link.url(self.url), headers=PAGE, allow_redirects=False) as answer:
                    assert answer.status == 303
            yield session

    async def workspace(self, owner: str = "admin", template: str = "terminal") -> Workspace:
        caller = Principal(owner, Role.LEARNER, ALL_SCOPES)
        return admitted(await self.services.workspaces.create(caller, NewWorkspace("Lab", template, Desired.ARCHIVED)))

    async def put(self, w: Workspace, observed: str, **columns: Any) -> None:
        """As the coordinator would write it."""
        columns = {"operation": "NONE", "op_id": "op", "address": None, "desired_state": "STANDBY", **columns}
        if observed == "RUNNING" and columns["address"] is None:
            columns["address"] = {"socket": str(self.ide.path), "host": None, "port": None}
        names = [*columns, "observed_status", "updated_at"]
        values = [*columns.values(), observed, self.services.clock.now()]
        settings = ", ".join(f"{name} = ${number}" for number, name in enumerate(names, 2))
        async with self.services.database.transaction() as c:
            await c.execute(f"UPDATE workspaces SET {settings} WHERE id = $1", w.id, *values)

    async def known(self, w: Workspace, **expected: Any) -> None:
        """Until the proxy has heard of it."""
        async with asyncio.timeout(30):
            while True:
                route = self.director.routes.get(w.id)
                if route and all(getattr(route.entry, name) == value for name, value in expected.items()):
                    return
                await asyncio.sleep(0.005)

    async def running(self, owner: str = "admin", template: str = "terminal") -> Workspace:
        w = await self.workspace(owner, template)
        await self.put(w, "RUNNING", desired_state="RUNNING")
        await self.known(w, phase="RUNNING")
        return w


@contextlib.asynccontextmanager
async def opened(services: Services, folder: pathlib.Path, activity: Activity | None = None) -> AsyncIterator[Lab]:
    await services.people.ensure_first_admin()
    services.hub.start()
    async with contextlib.AsyncExitStack() as stack:
        inner = await stack.enter_async_context(_api(services, folder / "api.sock"))
        ide = await stack.enter_async_context(_ide(folder / "ide.sock"))
        listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        listener.bind(("127.0.0.1", 0))
        engine = Engine(SingleUpstream(inner), SystemClock())
        make = build_director(services.settings, services.clock, inner, activity or Unwatched())
        director = await stack.enter_async_context(make(engine))
        assert isinstance(director, WorkspaceDirector)
        engine.director = director
        await engine.start(listener)
        try:
            yield Lab(services, f"http://127.0.0.1:{listener.getsockname()[1]}", director, engine, ide)
        finally:
            await engine.drain(0)
            await services.hub.stop()


@contextlib.asynccontextmanager
async def _api(services: Services, path: pathlib.Path) -> AsyncIterator[Address]:
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(path))
    server = uvicorn.Server(server_config(create_app(services), services.settings))
    running = asyncio.create_task(server._serve([listener]))
    while not server.started:
        await asyncio.sleep(0.005)
    try:
        yield Address(path=str(path))
    finally:
        server.should_exit = True
        await running


@contextlib.asynccontextmanager
async def _ide(path: pathlib.Path) -> AsyncIterator[Ide]:
    ide = Ide(path)
    runner = web.ServerRunner(web.Server(ide.handle))
    await runner.setup()
    await web.UnixSite(runner, str(path)).start()
    try:
        yield ide
    finally:
        await runner.cleanup()


async def problem(answer: aiohttp.ClientResponse) -> tuple[int, str]:
    return answer.status, json.loads(await answer.text())["code"]
