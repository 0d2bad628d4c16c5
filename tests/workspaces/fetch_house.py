"""The loop that fetches git repositories, on the real database with real workspaces in sandboxes of their own."""

import asyncio
import contextlib
import pathlib
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from codehub import ids
from codehub.clock import Clock, SystemClock
from codehub.db import Database
from codehub.runtimes.base import Workload
from codehub.runtimes.process import ProcessRuntime
from codehub.settings import RuntimeConfig
from codehub.templates.loader import Templates
from codehub.templates.model import Network, ProcessSpec, Template
from codehub.workspaces import repositories
from codehub.workspaces.fetch_loop import FetchLoop
from tests.contracts import workloads
from tests.contracts.harness import KINDS, fresh_runtime, running
from tests.leading import lead
from tests.workspaces.git_server import GitServer

A_WORKSPACE = """
WITH u AS (INSERT INTO users (id, name, role, created_at) VALUES ($1, $1, 'learner', now()) ON CONFLICT DO NOTHING)
INSERT INTO workspaces (id, name, template, owner_id, created_at, updated_at, phase_changed_at, last_access_at,
                        desired_state, desired_by, desired_at, observed_status)
VALUES ($2, 'lab', $3, $1, now(), now(), now(), now(), 'RUNNING', 'user', now(), $4)
"""
HOST = {"network": "host", "network_host_for": "everybody"}  # the git server is on this machine


@dataclass
class House:
    database: Database
    runtime: ProcessRuntime
    folder: pathlib.Path
    clock: Clock = field(default_factory=SystemClock)
    loop: FetchLoop = field(init=False)

    async def lead(self, seconds: float = 60.0) -> FetchLoop:
        """A new leader, with a higher epoch; what the old one does goes on, should nobody end it."""
        shut = Template("shut", "Shut", process=ProcessSpec(("true",), network=Network.NONE))
        templates = Templates({"t": Template("t", "T", process=ProcessSpec(("true",))), "shut": shut}, self.folder)
        config = RuntimeConfig(network="host")
        lease = await lead(self.database, ids.new())
        self.loop = FetchLoop(lease, self.runtime, templates, self.clock, config, lambda: None, seconds)
        return self.loop

    async def start(self, id_: str, server: GitServer) -> None:
        await running(self.runtime, Workload(id_, "alice", workloads.python(workloads.SERVER, "{socket}")))
        await self.runtime.put(id_, server.home)

    async def workspace(
        self, server: GitServer, id_: str = "w1", *, owner: str = "alice", template: str = "t", status: str = "RUNNING"
    ) -> str:
        if status == "RUNNING":
            await self.start(id_, server)
        async with self.database.connection() as c:
            await c.execute(A_WORKSPACE, owner, id_, template, status)
        return id_

    async def ask(self, url: str, branch: str | None = None, *, of: str = "w1") -> None:
        repositories.check(url, branch)
        async with self.database.transaction() as c:
            await c.execute("DELETE FROM workspace_repositories WHERE workspace_id = $1", of)
            await repositories.add(c, of, url, branch, "alice", self.clock.now())

    async def row(self, of: str = "w1") -> dict[str, Any]:
        async with self.database.connection() as c:
            return dict(await c.fetchrow("SELECT * FROM workspace_repositories WHERE workspace_id = $1", of) or {})

    async def outcome(self, of: str = "w1") -> tuple[str, str | None]:
        row = await self.row(of)
        return row["status"], row["cause"]

    async def history(self, of: str = "w1") -> list[tuple[str, dict[str, Any]]]:
        async with self.database.connection() as c:
            found = await c.fetch("SELECT code, data FROM workspace_history WHERE workspace_id = $1 ORDER BY id", of)
        return [(line["code"], line["data"]) for line in found]

    def working(self) -> Sequence["asyncio.Task[None]"]:
        return list(self.loop._under_way.tasks().values())

    async def settle(self) -> None:
        """Tick until nothing is begun any more."""
        while (await self.loop.tick()).stats["begun"]:
            await asyncio.gather(*self.working(), return_exceptions=True)

    async def sh(self, command: str, of: str = "w1") -> str:
        done = await self.runtime.exec(of, ["sh", "-c", command])
        assert done.exit_code == 0, done
        return done.output.decode()


@contextlib.asynccontextmanager
async def open_house(database: Database, clock: Clock | None = None) -> AsyncIterator[House]:
    async with fresh_runtime(KINDS[-1], **HOST) as (runtime, folder):
        house = House(database, runtime, folder, clock or SystemClock())
        await house.lead()
        yield house
        await house.loop.close()
