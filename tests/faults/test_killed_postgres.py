"""The embedded PostgreSQL after a kill -9: started once, on files that no process of the one before still writes to."""

import asyncio
import contextlib
import os
import pathlib
import signal
from collections.abc import Iterator

import asyncpg

from codehub.clock import SystemClock
from codehub.embedded import postgres_leftovers
from codehub.embedded.datadir import DataDir
from codehub.system import kernel
from codehub.system.processes import Identity
from tests.platform import descendants, running

STARTED = b"starting PostgreSQL"
BUSY = "SELECT count(*) FROM generate_series(1, 100000) a, generate_series(1, 100000) b"


@contextlib.contextmanager
def nobody_waits_for(pids: list[int]) -> Iterator[None]:
    """Orphans become ours and stay as they died, as they do for a while under an init that is slow."""
    kernel.prctl(kernel.PR_SET_CHILD_SUBREAPER, 1)
    try:
        yield
    finally:
        kernel.prctl(kernel.PR_SET_CHILD_SUBREAPER, 0)
        for pid in pids:
            with contextlib.suppress(ChildProcessError):
                os.waitpid(pid, 0)


async def test_after_everything_was_killed_postgresql_is_started_once_and_has_everything(
    data_dir: pathlib.Path,
) -> None:
    with running(data_dir) as platform:
        person = {"name": "mina", "role": "learner"}
        async with platform.client() as client, client.post("/api/v1/users", json=person) as answer:
            assert answer.status == 201
        assert platform.process
        log = data_dir / "log" / "postgres.log"
        before = log.stat().st_size
        postmaster = platform.children()["postgres"]
        with nobody_waits_for(descendants(platform.process.pid)):
            platform.kill_tree()
            os.kill(postmaster, 0)  # what PostgreSQL asks: a dead process that nobody waited for answers, too
            await asyncio.to_thread(platform.start)
        written = log.read_bytes()[before:]
        assert written.count(STARTED) == 1, written.decode()
        assert b"already exists" not in written
        async with platform.client() as client, client.get("/api/v1/users/mina") as answer:
            assert answer.status == 200


async def test_a_busy_process_of_a_killed_server_ends_before_the_next_one_starts(data_dir: pathlib.Path) -> None:
    """It would go on writing to files that the next server recovers."""
    with running(data_dir) as platform:
        connection = await asyncpg.connect(DataDir(data_dir).database_url)
        busy = Identity.of(await connection.fetchval("SELECT pg_backend_pid()"))
        assert busy
        working = asyncio.create_task(connection.execute(BUSY))
        await until_busy(DataDir(data_dir).database_url, busy.pid)
        before = platform.children()["postgres"]
        os.kill(before, signal.SIGKILL)
        async with asyncio.timeout(30):
            while platform.children().get("postgres", before) == before:
                await asyncio.sleep(0.01)
        assert not busy.alive()
        await asyncio.gather(working, return_exceptions=True)
        await platform.wait_for("/readyz", 200)


async def until_busy(url: str, pid: int) -> None:
    other = await asyncpg.connect(url)
    async with asyncio.timeout(30):
        while await other.fetchval("SELECT state FROM pg_stat_activity WHERE pid = $1", pid) != "active":
            await asyncio.sleep(0.01)
    await other.close()


async def test_only_lock_files_of_the_dead_are_removed(data_dir: pathlib.Path) -> None:
    with running(data_dir) as platform:
        data = DataDir(data_dir)
        locks = {data_dir / "postgres" / "postmaster.pid", data.postgres_socket_dir / ".s.PGSQL.5432.lock"}
        kept = {lock: lock.read_text() for lock in locks}
        assert postgres_leftovers.postmaster(data) == Identity.of(platform.children()["postgres"])
        platform.stop()
        assert [lock for lock in locks if lock.exists()] == []
        for lock, text in kept.items():  # as after a reboot: the number belongs to another process now
            pid, rest = text.split("\n", 1)
            assert int(pid) > 1
            lock.write_text(f"{os.getpid()}\n{rest}")
        assert postgres_leftovers.postmaster(data) is None
        await postgres_leftovers.clear(data, SystemClock())
        assert [lock for lock in locks if lock.exists()] == []


async def test_a_lock_of_another_living_server_stays(data_dir: pathlib.Path, tmp_path: pathlib.Path) -> None:
    with running(data_dir) as platform:
        other = DataDir(tmp_path / "other")
        other.postgres_socket_dir.mkdir(parents=True)
        lock = other.postgres_socket_dir / ".s.PGSQL.5432.lock"
        lock.write_text((DataDir(data_dir).postgres_socket_dir / ".s.PGSQL.5432.lock").read_text())
        await postgres_leftovers.clear(other, SystemClock())
        assert lock.exists()
        assert Identity.of(platform.children()["postgres"])
