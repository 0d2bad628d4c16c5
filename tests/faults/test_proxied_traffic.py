"""kill -9 of the database and of Redis while somebody works: what goes through the proxy does not notice."""

import asyncio
import contextlib
import os
import signal
from collections.abc import AsyncIterator, Iterator

import aiohttp
import pytest

from tests.gate.lab import PAGE, ToThisMachine
from tests.platform import Platform
from tests.workspaces.test_lifecycle import api, lab, until

BROWSERS = 2


class Work:
    """One person's: pages that load files over and over, and a terminal that is talked to."""

    def __init__(self, origin: str, id_: str, session: aiohttp.ClientSession) -> None:
        self.loaded = self.said = 0
        self._base = f"{origin}/w/{id_}"
        self._origin = origin
        self._session = session

    async def load(self) -> None:
        while True:
            async with self._session.get(f"{self._base}/terminal.css") as answer:
                assert answer.status == 200, await answer.text()
                assert await answer.read()
            self.loaded += 1
            await asyncio.sleep(0.01)

    async def talk(self) -> None:
        async with self._session.ws_connect(f"{self._base}/ws/main", origin=self._origin) as terminal:
            while True:
                await terminal.send_json(["stdin", f"echo said-$(({self.said}+7))\n"])
                await self._hear(terminal, f"said-{self.said + 7}")
                self.said += 1
                await asyncio.sleep(0.01)

    async def _hear(self, terminal: aiohttp.ClientWebSocketResponse, text: str) -> None:
        heard = ""
        async with asyncio.timeout(30):
            while text not in heard:
                kind, *rest = await terminal.receive_json()
                heard += rest[0] if kind == "stdout" else ""

    async def goes_on(self) -> None:
        """More of everything is done."""
        loaded, said = self.loaded + 5, self.said + 2
        while self.loaded < loaded or self.said < said:
            await asyncio.sleep(0.01)


@contextlib.asynccontextmanager
async def at_work(platform: Platform, id_: str) -> AsyncIterator[Work]:
    """Ends with an error as soon as anything does not go through."""
    origin = f"http://{id_}.localhost:{platform.url.rpartition(':')[2]}"
    connector, jar = aiohttp.TCPConnector(resolver=ToThisMachine()), aiohttp.CookieJar(unsafe=True)
    async with aiohttp.ClientSession(connector=connector, cookie_jar=jar) as session:
        link = await asyncio.to_thread(platform.login_link)
        await session.post(link, headers=PAGE)
        async with asyncio.timeout(30):
            while not await _entered(session, f"{platform.url}/w/{id_}/", f"{origin}/w/{id_}/"):
                await asyncio.sleep(0.05)
        work = Work(origin, id_, session)
        async with asyncio.timeout(120), asyncio.TaskGroup() as group:
            tasks = [group.create_task(work.load()) for _ in range(BROWSERS)]
            tasks.append(group.create_task(work.talk()))
            await work.goes_on()
            yield work
            await work.goes_on()
            for task in tasks:
                task.cancel()


async def _entered(session: aiohttp.ClientSession, door: str, inside: str) -> bool:
    """Not yet: the front door hears of a workspace that runs a moment after the database; the page comes again."""
    async with session.get(door, headers=PAGE) as page:
        assert str(page.url) == inside
        assert page.status in {200, 503}
        return page.status == 200


async def back_again(platform: Platform, killed: dict[str, int]) -> None:
    while any(platform.children().get(name) in (None, pid) for name, pid in killed.items()):
        await asyncio.sleep(0.02)
    await platform.wait_for("/readyz", 200, seconds=60)


@pytest.fixture
def platform() -> Iterator[Platform]:
    with lab() as started:
        yield started


async def test_the_database_and_redis_die_and_proxied_traffic_does_not_notice(platform: Platform) -> None:
    async with platform.client() as client:
        request = {"name": "lab", "template": "terminal", "desired_state": "RUNNING"}
        id_ = (await api(client, "POST", "/api/v1/workspaces", status=201, **request))["id"]
        await until(client, id_, "RUNNING")
    async with at_work(platform, id_) as work:
        for names in (("postgres",), ("redis",), ("postgres", "redis")):
            children = platform.children()
            killed = {name: children[name] for name in names}
            for pid in killed.values():
                os.kill(pid, signal.SIGKILL)
            await work.goes_on()  # while they are away, or at least not all back
            await back_again(platform, killed)
            await work.goes_on()
