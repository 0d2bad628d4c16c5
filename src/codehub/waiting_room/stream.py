"""`GET /api/v1/queue/stream`: where one stands, as Server-Sent Events, pushed when it changes. `api` answers with it.

A token is all that a stream needs, so people are told apart by token: there is no login that could end. Thousands are
open in one process (`QUEUE_STREAMS`), so each is little: a listener, the newest it has to tell, and a task that sends.
"""

import asyncio
import contextlib
from collections import Counter
from collections.abc import Mapping

import msgspec
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from codehub.clock import Clock
from codehub.errors import StreamLimitError
from codehub.events.subscription import frame as sse
from codehub.settings import QueueConfig
from codehub.waiting_room.errors import TokenExpiredError
from codehub.waiting_room.line import Line
from codehub.waiting_room.recent_log import RecentLogs
from codehub.waiting_room.service import WaitingRoom
from codehub.waiting_room.status import Status, shown
from codehub.waiting_room.tokens import Tokens, Waiting
from codehub.waiting_room.watching import Listener, Watcher, changes

PER_TOKEN = 8  # tabs of one person; others poll
RETRY_SECONDS = 10
BEATS = 3  # in the time after which a person counts as silent
OPENING = b"retry: 3000\n\n"  # ms until a browser comes back


class WaitingStreams:
    """All open streams of this process."""

    def __init__(self, room: WaitingRoom, line: Line, tokens: Tokens, clock: Clock, config: QueueConfig) -> None:
        self._room = room
        self._line = line
        self._tokens = tokens
        self._clock = clock
        self._config = config
        self._recent = RecentLogs(line.log_since)
        self._watchers: dict[str, Watcher] = {}
        self._per_token: Counter[str] = Counter()

    @property
    def count(self) -> int:
        return self._per_token.total()

    async def open(self, token: str, cursor: int | None) -> "WaitingStream":
        """Begins with where they stand now; TOKEN_EXPIRED where they do not. `cursor`: what they were told before."""
        waiting = self.read(token)
        self._check_room(token)
        status = await self._room.status(token)
        known = cursor is not None and cursor <= status.logn
        listener = Listener(token, waiting.seq, status, self._clock.monotonic())
        if cursor is not None and known:
            listener.cursor = cursor
        return WaitingStream(self, waiting.event, listener)

    async def changes_since(self, token: str, cursor: int) -> Mapping[str, int] | None:
        """Why they moved since then; None: that is not known any more."""
        waiting = self.read(token)
        found = await self._recent.since(waiting.event, cursor)
        return None if found is None else changes(found, waiting.seq)

    def read(self, token: str) -> Waiting:
        """What it stands for; TOKEN_EXPIRED, if it is none of ours."""
        found = self._tokens.read_waiting(token)
        if found is None:
            raise TokenExpiredError
        return found

    def _check_room(self, token: str) -> None:
        if self._per_token[token] >= PER_TOKEN:
            raise StreamLimitError(f"{PER_TOKEN} are open for this place: poll instead", retry_after=RETRY_SECONDS)
        if self._config.streams and self.count >= self._config.streams:
            raise StreamLimitError("too many are open: poll instead", retry_after=RETRY_SECONDS)

    def begin(self, event: str, listener: Listener) -> None:
        """Before the first byte of an answer: where there is no room, it is another one."""
        self._check_room(listener.token)  # again: many may have been on their way at once
        self._per_token[listener.token] += 1
        if event not in self._watchers:
            self._watchers[event] = Watcher(
                event,
                self._clock,
                status=self._room.status,
                log_since=self._line.log_since,
                recent=self._recent.since,
                beat_seconds=self._config.silent_seconds / BEATS,
                frame=self._frame,
            )

    async def welcome(self, event: str, listener: Listener) -> None:
        await self._watchers[event].welcome(listener)

    def end(self, event: str, listener: Listener) -> None:
        self._per_token[listener.token] -= 1
        if self._per_token[listener.token] <= 0:
            del self._per_token[listener.token]
        watcher = self._watchers.get(event)
        if watcher is not None:
            watcher.remove(listener)
            if not watcher.listeners:
                del self._watchers[event]

    def _frame(self, number: int, kind: str, status: Status, changes: Mapping[str, int] | None) -> bytes:
        data = {**shown(status, self._clock.timestamp()), "changes": changes}
        return sse(number, kind, msgspec.json.encode(data).decode())

    async def stop(self) -> None:
        """They have no end of their own; browsers come back, to another process or the next one."""
        for watcher in list(self._watchers.values()):
            for listener in list(watcher.listeners):
                listener.end()


class WaitingStream(Response):
    """Not the framework's streaming answer: that costs two tasks and their group for each."""

    media_type = "text/event-stream"

    def __init__(self, streams: WaitingStreams, event: str, listener: Listener) -> None:
        super().__init__(headers={"x-accel-buffering": "no"})
        del self.headers["content-length"]
        self._streams = streams
        self._event = event
        self._listener = listener

    async def __call__(self, _scope: Scope, receive: Receive, send: Send) -> None:
        self._streams.begin(self._event, self._listener)
        leaving = asyncio.create_task(self._until_the_client_leaves(receive))
        try:
            await self._streams.welcome(self._event, self._listener)
            await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
            await send({"type": "http.response.body", "body": OPENING, "more_body": True})
            while (piece := await self._listener.next()) is not None:
                await send({"type": "http.response.body", "body": piece, "more_body": True})
            await send({"type": "http.response.body", "body": b"", "more_body": False})
        finally:
            self._streams.end(self._event, self._listener)
            leaving.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await leaving

    async def _until_the_client_leaves(self, receive: Receive) -> None:
        while (await receive())["type"] != "http.disconnect":
            pass
        self._listener.end()
