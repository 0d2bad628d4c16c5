"""What activity costs: noting a request, keeping 100,000 workspaces in memory, and a tick of the TTL runner.

The tick runs on real servers, with 50,000 workspaces active since the last one and 5,000 whose time is up: once among
1,000,000 workspaces, once among as few as can hold them and 10,000 more. Rounds alternate. Beside it:
jupyterhub-idle-culler's own pass over as many running servers as a hub is given here (`--servers`).

    python bench/activity.py [--rounds N] [--large N] [--servers N]
"""

import argparse
import asyncio
import pathlib
import statistics
import sys
import time
import tracemalloc
from typing import Any

import asyncpg

sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))

from tests.leading import lead
from tests.reconciler.ttl_house import SomeTemplates, head
from tests.servers import TEMPLATE, Runner, TestServers

from bench import _culler as culler
from codehub.activity import keys
from codehub.activity.buffer import Buffer
from codehub.activity.model import Watched
from codehub.activity.reader import ActivityReader
from codehub.activity.recorder import Recorder
from codehub.clock import SystemClock
from codehub.db import Database
from codehub.db.redis import open_redis
from codehub.reconciler.ttl import TtlRunner
from codehub.settings import ActivityConfig, TtlConfig
from codehub.templates.model import ActivityProfile
from codehub.workspaces.ttl_policy import TtlPolicies

ACTIVE, EXPIRING, SMALL = 50_000, 5_000, 10_000
FILL = """
INSERT INTO workspaces (id, name, template, owner_id,
                        created_at, updated_at, phase_changed_at, last_access_at, desired_at,
                        desired_state, desired_by, observed_status, archive_key)
SELECT 'w' || n, 'lab', 't', codehub_user_id('mina'),
       now() - interval '1 day', now(), now() - interval '1 hour', now(),
       now() - interval '1 hour', 'ARCHIVED', 'user', 'PENDING', 'k' FROM generate_series(1, $1) n
"""
# Scattered over the whole table, as they would be.
RUN = """
UPDATE workspaces SET observed_status = 'RUNNING', desired_state = 'RUNNING'
WHERE id IN (SELECT 'w' || (1 + (n * $1::bigint / $2)) FROM generate_series(0, $2 - 1) n)
"""
EXPIRE = """
UPDATE workspaces SET desired_state = 'RUNNING', desired_by = 'user', desired_at = now() - interval '1 hour',
       attention_at = NULL, last_access_at = now() - interval '1 hour', phase_changed_at = now() - interval '1 hour'
WHERE id = ANY ($1::text[])
"""


class Side:
    """A database of one size."""

    def __init__(self, size: int, database: Database, runner: TtlRunner, running: list[str], redis: Any) -> None:
        self.size = size
        self.database = database
        self.runner = runner
        self.active, self.expiring = running[:ACTIVE], running[ACTIVE:]
        self.redis = redis
        self.seconds: list[float] = []

    @classmethod
    async def build(cls, servers: TestServers, size: int, number: int) -> "Side":
        admin = await asyncpg.connect(servers.database("postgres"))
        await admin.execute(f"CREATE DATABASE activity_{size} TEMPLATE {TEMPLATE}")
        await admin.close()
        database = await Database.open(servers.database(f"activity_{size}"))
        async with database.connection() as c:
            await c.execute("INSERT INTO users (name, role, created_at) VALUES ('mina', 'learner', now())")
            await c.execute("ALTER TABLE workspaces DISABLE TRIGGER USER")
            await c.execute(FILL, size, timeout=1800)
            await c.execute(RUN, size, ACTIVE + EXPIRING, timeout=1800)
            await c.execute("ALTER TABLE workspaces ENABLE TRIGGER USER")
            await c.execute("VACUUM ANALYZE workspaces", timeout=1800)
            found = await c.fetch("SELECT id FROM workspaces WHERE phase = 'RUNNING' ORDER BY md5(id)")
        redis, clock = open_redis(servers.redis(number)), SystemClock()
        anything: Any = SomeTemplates()
        ttl_policies = TtlPolicies(TtlConfig(archive_seconds=0), ActivityConfig(), anything)
        runner = TtlRunner(
            await lead(database, "bench"),
            ActivityReader(redis, clock, 0.1, "boot"),
            clock,
            ttl_policies,
            nobody,
            lambda: None,
        )
        await runner.tick()
        await clock.sleep(5.3)  # until decisions are made again after Redis began
        return cls(size, database, runner, [record["id"] for record in found], redis)

    async def round(self) -> None:
        """50,000 were active since the last tick; 5,000 have run out."""
        async with self.database.connection() as c:
            await c.execute("ALTER TABLE workspaces DISABLE TRIGGER USER")
            await c.execute(EXPIRE, self.expiring, timeout=600)
            await c.execute("ALTER TABLE workspaces ENABLE TRIGGER USER")
        now = time.time() * 1000
        for begin in range(0, ACTIVE, 5_000):
            await self.redis.zadd(keys.ACTIVITY, dict.fromkeys(self.active[begin : begin + 5_000], now))
        begun = time.perf_counter()
        done = await self.runner.tick()
        self.seconds.append(time.perf_counter() - begun)
        assert (done.stats["synced"], done.stats["put_to_sleep"]) == (ACTIVE, EXPIRING), done.stats


async def nobody(_found: Any) -> tuple[dict[str, Any], set[str]]:
    return {}, set()


async def ticks(servers: TestServers, rounds: int, large: int) -> float:
    sizes = (large, ACTIVE + EXPIRING + SMALL)
    sides = [await Side.build(servers, size, number) for number, size in enumerate(sizes)]
    for number in range(rounds + 1):
        for side in sides if number % 2 else sides[::-1]:
            await side.round()
    for side in sides:
        side.seconds = side.seconds[1:]  # the first warms up
        await side.database.close()
    medians = [statistics.median(side.seconds) for side in sides]
    for side, median in zip(sides, medians, strict=True):
        print(f"tick among {side.size:>9,} workspaces: {median:.2f} s (of {len(side.seconds)}, "
              f"{min(side.seconds):.2f} to {max(side.seconds):.2f})")  # fmt: skip
    print(f"ratio {medians[0] / medians[1]:.2f} (at most 1.5 wanted)")
    return (ACTIVE + EXPIRING) / medians[0]


def recording() -> None:
    """Nanoseconds for what the proxy calls for every request and message."""
    recorder = Recorder(open_redis("redis://127.0.0.1:1"), SystemClock(), "bench", ActivityConfig())
    frame = b"\x82\x8a\x00\x00\x00\x00" + bytes(10)
    plain, jupyter = Watched("w1", ActivityProfile.PLAIN), Watched("w2", ActivityProfile.JUPYTER)
    tunnel = recorder.tunnel(plain, head(b"/w/w1/ws", upgrade=True))
    page, poll = head(b"/w/w1/index.html"), head(b"/w/w2/api/kernels?1794783146335")
    listing = head(b"/w/w2/api/contents?content=1&hash=0&1794783146335")
    _time("an HTTP request", lambda: recorder.request(plain, page))
    _time("a poll of Jupyter's", lambda: recorder.request(jupyter, poll))
    _time("a listing of Jupyter's", lambda: recorder.request(jupyter, listing))
    _time("a WebSocket message", lambda: tunnel.from_client.follow(frame))
    _time("64 KB within a message", _inside_a_message(recorder, plain))


def _inside_a_message(recorder: Recorder, watched: Watched) -> Any:
    tunnel = recorder.tunnel(watched, head(b"/ws", upgrade=True))
    tunnel.from_upstream.follow(b"\x82\x7f" + (1 << 50).to_bytes(8, "big"))
    piece = bytes(65536)
    return lambda: tunnel.from_upstream.follow(piece)


def _time(what: str, call: Any, count: int = 100_000) -> None:
    best = 1e9
    for _ in range(5):
        begun = time.thread_time()
        for _ in range(count):
            call()
        best = min(best, time.thread_time() - begun)
    print(f"record(): {what:<24} {best / count * 1e9:6.0f} ns")


def memory() -> None:
    ids = [f"k3jx7q{n:06}" for n in range(100_000)]
    clock = SystemClock()
    tracemalloc.start()
    buffer = Buffer()
    for id_ in ids:
        tally = buffer.tally(id_)
        tally.counts[0] += 1
        tally.input = clock.timestamp()
    size, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    print(f"memory of 100,000 buffered workspaces: {size / 1e6:.0f} MB")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--large", type=int, default=1_000_000)
    parser.add_argument("--servers", type=int, default=100)
    chosen = parser.parse_args()
    asyncio.run(_recording())
    memory()
    runner = Runner()
    servers = runner.start()
    try:
        ours = asyncio.run(ticks(servers, chosen.rounds, chosen.large))
    finally:
        runner.stop()
    print(f"decisions a second: {ours:,.0f}")
    if chosen.servers:
        theirs = culler.decisions_per_second(chosen.servers)
        print(f"jupyterhub-idle-culler, {chosen.servers} servers: {theirs:,.0f}; ours: {ours / theirs:,.0f} times that")


async def _recording() -> None:
    recording()


if __name__ == "__main__":
    main()
