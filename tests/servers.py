"""Real PostgreSQL and Redis for a test run: started once by the first process, shared by all workers.

Everything but durability is as in the product: the same start code, sockets, passwords. fsync is off, because tests of
what survives a crash start servers of their own.

Setting up a database cluster takes most of a second of a core. It is done once, in a data directory that is then left
alone (`seed`); whoever needs servers of their own, and not the very first start, begins with a copy.
"""

import asyncio
import contextlib
import os
import pathlib
import shutil
import subprocess
import tempfile
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from codehub import settings
from codehub.clock import SystemClock
from codehub.db import migrate
from codehub.embedded.datadir import DataDir
from codehub.embedded.servers import Servers, Urls
from codehub.system.accounts import ensure_account
from codehub.system.processes import Ledger
from tests.places import place_for_data

TEMPLATE = "codehub"  # migrated, and empty: nobody connects to it


@dataclass(frozen=True)
class TestServers:
    """What workers need to know; travels to them as text."""

    __test__ = False
    database_url: str
    redis_url: str
    seed: str  # a data directory with a migrated database, which nobody uses

    def database(self, name: str) -> str:
        return self.database_url.replace("/codehub?", f"/{name}?")

    def redis(self, number: int) -> str:
        return f"{self.redis_url}?db={number}"


class Runner:
    """Runs the servers in a loop of its own, in a thread, for as long as the test run takes."""

    def __init__(self) -> None:
        self._folder = pathlib.Path(tempfile.mkdtemp(prefix="codehub-test-", dir=place_for_data()))
        self._folder.chmod(0o755)  # the platform under test may run as another account
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._servers: Servers | None = None

    def start(self) -> TestServers:
        seed, data = self._folder / "seed", self._folder / "data"
        # Forking (and so the "die with me" of the children) has to happen in the main thread.
        self._loop.run_until_complete(self._make(seed))
        copy_seed(seed, data)
        urls = self._loop.run_until_complete(self._start(data))
        self._thread.start()
        return TestServers(urls.database, urls.redis, str(seed))

    async def _make(self, seed: pathlib.Path) -> None:
        urls = await self._start(seed)
        await migrate.migrate(urls.database)
        assert self._servers
        await self._servers.stop()

    async def _start(self, folder: pathlib.Path) -> Urls:
        config = settings.load({"CODEHUB_DATA_DIR": str(folder)})
        data = DataDir(config.storage.data_dir)
        data.lock()
        data.prepare(ensure_account(None))
        self._servers = Servers(config, data, Ledger(data.run / "children.json"), SystemClock(), durable=False)
        return await self._servers.start()

    def stop(self) -> None:
        if self._servers and self._thread.is_alive():
            asyncio.run_coroutine_threadsafe(self._servers.stop(), self._loop).result(60)
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()
        self._loop.close()
        shutil.rmtree(self._folder, ignore_errors=True)


def copy_seed(seed: pathlib.Path, data: pathlib.Path) -> None:
    """A data directory as a first start leaves it, before anybody was there."""
    data.mkdir(mode=0o711, parents=True)
    folders = [seed / name for name in ("postgres", "secrets")]
    subprocess.run(["cp", "-a", "--sparse=always", *folders, data], check=True)


@contextlib.contextmanager
def environment(**values: str | None) -> Iterator[None]:
    """The process environment with these names changed; None takes one away."""
    before: dict[str, Any] = {name: os.environ.get(name) for name in values}
    _set(values)
    try:
        yield
    finally:
        _set(before)


def _set(values: dict[str, Any]) -> None:
    for name, value in values.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value
