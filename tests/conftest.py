"""Fixtures: servers once per run, a fresh database and an empty Redis per test, virtual time."""

import asyncio
import compileall
import functools
import gc
import os
import pathlib
import re
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import pytest
import redis.asyncio
import uvloop
from xdist.scheduler import LoadScopeScheduling

import codehub
from codehub import logs
from codehub import settings as config
from codehub.db import Database
from codehub.db.redis import open_redis
from codehub.settings import LogConfig, Settings
from codehub.startup import allow_many_connections
from codehub.web.services import Services
from codehub.wiring.api import open_services
from tests import databases, kubernetes_cluster
from tests import docker_engine as docker_engine_
from tests.archives import s3
from tests.places import a_place
from tests.platform import Platform
from tests.servers import Runner, TestServers
from tests.virtual_time import ManualClock

ROOT = pathlib.Path(__file__).parents[1]
LONG = {"tests/web/test_schema.py"}
S3 = re.compile(r"[^a-z]s3[^a-z]")
_SERVERS = pytest.StashKey[TestServers]()
_runner: Runner | None = None


def pytest_xdist_auto_num_workers() -> int:
    """More than there are cores: much of what is tested waits for processes and clocks."""
    return len(os.sched_getaffinity(0)) + 3


def _is_worker(session_config: pytest.Config) -> bool:
    return hasattr(session_config, "workerinput")


def pytest_configure(config: pytest.Config) -> None:
    """Whoever comes first starts the servers: the controller of a parallel run, or the only process."""
    global _runner  # noqa: PLW0603
    logs.configure(LogConfig(level="warning", format="text"), "test")
    allow_many_connections()  # here are proxies and their clients in one process
    if _is_worker(config):
        config.stash[_SERVERS] = TestServers(*config.workerinput["servers"])  # type: ignore[attr-defined]
    elif not config.option.collectonly:
        # Roles are started hundreds of times, by accounts that may not write here: compile once.
        compileall.compile_dir(pathlib.Path(codehub.__file__).parent, quiet=2)
        _runner = Runner()
        config.stash[_SERVERS] = _runner.start()
    if _SERVERS in config.stash:
        Platform.seed = pathlib.Path(config.stash[_SERVERS].seed)


def pytest_configure_node(node: Any) -> None:
    servers = node.config.stash[_SERVERS]
    node.workerinput["servers"] = (servers.database_url, servers.redis_url, servers.seed)


class SharingScheduling(LoadScopeScheduling):  # type: ignore[misc]
    """What is made once per file (mostly a whole platform) is made once: all its tests go to one worker, and first.

    So do all that use a browser, or an S3 server, and there is one. And what takes longest does not come last.
    """

    def _split_scope(self, nodeid: str) -> str:
        file = nodeid.partition("::")[0]
        if file.startswith("tests/browser/"):
            return "tests/browser"
        if S3.search(nodeid):
            return "s3"
        return file if file in LONG or _shares(file) else nodeid


@functools.cache
def _shares(file: str) -> bool:
    places = (ROOT / file, (ROOT / file).with_name("conftest.py"))
    return any('scope="module"' in place.read_text() for place in places if place.exists())


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> SharingScheduling:
    return SharingScheduling(config, log)


def pytest_asyncio_loop_factories(item: pytest.Item) -> dict[str, Callable[[], asyncio.AbstractEventLoop]]:
    """What the roles run on; but not where processes are started by the hundred: it copies this large one for each."""
    starts_many = item.path.parent.name in {"archives", "contracts", "runtimes"}
    return {"loop": asyncio.new_event_loop if starts_many else uvloop.new_event_loop}


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Where there can be no Docker engine, what needs one is left out, and that is said."""
    on_docker = [item for item in items if item.get_closest_marker("docker")]
    if on_docker and (reason := docker_engine_.why_not()):
        config.get_terminal_writer().line(f"Left out: {len(on_docker)} tests on Docker, because {reason}")
        config.hook.pytest_deselected(items=on_docker)
        items[:] = [item for item in items if item not in on_docker]


def pytest_collection_finish() -> None:
    """Modules and tests stay to the end: the collector need not look at them again and again."""
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)


def pytest_unconfigure(config: pytest.Config) -> None:
    if _runner and not _is_worker(config):
        _runner.stop()


@pytest.fixture(scope="session")
def docker_engine() -> Iterator[str]:
    """The socket of an engine of the tests' own (`make docker-test`)."""
    with docker_engine_.running() as socket:
        yield socket


@pytest.fixture(scope="session")
def kubernetes() -> str:
    """The kubeconfig of the cluster, started if it does not run, with our images on its nodes (`make cluster-test`)."""
    return kubernetes_cluster.prepared()


@pytest.fixture(scope="session")
def servers(request: pytest.FixtureRequest) -> TestServers:
    return request.config.stash[_SERVERS]


@pytest.fixture
async def database_url(servers: TestServers) -> AsyncIterator[str]:
    """A migrated, empty database, this test's alone."""
    name = await databases.take(servers)
    yield servers.database(name)
    await databases.give_back(servers, name)


@pytest.fixture
async def database(database_url: str) -> AsyncIterator[Database]:
    opened = await Database.open(database_url, size=10)
    yield opened
    await opened.close()


@pytest.fixture
async def redis_url(servers: TestServers) -> str:
    """An empty Redis database of this worker."""
    worker = os.environ.get("PYTEST_XDIST_WORKER", "gw0")
    url = servers.redis(int(worker.removeprefix("gw")) % 16)
    async with redis.asyncio.Redis.from_url(url) as client:
        await client.flushdb()
    return url


@pytest.fixture
async def redis_client(redis_url: str) -> AsyncIterator[redis.asyncio.Redis]:
    client = open_redis(redis_url)
    assert isinstance(client, redis.asyncio.Redis)
    async with client:
        yield client


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def settings(database_url: str, redis_url: str, tmp_path: pathlib.Path) -> Settings:
    return config.load(
        {
            "CODEHUB_DATA_DIR": str(tmp_path / "data"),
            "CODEHUB_DATABASE_URL": database_url,
            "CODEHUB_REDIS_URL": redis_url,
            "CODEHUB_SECRET_KEY": "a-signing-key-for-tests",
            "CODEHUB_ADMIN_TOKEN": "an-admin-token-for-tests",
        }
    )


@pytest.fixture
async def services(settings: Settings, clock: ManualClock) -> AsyncIterator[Services]:
    async with open_services(settings, clock) as opened:
        yield opened


@pytest.fixture(scope="session")
def s3_server() -> Iterator[s3.S3Server]:
    """For tests that have it in their name: they all go to one worker."""
    with s3.running_server() as server:
        yield server


@pytest.fixture
def data_dir() -> Iterator[pathlib.Path]:
    with a_place() as folder:
        yield folder / "data"
