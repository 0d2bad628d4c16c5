"""`codehub serve` on servers that are several, under load, while each primary is lost: Redis, PostgreSQL; on S3.

Prints how long no poll in line was answered, and no write acknowledged. Nothing acknowledged is lost, no place is given
twice, the IDE is the very same process all the time, and its home comes back from S3 as it was.
"""

import asyncio
import contextlib
import itertools
import pathlib
import time
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import pytest

from codehub.db import migrate
from codehub.runtimes.layout import Layout
from tests.archives import s3, trees
from tests.failover.conftest import Several
from tests.failover.standby import Pair, running_pair
from tests.faults.test_killed_platform import everybody
from tests.places import a_place
from tests.platform import ADMIN_TOKEN, Platform, running
from tests.workspaces.ides import write_templates
from tests.workspaces.test_lifecycle import api, create, first_pid, until, want

PEOPLE, CAPACITY = 40, 20
CLIENT = aiohttp.ClientTimeout(total=5)
pytestmark = pytest.mark.soak


class Load:
    """Writes and people in line, through whatever happens; and when something was acknowledged."""

    def __init__(self, url: str) -> None:
        self.created: list[str] = []
        self.acknowledged: list[float] = []
        self.polled: list[float] = []  # polls in line that were answered
        self.admitted: list[str] = []
        self._url = url
        self._tasks: list[asyncio.Task[None]] = []

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator["Load"]:
        headers = {"Authorization": f"Bearer {ADMIN_TOKEN}"}
        async with aiohttp.ClientSession(self._url, headers=headers, timeout=CLIENT) as client:
            people = [asyncio.create_task(self._wait(client, number)) for number in range(PEOPLE)]
            self._tasks = [asyncio.create_task(self._write(client, n)) for n in range(3)] + people
            try:
                yield self
            finally:
                for task in self._tasks:
                    task.cancel()
                await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _ask(
        self, client: aiohttp.ClientSession, method: str, path: str, **json: str
    ) -> tuple[int, dict[str, str]]:
        try:
            async with client.request(method, path, json=json or None) as answer:
                return answer.status, await answer.json()
        except (aiohttp.ClientError, TimeoutError, ConnectionError, ValueError):
            return 0, {}

    async def _write(self, client: aiohttp.ClientSession, writer: int) -> None:
        number = 0
        while True:
            number += 1
            name = f"person-{writer}-{number}"
            status, _ = await self._ask(client, "POST", "/api/v1/users", name=name, role="learner")
            if status == 201:
                self.created.append(name)
                self.acknowledged.append(time.monotonic())
            await asyncio.sleep(0.05)

    async def _wait(self, client: aiohttp.ClientSession, number: int) -> None:
        """In line until admitted, by joining, polling and entering, again and again whatever comes back."""
        who, token = f"waiting-{number}", ""
        await asyncio.sleep(number * 0.2)
        while True:
            await asyncio.sleep(0.5)
            if not token:
                status, said = await self._ask(client, "POST", "/api/v1/queue/join", event_id="exam", user_id=who)
                token = said.get("waiting_token", "")
                if status == 409:  # the answer to `enter` was lost on its way
                    self.admitted.append(who)
                    return
                continue
            status, said = await self._ask(client, "GET", f"/api/v1/queue/status?token={token}")
            if status == 200:
                self.polled.append(time.monotonic())
            if status == 404:
                token = ""
            elif said.get("ready_for_entry"):
                status, said = await self._ask(client, "POST", "/api/v1/queue/enter", waiting_token=token)
                if status == 200:
                    self.admitted.append(who)
                    return

    @staticmethod
    async def longest_gap(answered: list[float], since: float) -> float:
        """Ends when all goes on as before."""
        while len([at for at in answered if at > since + 5]) < 20:
            await asyncio.sleep(0.1)
        return max(b - a for a, b in itertools.pairwise([since, *(at for at in answered if at > since)]))


PLACES = "SELECT count(*) FROM waiting_places WHERE event_id = 'exam' AND state IN ('reserved', 'held')"


def _look(home: pathlib.Path) -> dict[bytes, Any]:
    """Without the owner, who is another with each generation."""
    return {name: (mode, *rest) for name, (mode, _uid, _gid, *rest) in trees.picture(home).items()}


@pytest.mark.parametrize("several", ["sentinel", "cluster"], indirect=True)
async def test_each_primary_is_lost_under_load(several: Several, s3_server: s3.S3Server) -> None:
    with a_place() as folder:
        async with running_pair() as pair:
            await migrate.migrate(pair.url)
            environment = {
                "CODEHUB_DATABASE_URL": pair.url,
                "CODEHUB_REDIS_URL": several.url,
                "CODEHUB_ARCHIVE_URL": f"s3://{s3.BUCKET}/{folder.name}",
                "CODEHUB_SECRET_KEY": "a-secret-key-of-these-tests",
                "CODEHUB_TEMPLATES_DIR": str(write_templates(folder / "templates")),
                "COORDINATOR_IDLE_INTERVAL": "1",
                "COORDINATOR_ACTIVE_INTERVAL": "0.2",
                **s3_server.environment(),
            }
            with running(folder / "data", **environment) as platform:
                await _campaign(platform, pair, several)


async def _campaign(platform: Platform, pair: Pair, several: Several) -> None:
    async with platform.client() as client:
        await api(client, "PUT", "/api/v1/queue/events/exam", capacity=CAPACITY)
        id_ = await create(client)
        await until(client, id_, "RUNNING")
        home = Layout(platform.data_dir).of(id_).home
        (home / "noise").write_bytes(bytes(range(256)) * 40_000)
        picture, process = _look(home), first_pid(platform, id_)
    load = Load(platform.url)
    async with load.running():
        while len(load.created) < 20 or not load.admitted:
            await asyncio.sleep(0.1)
        begun = time.monotonic()
        await asyncio.to_thread(several.lose, "{exam}")
        redis = await load.longest_gap(load.polled, begun)
        begun = time.monotonic()
        await pair.fail_over()
        postgres = await load.longest_gap(load.acknowledged, begun)
        while len(load.admitted) < CAPACITY:
            await asyncio.sleep(0.2)
        await asyncio.sleep(3)  # the others go on asking
    print(f"\nRedis's primary lost: no poll for {redis:.1f} s; PostgreSQL's: no write for {postgres:.1f} s")
    assert first_pid(platform, id_) == process
    assert set(load.created) - await everybody(platform) == set()
    assert len(set(load.admitted)) == len(load.admitted) == CAPACITY
    assert await pair.second.ask(PLACES) == CAPACITY
    async with platform.client() as client:
        await want(client, id_, "ARCHIVED")
        assert not home.exists()
        await want(client, id_, "STANDBY")
    assert _look(home) == picture
    assert (await platform.wait_for("/readyz", 200, 60))["ready"]
