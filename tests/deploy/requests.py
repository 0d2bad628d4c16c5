"""Requests at the front door, each on a connection of its own: what became of them, and when they were answered."""

import asyncio
import contextlib
import itertools
import time
from collections import Counter
from collections.abc import AsyncIterator

import aiohttp

from tests.deploy.lab import Front

PAUSE = 0.05
EVERY = 5  # one of so many writes


class Requests:
    def __init__(self, front: Front, name: str) -> None:
        self.outcomes: Counter[str] = Counter()
        self.answered: list[float] = []
        self.created: list[str] = []
        self._front, self._name = front, name

    @contextlib.asynccontextmanager
    async def running(self, at_once: int = 2) -> AsyncIterator["Requests"]:
        """Each takes as long as it takes: nobody gives up before the front door does."""
        tasks = [asyncio.create_task(self._run(number)) for number in range(at_once)]
        try:
            yield self
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _run(self, writer: int) -> None:
        for number in itertools.count():
            outcome = await self._ask(f"{self._name}-{writer}-{number}", writes=number % EVERY == 0)
            self.outcomes[outcome] += 1
            await asyncio.sleep(PAUSE)

    async def _ask(self, name: str, *, writes: bool) -> str:
        try:
            async with self._front.client(seconds=10) as client:
                if writes:
                    async with client.post("/api/v1/users", json={"name": name, "role": "learner"}) as answer:
                        return self._note(f"POST {answer.status}", answer.status == 201, name)
                async with client.get("/api/v1/workspaces") as answer:
                    await answer.read()
                    return self._note(f"GET {answer.status}", answer.status == 200)
        except (aiohttp.ClientError, OSError, TimeoutError) as e:
            return f"{'POST' if writes else 'GET'} {type(e).__name__}: {e}"

    def _note(self, outcome: str, good: bool, created: str = "") -> str:
        if good:
            self.answered.append(time.monotonic())
            self.created += [created] if created else []
        return outcome

    def longest_silence(self, since: float) -> float:
        """Seconds in which no request was answered as it should be."""
        moments = [since, *(at for at in self.answered if at > since), time.monotonic()]
        return max(b - a for a, b in itertools.pairwise(moments))
