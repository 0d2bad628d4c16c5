"""`codehub serve`: the order in which everything starts and stops, and the few lines a person sees."""

import asyncio
import functools
import gc
import importlib
import json
import os
import signal
import socket
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from codehub import logs
from codehub.clock import Clock
from codehub.db import migrate
from codehub.embedded.child import Child
from codehub.embedded.datadir import DataDir
from codehub.embedded.servers import Servers, Urls
from codehub.errors import StartError
from codehub.hostnames import LOCALHOST, is_loopback
from codehub.settings import Settings, overview, sources, to_environ
from codehub.supervisor import log_files
from codehub.supervisor.listeners import open_sockets, open_unix_socket
from codehub.system.accounts import ensure_account
from codehub.system.forking import Spec
from codehub.system.privileges import needed_trees, view_for
from codehub.system.processes import Ledger

log = logs.get()
READY_SECONDS = 60.0
SETTLE_SECONDS = 0.5  # after which the proxy has read what was sent to it before the stop
# Which roles need root's rights when we have them: only the one that starts users' programs.
PRIVILEGED_ROLES = {"coordinator"}
METRICS_DIR = "PROMETHEUS_MULTIPROC_DIR"  # named before anything that counts is loaded: see `codehub.metrics`


@dataclass(frozen=True)
class Roles:
    """What runs on top of the servers. Given by `cli`, which alone knows every role."""

    modules: tuple[str, ...]  # what they all need, loaded here once, while the servers start
    run: Mapping[str, Callable[..., None]]  # by name, in the order in which they stop: those that have clients first
    ready: Callable[[Urls, str], Awaitable[None]]  # called once everything answers
    stopping: Callable[[], None]  # called when told to stop


def base_url(settings: Settings, listener: socket.socket) -> str:
    """Where users reach us. On this machine by name: browsers keep passkeys for names, not for addresses."""
    if settings.server.public_url:
        return settings.server.public_url.rstrip("/")
    host, port = listener.getsockname()[:2]
    here = host in {"0.0.0.0", "::"} or is_loopback(host)
    shown = LOCALHOST if here else f"[{host}]" if ":" in host else host
    return f"http://{shown}:{port}"


class Supervisor:
    """Holds the listening sockets, the servers and the roles of one instance."""

    def __init__(self, settings: Settings, clock: Clock, roles: Roles, log_fd: int) -> None:
        self._settings = settings
        self._clock = clock
        self._roles = roles
        self._log_fd = log_fd
        self._data = DataDir(settings.storage.data_dir)
        self._ledger = Ledger(self._data.run / "children.json")
        self._servers = Servers(settings, self._data, self._ledger, clock)
        self._children: list[Child] = []
        self._sockets: list[socket.socket] = []

    async def start(self) -> tuple[Urls, str]:
        """Bring everything up, in order; returns the servers' URLs and the address that users open."""
        if left := self._ledger.end_leftovers():
            log.info("Ended what an earlier run had left behind", processes=left)
        public = open_sockets(self._settings)
        internal = open_unix_socket(self._data.api_socket, self._servers.account)
        operators = open_unix_socket(self._data.operator_socket, None)
        self._sockets = [*public, internal, operators]
        self._fresh_metrics()
        urls, _ = await asyncio.gather(self._servers.start(), self._load())
        await self._migrate(urls)
        url = base_url(self._settings, public[0])
        listeners = {"proxy": {"fd": public}, "api": {"fd": [internal], "operator_fd": [operators]}}
        for role in self._roles.run:
            child = Child(self._role(role, listeners.get(role, {}), urls), self._ledger, self._clock)
            child.start()
            self._children.append(child)
        await self._wait_ready(public[0])
        self._data.note_url(url)
        return urls, url

    def _fresh_metrics(self) -> None:
        """Counters of this run; those of the run before would be added to them."""
        folder = self._data.run / "metrics"
        for old in folder.glob("*.db"):
            old.unlink(missing_ok=True)
        os.environ[METRICS_DIR] = str(folder)

    async def _load(self) -> None:
        """What the roles are made of. Nothing of it can be garbage."""
        gc.disable()
        for module in self._roles.modules:
            await self._clock.sleep(0)  # the servers' start goes on in between
            importlib.import_module(module)
        gc.freeze()
        gc.enable()

    async def _migrate(self, urls: Urls) -> None:
        if self._settings.storage.database_url is None and (applied := await migrate.migrate(urls.database)):
            log.info("Migrated the database", to_version=applied[-1].version)

    def _role(self, role: str, listeners: Mapping[str, Sequence[socket.socket]], urls: Urls) -> Spec:
        given = {name: [listener.fileno() for listener in some] for name, some in listeners.items()}
        fds = [fd for some in given.values() for fd in some]
        account = None if role in PRIVILEGED_ROLES else self._servers.account
        environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith("CODEHUB_")},
            **to_environ(self._settings),
            overview.SOURCES: json.dumps(sources()),
            "CODEHUB_DATABASE_URL": urls.database,
            "CODEHUB_REDIS_URL": urls.redis,
            # The one that was free: browsers name it in what a passkey signs.
            "CODEHUB_PORT": str(self._sockets[0].getsockname()[1]),
            # Also should another account come to be meanwhile: all of one instance use the same.
            **({"CODEHUB_USER": self._servers.account.name} if self._servers.account else {}),
            "CODEHUB_SECRET_KEY": self._settings.auth.secret_key or self._data.secret("signing-key"),
            **({"HOME": "/nonexistent", "USER": account.name, "LOGNAME": account.name} if account else {}),
        }
        return Spec(
            role,
            functools.partial(self._roles.run[role], **given),
            account,
            view_for(account, [*needed_trees(), self._data.root, self._data.run]),
            environment,
            (*fds, self._log_fd),
            directory=self._data.run,
            stop_seconds=self._settings.server.drain_seconds + 5,
        )

    async def _wait_ready(self, listener: socket.socket) -> None:
        """Until the API answers `/readyz`. A role that keeps dying has said why in its own log line."""
        deadline = self._clock.monotonic() + READY_SECONDS
        while not await self._is_ready(listener):
            if self._clock.monotonic() > deadline or any(role.failures >= 5 for role in self._children):
                raise StartError(f"the API does not become ready; {self._data.log_file} says why")
            await self._clock.sleep(0.05)

    async def _is_ready(self, listener: socket.socket) -> bool:
        host, port = listener.getsockname()[:2]
        host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)
        try:
            async with asyncio.timeout(5):
                reader, writer = await asyncio.open_connection(host, port)
                writer.write(b"GET /readyz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
                status = await reader.readline()
                writer.close()
        except (OSError, TimeoutError):
            return False
        return b" 200 " in status

    async def stop(self) -> None:
        """First the roles that have clients, then the loops, then the servers that they all use."""
        for listener in self._sockets:
            listener.close()
        talking = asyncio.gather(*(role.stop() for role in self._children[:1]))
        if len(self._children) > 1:
            # The proxy takes nothing new by now. The API ends streams of events, which the proxy would wait for.
            await self._clock.sleep(SETTLE_SECONDS)
            await self._children[1].stop()
        await talking
        for role in self._children[2:]:
            await role.stop()
        await self._servers.stop()


async def serve(settings: Settings, clock: Clock, roles: Roles, *, verbose: bool = False) -> None:
    """Run until told to stop. Everything is logged into a file; with `verbose`, on the terminal as well."""
    told_to_stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        asyncio.get_running_loop().add_signal_handler(number, told_to_stop.set)
    data = DataDir(settings.storage.data_dir)
    lock = data.lock()
    try:
        new = data.is_new
        data.prepare(ensure_account(settings.server.user))
        log_fd = logs.use_file(data.log_file, quiet=not verbose)
        logs.configure(settings.log, "serve")
        log.info("Made a new data directory" if new else "Starting", data=str(data.root), log=str(data.log_file))
        supervisor = Supervisor(settings, clock, roles, log_fd)
        try:
            await _run_until(told_to_stop, _run(supervisor, roles, data, clock))
        finally:
            if told_to_stop.is_set():
                roles.stopping()
            log.info("Stopping")
            await supervisor.stop()
            log.info("Stopped")
    finally:
        os.close(lock)


async def _run(supervisor: Supervisor, roles: Roles, data: DataDir, clock: Clock) -> None:
    await roles.ready(*await supervisor.start())
    await log_files.keep_bounded(data.logs, clock)


async def _run_until(event: asyncio.Event, work: Coroutine[Any, Any, None]) -> None:
    """Also a start that is still under way ends when told to."""
    tasks = {asyncio.create_task(work), asyncio.create_task(event.wait())}
    done, others = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)
    for task in done:
        task.result()
