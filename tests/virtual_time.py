"""A clock that tests drive. Sleepers wake in order as `advance` passes their time; nothing really waits."""

import asyncio
import heapq
import itertools
from datetime import UTC, datetime, timedelta


class ManualClock:
    def __init__(self, start: datetime = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)) -> None:
        self._start = start
        self._elapsed = 0.0
        self._order = itertools.count()
        self._sleepers: list[tuple[float, int, asyncio.Future[None]]] = []

    def now(self) -> datetime:
        return self._start + timedelta(seconds=self._elapsed)

    def timestamp(self) -> float:
        return self.now().timestamp()

    def monotonic(self) -> float:
        return self._elapsed

    def set_back(self, seconds: float) -> None:
        """What the clock on the wall says; sleepers sleep on."""
        self._start -= timedelta(seconds=seconds)

    async def sleep(self, seconds: float) -> None:
        if seconds <= 0:
            await asyncio.sleep(0)
            return
        woken: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        heapq.heappush(self._sleepers, (self._elapsed + seconds, next(self._order), woken))
        await woken

    async def advance(self, seconds: float) -> None:
        """Let time pass. Whoever wakes on the way runs until it sleeps or waits again, at its own moment."""
        end = self._elapsed + seconds
        await settle()
        while self._sleepers and self._sleepers[0][0] <= end:
            moment, _, woken = heapq.heappop(self._sleepers)
            self._elapsed = max(self._elapsed, moment)
            if not woken.done():
                woken.set_result(None)
                await settle()
        self._elapsed = end
        await settle()

    async def jump(self, seconds: float) -> None:
        """As when a laptop wakes up: the moments in between never were, whoever slept through them wakes once."""
        self._elapsed += seconds
        await self.advance(0)


async def settle(turns: int = 50) -> None:
    """Give every ready task its turns. Enough for pure asyncio; real I/O has to be awaited by the test."""
    for _ in range(turns):
        await asyncio.sleep(0)
