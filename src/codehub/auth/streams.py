"""Answers that stay open (event streams, logs that are followed, downloads) end with the login they were opened with.

An answer is as good as its credential: logged out, revoked, expired, its person deactivated or of another role, and it
is over. All that is open in a process is looked at together, by one query: at once when the database says that
something was revoked, and every few seconds because expiry is not announced. The proxy does the same for
what passes through it (`gate.director`).
"""

import asyncio
import contextlib
from collections.abc import Iterator
from dataclasses import dataclass, field

from codehub import logs, metrics
from codehub.auth import store
from codehub.clock import Clock
from codehub.db import Database
from codehub.policy.model import OPERATOR_KEY, Principal, Role

log = logs.get()
LOOK_SECONDS = 2.0
FROM_THE_ENVIRONMENT = "environment"  # the id of CODEHUB_ADMIN_TOKEN, which stands as long as the process
LASTING = {FROM_THE_ENVIRONMENT, OPERATOR_KEY}


@dataclass(eq=False)
class OpenStream:
    key: str  # the session's or token's id
    role: Role
    ended: asyncio.Event = field(default_factory=asyncio.Event)


class OpenStreams:
    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock
        self._open: set[OpenStream] = set()
        self._new: set[OpenStream] = set()  # not looked at yet
        self._revoked = False
        self._all_due = 0.0  # when all are looked at in any case
        self._news = asyncio.Event()
        self._looking: asyncio.Task[None] | None = None

    def wake(self) -> None:
        """For the listener: a person was deactivated, or something revoked."""
        self._revoked = True
        self._news.set()

    @contextlib.contextmanager
    def opened(self, caller: Principal) -> Iterator[asyncio.Event]:
        """Set when what the caller came with is over."""
        stream = OpenStream(caller.session_id or caller.token_id or "", caller.role)
        self._open.add(stream)
        self._new.add(stream)
        self._news.set()  # it may have ended while the request was on its way here
        if self._looking is None:
            self._looking = asyncio.create_task(self._look_on(), name="open-streams")
        try:
            yield stream.ended
        finally:
            self._open.discard(stream)
            self._new.discard(stream)
            if not self._open:
                self._news.set()

    async def stop(self) -> None:
        if self._looking:
            self._looking.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._looking

    async def _look_on(self) -> None:
        """While anything is open."""
        try:
            while self._open:
                self._news.clear()
                try:
                    await self._look()
                except Exception:  # whatever it is, the next look may succeed
                    metrics.LOOP_TICKS.labels("open-streams", "failed").inc()
                    log.exception("Open streams could not be looked at, and will be again")
                    self._revoked = True
                    await self._clock.sleep(LOOK_SECONDS)
                await self._a_while_or_news()
        finally:
            self._looking = None

    def _due(self) -> list[OpenStream]:
        """All, after a revocation and every few seconds; otherwise those that came: thousands may come at once."""
        now, new = self._clock.monotonic(), self._new
        self._new = set()
        if not self._revoked and now < self._all_due:
            return list(new)
        self._revoked, self._all_due = False, now + LOOK_SECONDS
        return list(self._open)

    async def _look(self) -> None:
        looked_at = self._due()
        keys = {stream.key for stream in looked_at} - LASTING
        async with self._database.connection() as c:
            standing = await store.standing(c, keys, self._clock.now()) if keys else {}
        standing |= dict.fromkeys(LASTING, Role.ADMIN)
        for stream in looked_at:
            if standing.get(stream.key) is not stream.role:
                stream.ended.set()
                self._open.discard(stream)

    async def _a_while_or_news(self) -> None:
        waiting = asyncio.create_task(self._news.wait()), asyncio.ensure_future(self._clock.sleep(LOOK_SECONDS))
        try:
            await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in waiting:
                task.cancel()
