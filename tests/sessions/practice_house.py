"""A practice loop on the real database with real workspaces: each a small server in a sandbox of its own."""

import asyncio
import contextlib
import pathlib
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from codehub import ids
from codehub.clock import SystemClock
from codehub.coordinator.leader import Lease
from codehub.db import Database
from codehub.runtimes.base import Workload
from codehub.runtimes.process import ProcessRuntime
from codehub.sessions import practice_store as store
from codehub.sessions.practice_loop import PracticeLoop
from codehub.sessions.practice_store import Kind, NewTask
from codehub.settings import PracticeConfig, RuntimeConfig
from codehub.templates.loader import Templates
from codehub.templates.model import ResourceLimits, Template
from tests.contracts import workloads
from tests.contracts.harness import KINDS, fresh_runtime, running
from tests.leading import lead

HASH = "0" * 64
SMALL = Template("small", "Small", limits=ResourceLimits(disk_mb=4))
A_RUN = """
WITH u AS (INSERT INTO users (id, name, role, created_at) VALUES ($1, $1, 'learner', now()) ON CONFLICT DO NOTHING),
     b AS (INSERT INTO blueprints VALUES ($2, '{}', now(), $2) ON CONFLICT DO NOTHING),
     w AS (INSERT INTO workspaces (id, name, template, owner_id, created_at, updated_at, phase_changed_at,
                                   last_access_at, desired_state, desired_by, desired_at, observed_status)
           VALUES ($3, 'lab', 'small', $1, now(), now(), now(), now(), 'RUNNING', 'session', now(), 'RUNNING')
           ON CONFLICT DO NOTHING),
     p AS (INSERT INTO plans (id, owner_id, title, created_by, created_at) VALUES ($4, $1, 'A plan', $1, now())),
     s AS (INSERT INTO sessions (id, plan_id, position, key, title, scheduled_for_date, blueprint_hash, changed_at,
                                 status)
           VALUES ($4, $4, 0, 'k', 'A session', now(), $2, now(), 'IN_PROGRESS'))
INSERT INTO session_runs (id, session_id, blueprint_hash, workspace_id, started_at, last_activity_at)
VALUES ($4, $4, $2, $3, now(), now())
"""


@dataclass
class House:
    database: Database
    runtime: ProcessRuntime
    folder: pathlib.Path
    loop: PracticeLoop = field(init=False)
    lease: Lease = field(init=False)

    async def lead(self, **config: Any) -> PracticeLoop:
        """A new leader, with a higher epoch; what the old one does goes on, should nobody end it."""
        self.lease = await lead(self.database, ids.new())
        templates = Templates({"small": SMALL}, self.folder)
        settings = RuntimeConfig(disk_reserve_mb=0)
        self.loop = PracticeLoop(
            self.lease,
            self.runtime,
            templates,
            SystemClock(),
            PracticeConfig(**config),
            settings,
            lambda: None,
        )
        return self.loop

    async def workspace(self, id_: str = "w1", owner: str = "alice") -> str:
        """One that runs, and a run of its owner in it, of the same id."""
        program = workloads.python(workloads.SERVER, "{socket}")
        await running(self.runtime, Workload(id_, owner, program, {"WORKSPACE": id_}))
        await self.run(id_, owner, id_)
        return id_

    async def run(self, id_: str, owner: str, workspace: str) -> None:
        async with self.database.connection() as c:
            await c.execute(A_RUN, owner, HASH, workspace, id_)

    async def ask(
        self, kind: Kind, request: Mapping[str, Any], *, of: str = "w1", workspace: str | None = None, fence: int = 1
    ) -> str:
        new = NewTask(ids.new(), kind, of, workspace or of, 0, fence, request)
        async with self.database.transaction() as c:
            made = await store.add_or_join(c, new, SystemClock().now())
        assert made
        return made

    async def check(
        self, *commands: str, seconds: float = 10, of: str = "w1", workspace: str | None = None, fence: int = 1
    ) -> str:
        checks = [{"id": f"c{n}", "command": command, "seconds": seconds} for n, command in enumerate(commands)]
        return await self.ask(Kind.CHECKS, {"checks": checks}, of=of, workspace=workspace, fence=fence)

    async def put(self, files: Mapping[str, str], *, of: str = "w1") -> str:
        return await self.ask(Kind.FILES, {"files": dict(files)}, of=of)

    async def row(self, task: str) -> dict[str, Any]:
        async with self.database.connection() as c:
            return dict(await c.fetchrow("SELECT * FROM practice_tasks WHERE id = $1", task) or {})

    async def result(self, task: str) -> dict[str, Any]:
        """As a request takes it."""
        row = await self.row(task)
        assert row["status"] == "DONE", row
        async with self.database.connection() as c:
            await c.execute(store.sql.take, task, SystemClock().now())
        found: dict[str, Any] = row["result"]
        return found

    async def settle(self, rounds: int = 20) -> None:
        """Tick until nothing is left to do."""
        for _ in range(rounds):
            found = await self.loop.tick()
            await asyncio.gather(*self.working(), return_exceptions=True)
            if not (found.stats["begun"] or found.stats["waiting"]):
                return

    def working(self) -> Sequence["asyncio.Task[None]"]:
        return list(self.loop._under_way.tasks().values())

    async def sh(self, command: str, of: str = "w1") -> str:
        done = await self.runtime.exec(of, ["sh", "-c", command])
        assert done.exit_code == 0, done
        return done.output.decode()


@contextlib.asynccontextmanager
async def open_house(database: Database, **config: Any) -> AsyncIterator[House]:
    async with fresh_runtime(KINDS[-1]) as (runtime, folder):
        house = House(database, runtime, folder)
        await house.lead(**config)
        yield house
        await house.loop.close()
