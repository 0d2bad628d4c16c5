"""`codehub coordinator`: stands for election and runs the loops while it leads."""

import asyncio
import contextlib
import os
import signal
import socket
from collections.abc import Mapping, Sequence

from codehub import health, ids
from codehub.clock import Clock
from codehub.coordinator.leader import SESSION_SETTINGS, Leader
from codehub.db import Database, Listener, migrate
from codehub.errors import StartError
from codehub.settings import Settings
from codehub.wiring.coordinator import COLLECT, PRACTICE, REQUESTS, SCHEDULES, WAITING, WARMING, Coordinator


async def run(settings: Settings, clock: Clock, probed: Sequence[socket.socket] = ()) -> None:
    """Until a signal says stop. Gives the lease back, so that another one leads at once; workspaces go on running."""
    storage = settings.storage
    if not (storage.database_url and storage.redis_url and settings.auth.secret_key):
        raise StartError("the coordinator alone needs CODEHUB_DATABASE_URL, CODEHUB_REDIS_URL and CODEHUB_SECRET_KEY")
    database = await Database.open(storage.database_url, size=storage.database_pool_size, session=SESSION_SETTINGS)
    async with database.connection() as c:
        await migrate.require_current(c)
    coordinator = Coordinator(settings, clock)
    await coordinator.require_sight(database)
    listener = Listener(storage.database_url, clock)
    listener.subscribe(REQUESTS, coordinator.wake)
    listener.subscribe(COLLECT, coordinator.collect)
    listener.subscribe(PRACTICE, coordinator.practice)
    listener.subscribe(WAITING, coordinator.waiting)
    listener.subscribe(SCHEDULES, coordinator.scheduled)
    listener.subscribe(WARMING, coordinator.logged_in)
    listener.start()
    holder = f"{socket.gethostname()}-{os.getpid()}-{ids.new(6)}"
    standing = Leader(database, clock, holder, coordinator.work, coordinator.status)
    leader = asyncio.create_task(standing.run())
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, leader.cancel)

    async def checks() -> Mapping[str, str]:
        return judged(standing.stands(), coordinator.stuck())

    with contextlib.suppress(asyncio.CancelledError):
        async with health.Health(settings.server.metrics_networks, checks).serving(probed):
            await leader
    await listener.stop()
    await coordinator.close()
    await database.close()


def judged(stands: bool, stuck: Sequence[str]) -> Mapping[str, str]:
    """What probes are told: whether it may be elected or is, and whether its loops move."""
    return {
        "election": health.OK if stands else "the database has not answered for some time",
        "loops": f"stuck: {', '.join(stuck)}" if stuck else health.OK,
    }
