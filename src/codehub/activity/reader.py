"""The coordinator's end of the buffer in Redis: how far the proxies have flushed, what they flushed, who is connected.

Used by the TTL runner (`reconciler.ttl`) and by the controller's recheck (`reconciler.idle_recheck`). Decides nothing
about workspaces.
"""

import itertools
from collections.abc import AsyncIterator, Awaitable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, cast

from codehub import ids
from codehub.activity import keys, scripts
from codehub.activity.buffer import milliseconds
from codehub.activity.model import Kind
from codehub.clock import Clock
from codehub.db.redis import Client
from codehub.errors import UnavailableError

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
CHUNK = 5_000
LOOK_CHUNK = 1_000
PATIENCE_SECONDS = 2.5  # for proxies to flush when asked: they look once a second
ASK_AGAIN_SECONDS = 0.1
ABOUT_SECONDS = 600  # for which proxies that come anew learn who is about to sleep
JUMP = timedelta(seconds=5)  # by which the clock on the wall may differ from the one that only runs


def moment(ms: int) -> datetime:
    return EPOCH + timedelta(milliseconds=ms)


class LostMemoryError(UnavailableError):
    """Redis began anew, or another server took its place, since it was last asked which one it is."""


@dataclass(frozen=True)
class Flushed:
    """By the slowest live proxy."""

    until: datetime
    round: int  # the last of our questions that it knew when it flushed


@dataclass(frozen=True)
class Watermark:
    """As of when anything can be said."""

    as_of: datetime  # everything that proxies saw until then has arrived
    not_before: datetime  # the wall clock jumped then: how long anything older was idle is not known
    settled: bool  # False: Redis has lost its memory, and not all proxies can have come back yet


@dataclass(frozen=True)
class Snapshot:
    """What Redis says of one workspace now."""

    newest: datetime | None  # activity that is not in the database yet
    connections: int
    timer: bool  # the idle timer is going


class ActivityReader:
    def __init__(self, client: Client, clock: Clock, flush_interval: float, boot: str) -> None:
        self._client = client
        self._at = scripts.place(client)
        self._clock = clock
        self._lease = timedelta(seconds=keys.lease_seconds(flush_interval))
        self._boot = boot  # names the run of the machine that `clock.monotonic` counts in
        self._away = False  # the last look failed: leases may have run out through no proxy's fault

    async def watermark(self) -> Watermark:
        """Ask every proxy to flush, wait a little for them, and say how far the slowest has come."""
        try:
            now = self._clock.now()
            not_before = await self._notice_jumps(now)
            settled = await self.settled()
            as_of = await self._gather(now)
        except BaseException:
            self._away = True
            raise
        self._away = False
        return Watermark(as_of, not_before, settled)

    async def flushed(self) -> Flushed | None:
        """How far all proxies have; None: there is no live proxy, so there is none to wait for."""
        now = milliseconds(self._clock.now())
        live = await self._ask("ZRANGEBYSCORE", self._at + keys.PROXIES, f"({now}", "+inf")
        told = await self._ask("HMGET", self._at + keys.FLUSHED, *live) if live else []
        found = [tuple(map(int, (each or b"0:0").split(b":"))) for each in told]
        return Flushed(moment(min(ms for ms, _ in found)), min(round_ for _, round_ in found)) if found else None

    async def ask(self, about_to_sleep: Collection[str] = ()) -> int:
        """Every proxy to flush, and from then on to tell at once what is done in these; which round that is.

        Rounds are counted, not timed: a clock that is set back must not make an old flush look like an answer.
        """
        return int(await scripts.run(self._client, "rounds", "ask", ABOUT_SECONDS, *about_to_sleep))

    async def round(self) -> int:
        return int(await self._client.get(self._at + keys.ROUND) or 0)

    async def _gather(self, now: datetime) -> datetime:
        asked = await self.ask()
        await scripts.run(self._client, "connections", "reap", milliseconds(now))
        waited = 0.0
        while (flushed := await self.flushed()) and flushed.round < asked and waited < PATIENCE_SECONDS:
            await self._clock.sleep(ASK_AGAIN_SECONDS)
            waited += ASK_AGAIN_SECONDS
        return min(flushed.until, now) if flushed else now

    async def settled(self) -> bool:
        """For one lease after Redis began anew, or was away, proxies may not have registered again."""
        now = self._clock.now()
        told = await scripts.run(self._client, "epoch")
        run, (known, _, since) = told[0].decode(), told[1].decode().partition("|")
        if known != run or self._away or moment(int(since)) > now:
            await self._client.set(self._at + keys.EPOCH, f"{run}|{milliseconds(now)}")
            return False
        return now - moment(int(since)) >= self._lease

    async def _notice_jumps(self, now: datetime) -> datetime:
        """Compare how far the wall's clock came with how long it took; remembered in Redis, for the next leader."""
        wall, ran = milliseconds(now), int(self._clock.monotonic() * 1000)
        key = self._at + keys.CLOCK
        before = {name.decode(): value.decode() for name, value in (await self._ask("HGETALL", key)).items()}
        jumped = int(before.get("jumped", 0))
        if before.get("boot") == self._boot:
            gained = (wall - int(before["wall"])) - (ran - int(before["ran"]))
            if gained > JUMP.total_seconds() * 1000:
                jumped = wall
        await self._ask("HSET", key, "boot", self._boot, "wall", wall, "ran", ran, "jumped", jumped)
        return min(moment(jumped), now)

    async def _ask(self, *words: str | bytes | int) -> Any:
        return await cast("Awaitable[Any]", self._client.execute_command(*words))

    # --- taking over

    async def take(self, epoch: int) -> list[str]:
        """Names of the sets to be moved into the database; a new one, and what a tick that was cut off left."""
        name = f"{self._at}{keys.TAKEN}:{epoch}:{ids.new(8)}"
        return sorted(taken.decode() for taken in await scripts.run(self._client, "take", name))

    async def read(self, name: str) -> AsyncIterator[dict[str, datetime]]:
        """What is in one of them, a bounded number at a time. A clock that is ahead of ours is not believed."""
        for begin in itertools.count(0, CHUNK):
            found: Any = await self._client.zrange(name, begin, begin + CHUNK - 1, withscores=True)
            if not found:
                return
            now = self._clock.now()
            yield {id_.decode(): min(moment(int(ms)), now) for id_, ms in found}

    async def finish(self, name: str) -> None:
        """It is in the database. The name was used once, so that no process can throw away what is not."""
        await scripts.run(self._client, "rounds", "finish", name)

    # --- looking

    async def look(self, workspace_ids: Sequence[str]) -> Mapping[str, Snapshot]:
        """Raises `LostMemoryError` where it is another Redis than the one that `settled` has judged."""
        found = {}
        for begin in range(0, len(workspace_ids), LOOK_CHUNK):
            part = workspace_ids[begin : begin + LOOK_CHUNK]
            is_same, seen = await scripts.run(self._client, "look", *part)
            if not is_same:
                raise LostMemoryError("Redis is another one than it was: what it knows may be older")
            for id_, (ms, connections, timer) in zip(part, seen, strict=True):
                found[id_] = Snapshot(moment(ms) if ms else None, connections, bool(timer))
        return found

    async def note_busy(self, workspace_ids: Sequence[str]) -> None:
        """For the explanation: it was asked, and it is at work."""
        async with self._client.pipeline(transaction=False) as pipe:
            for id_ in workspace_ids:
                key = self._at + keys.details(id_)
                pipe.hincrby(key, Kind.BUSY.label, 1)
                pipe.expire(key, keys.DETAILS_SECONDS)
            await pipe.execute()
