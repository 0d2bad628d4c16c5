"""How the API waits for what the coordinator does for a PRACTICE: one reader for all who wait in this process.

`practice` adds a task and awaits it here; a notification of the database (`codehub_practice_done`) makes the reader
look once for all of them. No connection and no transaction is held meanwhile.
"""

import asyncio
import contextlib

from codehub.clock import Clock
from codehub.db import Database
from codehub.recurring import Recurring
from codehub.sessions import practice_store as store
from codehub.sessions.practice_runner import Result

PERIOD_SECONDS = 2.0  # should a notification be lost


class PracticeResults:
    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._waiting: dict[str, set[asyncio.Future[Result]]] = {}
        self._reader = Recurring("practice-results", self._read, clock, period=PERIOD_SECONDS)

    def start(self) -> None:
        self._reader.start()

    async def stop(self) -> None:
        await self._reader.stop()

    def wake(self) -> None:
        """For the listener: something has ended."""
        self._reader.wake()

    async def of(self, task_id: str, seconds: float) -> Result | None:
        """None: it did not end in time."""
        future: asyncio.Future[Result] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(task_id, set()).add(future)
        self._reader.wake()  # it may have ended before we began to wait
        try:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    return await future
            return None
        finally:
            self._waiting[task_id].discard(future)
            if not self._waiting[task_id]:
                del self._waiting[task_id]

    async def _read(self) -> None:
        if not self._waiting:
            return
        async with self._database.connection() as c:
            found = await store.results(c, self._waiting)
        for id_, result in found.items():
            for future in self._waiting.get(id_, ()):
                if not future.done():
                    future.set_result(result)
