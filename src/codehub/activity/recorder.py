"""What a proxy worker calls: `request` for every HTTP request it forwards, `tunnel` for every WebSocket it opens.

Both only write into dictionaries. `run` is the worker's other half: it writes open connections to Redis as they change,
flushes everything else on a period, when the coordinator asks for it, at once when something is done in a workspace
that is about to sleep, and once more at the end.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable

from codehub import logs
from codehub.activity import keys
from codehub.activity.buffer import Buffer
from codehub.activity.leases import Leases
from codehub.activity.model import COUNTS, Kind, Watched
from codehub.activity.profiles import PROFILES
from codehub.activity.profiles.base import Followers
from codehub.clock import Clock
from codehub.db.redis import FAILURES, Client
from codehub.proxy.model import RequestHead
from codehub.settings import ActivityConfig
from codehub.templates.model import ActivityMode

log = logs.get()
BROWSING = int(Kind.BROWSING)  # by these names they are found faster
TRAFFIC, CONNECTIONS = ActivityMode.TRAFFIC, ActivityMode.CONNECTIONS
NOTHING_COUNTS = (False,) * len(COUNTS)  # of messages, where connections do
CACHED = 4096  # requests that are like one before are not classified again
LONG = 512  # bytes of a target that is not remembered
ASKED_SECONDS = 1.0  # how often a worker looks whether a flush is wanted
Known = tuple[Watched, int, bool, bool]  # whose, its kind, whether that counts, and for a connection's lease


class Recorder:
    def __init__(self, client: Client, clock: Clock, instance: str, config: ActivityConfig) -> None:
        self._clock = clock
        self._now = clock.timestamp
        self._client = client
        self._config = config
        self._buffer = Buffer()
        self._tallies = self._buffer.tally
        self._leases = Leases(client, clock, instance, keys.lease_seconds(config.flush_interval))
        self._known: dict[tuple[bytes, bytes], Known] = {}  # by path and method
        self._connections_changed = asyncio.Event()
        self._flushing = asyncio.Lock()
        self._round = 0  # of the coordinator's questions, the last that we know

    # --- called for every request and WebSocket

    def request(self, watched: Watched, head: RequestHead) -> None:
        if head.upgrade:
            return  # `tunnel` is told when it is open
        # The path says which workspace it is in, but a workspace may have become another's, or of another profile.
        known = self._known.get((head.target.partition(b"?")[0], head.method))
        if known is None or known[0] is not watched:
            known = self._learn(watched, head)
        _, kind, counts, leased = known
        tally = self._buffer.tallies.get(watched.workspace_id) or self._tallies(watched.workspace_id)
        if kind == BROWSING:
            self._buffer.note_listing(watched.workspace_id, _inside(watched, head)[0], self._now())
        else:
            tally.counts[kind] += 1
            if counts:
                tally.input = self._now()
        if leased:
            self._leases.visited(watched)
            self._connections_changed.set()

    def tunnel(self, watched: Watched, head: RequestHead) -> "TunnelRecorder":
        """The observer of a WebSocket that was opened."""
        tally = self._tallies(watched.workspace_id)
        tally.counts[Kind.OPENED] += 1
        tally.input = self._now()
        self._leases.opened(watched)
        self._connections_changed.set()
        path, _, query = _inside(watched, head)
        told = self._buffer, self._now, watched
        return TunnelRecorder(
            self, watched, PROFILES[watched.profile].followers(path, query, Inbound(*told), Outbound(*told))
        )

    def _learn(self, watched: Watched, head: RequestHead) -> Known:
        """What a request is. It is known when it comes again, whatever its query, unless that is what tells."""
        path, _, query = _inside(watched, head)
        profile = PROFILES[watched.profile]
        kind = profile.request(head.method, path, query)
        found = (watched, int(kind), COUNTS[kind], COUNTS[kind] and watched.mode is CONNECTIONS)
        if not path.startswith(profile.by_query) and len(head.target) < LONG:
            if len(self._known) >= CACHED:
                self._known.clear()
            self._known[head.target.partition(b"?")[0], head.method] = found
        return found

    # --- called by a tunnel's watch

    def closed(self, watched: Watched) -> None:
        if watched.mode is ActivityMode.CONNECTIONS:
            self._tallies(watched.workspace_id).input = self._now()  # connected until now
        self._leases.closed(watched)
        self._connections_changed.set()

    # --- the other half

    @contextlib.asynccontextmanager
    async def run(self) -> AsyncIterator[None]:
        """For as long as the worker lives. Redis may be away at any time, from the beginning or later."""
        work = self._keep_flushing(), self._keep_telling(), self._keep_connections()
        tasks = [asyncio.create_task(each) for each in work]
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
            now, round_ = self._now(), self._round
            for watched in self._leases.connected():
                self._tallies(watched.workspace_id).input = now
            await self._buffer.flush(self._client, now)
            flushed = int(now * 1000)  # rounded down: no further than this
            if not await self._leases.renew(flushed, round_):
                self._buffer.send_again()
                await self._buffer.flush(self._client, now)

    async def is_asked(self) -> bool:
        """For a flush; after it, what is done in workspaces that are about to sleep is flushed at once."""
        asked = await self._leases.asked(self._round)
        if asked is None:
            return False
        self._round, about_to_sleep = asked
        self._buffer.watch(about_to_sleep)
        return True

    async def _keep_flushing(self) -> None:
        due, answered = self._clock.monotonic(), True
        while True:
            try:
                asked = await self.is_asked()
                if asked or not answered or self._clock.monotonic() >= due:
                    due, answered = self._clock.monotonic() + self._config.flush_interval, False
                    await self.flush()
                    answered = True
            except FAILURES as e:
                log.warning("Activity waits in memory: Redis does not answer", error=str(e))
            await self._clock.sleep(min(ASKED_SECONDS, self._config.flush_interval))

    async def _keep_telling(self) -> None:
        while True:
            await self._buffer.flush_requested.wait()
            self._buffer.flush_requested.clear()
            try:
                await self.flush()
            except FAILURES as e:
                log.warning("A workspace in use is about to be stopped: Redis does not answer", error=str(e))
                await self._clock.sleep(ASKED_SECONDS)
                self._buffer.flush_requested.set()

    async def _keep_connections(self) -> None:
        while True:
            await self._connections_changed.wait()
            self._connections_changed.clear()
            try:
                await self._leases.write()
            except FAILURES as e:
                log.warning("Connections wait in memory: Redis does not answer", error=str(e))
                await self._clock.sleep(ASKED_SECONDS)
                self._connections_changed.set()

    async def _finish(self) -> None:
        """Clients that were connected here are not any more; what they did is kept."""
        try:
            await self.flush()
            await self._leases.leave()
        except FAILURES as e:
            log.warning("Activity of the last moments is lost: Redis does not answer", error=str(e))


def _inside(watched: Watched, head: RequestHead) -> tuple[bytes, bytes, bytes]:
    """Path and query, without the part that says which workspace."""
    target = head.target
    if target.startswith(b"/w/"):
        target = target[len(watched.workspace_id) + 3 :]
    return target.partition(b"?")


class MessageRecorder:
    """Writes down what messages of one direction are: from the browser, or from the workspace.

    Called for every one. With hundreds of busy tunnels none of theirs is in the processor's cache, and waiting for it
    takes longer than the work: so all that is needed is in this one object.
    """

    __slots__ = ("_buffer", "_counts", "_id", "_now")

    def __init__(self, buffer: Buffer, now: Callable[[], float], watched: Watched) -> None:
        self._buffer = buffer
        self._now = now
        self._id = watched.workspace_id
        self._counts = COUNTS if watched.mode is TRAFFIC else NOTHING_COUNTS  # by kind


class Inbound(MessageRecorder):
    __slots__ = ()

    def tell(self, kind: int) -> None:
        tally = self._buffer.tallies.get(self._id) or self._buffer.tally(self._id)
        tally.counts[kind] += 1
        if self._counts[kind]:
            tally.input = self._now()


class Outbound(MessageRecorder):
    __slots__ = ()

    def tell(self, kind: int) -> None:
        tally = self._buffer.tallies.get(self._id) or self._buffer.tally(self._id)
        tally.counts[kind] += 1
        if self._counts[kind]:
            tally.output = self._now()


class TunnelRecorder:
    """Watches one tunnel; `proxy.tunnel` hands its followers every piece that has passed, and tells its end."""

    __slots__ = ("_recorder", "_watched", "from_client", "from_upstream")

    def __init__(self, recorder: Recorder, watched: Watched, followers: Followers) -> None:
        self._recorder = recorder
        self._watched = watched
        self.from_client, self.from_upstream = followers

    def closed(self) -> None:
        self._recorder.closed(self._watched)
