"""The coordinator's part of the composition root: builds the loops of a lease. `roles.coordinator` runs it."""

import asyncio
import contextlib
import functools
from collections.abc import AsyncIterator, Callable
from typing import Any

from codehub import logs, peers
from codehub.activity.hold_server import Holds
from codehub.activity.probes import Probes
from codehub.activity.reader import ActivityReader
from codehub.archives.objects import ObjectStore, open_store
from codehub.auth.signing import Signer
from codehub.backup import kept_files, maker, signing_key
from codehub.backup.homes import Files
from codehub.backup.maker import Maker, Place
from codehub.clock import Clock
from codehub.coordinator import leader_doors
from codehub.coordinator.driver import Driver, Loop
from codehub.coordinator.leader import Lease
from codehub.db import Database
from codehub.db.redis import open_redis
from codehub.embedded.datadir import DataDir
from codehub.ides import loop as ides
from codehub.ides.loop import InstallLoop
from codehub.monitoring import machine
from codehub.monitoring.model import Readings
from codehub.monitoring.sampler import Sampler
from codehub.reconciler import sight, warming
from codehub.reconciler.controller import Controller
from codehub.reconciler.homes import Homes
from codehub.reconciler.idle_recheck import ByActivity
from codehub.reconciler.operations import Operations
from codehub.reconciler.ttl import TtlRunner
from codehub.reconciler.warming import Warming
from codehub.retention import disk, gc, housekeeping, preview, trash
from codehub.runtimes import choice, log_server
from codehub.runtimes.base import Runtime, Watching
from codehub.runtimes.cpu import cpu_seconds
from codehub.runtimes.layout import Layout
from codehub.schedules import loop as schedules
from codehub.schedules import store as schedules_store
from codehub.schedules.loop import SchedulesLoop
from codehub.sessions import practice_loop, practice_store, sweeper
from codehub.sessions import service as sessions
from codehub.sessions.practice_loop import PracticeLoop
from codehub.settings import Settings
from codehub.system.privileges import service_account
from codehub.system.processes import BOOT_ID
from codehub.templates.loader import Templates
from codehub.waiting_room import pump as waiting_room
from codehub.waiting_room import store as waiting_store
from codehub.waiting_room.ending import Endings
from codehub.waiting_room.lab import Lab
from codehub.waiting_room.line import Line
from codehub.waiting_room.pump import Pump
from codehub.waiting_room.tokens import Tokens
from codehub.wiring import doors
from codehub.workspaces import bulk, fetch_loop, swaps
from codehub.workspaces.bulk import BulkLoop
from codehub.workspaces.download_server import Downloads
from codehub.workspaces.fetch_loop import FetchLoop
from codehub.workspaces.service import Workspaces
from codehub.workspaces.swaps import Swaps
from codehub.workspaces.ttl_policy import TtlPolicies

log = logs.get()
REQUESTS = "codehub_requests"
COLLECT = "codehub_gc"
PRACTICE = practice_store.CHANNEL
WAITING = waiting_store.CHANNEL
AFTER_CONTROLLER = 0.05  # seconds: about a tick of the controller
AFTER_STARTS = 0.5  # seconds that the other loops leave the processor to IDEs that start, at most
SCHEDULES = schedules_store.CHANNEL
WARMING = warming.CHANNEL


class Coordinator:
    """Builds the loops for a lease; a new lease gets new ones, so that nothing of the old epoch goes on."""

    def __init__(self, settings: Settings, clock: Clock) -> None:
        self._settings = settings
        self._clock = clock
        storage = settings.storage
        self._account = account = service_account(settings.server.user)
        self._runtime: Runtime = choice.open_runtime(
            storage.data_dir, settings.runtime, account, clock, secret_keys=settings.auth.secret_key
        )
        self._objects: ObjectStore = open_store(storage.object_store_url)
        self._templates = Templates.load(settings.runtime.templates_dir, storage.data_dir, settings.runtime.runtime)
        self._ttl_policies = TtlPolicies(settings.ttl, settings.activity, self._templates)
        assert storage.redis_url  # noqa: S101 (checked by `run`)
        self._redis = open_redis(storage.redis_url)
        self._line = Line(self._redis, clock, settings.queue)
        self._driver: Driver | None = None
        self._is_starting: Callable[[], bool] = lambda: False  # an IDE that somebody waits for
        self._next: asyncio.TimerHandle | None = None  # the loops that are nudged a little later
        self._others: asyncio.TimerHandle | None = None  # and those that leave the processor to starts

    async def require_sight(self, database: Database) -> None:
        await sight.require(database, self._runtime)

    async def work(self, lease: Lease) -> None:
        boot = BOOT_ID.read_text(encoding="ascii").strip()
        reader = ActivityReader(self._redis, self._clock, self._settings.activity.flush_interval, boot)
        holds = self._holds(lease)
        controller = self._controller(lease, reader, holds)
        self._is_starting = controller.is_starting
        config = self._settings.coordinator
        practice, backups = self._practice(lease), self._backups(lease)
        fetching, installing = self._fetching(lease), self._installing(lease)
        finder = gc.Finder(lease.database, self._runtime, self._objects, self._settings.archives)
        loops = [
            Loop("controller", controller.tick, period=config.idle_interval, longest_pause=15.0),
            Loop("ttl", self._ttl(lease, reader).tick, period=config.ttl_interval),
            housekeeping.loop(lease, self._clock, config, self._settings.sessions),
            disk.loop(lease, self._runtime, self._clock),
            gc.loop(lease, finder, self._clock),
            trash.loop(lease, finder, self._clock),
            preview.PreviewLoop(lease, finder, self._clock).loop(),
            sweeper.loop(lease, self._clock, self._settings.sessions),
            practice.loop(),
            fetching.loop(),
            installing.loop(),
            self._pump(lease).loop(),
            Swaps(lease, self._clock).loop(),
            Sampler(lease, self._clock, self._readings).loop(),
            self._bulk(lease).loop(),
            backups.loop(),
            self._schedules(lease).loop(),
            Warming(lease, self._runtime, self._templates, self._clock, self._settings.schedules).loop(),
        ]
        self._driver = Driver(loops, self._clock)
        data = DataDir(self._settings.storage.data_dir)
        read_backup = functools.partial(kept_files.pieces, data.backups)
        at_once = self._settings.archives.max_downloads
        downloads = Downloads(self._runtime, self._objects, self._clock, at_once, read_backup)
        try:
            door = Layout(self._settings.storage.data_dir).door
            async with holds.serving(door), self._beside(downloads):
                await self._driver.run()
        finally:
            await controller.close()
            await practice.close()
            await backups.close()
            await fetching.close()
            await installing.close()

    @contextlib.asynccontextmanager
    async def _beside(self, downloads: Downloads) -> AsyncIterator[None]:
        """What an engine does not do, a watch; and the doors for the API, which reads logs of processes itself."""
        roles, key = self._settings.roles, self._settings.auth.secret_key
        data = DataDir(self._settings.storage.data_dir)
        served = {leader_doors.DOWNLOADS: downloads.serve, leader_doors.LOGS: log_server.door(self._runtime)}
        async with contextlib.AsyncExitStack() as stack:
            watched = isinstance(self._runtime, Watching)
            if isinstance(self._runtime, Watching):
                await stack.enter_async_context(self._runtime.watching(self.wake))
            if roles.peer_listen:
                assert key  # noqa: S101 (checked by `run`)
                await stack.enter_async_context(leader_doors.at_address(served, roles.peer_listen, peers.of(key)))
            for name in [leader_doors.DOWNLOADS, *([leader_doors.LOGS] if watched else [])]:
                path = leader_doors.socket_of(data, name)
                await stack.enter_async_context(leader_doors.at_socket(served[name], path, self._account))
            yield

    def _ttl(self, lease: Lease, reader: ActivityReader) -> TtlRunner:
        probes = Probes(
            self._templates, self._clock, functools.partial(cpu_seconds, self._runtime), doors.of(self._settings)
        )
        return TtlRunner(lease, reader, self._clock, self._ttl_policies, probes.busy, self.wake)

    def _holds(self, lease: Lease) -> Holds:
        key, limits = self._settings.auth.secret_key, self._settings.limits
        assert key  # noqa: S101 (checked by `run`)
        return Holds(lease, self._clock, Signer(key, "hold"), limits.max_keep_awake_seconds)

    def _practice(self, lease: Lease) -> PracticeLoop:
        settings = self._settings
        return PracticeLoop(
            lease, self._runtime, self._templates, self._clock, settings.practice, settings.runtime, self.practice
        )

    def _fetching(self, lease: Lease) -> FetchLoop:
        return FetchLoop(lease, self._runtime, self._templates, self._clock, self._settings.runtime, self.wake)

    def _installing(self, lease: Lease) -> InstallLoop:
        settings = self._settings
        return InstallLoop(lease, self._clock, settings.storage.data_dir, settings.runtime.uid_base, self.wake)

    def _bulk(self, lease: Lease) -> BulkLoop:
        return BulkLoop(lease, self._workspaces(lease), self._clock)

    def _schedules(self, lease: Lease) -> SchedulesLoop:
        config = self._settings.schedules
        return SchedulesLoop(lease, self._workspaces(lease), self._ttl_policies, self._clock, config)

    def _workspaces(self, lease: Lease) -> Workspaces:
        key, limits = self._settings.auth.secret_key, self._settings.limits
        assert key  # noqa: S101 (checked by `run`)
        return Workspaces(lease.database, self._clock, limits, self._templates, Lab(self._clock, Tokens(key)))

    def _backups(self, lease: Lease) -> Maker:
        settings, files = self._settings, Files(self._runtime, self._objects)
        assert settings.storage.database_url  # noqa: S101 (checked by `run`)
        data = DataDir(settings.storage.data_dir)
        place = Place(settings.storage.database_url, signing_key.current(settings), files, data.backups)
        return Maker(lease, self._clock, place, settings.archives.keep_backups, self.back_up)

    def _pump(self, lease: Lease) -> Pump:
        settings, endings = self._settings, Endings(lease.database, self._clock, sessions.running)
        return Pump(lease.database, self._clock, settings.queue, settings.limits, self._line, endings)

    def _controller(self, lease: Lease, reader: ActivityReader, holds: Holds) -> Controller:
        config = self._settings.coordinator
        homes = Homes(self._objects, self._templates, self._clock, lease.database, self._settings.runtime)
        operations = Operations(
            lease, self._runtime, homes, self._templates, self._clock, config, provide=holds.provide
        )
        recheck = ByActivity(reader, self._clock, self._ttl_policies)
        return Controller(lease, self._runtime, operations, self._clock, config, self.wake, recheck)

    async def _readings(self) -> Readings:
        """What this process knows beside the database."""
        free = await machine.disk_free(self._settings.storage.data_dir)
        if self._driver is None:
            return Readings(None, free, {})
        line = next(loop.stats for loop in self._driver.status() if loop.name == waiting_room.NAME)
        return Readings(line.get("waiting"), free, self._driver.lags())

    def wake(self) -> None:
        """Another state is requested, or an operation is over: look now.

        The controller first, which a person may wait for; those whom its turn concerns when it has had it; the others
        when the IDEs that it starts are there, unless that takes long.
        """
        if self._driver:
            self._driver.nudge("controller")
            if self._next is None:
                self._next = asyncio.get_running_loop().call_later(AFTER_CONTROLLER, self._wake_next)

    def _wake_next(self) -> None:
        self._next = None
        if self._driver:
            self._driver.nudge(swaps.NAME)
            self._driver.nudge(waiting_room.NAME)  # what has stopped may have held a place
            if self._others is None:
                self._wake_others(AFTER_STARTS)

    def _wake_others(self, patience: float) -> None:
        self._others = None
        if patience > 0 and self._is_starting():
            left = patience - AFTER_CONTROLLER
            self._others = asyncio.get_running_loop().call_later(AFTER_CONTROLLER, self._wake_others, left)
        elif self._driver:
            self._driver.nudge("trash")
            self._driver.nudge(bulk.NAME)
            self._driver.nudge(ides.NAME)
            self._driver.nudge(fetch_loop.NAME)  # what was to run may run now
            self._driver.nudge(preview.NAME)
            self._driver.nudge(maker.NAME)

    def practice(self) -> None:
        """A learner waits for starter files or checks."""
        if self._driver:
            self._driver.nudge(practice_loop.NAME)

    def waiting(self) -> None:
        """A place may be free, or an event has changed."""
        if self._driver:
            self._driver.nudge(waiting_room.NAME)

    def back_up(self) -> None:
        """A backup is over."""
        if self._driver:
            self._driver.nudge(maker.NAME)

    def scheduled(self) -> None:
        """A schedule was made or changed."""
        if self._driver:
            self._driver.nudge(schedules.NAME)
            self._driver.nudge(warming.NAME)

    def logged_in(self) -> None:
        """A person has come, and may open something soon."""
        if self._driver:
            self._driver.nudge(warming.NAME)

    def collect(self) -> None:
        """The garbage collection is requested now."""
        if self._driver:
            self._driver.nudge("gc")

    def status(self) -> dict[str, Any]:
        listen = self._settings.roles.peer_listen
        reached = {leader_doors.ADDRESS: listen} if listen else {}
        return {**reached, "loops": [loop.as_json() for loop in self._driver.status()]} if self._driver else reached

    def stuck(self) -> list[str]:
        """Loops that are long overdue: the leader's own; one that does not lead has none."""
        return self._driver.stuck() if self._driver else []

    async def close(self) -> None:
        await self._runtime.close()
        await self._line.aclose()
        await self._redis.aclose()
