"""The embedded servers, as the settings ask for them: for `serve`, for commands that need a database, for tests."""

import asyncio
import os
from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace

from codehub import logs
from codehub.clock import Clock, SystemClock
from codehub.db import Database, migrate
from codehub.embedded import postgres, postgres_leftovers, redis
from codehub.embedded.child import Child
from codehub.embedded.datadir import DataDir, InUseError
from codehub.embedded.ownership import change_owner
from codehub.errors import StartError
from codehub.settings import Settings
from codehub.system.accounts import ensure_account
from codehub.system.forking import Spec
from codehub.system.privileges import Account, needed_trees, service_account, view_for
from codehub.system.processes import Ledger

log = logs.get()


@dataclass(frozen=True)
class Urls:
    database: str = field(repr=False)
    redis: str = field(repr=False)


class Servers:
    def __init__(
        self, settings: Settings, data: DataDir, ledger: Ledger, clock: Clock, *, durable: bool = True
    ) -> None:
        self._settings = settings
        self._data = data
        self._ledger = ledger
        self._clock = clock
        self._durable = durable
        self.account: Account | None = service_account(settings.server.user)
        self.view = view_for(self.account, [*needed_trees(), data.root, data.run])
        self._children: list[Child] = []

    async def start(self) -> Urls:
        """Start what no URL was given for, both at once, and wait until they answer. Given ones must answer now."""
        storage = self._settings.storage
        await check_given(self._settings)
        waits = []
        if storage.database_url is None:
            await postgres_leftovers.end(self._data, self._clock)
        if change_owner(self._data, self.account):  # not in a thread: what is forked next wants there to be one
            log.info("Everything belongs to this account now", account=self.account.name if self.account else None)
        if storage.database_url is None:
            await postgres.ensure_cluster(self._data, self.account, self.view)
            self._run(postgres.server(self._data, self.account, self.view, self._clock, durable=self._durable))
            waits.append(postgres.wait_ready(self._data, self._clock))
        if storage.redis_url is None:
            self._run(redis.server(self._data, self.account, self.view, durable=self._durable))
            waits.append(redis.wait_ready(self._data, self._clock))
        await asyncio.gather(*waits)
        return Urls(storage.database_url or self._data.database_url, storage.redis_url or self._data.redis_url)

    def _run(self, spec: Spec) -> None:
        child = Child(spec, self._ledger, self._clock)
        self._children.append(child)
        child.start()

    async def stop(self) -> None:
        await asyncio.gather(*(child.stop() for child in self._children))

    def pids(self) -> dict[str, int | None]:
        return {child.spec.name: child.pid for child in self._children}


async def check_given(settings: Settings) -> None:
    """Say in a line what is wrong with each URL, before anything is started on top of it."""
    storage = settings.storage
    problems = []
    if storage.database_url:
        problems += await _problems(_check_database(storage.database_url))
    if storage.redis_url:
        problems += await _problems(redis.check(storage.redis_url))
    if problems:
        raise StartError("\n".join(problems))


async def _check_database(url: str) -> None:
    database = await Database.open(url, size=1)
    try:
        async with database.connection() as c:
            await migrate.require_current(c)
    finally:
        await database.close()


async def _problems(check: Awaitable[None]) -> list[str]:
    try:
        await check
    except StartError as e:
        return [e.detail]
    return []


def resolve(settings: Settings, urls: Urls) -> Settings:
    """The settings with everything that embedded use leaves open filled in."""
    key = settings.auth.secret_key or DataDir(settings.storage.data_dir).secret("signing-key")
    storage = replace(settings.storage, database_url=urls.database, redis_url=urls.redis)
    return replace(settings, storage=storage, auth=replace(settings.auth, secret_key=key))


@asynccontextmanager
async def reachable(settings: Settings) -> AsyncIterator[Urls]:
    """URLs of servers that answer: given ones, those of a running instance, or our own for as long as it takes."""
    storage = settings.storage
    if storage.database_url and storage.redis_url:
        yield Urls(storage.database_url, storage.redis_url)
        return
    data = DataDir(storage.data_dir)
    try:
        lock = data.lock()
    except InUseError:  # an instance runs: use its servers
        yield Urls(storage.database_url or data.database_url, storage.redis_url or data.redis_url)
        return
    if data.is_new:
        log.info("Made a new data directory", path=str(data.root))
    data.prepare(ensure_account(settings.server.user))
    ledger = Ledger(data.run / "children.json")
    ledger.end_leftovers()
    servers = Servers(settings, data, ledger, SystemClock())
    try:
        yield await servers.start()
    finally:
        await servers.stop()
        os.close(lock)
