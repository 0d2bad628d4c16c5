"""Processes of `codehub api` on one database, as several machines run them, and clients that go on until served."""

import asyncio
import contextlib
import itertools
import pathlib
import socket
import subprocess
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import Any

import aiohttp

from codehub.settings import Settings
from tests.platform import ADMIN_TOKEN, CODEHUB, clean_environment

START_SECONDS = 90.0
ENOUGH = 30.0  # seconds, for an answer


@dataclass(frozen=True)
class ApiProcess:
    url: str
    process: subprocess.Popen[bytes]
    log: pathlib.Path

    async def ready(self, client: aiohttp.ClientSession) -> None:
        async with asyncio.timeout(START_SECONDS):
            while True:
                with contextlib.suppress(aiohttp.ClientError):
                    async with client.get(f"{self.url}/healthz") as answer:
                        if answer.status == 200:
                            return
                assert self.process.poll() is None, self.log.read_text()
                await asyncio.sleep(0.05)

    def end(self) -> None:
        if self.process.poll() is None:
            self.process.terminate()
        self.process.wait(30)


@dataclass
class Fleet:
    """Some of them."""

    environment: dict[str, str]
    folder: pathlib.Path
    client: aiohttp.ClientSession
    processes: list[ApiProcess]

    async def start(self, count: int) -> list[ApiProcess]:
        """More, all at once."""
        started = [self._launch(len(self.processes) + number) for number in range(count)]
        self.processes += started
        await asyncio.gather(*(one.ready(self.client) for one in started))
        return started

    def _launch(self, number: int) -> ApiProcess:
        with socket.create_server(("127.0.0.1", 0)) as probe:
            port = probe.getsockname()[1]
        log = self.folder / f"api-{number}.log"
        with log.open("wb") as errors:
            environment = {**self.environment, "CODEHUB_PORT": str(port)}
            process = subprocess.Popen([*CODEHUB, "api"], env=environment, stderr=errors)
        return ApiProcess(f"http://127.0.0.1:{port}", process, log)

    @contextlib.asynccontextmanager
    async def learner(self, name: str = "mina") -> AsyncIterator["Insistent"]:
        """A new person, whose requests go to one process after the other."""
        admin = {"Authorization": f"Bearer {ADMIN_TOKEN}"}
        url = f"{self.processes[0].url}/api/v1/users"
        async with self.client.post(url, json={"name": name, "role": "learner"}, headers=admin) as answer:
            assert answer.status == 201, await answer.text()
        async with self.client.post(f"{url}/{name}/tokens", json={}, headers=admin) as answer:
            token = (await answer.json())["token"]
        headers = {"Authorization": f"Bearer {token}"}
        timeout, connector = aiohttp.ClientTimeout(total=ENOUGH), aiohttp.TCPConnector(limit=0)
        async with aiohttp.ClientSession(headers=headers, timeout=timeout, connector=connector) as client:
            yield Insistent(client, [one.url for one in self.processes])


@dataclass(frozen=True)
class Told:
    """An answer that is no invitation to come again."""

    status: int
    body: bytes
    replayed: bool
    tries: int


class Insistent:
    """A client that sends a request again when it is told to, and no other way."""

    def __init__(self, client: aiohttp.ClientSession, urls: Sequence[str]) -> None:
        self.client = client
        self._urls = itertools.cycle(urls)

    async def ask(self, method: str, path: str, body: object = None, key: str | None = None) -> Told:
        headers = {} if key is None else {"Idempotency-Key": key}
        for tries in itertools.count(1):
            url = f"{next(self._urls)}/api/v1{path}"
            async with self.client.request(method, url, json=body, headers=headers) as answer:
                text = await answer.read()
                if "Retry-After" not in answer.headers:
                    return Told(answer.status, text, "Idempotency-Replayed" in answer.headers, tries)
                code = (await answer.json())["code"]
                assert (answer.status, code) in {(503, "UNAVAILABLE"), (409, "IDEMPOTENCY_KEY_IN_USE")}, text
                assert int(answer.headers["Retry-After"]) >= 1
            await asyncio.sleep(0.1)  # sooner than it was told, to make it harder
        raise AssertionError

    async def made(self, blueprint: Any, count: int = 1) -> list[str]:
        """Ids of the sessions of a new plan."""
        one = {"title": "Day", "scheduled_for_date": "2026-03-02", "blueprint": blueprint}
        async with self.client.post(
            f"{next(self._urls)}/api/v1/plans", json={"title": "Plan", "sessions": [one] * count}
        ) as answer:
            assert answer.status == 201, await answer.text()
            return [session["id"] for session in (await answer.json())["sessions"]]


@contextlib.asynccontextmanager
async def fleet(settings: Settings, folder: pathlib.Path, count: int, log_level: str = "error") -> AsyncIterator[Fleet]:
    environment = clean_environment(
        CODEHUB_DATA_DIR=str(settings.storage.data_dir),
        CODEHUB_DATABASE_URL=str(settings.storage.database_url),
        CODEHUB_REDIS_URL=str(settings.storage.redis_url),
        CODEHUB_SECRET_KEY=str(settings.auth.secret_key),
        CODEHUB_MAX_CHANGES_PER_MINUTE="0",
        CODEHUB_LOG_LEVEL=log_level,
    )
    async with aiohttp.ClientSession() as client:
        all_ = Fleet(environment, folder, client, [])
        try:
            await all_.start(count)
            yield all_
        finally:
            for one in all_.processes:
                one.end()
