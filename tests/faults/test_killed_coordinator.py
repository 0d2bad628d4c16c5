"""kill -9 of the coordinator at every line of every operation: the next one carries on, and no byte is lost.

The lines are not sampled from imagination: a first run lists every line that acts (`dying_coordinator --list`), then a
coordinator dies at each of them. `make soak` takes all, `make test` every so many.
"""

import asyncio
import contextlib
import os
import pathlib
import subprocess
import sys
from typing import Any

import asyncpg
import pytest

from codehub.clock import SystemClock
from codehub.db import Database
from codehub.policy.model import ALL_SCOPES, Principal, Role
from codehub.runtimes.layout import Layout
from codehub.settings import LimitsConfig
from codehub.templates.loader import Templates
from codehub.workspaces.admission import admitted
from codehub.workspaces.errors import OperationInProgressError
from codehub.workspaces.model import Desired, Operation, Phase, Workspace
from codehub.workspaces.service import NewWorkspace, Workspaces
from tests.platform import clean_environment
from tests.servers import TEMPLATE, TestServers
from tests.waiting_room.admission import a_line
from tests.workspaces.ides import write_templates

MINA = Principal("mina", Role.ADMIN, ALL_SCOPES)
ROOT = pathlib.Path(__file__).parents[2]
PATIENCE = 180.0  # seconds, for a step on a machine that is busy


class Stage:
    """A database, a data directory, and one coordinator at a time."""

    def __init__(self, url: str, folder: pathlib.Path, database: Database) -> None:
        self.folder = folder
        self.database = database
        self._templates = write_templates(folder / "templates")
        self._environment = clean_environment(
            CODEHUB_DATABASE_URL=url,
            CODEHUB_REDIS_URL="redis://127.0.0.1:9",
            CODEHUB_SECRET_KEY="a-signing-key-for-tests",
            CODEHUB_DATA_DIR=str(folder / "data"),
            CODEHUB_TEMPLATES_DIR=str(self._templates),
            CODEHUB_STOP_GRACE_SECONDS="1",
            COORDINATOR_ACTIVE_INTERVAL="0.1",
            COORDINATOR_IDLE_INTERVAL="0.5",
        )
        templates = Templates.load(self._templates, folder / "data")
        self.service = Workspaces(database, SystemClock(), LimitsConfig(), templates, a_line(SystemClock()))
        self.process: subprocess.Popen[bytes] | None = None
        self.deaths = 0

    def launch(self, *arguments: str) -> None:
        module = ["tests.faults.dying_coordinator", *arguments] if arguments else ["codehub", "coordinator"]
        with (self.folder / "log").open("ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", *module], env=self._environment, cwd=ROOT, stdout=log, stderr=log
            )

    async def tend(self) -> None:
        """A supervisor in small: whoever died is followed by an ordinary one, without waiting for the lease."""
        if self.process and self.process.poll() is not None:
            self.deaths += 1
            async with self.database.connection() as c:
                await c.execute("UPDATE system_locks SET expires_at = '-infinity'")
            self.launch()

    async def until(self, id_: str, phase: Phase) -> Workspace:
        async with asyncio.timeout(PATIENCE):
            while True:
                await self.tend()
                w = await self.service.get(MINA, id_)
                if w.phase is phase and w.operation is Operation.NONE:
                    return w
                assert w.phase is not Phase.ERROR or phase is Phase.ERROR, w.error_info
                await asyncio.sleep(0.03)

    async def patiently(self, call: Any) -> None:
        async with asyncio.timeout(PATIENCE):
            while True:
                await self.tend()
                with contextlib.suppress(OperationInProgressError):
                    admitted(await call())
                    return
                await asyncio.sleep(0.03)

    async def life(self) -> None:
        """Everything there is in a workspace's life, with a file that must come through it all."""
        made = admitted(await self.service.create(MINA, NewWorkspace("lab", "tiny")))
        await self.until(made.id, Phase.RUNNING)
        home = Layout(self.folder / "data").of(made.id).home
        note = home / "note.bin"
        content = os.urandom(300_000)
        note.write_bytes(content)
        os.utime(note, ns=(1_700_000_000_123_456_789,) * 2)
        for wanted, phase in (
            (Desired.STANDBY, Phase.STANDBY),
            (Desired.ARCHIVED, Phase.ARCHIVED),
            (Desired.RUNNING, Phase.RUNNING),
        ):
            await self.patiently(lambda wanted=wanted: self.service.request(MINA, made.id, wanted))
            await self.until(made.id, phase)
        assert note.read_bytes() == content
        assert note.stat().st_mtime_ns == 1_700_000_000_123_456_789
        await self.patiently(lambda: self.service.delete(MINA, made.id, purge=False))
        await self.until(made.id, Phase.DELETED)
        await self.patiently(lambda: self.service.undelete(MINA, made.id))
        await self.patiently(lambda: self.service.request(MINA, made.id, Desired.STANDBY))
        await self.until(made.id, Phase.STANDBY)
        assert note.read_bytes() == content
        await self.patiently(lambda: self.service.delete(MINA, made.id, purge=True))
        await self.until(made.id, Phase.DELETED)
        assert not home.exists()
        assert list(Layout(self.folder / "data").running.iterdir()) == []

    async def end(self) -> None:
        if self.process:
            self.process.kill()
            self.process.wait()
        await self.database.close()


@contextlib.asynccontextmanager
async def staged(servers: TestServers, folder: pathlib.Path, number: int):  # type: ignore[no-untyped-def]  # noqa: ANN201
    name = f"dying_{os.getpid()}_{number}"
    folder.mkdir(mode=0o755)
    admin = await asyncpg.connect(servers.database("postgres"))
    await admin.execute(f"CREATE DATABASE {name} TEMPLATE {TEMPLATE}")
    database = await Database.open(servers.database(name), size=3)
    async with database.connection() as c:
        await c.execute("INSERT INTO users (name, role, created_at) VALUES ('mina', 'admin', now())")
    stage = Stage(servers.database(name), folder, database)
    try:
        yield stage
    finally:
        await stage.end()
        await admin.execute(f"DROP DATABASE {name} WITH (FORCE)")
        await admin.close()


async def lines_reached(servers: TestServers, folder: pathlib.Path) -> list[str]:
    out = folder.parent / "lines"
    async with staged(servers, folder, 0) as stage:
        stage.launch("--list", str(out))
        await stage.life()
    return out.read_text().split()


async def killed_at(line: str, servers: TestServers, folder: pathlib.Path, number: int) -> int:
    """How often it died: a few lines are reached by chance only, as when two look at once."""
    async with staged(servers, folder / f"run-{number}", number) as stage:
        stage.launch(line)
        try:
            await stage.life()
            assert stage.deaths <= 1, "a coordinator died by itself"
        except BaseException as e:
            e.add_note(f"to die at {line}, deaths {stage.deaths}: {(stage.folder / 'log').read_text()[-2000:]}")
            raise
        return int(stage.deaths)


async def campaign(servers: TestServers, folder: pathlib.Path, every: int) -> tuple[int, int]:
    """A life for each of the chosen lines, as many at a time as there are cores; all that fail are told of."""
    lines = await lines_reached(servers, folder / "listing")
    chosen = lines[:: max(1, every)]
    room = asyncio.Semaphore(len(os.sched_getaffinity(0)))

    async def one(number: int, line: str) -> int:
        async with room:
            return await killed_at(line, servers, folder, number)

    lives = [one(number, line) for number, line in enumerate(chosen, 1)]
    ends = await asyncio.gather(*lives, return_exceptions=True)
    failures = [e for e in ends if isinstance(e, BaseException)]
    if failures:
        raise BaseExceptionGroup(f"{len(failures)} of {len(chosen)} lines", failures)
    deaths = sum(e for e in ends if isinstance(e, int))
    assert deaths >= 0.8 * len(chosen) - 1, f"only {deaths} of {len(chosen)} lines were reached"
    return len(lines), len(chosen)


async def test_a_coordinator_killed_in_the_middle_is_followed_by_one_that_carries_on(
    servers: TestServers, data_dir: pathlib.Path
) -> None:
    lines, _ = await campaign(servers, data_dir.parent, every=180)
    assert lines > 150


@pytest.mark.soak
async def test_a_coordinator_killed_at_every_line_loses_nothing(
    servers: TestServers, data_dir: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines, runs = await campaign(servers, data_dir.parent, every=1)
    with capsys.disabled():
        print(f"\ncoordinator killed at each of {runs} of {lines} lines: all converged, nothing lost")
    assert runs == lines
