"""What a proxy worker calls: `request` for every HTTP request it forwards, `tunnel` for every WebSocket it opens.

Both only write into dictionaries. `run` is the worker's other half: it writes open connections to Redis as they change,
flushes everything else on a period, when the TTL runner asks for it, and once more at the end.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any

import redis.exceptions

from codehub import logs
from codehub.activity import keys
from codehub.activity.buffer import Buffer
from codehub.activity.leases import Leases
from codehub.activity.model import COUNTS, Kind, Watched
from codehub.activity.profiles import PROFILES
from codehub.activity.profiles.base import Tell
from codehub.activity.scripts import Redis
from codehub.clock import Clock
from codehub.proxy.model import RequestHead
from codehub.settings import ActivityConfig
from codehub.templates.model import ActivityMode

log = logs.get()
BROWSING = int(Kind.BROWSING)  # by these names they are found faster
TRAFFIC, CONNECTIONS = ActivityMode.TRAFFIC, ActivityMode.CONNECTIONS
CACHED = 4096  # requests that are like one before are not classified again
ASKED_SECONDS = 1.0  # how often a worker looks whether a flush is wanted
Unreachable = (redis.exceptions.RedisError, OSError, TimeoutError)
Known = tuple[int, bool]  # a kind, and whether it counts


class Recorder:
    def __init__(self, client: Redis, clock: Clock, instance: str, config: ActivityConfig) -> None:
        self._clock = clock
        self._now = clock.now
        self._client = client
        self._config = config
        self._buffer = Buffer()
        self._tallies = self._buffer.tally
        self._leases = Leases(client, clock, instance, keys.lease_seconds(config.flush_interval))
        self._known: dict[tuple[str, bytes, bytes], Known] = {}  # by workspace, method and target
        self._alike: dict[tuple[int, bytes, bytes], Known] = {}  # by profile, method and path within the workspace
        self._connections_changed = asyncio.Event()
        self._flushing = asyncio.Lock()
        self._flushed_ms = 0

    # --- called for every request and WebSocket

    def request(self, watched: Watched, head: RequestHead) -> None:
        if head.upgrade:
            return  # `tunnel` is told when it is open
        known = self._known.get((watched.workspace_id, head.method, head.target))
        if known is None:
            known = self._learn(watched, head)
        kind, counts = known
        tally = self._buffer.tallies.get(watched.workspace_id) or self._tallies(watched.workspace_id)
        if kind == BROWSING:
            path, _, _ = _inside(watched, head)
            self._buffer.note_listing(watched.workspace_id, path, self._now())
        else:
            tally.counts[kind] += 1
            if counts:
                tally.input = self._now()
        if counts and watched.mode is CONNECTIONS:
            self._leases.visited(watched)
            self._connections_changed.set()

    def tunnel(self, watched: Watched, head: RequestHead) -> "Watch":
        """The observer of a WebSocket that was opened."""
        tally = self._tallies(watched.workspace_id)
        tally.counts[Kind.OPENED] += 1
        tally.input = self._clock.now()
        self._leases.opened(watched)
        self._connections_changed.set()
        path, _, query = _inside(watched, head)
        return Watch(self, watched, path, query)

    def _learn(self, watched: Watched, head: RequestHead) -> Known:
        """What a request is, and whether it counts. One without a query is known when it comes again."""
        path, mark, query = _inside(watched, head)
        if b"content=" in query:  # of Jupyter's listings: the one query that matters
            kind = PROFILES[watched.profile].request(head.method, path, query)
            return int(kind), COUNTS[kind]
        likes = (id(watched.profile), head.method, path)  # an enum's member lives for ever, and is slow to hash
        found = self._alike.get(likes)
        if found is None:
            kind = PROFILES[watched.profile].request(head.method, path, query)
            found = _remember(self._alike, likes, (int(kind), COUNTS[kind]))
        if not mark:
            _remember(self._known, (watched.workspace_id, head.method, head.target), found)
        return found

    # --- called by a tunnel's watch, and for every message

    def saying(self, watched: Watched) -> Tell:
        """Who is told what the browser says. Functions of their own: what they need is looked up once per tunnel."""
        buffer, new, now, id_, traffic = self._buffer, self._tallies, self._now, watched.workspace_id, _traffic(watched)

        def said(kind: int) -> None:
            tally = buffer.tallies.get(id_) or new(id_)
            tally.counts[kind] += 1
            if traffic[kind]:
                tally.input = now()

        return said

    def hearing(self, watched: Watched) -> Tell:
        """And what the workspace says."""
        buffer, new, now, id_, traffic = self._buffer, self._tallies, self._now, watched.workspace_id, _traffic(watched)

        def heard(kind: int) -> None:
            tally = buffer.tallies.get(id_) or new(id_)
            tally.counts[kind] += 1
            if traffic[kind]:
                tally.output = now()

        return heard

    def closed(self, watched: Watched) -> None:
        if watched.mode is ActivityMode.CONNECTIONS:
            self._tallies(watched.workspace_id).input = self._clock.now()  # connected until now
        self._leases.closed(watched)
        self._connections_changed.set()

    # --- the other half

    @contextlib.asynccontextmanager
    async def run(self) -> AsyncIterator[None]:
        """For as long as the worker lives. Redis may be away at any time, from the beginning or later."""
        tasks = [asyncio.create_task(self._keep_flushing()), asyncio.create_task(self._keep_connections())]
        try:
            yield
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            await self._finish()

    async def flush(self) -> None:
        """Everything seen so far, and how far that is."""
        async with self._flushing:
            now = self._clock.now()
            for watched in self._leases.connected():
                self._tallies(watched.workspace_id).input = now
            await self._buffer.flush(self._client, now)
            flushed = int(now.timestamp() * 1000)  # rounded down: no further than this
            if not await self._leases.renew(flushed):
                self._buffer.send_again()
                await self._buffer.flush(self._client, now)
            self._flushed_ms = flushed

    async def _keep_flushing(self) -> None:
        due = self._clock.monotonic()
        while True:
            try:
                if self._clock.monotonic() >= due or await self._leases.flush_wanted(self._flushed_ms):
                    due = self._clock.monotonic() + self._config.flush_interval
                    await self.flush()
            except Unreachable as e:
                log.warning("Activity waits in memory: Redis does not answer", error=str(e))
            await self._clock.sleep(min(ASKED_SECONDS, self._config.flush_interval))

    async def _keep_connections(self) -> None:
        while True:
            await self._connections_changed.wait()
            self._connections_changed.clear()
            try:
                await self._leases.write()
            except Unreachable as e:
                log.warning("Connections wait in memory: Redis does not answer", error=str(e))
                await self._clock.sleep(ASKED_SECONDS)
                self._connections_changed.set()

    async def _finish(self) -> None:
        """Whoever was connected here is not any more; what they did is kept."""
        try:
            await self.flush()
            await self._leases.leave()
        except Unreachable as e:
            log.warning("Activity of the last moments is lost: Redis does not answer", error=str(e))


def _remember(cache: dict[Any, Known], key: tuple[Any, ...], found: Known) -> Known:
    if len(cache) >= CACHED:
        cache.clear()
    cache[key] = found
    return found


def _traffic(watched: Watched) -> tuple[bool, ...]:
    """By kind: does a message of it count? Where connections do, none."""
    return COUNTS if watched.mode is TRAFFIC else (False,) * len(COUNTS)


def _inside(watched: Watched, head: RequestHead) -> tuple[bytes, bytes, bytes]:
    """Path and query, without the part that says which workspace."""
    target = head.target
    if target.startswith(b"/w/"):
        target = target[len(watched.workspace_id) + 3 :]
    return target.partition(b"?")


class Watch:
    """Watches one tunnel; `proxy.tunnel` hands it every piece of bytes that has passed, and its end."""

    __slots__ = ("_recorder", "_watched", "from_browser", "from_workspace")

    def __init__(self, recorder: Recorder, watched: Watched, path: bytes, query: bytes) -> None:
        self._recorder = recorder
        self._watched = watched
        profile, say, hear = PROFILES[watched.profile], recorder.saying(watched), recorder.hearing(watched)
        self.from_browser, self.from_workspace = profile.followers(path, query, say, hear)

    def closed(self) -> None:
        self._recorder.closed(self._watched)
