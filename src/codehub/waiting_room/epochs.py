"""What happens when Redis has lost the line: PostgreSQL begins a new epoch, then Redis is opened with it.

Called by `service` and `pump` around every question to `line`. The order matters: an epoch that Redis knows and
PostgreSQL does not could be given out twice. A crash between the two leaves the loss, which the next one answers.
"""

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import TypeVar

from codehub import logs
from codehub.clock import Clock
from codehub.db import Database
from codehub.errors import UnavailableError
from codehub.settings import QueueConfig
from codehub.waiting_room import rules, store
from codehub.waiting_room.errors import EventNotFoundError
from codehub.waiting_room.line import Line
from codehub.waiting_room.model import LOSS, Event, Loss

log = logs.get()
T = TypeVar("T")
ATTEMPTS = 3


class Epochs:
    def __init__(self, database: Database, line: Line, clock: Clock, config: QueueConfig) -> None:
        self._database = database
        self._line = line
        self._clock = clock
        self._config = config
        # In this process one at a time opens an event; the others, who met the same loss, find it done.
        self._locks: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._opened: defaultdict[str, int] = defaultdict(int)

    async def guarded(self, event_id: str, ask: Callable[[], Awaitable[T | Loss]]) -> T:
        """What Redis answers; after a loss, in a new epoch."""
        for _ in range(ATTEMPTS):
            opened = self._opened[event_id]
            answer = await ask()
            if not isinstance(answer, Loss):
                return answer
            async with self._locks[event_id]:
                if self._opened[event_id] == opened:
                    await self._answer_loss(event_id, ask)
                    self._opened[event_id] += 1
        raise UnavailableError("Redis loses the line again and again: try again in a moment", retry_after=1)

    async def _answer_loss(self, event_id: str, ask: Callable[[], Awaitable[T | Loss]]) -> None:
        """Read before asking once more: where another process has begun an epoch meanwhile, this is not another one."""
        async with self._database.connection() as c:
            event = await store.find_event(c, event_id)
        if event is None:
            raise EventNotFoundError(f"there is no event {event_id[:64]}")
        if await ask() is LOSS:
            await self.reopen(event)

    async def reopen(self, seen: Event) -> None:
        """`seen`: the event as it was read before the loss was met. One that has a later epoch by now stays."""
        now = self._clock.now()
        async with self._database.transaction() as c:
            event = await store.lock_event(c, seen.id)
            if event is None or event.epoch != seen.epoch:
                return
            reopened = rules.reopened(event, now)
            # A member that was dropped earlier than this has expired, should a replica have kept it.
            await store.reopen(c, reopened, now - timedelta(seconds=self._config.heartbeat_seconds))
        if reopened.lost_line:
            log.warning("Redis has lost the line: a new epoch begins", event_id=event.id, epoch=reopened.epoch)
        await self._open(event.id, reopened.epoch)

    async def _open(self, event_id: str, epoch: int) -> None:
        """As the event is now: one that was idle may have people by this time, who were told that they wait."""
        async with self._database.connection() as c:
            event = await store.find_event(c, event_id)
        if event is None or event.epoch != epoch:
            return  # a later one was begun, by a process that opens it: Redis, if emptied again, must not take this one
        opening = rules.opening(
            event, silent_seconds=self._config.silent_seconds, heartbeat_seconds=self._config.heartbeat_seconds
        )
        lottery = rules.draws_lots(event, self._clock.now())
        # Refused, where Redis knows a later one: the database came from a backup. The next loss begins the next epoch.
        await self._line.open(event_id, epoch, opening.hold, opening.window, lottery=lottery)
