"""What happens when Redis has lost the line: PostgreSQL begins a new epoch, then Redis is opened with it.

Called by `service` and `pump` around every question to `line`. The order matters: an epoch that Redis knows and
PostgreSQL does not could be given out twice. A crash between the two leaves the loss, which the next one answers.

Of all processes one at a time answers a loss: until Redis is open nobody can be told that they wait, and what was read
of the event still holds when it is. An event that was idle has nobody who could come back.
"""

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import TypeVar

from codehub import logs
from codehub.clock import Clock
from codehub.db import EXCLUSIVE_SECONDS, Database
from codehub.errors import UnavailableError
from codehub.settings import QueueConfig
from codehub.waiting_room import rules, store
from codehub.waiting_room.errors import EventNotFoundError
from codehub.waiting_room.line import Line
from codehub.waiting_room.model import LOSS, Loss

log = logs.get()
T = TypeVar("T")
ATTEMPTS = 3
OPENERS = 7235421  # of the lock that those who open a line have


class Epochs:
    def __init__(self, database: Database, line: Line, clock: Clock, config: QueueConfig) -> None:
        self._database = database
        self._line = line
        self._clock = clock
        self._config = config
        # In this process one at a time opens a line, with two connections; others who met the same loss find it done.
        self._opening = asyncio.Lock()
        self._opened: defaultdict[str, int] = defaultdict(int)

    async def guarded(self, event_id: str, ask: Callable[[], Awaitable[T | Loss]]) -> T:
        """What Redis answers; after a loss, in a new epoch."""
        for _ in range(ATTEMPTS):
            opened = self._opened[event_id]
            answer = await ask()
            if not isinstance(answer, Loss):
                return answer
            async with self._opening:
                if self._opened[event_id] == opened:
                    await self._answer_loss(event_id, ask)
                    self._opened[event_id] += 1
        raise UnavailableError("Redis loses the line again and again: try again in a moment", retry_after=1)

    async def _answer_loss(self, event_id: str, ask: Callable[[], Awaitable[T | Loss]]) -> None:
        async with self._database.exclusive(OPENERS, event_id):
            if await ask() is LOSS:  # else another process has answered it meanwhile
                await self._reopen(event_id)

    async def catch_up(self, event_id: str) -> None:
        """Redis has another epoch than PostgreSQL: after a crash, or the database came from a backup."""
        async with self._opening, self._database.exclusive(OPENERS, event_id):
            counts = await self._line.counts(event_id)
            async with self._database.connection() as c:
                event = await store.find_event(c, event_id)
            if event and counts is not LOSS and counts.epoch != event.epoch:
                await self._reopen(event_id)

    async def _reopen(self, event_id: str) -> None:
        now, begun = self._clock.now(), self._clock.monotonic()
        async with self._database.transaction() as c:
            event = await store.lock_event(c, event_id)
            if event is None:
                raise EventNotFoundError(f"there is no event {event_id[:64]}")
            reopened = rules.reopened(event, now)
            # A member that was dropped earlier than this has expired, should a replica have kept it.
            await store.reopen(c, reopened, now - timedelta(seconds=self._config.heartbeat_seconds))
        if reopened.lost_line:
            log.warning("Redis has lost the line: a new epoch begins", event_id=event_id, epoch=reopened.epoch)
        opening = rules.opening(
            event, silent_seconds=self._config.silent_seconds, heartbeat_seconds=self._config.heartbeat_seconds
        )
        lottery = rules.draws_lots(event, now)
        if self._clock.monotonic() - begun > EXCLUSIVE_SECONDS / 2:
            return  # this process was stopped, and another may have opened the line since: ask again
        # Refused, where Redis knows a later one: the database came from a backup. The next loss begins the next epoch.
        await self._line.open(event_id, reopened.epoch, opening.hold, opening.window, lottery=lottery)
