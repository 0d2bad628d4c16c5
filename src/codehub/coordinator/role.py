"""`codehub coordinator`: stands for election and runs the loops while it leads."""

import asyncio
import contextlib
import functools
import os
import signal
import socket
from typing import Any

from codehub import ids, logs
from codehub.activity.intake import Intake
from codehub.activity.probes import Probes
from codehub.archives.objects import ObjectStore, open_store
from codehub.auth.signing import Signer
from codehub.clock import Clock
from codehub.coordinator import disk, gc, housekeeping, trash
from codehub.coordinator.controller import Controller
from codehub.coordinator.downloads import Downloads
from codehub.coordinator.driver import Driver, Loop
from codehub.coordinator.holds import Holds
from codehub.coordinator.homes import Homes
from codehub.coordinator.leader import SESSION_SETTINGS, Leader, Lease
from codehub.coordinator.operations import Operations
from codehub.coordinator.second_look import ByActivity
from codehub.coordinator.ttl import TtlRunner
from codehub.db import Database, Listener, migrate
from codehub.db.redis import open_redis
from codehub.embedded.datadir import DataDir
from codehub.errors import StartError
from codehub.runtimes.base import Runtime
from codehub.runtimes.cpu import cpu_seconds
from codehub.runtimes.layout import Layout
from codehub.runtimes.process import ProcessRuntime
from codehub.settings import Settings
from codehub.supervisor.privileges import service_account
from codehub.supervisor.processes import BOOT_ID
from codehub.templates.loader import Templates
from codehub.workspaces.timetable import Timetable

log = logs.get()
WISHES = "codehub_wishes"
COLLECT = "codehub_gc"


async def run(settings: Settings, clock: Clock) -> None:
    """Until a signal says stop. Gives the lease back, so that another one leads at once; workspaces go on running."""
    storage = settings.storage
    if not (storage.database_url and storage.redis_url and settings.auth.secret_key):
        raise StartError("the coordinator alone needs CODEHUB_DATABASE_URL, CODEHUB_REDIS_URL and CODEHUB_SECRET_KEY")
    database = await Database.open(storage.database_url, size=storage.database_pool_size, session=SESSION_SETTINGS)
    async with database.connection() as c:
        await migrate.require_current(c)
    coordinator = Coordinator(settings, clock)
    listener = Listener(storage.database_url, clock)
    listener.subscribe(WISHES, coordinator.wake)
    listener.subscribe(COLLECT, coordinator.collect)
    listener.start()
    holder = f"{socket.gethostname()}-{os.getpid()}-{ids.new(6)}"
    leader = asyncio.create_task(Leader(database, clock, holder, coordinator.work, coordinator.status).run())
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, leader.cancel)
    with contextlib.suppress(asyncio.CancelledError):
        await leader
    await listener.stop()
    await coordinator.close()
    await database.close()


class Coordinator:
    """Builds the loops for a lease; a new lease gets new ones, so that nothing of the old epoch goes on."""

    def __init__(self, settings: Settings, clock: Clock) -> None:
        self._settings = settings
        self._clock = clock
        storage = settings.storage
        self._account = account = service_account(settings.server.user)
        self._runtime: Runtime = ProcessRuntime(storage.data_dir, settings.runtime, account, clock)
        self._objects: ObjectStore = open_store(storage.archive_url or f"file://{storage.data_dir / 'archives'}")
        self._templates = Templates.load(settings.runtime.templates_dir, storage.data_dir)
        self._timetable = Timetable(settings.ttl, settings.activity, self._templates)
        assert storage.redis_url  # noqa: S101 (checked by `run`)
        self._redis = open_redis(storage.redis_url)
        self._driver: Driver | None = None

    async def work(self, lease: Lease) -> None:
        boot = BOOT_ID.read_text(encoding="ascii").strip()
        intake = Intake(self._redis, self._clock, self._settings.activity.flush_interval, boot)
        holds = self._holds(lease)
        controller = self._controller(lease, intake, holds)
        config = self._settings.coordinator
        finder = gc.Finder(lease.database, self._runtime, self._objects, self._settings.archives)
        loops = [
            Loop("controller", controller.tick, period=config.idle_interval, longest_pause=15.0),
            Loop("ttl", self._ttl(lease, intake).tick, period=config.ttl_interval),
            housekeeping.loop(lease, self._clock, config),
            disk.loop(lease, self._runtime, self._clock),
            gc.loop(lease, finder, self._clock),
            trash.loop(lease, finder, self._clock),
        ]
        self._driver = Driver(loops, self._clock)
        downloads = Downloads(self._runtime, self._objects, self._clock, self._settings.archives.max_downloads)
        socket_ = DataDir(self._settings.storage.data_dir).downloads_socket
        try:
            door = Layout(self._settings.storage.data_dir).door
            async with downloads.serving(socket_, self._account), holds.serving(door):
                await self._driver.run()
        finally:
            await controller.close()

    def _ttl(self, lease: Lease, intake: Intake) -> TtlRunner:
        probes = Probes(self._templates, self._clock, functools.partial(cpu_seconds, self._runtime))
        return TtlRunner(lease, intake, self._clock, self._timetable, probes.busy, self.wake)

    def _holds(self, lease: Lease) -> Holds:
        key, limits = self._settings.auth.secret_key, self._settings.limits
        assert key  # noqa: S101 (checked by `run`)
        return Holds(lease, self._clock, Signer(key, "hold"), limits.max_keep_awake_seconds)

    def _controller(self, lease: Lease, intake: Intake, holds: Holds) -> Controller:
        config = self._settings.coordinator
        homes = Homes(self._objects, self._templates, self._clock, lease.database, self._settings.runtime)
        operations = Operations(
            lease, self._runtime, homes, self._templates, self._clock, config, provide=holds.provide
        )
        second_look = ByActivity(intake, self._clock, self._timetable)
        return Controller(lease, self._runtime, operations, self._clock, config, self.wake, second_look)

    def wake(self) -> None:
        """Somebody wishes something, or an operation is over: look now."""
        if self._driver:
            self._driver.nudge("controller")
            self._driver.nudge("trash")

    def collect(self) -> None:
        """Somebody wants the garbage collected now."""
        if self._driver:
            self._driver.nudge("gc")

    def status(self) -> dict[str, Any]:
        return {"loops": [loop.as_json() for loop in self._driver.status()]} if self._driver else {}

    async def close(self) -> None:
        await self._runtime.close()
        await self._redis.aclose()
