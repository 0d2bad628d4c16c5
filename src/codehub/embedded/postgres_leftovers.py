"""What an earlier PostgreSQL left on our cluster: processes that still run, and lock files of those that do not.

Called before every start of the embedded PostgreSQL, by `postgres.server`; `doctor` asks whether one runs. The data
directory is locked by our caller, so that no other CodeHub starts one meanwhile.

PostgreSQL takes a lock file seriously as long as its pid can be signalled. That holds for a process that has been
killed and whose parent has not waited for it yet, and after a reboot for any process that has got the same number: it
would refuse to start in both cases. And it looks for processes of the earlier server only while there is a lock file
to name them. So all of them are ended first, then the lock files of the dead are removed.
"""

import contextlib
import os
import pathlib
import signal

from codehub.clock import Clock
from codehub.embedded.datadir import DataDir
from codehub.system.processes import Identity

PROC = pathlib.Path("/proc")
POLL_SECONDS = 0.02
CRASH_SECONDS = 5.0  # as long as PostgreSQL gives its own processes after a crash, before it kills them


def postmaster(data: DataDir) -> Identity | None:
    """The server that runs on our cluster, if one does."""
    return _owner(_cluster(data) / "postmaster.pid")


async def end(data: DataDir, clock: Clock, *, patience: float = 30.0) -> None:
    """End every process on our cluster, so that the next server has its files to itself."""
    if server := postmaster(data):
        # "fast" first, then "immediate", from which it recovers at its next start.
        await _insist([server], (signal.SIGINT, signal.SIGQUIT, signal.SIGKILL), patience / 3, clock)
    # A server that was killed leaves its processes behind. One that is busy notices only when it has done its work,
    # and until then it writes into the files that the next server recovers.
    await _insist(_processes(_cluster(data)), (signal.SIGQUIT, signal.SIGKILL), CRASH_SECONDS, clock)


async def clear(data: DataDir, clock: Clock) -> None:
    """Make way for a new server."""
    await end(data, clock)
    if _processes(_cluster(data)):
        return  # it cannot even be killed: PostgreSQL refuses to start beside it, and its log says why
    for lock in (_cluster(data) / "postmaster.pid", *data.postgres_socket_dir.glob(".s.PGSQL.*.lock")):
        if _owner(lock) is None:
            lock.unlink(missing_ok=True)


async def _insist(processes: list[Identity], signals: tuple[signal.Signals, ...], pause: float, clock: Clock) -> None:
    for number in signals:
        left = [process for process in processes if process.alive()]
        for process in left:
            process.signal(signal.SIGCONT)
            process.signal(number)
        deadline = clock.monotonic() + pause
        while any(process.alive() for process in left) and clock.monotonic() < deadline:
            await clock.sleep(POLL_SECONDS)


def _owner(lock: pathlib.Path) -> Identity | None:
    """The living server that this lock file belongs to. It has the server's pid and, below it, its cluster."""
    with contextlib.suppress(OSError, ValueError, IndexError):
        pid, cluster = lock.read_text().splitlines()[:2]
        if _works_on(int(pid), pathlib.Path(cluster)):
            return Identity.of(int(pid))
    return None


def _processes(cluster: pathlib.Path) -> list[Identity]:
    pids = [int(name) for name in os.listdir(PROC) if name.isdigit()]  # noqa: PTH208 (names, not paths)
    found = [Identity.of(pid) for pid in pids if _works_on(pid, cluster)]
    return [identity for identity in found if identity]


def _works_on(pid: int, cluster: pathlib.Path) -> bool:
    """A PostgreSQL works in its cluster's folder. The folder itself is compared: its path may be another one there."""
    try:
        name = (PROC / str(pid) / "comm").read_text().strip()
        return name == "postgres" and (PROC / str(pid) / "cwd").samefile(cluster)
    except OSError:
        return False


def _cluster(data: DataDir) -> pathlib.Path:
    return data.root / "postgres"
