"""`codehub coordinator`: stands for election and runs the loops while it leads."""

import asyncio
import contextlib
import os
import signal
import socket
from typing import Any

from codehub import ids, logs
from codehub.clock import Clock
from codehub.coordinator import housekeeping
from codehub.coordinator.driver import Driver
from codehub.coordinator.leader import SESSION_SETTINGS, Leader, Lease
from codehub.db import Database, migrate
from codehub.settings import Settings

log = logs.get()


async def run(settings: Settings, clock: Clock) -> None:
    """Until a signal says stop. Gives the lease back, so that another one leads at once."""
    assert settings.storage.database_url  # noqa: S101 (resolved by `cli`)
    database = await Database.open(
        settings.storage.database_url, size=settings.storage.database_pool_size, session=SESSION_SETTINGS
    )
    async with database.connection() as c:
        await migrate.require_current(c)
    holder = f"{socket.gethostname()}-{os.getpid()}-{ids.new(6)}"
    coordinator = Coordinator(settings, clock)
    leader = asyncio.create_task(Leader(database, clock, holder, coordinator.work, coordinator.status).run())
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, leader.cancel)
    with contextlib.suppress(asyncio.CancelledError):
        await leader
    await database.close()


class Coordinator:
    """Builds the loops for a lease; a new lease gets new ones, so that nothing of the old epoch goes on."""

    def __init__(self, settings: Settings, clock: Clock) -> None:
        self._settings = settings
        self._clock = clock
        self._driver: Driver | None = None

    async def work(self, lease: Lease) -> None:
        loops = [housekeeping.loop(lease, self._clock, self._settings.coordinator)]
        self._driver = Driver(loops, self._clock)
        await self._driver.run()

    def status(self) -> dict[str, Any]:
        return {"loops": [loop.as_json() for loop in self._driver.status()]} if self._driver else {}
