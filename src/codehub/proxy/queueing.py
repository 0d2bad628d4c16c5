"""What strangers ask for, a few at a time: the rest waits, and those who wait are served address by address.

The API is one process, and any client can ask it for pages without a login. A `FairQueue` stands before what strangers
share; those who are logged in pass it by. One address has at most what is still free, of the places and of the queue.
A place is given up when the answer begins, or after a few seconds: a slow client keeps no other waiting.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from enum import Enum
from typing import Protocol

AT_ONCE = 8
WAITING = 256
PLACE_SECONDS = 5.0
WAIT_SECONDS = 10.0
LOOK_SECONDS = 1.0


class Entry(Enum):
    NOW = "go on"
    LATER = "wait for `admitted` or `in_vain`"
    FULL = "too many wait already"


class Waiter(Protocol):
    def admitted(self) -> None:
        """It has a place now, until it says `leave`."""
        ...

    def in_vain(self) -> None:
        """It has waited for too long, and has left."""
        ...


class _Awaited:
    def __init__(self, answer: asyncio.Future[bool]) -> None:
        self.answer = answer

    def admitted(self) -> None:
        if not self.answer.done():
            self.answer.set_result(True)

    def in_vain(self) -> None:
        if not self.answer.done():
            self.answer.set_result(False)


class FairQueue:
    def __init__(self, at_once: int = AT_ONCE, waiting: int = WAITING) -> None:
        self._at_once = at_once
        self._room = waiting
        self._inside: dict[Waiter, tuple[str, float]] = {}  # who has a place, for whom, since when
        self._held: dict[str, int] = {}  # places, by holder
        self._waiting: dict[str, dict[Waiter, float]] = {}  # by holder: in the order of their turns
        self._of: dict[Waiter, str] = {}  # those who wait
        self._timer: asyncio.TimerHandle | None = None

    def __len__(self) -> int:
        """How many wait."""
        return len(self._of)

    def enter(self, waiter: Waiter, who: str) -> Entry:
        loop = asyncio.get_running_loop()
        if not self._waiting.get(who) and self._may_have_one(who):
            self._take(waiter, who, loop.time())
            return Entry.NOW
        theirs = self._waiting.get(who, {})
        if len(theirs) >= self._room - len(self._of):
            return Entry.FULL
        theirs[waiter] = loop.time()
        self._waiting[who] = theirs
        self._of[waiter] = who
        if self._timer is None:
            self._timer = loop.call_later(LOOK_SECONDS, self._look)
        return Entry.LATER

    def leave(self, waiter: Waiter) -> None:
        """Whether it has a place, waits for one, or neither."""
        who = self._of.pop(waiter, None)
        if who is not None:
            del self._waiting[who][waiter]
            if not self._waiting[who]:
                del self._waiting[who]
            return
        holder, _ = self._inside.pop(waiter, ("", 0.0))
        if not holder:
            return
        self._held[holder] -= 1
        if not self._held[holder]:
            del self._held[holder]
        self._admit()

    @asynccontextmanager
    async def turn(self, who: str) -> AsyncIterator[bool]:
        """A place for as long as the block lasts. False: there is none, or it took too long."""
        waiter = _Awaited(asyncio.get_running_loop().create_future())
        entry = self.enter(waiter, who)
        try:
            yield entry is Entry.NOW or (entry is Entry.LATER and await waiter.answer)
        finally:
            self.leave(waiter)

    def _may_have_one(self, who: str) -> bool:
        return self._held.get(who, 0) < self._at_once - len(self._inside)

    def _take(self, waiter: Waiter, who: str, now: float) -> None:
        self._inside[waiter] = (who, now)
        self._held[who] = self._held.get(who, 0) + 1

    def _admit(self) -> None:
        """The next ones, each of another holder; in the loop's next round, as the one that left is still in a call."""
        loop = asyncio.get_running_loop()
        while (who := next((who for who in self._waiting if self._may_have_one(who)), None)) is not None:
            theirs = self._waiting.pop(who)
            waiter = next(iter(theirs))
            del theirs[waiter], self._of[waiter]
            if theirs:
                self._waiting[who] = theirs
            self._take(waiter, who, loop.time())
            loop.call_soon(self._tell, waiter)

    def _tell(self, waiter: Waiter) -> None:
        if waiter in self._inside:  # it may have left meanwhile
            waiter.admitted()

    def _look(self) -> None:
        """For those who have had their place, or have waited, for too long."""
        loop = asyncio.get_running_loop()
        self._timer = None
        now = loop.time()
        for waiter in [one for one, (_, since) in self._inside.items() if since <= now - PLACE_SECONDS]:
            self.leave(waiter)
        late = [one for who in self._waiting.values() for one, since in who.items() if since <= now - WAIT_SECONDS]
        for waiter in late:
            self.leave(waiter)
            waiter.in_vain()
        if self._of:
            self._timer = loop.call_later(LOOK_SECONDS, self._look)


class AFew:
    """So many at a time for each name, and no queue."""

    def __init__(self, each: int) -> None:
        self._each = each
        self._counts: Counter[tuple[str, ...]] = Counter()

    @contextmanager
    def one_more(self, *name: str) -> Iterator[bool]:
        """False: there are enough already."""
        if self._counts[name] >= self._each:
            yield False
            return
        self._counts[name] += 1
        try:
            yield True
        finally:
            self._counts[name] -= 1
            if not self._counts[name]:
                del self._counts[name]
