"""What a controller tick costs when 100 workspaces change, among 1,000 and among 100,000; and transitions a second.

The machine below is a dictionary (`tests.null_runtime`), the database is real, so what is measured is the controller
and its SQL. A round wakes 100 sleeping workspaces and ticks until they run, then the other way; rounds of both sizes
alternate.

    python bench/controller.py [--rounds N]
"""

import argparse
import asyncio
import pathlib
import statistics
import sys
import time
from typing import Any

import asyncpg

sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))

from tests.leading import lead
from tests.null_runtime import NullRuntime
from tests.reconciler.test_controller import NullArchives, OneTemplate
from tests.servers import TEMPLATE, Runner, TestServers

from codehub.activity.reader import ActivityReader
from codehub.clock import SystemClock
from codehub.db import Database
from codehub.db.redis import open_redis
from codehub.policy.model import ALL_SCOPES, Principal, Role
from codehub.reconciler.controller import Controller
from codehub.reconciler.idle_recheck import ByActivity
from codehub.reconciler.operations import Operations
from codehub.runtimes.base import Volume
from codehub.settings import ActivityConfig, CoordinatorConfig, TtlConfig
from codehub.workspaces.ttl_policy import TtlPolicies

CHANGED = 100
OWNER = Principal("mina", Role.LEARNER, ALL_SCOPES)
FILL = """
INSERT INTO workspaces (id, name, template, owner_id,
                        created_at, updated_at, phase_changed_at, last_access_at,
                        desired_state, desired_by, desired_at, observed_status, volume_generation)
SELECT 'w' || n, 'lab', 't', codehub_user_id('mina'),
       now(), now(), now(), now(), 'STANDBY', 'user', now(), 'STANDBY', 'g'
FROM generate_series(1, $1::int) n
"""
SET_DESIRED = """
UPDATE workspaces SET desired_state = $1, desired_at = now(), updated_at = now(), attention_at = now()
WHERE id = ANY ($2::text[])
"""


class Side:
    """One database of one size, with a controller on it."""

    def __init__(self, size: int, database: Database, controller: Controller, changing: list[str]) -> None:
        self.size = size
        self.database = database
        self.controller = controller
        self.changing = changing
        self.seconds: list[float] = []

    @classmethod
    async def build(cls, servers: TestServers, size: int) -> "Side":
        admin = await asyncpg.connect(servers.database("postgres"))
        await admin.execute(f"CREATE DATABASE size_{size} TEMPLATE {TEMPLATE}")
        await admin.close()
        database = await Database.open(servers.database(f"size_{size}"))
        async with database.connection() as c:
            await c.execute("INSERT INTO users (name, role, created_at) VALUES ('mina', 'learner', now())")
            await c.execute(FILL, size, timeout=300)
            await c.execute("VACUUM ANALYZE", timeout=300)
        runtime, clock = NullRuntime(), SystemClock()
        runtime.homes = {f"w{n}": Volume(f"w{n}", "g") for n in range(1, size + 1)}
        config = CoordinatorConfig(max_concurrent_starts=CHANGED)
        lease = await lead(database, "bench")
        anything: Any = OneTemplate()
        operations = Operations(lease, runtime, NullArchives(), anything, clock, config)
        reader = ActivityReader(open_redis(servers.redis(0)), clock, 30.0, "this boot")
        recheck = ByActivity(reader, clock, TtlPolicies(TtlConfig(), ActivityConfig(), anything))
        controller = Controller(lease, runtime, operations, clock, config, lambda: None, recheck)
        step = size // CHANGED
        return cls(size, database, controller, [f"w{n * step + 1}" for n in range(CHANGED)])

    async def round(self, desired: str) -> None:
        """Ask for `desired` and tick until it is so."""
        async with self.database.connection() as c:
            await c.execute(SET_DESIRED, desired, self.changing)
        begun = time.perf_counter()
        while await self._left(desired):
            await self.controller.tick()
            await asyncio.gather(*self.controller._under_way.tasks().values())  # noqa: SLF001
        self.seconds.append(time.perf_counter() - begun)

    async def _left(self, desired: str) -> int:
        async with self.database.connection() as c:
            left: int = await c.fetchval(
                "SELECT count(*) FROM workspaces WHERE id = ANY ($1::text[]) AND observed_status <> $2",
                self.changing,
                desired,
            )
        return left


async def main(rounds: int, servers: TestServers) -> int:
    sides = [await Side.build(servers, size) for size in (1_000, 100_000)]
    for number in range(2 * (rounds + 1)):
        desired = "RUNNING" if number % 2 == 0 else "STANDBY"
        for side in sides if number % 4 < 2 else reversed(sides):
            await side.round(desired)
            if number < 2:
                side.seconds.clear()  # the first of each is for warming up
    medians = [statistics.median(side.seconds) for side in sides]
    for side, median in zip(sides, medians, strict=True):
        low, high = min(side.seconds) * 1000, max(side.seconds) * 1000
        print(
            f"{side.size:>7} workspaces, {CHANGED} change: {median * 1000:7.1f} ms ({low:.1f}–{high:.1f}),"
            f" {CHANGED / median:6.0f} transitions/s"
        )
    print(f"ratio 100,000 to 1,000: {medians[1] / medians[0]:.2f} (goal: at most 1.5)")
    return 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=9, help="of each direction and size")
    arguments = parser.parse_args()
    runner = Runner()
    try:
        sys.exit(asyncio.run(main(arguments.rounds, runner.start())))
    finally:
        runner.stop()
