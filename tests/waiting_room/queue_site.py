"""The waiting room over HTTP, as its clients meet it: an application, people with tokens, and the pump's ticks."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

import aiohttp

from codehub.command import operator
from codehub.db import Connection
from codehub.policy.model import Role
from codehub.waiting_room.ending import Endings
from codehub.waiting_room.pump import Pump
from codehub.web.services import Services
from tests.virtual_time import ManualClock
from tests.web.server import Site

API = "/api/v1/queue"
SOON = 20


async def no_runs(_c: Connection, _ids: object) -> set[str]:
    return set()


@dataclass(frozen=True)
class Answer:
    status: int
    body: Any

    @property
    def error(self) -> Any:
        assert self.body.keys() == {"error"}, self.body
        assert self.body["error"]["message"]
        return self.body["error"]

    @property
    def code(self) -> str:
        return str(self.error["code"])


@dataclass
class QueueSite:
    site: Site
    clock: ManualClock
    pump: Pump
    _tokens: dict[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, site: Site, clock: ManualClock) -> "QueueSite":
        services: Services = site.services
        config, limits = services.settings.queue, services.settings.limits
        line = services.waiting_streams._line
        return cls(
            site,
            clock,
            Pump(services.database, clock, config, limits, line, Endings(services.database, clock, no_runs)),
        )

    async def person(self, name: str, role: Role = Role.LEARNER) -> str:
        """Their bearer token."""
        if name not in self._tokens:
            await self.site.services.people.create_user(operator(), name, role)
            self._tokens[name] = await self.site.token(name)
        return self._tokens[name]

    async def call(
        self, method: str, path: str, who: str | None = None, /, *, role: Role = Role.LEARNER, **sent: Any
    ) -> Answer:
        """`who`: a person, `admin`, or None for a program without login. `sent`: what aiohttp takes."""
        bearer = None if who in {None, "admin"} else await self.person(str(who), role)
        async with (
            self.site.admin() if who == "admin" else self.site.client(bearer) as client,
            client.request(method, f"{API}{path}", **sent) as answer,
        ):
            text = await answer.text()
            return Answer(answer.status, json.loads(text) if text else None)

    async def event(self, id_: str = "workshop", **change: Any) -> None:
        made = await self.call("PUT", f"/events/{id_}", "admin", json={"capacity": 1, **change})
        assert made.status in {200, 201}, made

    async def join(self, name: str, event: str = "workshop") -> Any:
        answer = await self.call("POST", "/join", name, json={"event_id": event, "user_id": name})
        assert answer.status in {200, 201}, answer
        return answer.body

    async def token(self, name: str, event: str = "workshop") -> str:
        return str((await self.join(name, event))["waiting_token"])

    async def status(self, token: str) -> Answer:
        return await self.call("GET", "/status", params={"token": token})

    async def enter(self, token: str) -> Answer:
        return await self.call("POST", "/enter", json={"waiting_token": token})

    async def leave(self, token: str) -> Answer:
        return await self.call("DELETE", "/leave", params={"token": token})

    async def tick(self, times: int = 1) -> None:
        for _ in range(times):
            await self.pump.tick()

    async def pass_time(self, seconds: float, *polling: str, step: float = 5) -> None:
        """The pump ticks, and these people poll."""
        while seconds > 0:
            await self.clock.advance(min(step, seconds))
            seconds -= step
            for token in polling:
                assert (await self.status(token)).status == 200
            await self.tick()

    @contextlib.asynccontextmanager
    async def listening(self, token: str, last: str | None = None) -> AsyncIterator["Stream"]:
        headers = {"Last-Event-ID": last} if last else {}
        async with (
            self.site.client() as client,
            client.get(
                f"{API}/stream", params={"token": token}, headers=headers, timeout=aiohttp.ClientTimeout()
            ) as answer,
        ):
            assert answer.status == 200, await answer.text()
            assert answer.headers["content-type"].startswith("text/event-stream")
            yield Stream(answer, self.clock)


@dataclass
class Stream:
    answer: aiohttp.ClientResponse
    clock: ManualClock
    last_id: str | None = None
    kind: str = ""

    async def next(self) -> tuple[str, Any]:
        """The next event; virtual time passes until there is one."""
        reading = asyncio.ensure_future(self._read())
        try:
            async with asyncio.timeout(SOON):
                while not reading.done():
                    await self.clock.advance(0.2)
                    await asyncio.wait({reading}, timeout=0.05)
                return await reading
        finally:
            reading.cancel()

    async def _read(self) -> tuple[str, Any]:
        async for line in self.answer.content:
            name, _, value = line.decode().rstrip("\n").partition(": ")
            if name == "event":
                self.kind = value
            elif name == "id":
                self.last_id = value
            elif name == "data":
                return self.kind, json.loads(value)
        raise EOFError

    async def until(self, kind: str) -> Any:
        while True:
            found, data = await self.next()
            if found == kind:
                return data

    async def ends(self) -> None:
        async with asyncio.timeout(SOON):
            rest = await self.answer.content.read()
        assert rest.strip() == b""
