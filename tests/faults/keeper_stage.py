"""A stage for faults around archives: one workspace with one of everything in its home, and dying coordinators."""

import asyncio
import contextlib
import os
import pathlib
import resource
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import asyncpg

from codehub.db import Database
from codehub.runtimes.layout import Layout
from codehub.workspaces.admission import admitted
from codehub.workspaces.model import Desired, Operation, Phase, Workspace
from codehub.workspaces.service import NewWorkspace
from tests.archives import trees
from tests.faults.test_killed_coordinator import MINA, PATIENCE, ROOT, Stage
from tests.servers import TEMPLATE, TestServers


class KeeperStage(Stage):
    """Collects at once, and keeps one restore point."""

    def __init__(self, url: str, folder: pathlib.Path, database: Database) -> None:
        super().__init__(url, folder, database)
        self.data_dir = folder / "data"
        self.objects = folder / "data" / "archives"
        self.set(
            CODEHUB_ORPHAN_SECONDS="0",
            CODEHUB_RESTORE_POINTS="1",
            COORDINATOR_GC_INTERVAL="0.3",
            CODEHUB_MAX_RETRY="0",
            CODEHUB_SECRET_KEY="a-secret-key-for-these-tests",
        )
        self.limit: int | None = None  # of the size of files a coordinator may write
        self.all: list[subprocess.Popen[bytes]] = []

    def set(self, **environment: str) -> None:
        self._environment.update(environment)

    def launch(self, *arguments: str) -> None:
        module = ["tests.faults.dying_keeper", *arguments] if arguments else ["codehub", "coordinator"]
        limit = self.limit

        def bound() -> None:
            if limit is not None:
                resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))

        with (self.folder / "log").open("ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", *module],
                env=self._environment,
                cwd=ROOT,
                stdout=log,
                stderr=log,
                preexec_fn=bound,  # noqa: PLW1509 - nothing else runs in this process yet
            )
        self.all.append(self.process)

    def home(self, id_: str) -> pathlib.Path:
        return Layout(self.data_dir).of(id_).home

    async def asleep(self) -> tuple[str, dict[bytes, Any]]:
        """A workspace that never ran, and what its home looks like."""
        made = admitted(await self.service.create(MINA, NewWorkspace("lab", "tiny", Desired.STANDBY)))
        await self.until(made.id, Phase.STANDBY)
        return made.id, await asyncio.to_thread(self._furnish, self.home(made.id))

    def _furnish(self, home: pathlib.Path) -> dict[bytes, Any]:
        trees.grow(home / "project", trees.rich(with_xattrs=trees.has_xattrs(home), levels=3))
        (home / "noise").write_bytes(os.urandom(300_000))
        if os.geteuid() == 0:
            owner = home.stat()
            for path in [*home.rglob("*")]:
                mode = path.lstat().st_mode
                os.chown(path, owner.st_uid, owner.st_gid, follow_symlinks=False)
                if not path.is_symlink():
                    path.chmod(mode & 0o7777)  # a change of owner clears some of it
        return self.look(home)

    def look(self, home: pathlib.Path) -> dict[bytes, Any]:
        """Everything but the owner's number, which is given out anew; that it is one for all is checked."""
        seen, owner = trees.picture(home), home.stat()
        assert {e[1:3] for e in seen.values() if isinstance(e, tuple)} == {(owner.st_uid, owner.st_gid)}
        return {name: (e[0], *e[3:]) if isinstance(e, tuple) else e for name, e in seen.items() if name}

    async def same(self, id_: str, picture: dict[bytes, Any]) -> None:
        assert await asyncio.to_thread(self.look, self.home(id_)) == picture

    async def want(self, id_: str, wanted: Desired, phase: Phase) -> Workspace:
        await self.patiently(lambda: self.service.request(MINA, id_, wanted))
        return await self.until(id_, phase)

    async def eventually(self, done: Callable[[], Awaitable[bool]]) -> None:
        async with asyncio.timeout(PATIENCE):
            while not await done():
                await self.tend()
                await asyncio.sleep(0.05)

    async def settled(self, id_: str) -> Workspace:
        async with asyncio.timeout(PATIENCE):
            while (w := await self.service.get(MINA, id_)).operation is not Operation.NONE:
                await self.tend()
                await asyncio.sleep(0.03)
        return w

    async def end(self) -> None:
        for process in self.all:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            process.wait()
        await self.database.close()


@contextlib.asynccontextmanager
async def keeper_stage(servers: TestServers, folder: pathlib.Path, number: int = 0) -> AsyncIterator[KeeperStage]:
    name = f"keeper_{os.getpid()}_{number}"
    folder.mkdir(mode=0o755)
    admin = await asyncpg.connect(servers.database("postgres"))
    await admin.execute(f"CREATE DATABASE {name} TEMPLATE {TEMPLATE}")
    database = await Database.open(servers.database(name), size=3)
    async with database.connection() as c:
        await c.execute("INSERT INTO users (name, role, created_at) VALUES ('mina', 'admin', now())")
    stage = KeeperStage(servers.database(name), folder, database)
    try:
        yield stage
    except BaseException as e:
        e.add_note(
            f"deaths {stage.deaths}: {(folder / 'log').read_text()[-2500:] if (folder / 'log').exists() else ''}"
        )
        raise
    finally:
        await stage.end()
        await admin.execute(f"DROP DATABASE {name} WITH (FORCE)")
        await admin.close()
