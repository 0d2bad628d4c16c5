"""What a contained command can do to the workspace and to those who wait for it: nothing that outlives it.

Session checks are run so (`sessions.practice_runner`). Every way out that a learner's program may try, on real
processes.
"""

import asyncio
import os
import pathlib
import signal
import sys

import pytest

from codehub.runtimes.base import ExecResult, Runtime
from codehub.templates.model import ResourceLimits
from tests.contracts import workloads
from tests.contracts.harness import fresh_runtime, processes_of, running, until
from tests.contracts.workloads import python, server, workload

SECONDS = 2.0
# Two forks and a session of its own; the output is let go, so that nothing waits for it.
DAEMON = """
import os, sys, time
if os.fork(): os._exit(0)
os.setsid()
if os.fork(): os._exit(0)
for fd in range(3): os.close(fd)
time.sleep(10_000)
"""
STUBBORN = """
import os, signal, time
for number in set(signal.Signals) - {signal.SIGKILL, signal.SIGSTOP}: signal.signal(number, signal.SIG_IGN)
os.setsid() if os.getpid() != os.getsid(0) else None
time.sleep(10_000)
"""
# Its shell, then its whole group and everything else that it can reach.
PARRICIDE = """
import os, signal, sys, time
if os.fork() == 0:
    os.setsid()
    time.sleep(10_000)
os.kill(os.getppid(), signal.SIGKILL)
for pid in map(int, filter(str.isdigit, os.listdir("/proc"))):
    try: pid > 2 and pid != os.getpid() and os.kill(pid, signal.SIGKILL)
    except OSError: pass
try: os.kill(1, signal.SIGKILL)
except OSError: pass
time.sleep(10_000)
"""
FLOOD = "import sys\nline = b'x' * 65536\nwhile True: sys.stdout.buffer.write(line)"
# Who does not mind that nothing is read any more goes on until its time is over.
DEAF_FLOOD = """
import os, signal
signal.signal(signal.SIGPIPE, signal.SIG_IGN)
while True:
    try: os.write(1, b"x" * 65536)
    except OSError: pass
"""
BOMB = """
import os, time
while True:
    try:
        if os.fork() == 0:
            os.setsid()
            time.sleep(10_000)
    except OSError: time.sleep(0.01)
"""
KILLED_CALLER = """
import asyncio, pathlib, sys
from tests.contracts.harness import open_any
async def main():
    runtime = open_any(pathlib.Path(sys.argv[1]), sys.argv[2])
    await runtime.exec("w1", ["env", sys.argv[3], "sh", "-c", "setsid sleep 1000 & sleep 1000"], contained=True)
asyncio.run(main())
"""


def marker() -> str:
    return f"marker=contained-{os.getpid()}-{os.urandom(4).hex()}"


async def attempt(runtime: Runtime, script: str, mark: str, seconds: float = SECONDS) -> ExecResult:
    command = ["env", mark, "sh", "-c", 'python3 -c "$0"; exit $?', script]
    return await runtime.exec("w1", command, timeout_seconds=seconds, max_output=16 << 10, contained=True)


async def gone(mark: str) -> None:
    async def look() -> bool:
        return not processes_of(mark)

    await until(look)


@pytest.mark.parametrize(
    ("script", "late"),
    [
        pytest.param(DAEMON, False, id="daemon"),
        pytest.param(STUBBORN, True, id="ignores every signal"),
        pytest.param(PARRICIDE, None, id="kills its parents"),
        pytest.param(FLOOD, False, id="endless output"),
        pytest.param(DEAF_FLOOD, True, id="endless output to nobody"),
    ],
)
async def test_nothing_of_a_command_outlives_it(runtime: Runtime, script: str, late: bool | None) -> None:
    before = await running(runtime, workload(server()))
    mark = marker()
    result = await attempt(runtime, script, mark)
    assert processes_of(mark) == []  # at once, not some time later
    assert late is None or result.timed_out is late
    assert len(result.output) <= 16 << 10
    now = await runtime.container("w1")
    assert now == before
    assert now.answers  # the IDE has not noticed


async def test_processes_without_end_are_ended_with_their_time(runtime: Runtime) -> None:
    limited = workload(python(workloads.SERVER, "{socket}", limits=ResourceLimits(processes=60)))
    await running(runtime, limited)
    mark = marker()
    result = await attempt(runtime, BOMB, mark)
    assert result.timed_out
    assert processes_of(mark) == []
    assert (await runtime.exec("w1", ["echo", "room again"])).output == b"room again\n"


async def test_memory_without_end_ends_the_command_and_not_the_ide(runtime: Runtime) -> None:
    limited = workload(python(workloads.SERVER, "{socket}", limits=ResourceLimits(memory_mb=160)))
    before = await running(runtime, limited)
    mark = marker()
    result = await attempt(runtime, workloads.HOG, mark, seconds=30)
    assert result.exit_code != 0
    assert not result.timed_out
    assert processes_of(mark) == []
    assert await runtime.container("w1") == before


async def test_a_command_ends_with_the_process_that_asked_for_it(
    runtime: Runtime, folder: pathlib.Path, kind: str
) -> None:
    """A coordinator that is killed leaves no check running, which its successor's would meet."""
    await running(runtime, workload(server()))
    mark = marker()
    caller = await asyncio.create_subprocess_exec(sys.executable, "-c", KILLED_CALLER, str(folder), kind, mark)

    async def both_sleep() -> bool:
        return len(processes_of(mark)) >= 3

    await until(both_sleep)
    caller.send_signal(signal.SIGKILL)
    await caller.wait()
    await gone(mark)
    assert processes_of(mark) == []
    assert await runtime.container("w1") is not None  # the IDE goes on


async def test_a_command_that_nobody_waits_for_any_more_ends(runtime: Runtime) -> None:
    await running(runtime, workload(server()))
    mark = marker()
    command = ["env", mark, "sh", "-c", "setsid sleep 1000 & sleep 1000"]
    asked = asyncio.create_task(runtime.exec("w1", command, contained=True))

    async def both_sleep() -> bool:
        return len(processes_of(mark)) >= 3

    await until(both_sleep)
    asked.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asked
    await gone(mark)


async def test_a_contained_command_is_otherwise_like_any_other(runtime: Runtime) -> None:
    await running(runtime, workload(server()))
    shown = await runtime.exec(
        "w1", ["sh", "-c", "cat; whoami; pwd; yes | head -1; exit 4"], stdin=b"given\n", contained=True
    )
    assert shown.output.split() == [b"given", b"alice", b"/home/alice", b"y"]
    assert (shown.exit_code, shown.timed_out, shown.truncated) == (4, False, False)
    assert (await runtime.exec("w1", ["no-such-command"], contained=True)).exit_code == 127
    background = await runtime.exec("w1", ["sh", "-c", "sleep 0.2 & wait; kill -9 $$"], contained=True)
    assert background.exit_code == 137


async def test_where_nothing_keeps_workspaces_apart_a_command_is_contained_as_well() -> None:
    """As an ordinary user without namespaces: by adopting those who fork away."""
    async with fresh_runtime("none") as (runtime, _):
        await running(runtime, workload(server()))
        for script in (DAEMON, STUBBORN):
            mark = marker()
            await attempt(runtime, script, mark)
            assert processes_of(mark) == []
