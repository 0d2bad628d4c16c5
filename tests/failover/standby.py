"""A real PostgreSQL and its standby on ports of one address: synchronous, promoted when the first is lost."""

import asyncio
import contextlib
import os
import pathlib
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import asyncpg

from codehub.embedded.postgres import binaries
from codehub.system.accounts import ensure_account
from codehub.system.privileges import enter as enter_account
from codehub.system.privileges import needed_trees, service_account, view_for
from tests.archives.s3 import free_ports
from tests.places import place_for_data


@dataclass
class Server:
    port: int
    folder: pathlib.Path
    host: str = "127.0.0.1"
    process: "subprocess.Popen[bytes] | None" = None

    def url(self, database: str = "codehub") -> str:
        return f"postgresql://codehub:secret%2Fword@{self.host}:{self.port}/{database}"

    def start(self) -> None:
        options = (
            "-p",
            str(self.port),
            "-c",
            f"unix_socket_directories={self.folder}",
            "-c",
            f"listen_addresses={self.host}",
            "-c",
            "max_connections=300",
        )
        log = (self.folder.parent / f"{self.folder.name}.log").open("ab")
        with log:
            self.process = _as_service("postgres", "-D", str(self.folder), *options, log=log.fileno())

    def kill(self) -> None:
        """With -9, children and all: as a machine that has lost its power."""
        assert self.process
        for pid in (self.process.pid, *_children(self.process.pid)):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.process.wait()
        self.process = None

    async def ask(self, sql: str, database: str = "codehub") -> Any:
        connection = await asyncpg.connect(self.url(database), timeout=10)
        try:
            return await connection.fetchval(sql)
        finally:
            await connection.close()


@dataclass
class Pair:
    first: Server
    second: Server

    @property
    def url(self) -> str:
        hosts = ",".join(f"{server.host}:{server.port}" for server in (self.first, self.second))
        return f"postgresql://codehub:secret%2Fword@{hosts}/codehub"

    async def fail_over(self) -> None:
        self.first.kill()
        assert await self.second.ask("SELECT pg_promote(true, 60)")


def _children(pid: int) -> list[int]:
    return [int(child) for child in pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def _as_service(program: str, *words: str, log: int) -> "subprocess.Popen[bytes]":
    account, parent = service_account(None), os.getpid()
    view = view_for(account, needed_trees())
    return subprocess.Popen(
        [str(binaries() / program), *words],
        env={"PATH": os.defpath, "LC_ALL": "C", "TZ": "UTC", "PGPASSWORD": "secret/word"},
        cwd="/",
        stdout=log,
        stderr=log,
        preexec_fn=lambda: enter_account(account, view, parent, signal.SIGKILL),  # noqa: PLW1509 (it takes no lock)
    )


def _run(program: str, *words: str, log: pathlib.Path) -> None:
    with log.open("ab") as file:
        code = _as_service(program, *words, log=file.fileno()).wait(120)
    assert code == 0, log.read_text()


async def wait_for(server: Server, sql: str, wanted: object, database: str = "postgres") -> None:
    end = time.monotonic() + 60
    while True:
        with contextlib.suppress(OSError, asyncpg.PostgresError):
            if await server.ask(sql, database) == wanted:
                return
        assert time.monotonic() < end, (sql, wanted)
        await asyncio.sleep(0.05)


@contextlib.contextmanager
def _folders() -> Iterator[pathlib.Path]:
    made = pathlib.Path(tempfile.mkdtemp(prefix="codehub-pair-", dir=place_for_data()))
    account = service_account(None)
    try:
        if account:
            os.chown(made, account.uid, account.gid)
        yield made
    finally:
        shutil.rmtree(made, ignore_errors=True)


@contextlib.asynccontextmanager
async def running_pair(host: str = "127.0.0.1") -> Any:
    """The standby has all that the first one acknowledges: it waits for that."""
    ensure_account(None)
    with _folders() as folder:
        password, log = folder / "password", folder / "setup.log"
        password.write_text("secret/word")
        ports = free_ports(2)
        first, second = Server(ports[0], folder / "a", host), Server(ports[1], folder / "b", host)
        _run(
            *("initdb", "-D", str(first.folder), "-U", "codehub", "--pwfile", str(password), "--auth=scram-sha-256"),
            *("-c", "scram_iterations=1", "-E", "UTF8", "--no-locale"),
            log=log,
        )
        with (first.folder / "pg_hba.conf").open("a") as file:
            file.write("host all all all scram-sha-256\nhost replication all all scram-sha-256\n")
        try:
            first.start()
            await wait_for(first, "SELECT 1", 1)
            await first.ask("CREATE DATABASE codehub", "postgres")
            source = f"host={host} port={first.port} user=codehub password=secret/word"
            _run("pg_basebackup", "-D", str(second.folder), "-R", "-c", "fast", "-d", source, log=log)
            second.start()
            await wait_for(first, "SELECT count(*) FROM pg_stat_replication WHERE state = 'streaming'", 1)
            await first.ask("ALTER SYSTEM SET synchronous_standby_names = '*'", "postgres")
            await first.ask("SELECT pg_reload_conf()", "postgres")
            await wait_for(first, "SELECT sync_state FROM pg_stat_replication", "sync")
            yield Pair(first, second)
        finally:
            for server in (first, second):
                if server.process:
                    server.kill()
