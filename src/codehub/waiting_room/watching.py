"""What the streams of one event share: one watcher that reads the event's log, and asks for those who moved.

`stream` makes one per event while streams of it are open in this process. A status renews the heartbeat, so asking for
a stream is what makes an open stream a heartbeat. Each stream holds only the newest it has to tell: one that reads
slowly skips what is old, and holds up no other.
"""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence

from codehub import logs, metrics
from codehub.clock import Clock
from codehub.errors import CodeHubError
from codehub.waiting_room.errors import TokenExpiredError
from codehub.waiting_room.model import LogEntry, LogKind, Loss
from codehub.waiting_room.recent_log import Entries, ReadLog
from codehub.waiting_room.status import Status

log = logs.get()
PERIOD_SECONDS = 0.2  # between looks at the log
NEAR = 100  # so many at the front are told of every change at once
POLL_MS = 2000  # how often one asks who has no stream, and is near
BATCH = 256  # statuses asked for together: what goes to Redis in one call
MOVES = {LogKind.ENTERED: "entered", LogKind.LEFT: "left", LogKind.EXPIRED: "expired"}
ReadRecent = Callable[[str, int], Awaitable[Sequence[LogEntry] | None]]
ReadStatus = Callable[[str], Awaitable[Status]]
# (number of the newest entry it counts, kind of event, status, changes; None: they cannot be said) → what is sent
Frame = Callable[[int, str, Status, Mapping[str, int] | None], bytes]


def changes(entries: Sequence[LogEntry], seq: int) -> dict[str, int]:
    """Why a person at `seq` moved: how many of those ahead entered, left or expired."""
    return dict(Counter(MOVES[entry.kind] for entry in entries if entry.seq < seq and entry.kind in MOVES))


def interval(status: Status, beat_seconds: float) -> float:
    """Seconds between two looks for one stream, however much happens: people far back are not told of every step."""
    if status.position is not None and status.position <= NEAR:
        return 0.0
    return min(max(0.0, (status.poll_after_ms - POLL_MS) / 1000), beat_seconds)


def differs(before: Status, now: Status) -> bool:
    """Is it worth telling? How long it will take changes all the time, and goes along with whatever else is told."""
    return _told(before) != _told(now)


def _told(status: Status) -> tuple[object, ...]:
    return (
        *(status.position, status.ready_for_entry, status.paused, status.passed),
        *(status.opens_at, status.offer_expires_at),
    )


class Listener:
    """One open stream: who listens, what they have read, and what is to be told next."""

    __slots__ = ("_next", "_waiter", "asked_at", "cursor", "over", "seq", "status", "token", "told_at", "was_ready")

    def __init__(self, token: str, seq: int, status: Status, now: float) -> None:
        self.token = token
        self.seq = seq
        self.status = status  # as it was last seen
        self.asked_at = now
        self.told_at = now
        self.cursor = status.logn  # the newest entry of the log that was counted in what was read
        self.was_ready = False  # in what was read
        self.over = False
        self._next: tuple[bytes, int, bool] | None = None
        self._waiter: asyncio.Future[None] | None = None

    def put(self, piece: bytes, number: int) -> None:
        """In place of what it has not read yet: that is old now."""
        self._next = piece, number, self.status.ready_for_entry
        self._wake()

    def end(self) -> None:
        """After what was put last, if anything was."""
        self.over = True
        self._wake()

    async def next(self) -> bytes | None:
        """None: it is over."""
        while self._next is None and not self.over:
            self._waiter = asyncio.get_running_loop().create_future()
            await self._waiter
        if self._next is None:
            return None
        piece, self.cursor, self.was_ready = self._next
        self._next = None
        return piece

    def _wake(self) -> None:
        if self._waiter and not self._waiter.done():
            self._waiter.set_result(None)


class Watcher:
    def __init__(
        self,
        event: str,
        clock: Clock,
        *,
        status: ReadStatus,
        log_since: ReadLog,
        recent: ReadRecent,
        beat_seconds: float,
        frame: Frame,
    ) -> None:
        self.listeners: set[Listener] = set()
        self.entries = Entries()
        self._event = event
        self._clock = clock
        self._status = status
        self._log_since = log_since
        self._recent = recent
        self._beat_seconds = beat_seconds
        self._frame = frame
        self._running: asyncio.Task[None] | None = None

    async def welcome(self, listener: Listener) -> None:
        """First where they stand, and why it is not where they stood when they were told last."""
        self.listeners.add(listener)
        status, after = listener.status, listener.cursor
        missed = await self._recent(self._event, after) if after < status.logn else ()
        moves = None
        if missed is not None:
            moves = changes([entry for entry in missed if entry.number <= status.logn], listener.seq)
        kind = "ready" if status.ready_for_entry else "position"
        listener.put(self._frame(status.logn, kind, status, moves), status.logn)
        if self._running is None:
            self._running = asyncio.create_task(self._watch(), name=f"waiting room {self._event}")

    def remove(self, listener: Listener) -> None:
        self.listeners.discard(listener)

    async def _watch(self) -> None:
        """While anybody listens."""
        try:
            while self.listeners:
                try:
                    await self.look()
                except CodeHubError as e:  # Redis is away: streams stay open, and go on when it is back
                    log.warning("The line cannot be watched right now", event_id=self._event, error=e.detail)
                except Exception:  # whatever it is, the next look may succeed
                    metrics.LOOP_TICKS.labels("waiting-room-streams", "failed").inc()
                    log.exception("The line could not be watched, and will be again", event_id=self._event)
                await self._clock.sleep(PERIOD_SECONDS)
        finally:
            self._running = None

    async def look(self) -> None:
        news = await self.read_log()
        now = self._clock.monotonic()
        due = [listener for listener in self.listeners if self._is_due(listener, news, now)]
        for start in range(0, len(due), BATCH):
            some = due[start : start + BATCH]
            found = await asyncio.gather(*(self._ask(listener, now) for listener in some))
            await self.read_log()  # up to what the statuses know of
            for listener, status in zip(some, found, strict=True):
                self._tell(listener, status, now)

    async def read_log(self) -> Mapping[int, LogKind]:
        """What is new, by sequence; 0 is of the whole event."""
        known = self.entries.read_to
        after = known if known is not None else min(listener.status.logn for listener in self.listeners)
        found = await self._log_since(self._event, after)
        if found is None or isinstance(found, Loss):  # why one moved cannot be said, but where one stands
            self.entries.forget(max(listener.status.logn for listener in self.listeners))
            return {0: LogKind.RESET}
        self.entries.add(found, after)
        return {entry.seq: entry.kind for entry in found}

    def _is_due(self, listener: Listener, news: Mapping[int, LogKind], now: float) -> bool:
        waited = now - listener.asked_at
        if listener.seq in news or 0 in news or waited >= self._beat_seconds:
            return True
        moved = (self.entries.read_to or 0) > listener.status.logn
        return moved and waited >= interval(listener.status, self._beat_seconds)

    async def _ask(self, listener: Listener, now: float) -> Status | CodeHubError:
        before, listener.asked_at = listener.asked_at, now
        try:
            return await self._status(listener.token)
        except CodeHubError as e:
            listener.asked_at = before
            return e

    def _tell(self, listener: Listener, found: Status | CodeHubError, now: float) -> None:
        if isinstance(found, TokenExpiredError):
            listener.put(self._frame(listener.cursor, self._why(listener), listener.status, None), listener.cursor)
            listener.end()
            self.remove(listener)
            return
        if isinstance(found, CodeHubError):
            raise found
        before, listener.status = listener.status, found
        if found.logn < before.logn:  # the line was lost, and its log begins anew
            self.entries.forget(None)
        if differs(before, found) or now - listener.told_at >= self._beat_seconds:
            self.tell(listener, now)

    def tell(self, listener: Listener, now: float) -> None:
        """Where they stand, and why that is another place than the one they have read."""
        status, listener.told_at = listener.status, now
        kind = "ready" if status.ready_for_entry and not listener.was_ready else "position"
        missed = self.entries.since(listener.cursor)
        moves = None if missed is None else changes(missed, listener.seq)
        number = status.logn if missed is None else self.entries.read_to or status.logn
        listener.put(self._frame(number, kind, status, moves), number)

    def _why(self, listener: Listener) -> str:
        """How a place in line ended. What the log does not say any more was too long ago: silence."""
        own = [entry for entry in self.entries.since(listener.cursor) or () if entry.seq == listener.seq]
        ends = [MOVES[entry.kind] for entry in own if entry.kind in MOVES]
        return ends[-1] if ends else "expired"
