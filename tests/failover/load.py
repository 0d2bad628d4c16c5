"""Writes and people in line, for tests that lose servers or pods meanwhile."""

import asyncio
import contextlib
import itertools
import time
from collections.abc import AsyncIterator

import aiohttp

from tests.platform import Platform

PEOPLE = 40


class Load:
    """Writes and people in line, through whatever happens; and when something was acknowledged."""

    def __init__(self, platform: Platform, event: str) -> None:
        self.event = event
        self.created: list[str] = []
        self.acknowledged: list[float] = []
        self.polled: list[float] = []  # polls in line that were answered
        self.admitted: list[str] = []
        self._platform = platform
        self._tasks: list[asyncio.Task[None]] = []

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator["Load"]:
        async with self._platform.client(seconds=5) as client:
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
            name = f"{self.event}-{writer}-{number}"
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
                status, said = await self._ask(client, "POST", "/api/v1/queue/join", event_id=self.event, user_id=who)
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
