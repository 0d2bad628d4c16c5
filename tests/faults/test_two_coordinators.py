"""Two real `codehub coordinator` processes on one database: one leads, the other takes over."""

import asyncio
import contextlib
import os
import pathlib
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator

import asyncpg
import pytest

from tests.platform import CODEHUB, clean_environment


class Coordinators:
    def __init__(self, database_url: str, redis_url: str, folder: pathlib.Path) -> None:
        self._env = clean_environment(
            CODEHUB_DATABASE_URL=database_url,
            CODEHUB_REDIS_URL=redis_url,
            CODEHUB_SECRET_KEY="a-signing-key-for-tests",
            CODEHUB_DATA_DIR=str(folder),
            COORDINATOR_HOUSEKEEPING_INTERVAL="0.2",
        )
        self._url = database_url
        self.log = folder / "coordinators.log"
        self.processes: list[subprocess.Popen[bytes]] = []

    def start(self) -> subprocess.Popen[bytes]:
        with self.log.open("ab") as log:
            process = subprocess.Popen([*CODEHUB, "coordinator"], env=self._env, stdout=log, stderr=log)
        self.processes.append(process)
        return process

    async def leader(self) -> tuple[subprocess.Popen[bytes] | None, int]:
        """Who holds a lease that has not run out, and its epoch."""
        connection = await asyncpg.connect(self._url)
        try:
            row = await connection.fetchrow(
                "SELECT holder, epoch FROM system_locks WHERE name = 'coordinator' AND expires_at > clock_timestamp()"
            )
        finally:
            await connection.close()
        if row is None:
            return None, 0
        pid = int(row["holder"].rsplit("-", 2)[1])
        return next((p for p in self.processes if p.pid == pid), None), row["epoch"]

    async def another_leads(self, than: subprocess.Popen[bytes] | None, seconds: float) -> int:
        """Wait until somebody else leads; the epoch."""
        async with asyncio.timeout(seconds):
            while True:
                leader, epoch = await self.leader()
                if leader is not None and leader is not than:
                    return epoch
                await asyncio.sleep(0.05)

    def end(self) -> None:
        for process in self.processes:
            with contextlib.suppress(ProcessLookupError):
                os.kill(process.pid, signal.SIGCONT)
            process.kill()
            process.wait()


@pytest.fixture
async def coordinators(database_url: str, redis_url: str, tmp_path: pathlib.Path) -> AsyncIterator[Coordinators]:
    pair = Coordinators(database_url, redis_url, tmp_path)
    pair.start()
    pair.start()
    yield pair
    pair.end()


async def test_one_leads_and_the_other_takes_over_when_it_is_killed(coordinators: Coordinators) -> None:
    await coordinators.another_leads(None, 60)
    leader, epoch = await coordinators.leader()
    assert leader
    assert epoch == 1
    await asyncio.sleep(3)
    assert await coordinators.leader() == (leader, 1)  # it keeps what it has
    leader.kill()
    epoch = await coordinators.another_leads(leader, 60)
    assert epoch == 2


async def test_a_stopped_leader_is_replaced_and_changes_nothing_when_it_goes_on(
    coordinators: Coordinators, database_url: str
) -> None:
    await coordinators.another_leads(None, 60)
    leader, _ = await coordinators.leader()
    assert leader
    os.kill(leader.pid, signal.SIGSTOP)
    epoch = await coordinators.another_leads(leader, 60)
    assert epoch == 2
    connection = await asyncpg.connect(database_url)
    before = await connection.fetchrow("SELECT holder, epoch FROM system_locks")
    os.kill(leader.pid, signal.SIGCONT)
    await asyncio.sleep(4)
    assert await connection.fetchrow("SELECT holder, epoch FROM system_locks") == before
    assert leader.poll() is None  # it stands by; it did not have to die
    assert "Leadership ended" in coordinators.log.read_text()
    await connection.close()


LEADER = """
import asyncio, os, signal, sys
from codehub import logs, settings
from codehub.clock import SystemClock
from codehub.coordinator.leader import SESSION_SETTINGS, Leader
from codehub.db import Database
from codehub.errors import LeaseLostError

{work}

async def main():
    database = await Database.open(sys.argv[1], session=SESSION_SETTINGS)
    await Leader(database, SystemClock(), "host-" + str(os.getpid()) + "-test", work, dict).run()

logs.configure(settings.load({{}}).log, "test")
asyncio.run(main())
"""
PREPARED_WRITE = """
async def work(lease):
    print("leading", flush=True)
    os.kill(os.getpid(), signal.SIGSTOP)  # the write below is ready to go
    try:
        async with lease.transaction() as c:
            await c.execute("INSERT INTO users (name, role, created_at) VALUES ('stale', 'learner', now())")
        print("written", flush=True)
    except LeaseLostError:
        print("refused", flush=True)
    os._exit(0)
"""
BETWEEN_MESSAGES = """
async def work(lease):
    async with lease.transaction() as c:
        # The server has parsed it and waits for its arguments: in its eyes a statement runs, the session is not idle.
        await c.prepare("SELECT now()")
        print("leading", flush=True)
        os.kill(os.getpid(), signal.SIGSTOP)
"""


@contextlib.asynccontextmanager
async def stopped_leader(work: str, database_url: str) -> AsyncIterator[asyncio.subprocess.Process]:
    """One that leads, and stopped itself in the middle of its work."""
    script = LEADER.format(work=work)
    stale = await asyncio.create_subprocess_exec(
        sys.executable, "-c", script, database_url, stdout=asyncio.subprocess.PIPE
    )
    try:
        assert await said_by(stale) == b"leading\n"
        yield stale
    finally:
        with contextlib.suppress(ProcessLookupError):
            stale.kill()  # also one that is still stopped
        await stale.wait()


async def said_by(process: asyncio.subprocess.Process) -> bytes:
    assert process.stdout
    return await asyncio.wait_for(process.stdout.readline(), 60)


@pytest.fixture
def others(database_url: str, redis_url: str, tmp_path: pathlib.Path) -> Iterator[Coordinators]:
    """None yet."""
    coordinators = Coordinators(database_url, redis_url, tmp_path)
    yield coordinators
    coordinators.end()


async def test_a_write_prepared_before_the_stop_is_refused_after_it(others: Coordinators, database_url: str) -> None:
    async with stopped_leader(PREPARED_WRITE, database_url) as stale:
        others.start()
        await others.another_leads(None, 60)
        os.kill(stale.pid, signal.SIGCONT)
        assert await said_by(stale) == b"refused\n"
    connection = await asyncpg.connect(database_url)
    assert await connection.fetchval("SELECT count(*) FROM users") == 0
    await connection.close()


async def test_a_leader_stopped_between_the_messages_of_one_statement_does_not_hold_the_lease(
    others: Coordinators, database_url: str
) -> None:
    async with stopped_leader(BETWEEN_MESSAGES, database_url):
        others.start()
        assert await others.another_leads(None, 60) == 2
