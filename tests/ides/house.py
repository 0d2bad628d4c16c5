"""The loop that installs IDEs, on the real database, with a small VS Code that is really installed."""

import asyncio
import contextlib
import pathlib
from collections.abc import AsyncIterator
from dataclasses import dataclass, field

from codehub import ids
from codehub.clock import SystemClock
from codehub.command import operator
from codehub.db import Database
from codehub.ides.loop import InstallLoop
from codehub.ides.model import Installation
from codehub.ides.service import Ides
from codehub.templates.loader import Templates
from tests.leading import lead

VSCODE = "code-server"
UIDS = 200_000


@dataclass
class House:
    database: Database
    folder: pathlib.Path  # with `control`
    loop: InstallLoop = field(init=False)
    ides: Ides = field(init=False)

    def __post_init__(self) -> None:
        self.ides = Ides(self.database, SystemClock(), Templates.load(None, self.data_dir))

    @property
    def data_dir(self) -> pathlib.Path:
        return self.folder / "data"

    @property
    def control(self) -> pathlib.Path:
        return self.folder / "control"

    async def lead(self) -> InstallLoop:
        lease = await lead(self.database, ids.new())
        self.loop = InstallLoop(lease, SystemClock(), self.data_dir, UIDS, lambda: None)
        return self.loop

    async def ask(self) -> None:
        await self.ides.install(operator(), VSCODE)

    async def get(self) -> Installation:
        found = (await self.ides.get(operator(), VSCODE)).installation
        assert found
        return found

    async def is_installed(self) -> bool:
        return (await self.ides.get(operator(), VSCODE)).installed

    async def settle(self) -> Installation:
        """Tick until it is over."""
        async with asyncio.timeout(90):
            while (found := await self.get()).is_open:
                await self.loop.tick()
                await asyncio.wait(
                    [*self.loop._under_way.tasks().values(), asyncio.ensure_future(asyncio.sleep(0.05))], timeout=0.5
                )
        return found

    def ran(self) -> list[list[str]]:
        """Verb, user, whether the operator's configuration was there; of each time."""
        file = self.control / "ran"
        return [line.split() for line in file.read_text().splitlines()] if file.exists() else []

    async def reached(self, verb: str) -> None:
        async with asyncio.timeout(90):
            while not any(line[0] == verb for line in self.ran()):
                await asyncio.sleep(0.02)

    def hold(self, verb: str) -> None:
        (self.control / f"hold-{verb}").touch()

    def release(self, verb: str) -> None:
        (self.control / f"hold-{verb}").unlink()

    def processes(self) -> list[int]:
        """Of the installation, whoever they belong to."""
        marker, found = str(self.control).encode(), []
        for entry in pathlib.Path("/proc").iterdir():
            with contextlib.suppress(OSError):
                if entry.name.isdigit() and b"npm_config_small=" + marker in (entry / "environ").read_bytes():
                    found.append(int(entry.name))
        return found


@contextlib.asynccontextmanager
async def open_house(database: Database, folder: pathlib.Path) -> AsyncIterator[House]:
    house = House(database, folder)
    await house.lead()
    try:
        yield house
    finally:
        await house.loop.close()
