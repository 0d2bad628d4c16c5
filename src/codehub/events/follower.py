"""Reads the outbox as it grows, once for a whole process, and hands over what it read.

Used by `hub`, and by the proxy for its routing table. A notification only says that there is something to read; the
reader looks every few seconds without one, too.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from codehub.clock import Clock
from codehub.db import Connection, Database
from codehub.events import outbox
from codehub.events.model import Stored
from codehub.recurring import Recurring

LOOK_SECONDS = 5.0  # how long a lost notification can delay an event
Take = Callable[[Connection, Sequence[Stored]], Awaitable[None]]
Lost = Callable[[Connection], Awaitable[None]]


class Follower:
    """`take` gets each batch once, or again if it raised.

    `lost` is called where events were removed unread: what was made of them has to be made anew from the state itself,
    which is then read after everything that is skipped.
    """

    def __init__(self, name: str, database: Database, clock: Clock, take: Take, lost: Lost) -> None:
        self._database = database
        self._take = take
        self._lost = lost
        self._turn = asyncio.Lock()
        self._loop = Recurring(name, self.read_all, clock, period=LOOK_SECONDS)
        self.position: int | None = None  # all up to here was handed over
        self.wake = self._loop.wake
        self.start = self._loop.start
        self.stop = self._loop.stop

    async def begin(self) -> int:
        """From now on, unless it has begun. Returns where it is."""
        if self.position is None:
            async with self._database.connection() as c:
                self._begin_at(await outbox.newest(c))
        return self.position or 0

    def _begin_at(self, newest: int) -> None:
        if self.position is None:  # two may have asked at the same time
            self.position = newest

    async def read_all(self) -> None:
        async with self._turn:  # whoever else asks for it: a batch that was begun earlier would lead back
            while await self._read():
                pass

    async def _read(self) -> bool:
        """False: there was nothing more. What is written meanwhile has a notification of its own."""
        position = await self.begin()
        async with self._database.connection() as c:
            batch = await outbox.after(c, position)
            if batch.lost:
                newest = await outbox.newest(c)
                await self._lost(c)
                self.position = newest
            elif batch.events:
                await self._take(c, batch.events)
                self.position = batch.events[-1].position  # nothing else runs between the hand-over and this line
        return batch.lost or batch.more
