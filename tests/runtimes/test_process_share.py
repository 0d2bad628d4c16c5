"""From inside a workspace: memory, processes, log, pipes; by control groups or by the shepherd's watch."""

import asyncio
import os
import pathlib
from collections.abc import AsyncIterator

import pytest

from codehub.archives import model, process
from codehub.runtimes import records
from codehub.runtimes.process import ProcessRuntime
from codehub.runtimes.shepherd.descriptor_watch import DescriptorWatch
from codehub.runtimes.shepherd.log_rate import LogRate
from codehub.runtimes.shepherd.members import Members
from codehub.templates.model import ResourceLimits
from tests.contracts.harness import KINDS, fresh_runtime, running, until
from tests.contracts.workloads import python, server, workload

SORTS = [KINDS[-1], *(pytest.param(kind, marks=pytest.mark.soak) for kind in KINDS[:-1])]
AS_ROOT = os.geteuid() == 0
# Each ends somewhere, should nobody end it.
HOG = """
import time
kept = []
for _ in range(150):
    kept.append(b"x" * (8 << 20)); time.sleep(0.01)
"""
UNMAPPED = """
import os, time
fd = os.memfd_create("hidden")
for _ in range(150):
    os.write(fd, bytes(8 << 20)); time.sleep(0.02)
time.sleep(20)
"""
SHARED = """
import mmap, time
held = []
for _ in range(150):
    held.append(mmap.mmap(-1, 8 << 20)); held[-1].write(b"x" * (8 << 20)); time.sleep(0.02)
time.sleep(20)
"""
# Looking at all of these descriptors takes a while, which is no time to take memory in.
BEHIND_MANY = """
import os, time
for number in range(4):
    if os.fork() == 0:
        fd = os.memfd_create("many"); os.write(fd, bytes(40 << 20))
        try:
            while True: os.dup(fd)
        except OSError: pass
        time.sleep(60); os._exit(0)
time.sleep(3)
kept = []
for _ in range(60):
    kept.append(b"x" * (8 << 20)); time.sleep(0.01)
time.sleep(20)
"""
FORKS = """
import os, time
made = 0
try:
    while made < 400:
        if os.fork() == 0: time.sleep(60); os._exit(0)
        made += 1
except OSError as e: print("refused", flush=True)
time.sleep(3)
"""
SHOUT = """
import os, time
line = b"x" * 99 + b"\\n"
written = 0
end = time.monotonic() + 3
while time.monotonic() < end: written += os.write(1, line * 100)
open("written", "w").write(str(written))
time.sleep(1000)
"""
CONNECTIONS = """
import socket
server = socket.create_server(("127.0.0.1", 0), backlog=1000)
held, total, piece = [], 0, bytes(1 << 20)
while total < 700 << 20 and len(held) < 400:
    client = socket.create_connection(server.getsockname())
    held.append((client, server.accept()))
    client.setblocking(False)
    try:
        while True: total += client.send(piece)
    except BlockingIOError: pass
print(total >> 20)
"""
FOLDERS = """
import os
os.makedirs("/run/ide/x/y"); os.chmod("/run/ide/x", 0); os.chmod(os.environ["HOME"], 0)
"""
DESCRIPTORS = """
import os, time
held = [os.dup(0) for _ in range(2000)]
open("said", "w")
time.sleep(50)
"""
PIPES = """
import fcntl, os, time
held = []
try:
    for _ in range(2000):
        pair = os.pipe(); held.append(pair); fcntl.fcntl(pair[0], 1031, 1 << 20)
except OSError: pass
open("said", "w")
time.sleep(50)
"""


@pytest.fixture(params=SORTS)
async def runtime(request: pytest.FixtureRequest) -> AsyncIterator[ProcessRuntime]:
    async with fresh_runtime(request.param) as (runtime, _):
        yield runtime


@pytest.mark.parametrize("script", [HOG, UNMAPPED, SHARED, BEHIND_MANY], ids=["own", "unnamed", "shared", "many"])
async def test_a_program_that_takes_too_much_memory_is_ended_and_the_ide_is_not(
    runtime: ProcessRuntime, script: str
) -> None:
    await running(runtime, workload(server(limits=ResourceLimits(memory_mb=200))))
    assert (await runtime.exec("w1", ["python3", "-c", script], timeout_seconds=90)).exit_code == 137
    # The kernel, where it does this, does not see who holds a file without a name, and may end the IDE first.
    assert "w1" in await runtime.containers() or (AS_ROOT and script in {UNMAPPED, SHARED, BEHIND_MANY})


async def test_a_program_that_forks_without_end_stops_at_the_limit(runtime: ProcessRuntime) -> None:
    await running(runtime, workload(server(limits=ResourceLimits(processes=60))))
    result = await runtime.exec("w1", ["python3", "-c", FORKS], timeout_seconds=90)
    assert b"refused" in result.output or result.exit_code == 137
    assert "w1" in await runtime.containers()


async def test_a_log_that_comes_too_fast_makes_its_writer_wait(runtime: ProcessRuntime) -> None:
    """In three seconds a burst of the log's own size and what the rate allows: not gigabytes through the shepherd."""
    rate_kb = 256
    await runtime.create_volume("w1", "g1")
    await runtime.start(workload(python(SHOUT, limits=ResourceLimits(log_kb_per_second=rate_kb))))
    noted = runtime._layout.of("w1").home / "written"

    async def written() -> int:
        return int(noted.read_text() or 0) if noted.exists() else 0

    assert await until(written, 60) < 20 << 20


def test_a_log_rate_lets_a_burst_pass_and_then_its_rate() -> None:
    rate = LogRate(1000, 5000)
    assert rate.pause() is None
    rate.spend(5000)
    wait = rate.pause()
    assert wait is None or wait > 0
    rate.spend(100_000)
    assert (rate.pause() or 0) > 50
    assert LogRate(0, 1).pause() is None


async def test_a_home_is_packed_when_all_large_pipes_are_taken(runtime: ProcessRuntime, tmp_path: pathlib.Path) -> None:
    """An ordinary user's workspaces share the user's pipes with the platform; as root they do not."""
    await running(runtime, workload(server()))
    holding = asyncio.create_task(runtime.exec("w1", ["python3", "-c", PIPES], timeout_seconds=60))
    said = runtime._layout.of("w1").home / "said"

    async def taken() -> bool:
        return said.exists()

    await until(taken)
    (tmp_path / "file").write_bytes(b"content")
    async with process.packing(tmp_path, model.no_progress) as worker:
        assert [piece async for piece in worker.output()]
    holding.cancel()
    await asyncio.gather(holding, return_exceptions=True)


async def test_what_lies_in_connections_is_memory_too(runtime: ProcessRuntime) -> None:
    """By control groups only: an ordinary user's platform has nothing that could hold it."""
    await running(runtime, workload(server(limits=ResourceLimits(memory_mb=256))))
    result = await runtime.exec("w1", ["python3", "-c", CONNECTIONS], timeout_seconds=90)
    if AS_ROOT and "memory" in (await runtime.limits()).controllers:
        assert result.exit_code == 137 or int(result.output) < 400, result.output


async def test_programs_of_the_home_do_not_set_the_limits(runtime: ProcessRuntime) -> None:
    await running(runtime, workload(server(limits=ResourceLimits(processes=60))))
    for name in ("prlimit", "setpriv"):
        await runtime.put("w1", {f".local/bin/{name}": b"#!/bin/sh\necho of the home >&2\nexit 1\n"})
    assert (await runtime.exec("w1", ["sh", "-c", "chmod 755 .local/bin/*"])).exit_code == 0
    await runtime.stop("w1", 0)
    await running(runtime, workload(server(limits=ResourceLimits(processes=60))))
    assert b"of the home" not in b"".join([piece async for piece in runtime.logs("w1")])


async def test_folders_that_were_closed_do_not_stop_the_next_start(runtime: ProcessRuntime) -> None:
    await running(runtime, workload(server()))
    assert (await runtime.exec("w1", ["python3", "-c", FOLDERS])).exit_code == 0
    await runtime.stop("w1", 0)
    await running(runtime, workload(server()))
    assert (await runtime.exec("w1", ["touch", "note"])).exit_code == 0


async def test_no_workspace_fills_the_machines_table_of_open_files(
    runtime: ProcessRuntime, tmp_path: pathlib.Path
) -> None:
    """By a figure for the machine that makes 2000 too many: its own table is everybody's."""
    await running(runtime, workload(server()))
    holding = asyncio.create_task(runtime.exec("w1", ["python3", "-c", DESCRIPTORS], timeout_seconds=60))
    said, table = runtime._layout.of("w1").home / "said", tmp_path / "file-nr"

    async def taken() -> bool:
        return said.exists()

    await until(taken)
    record = records.read(runtime._layout.of("w1"))
    assert record
    watch = DescriptorWatch(Members(record.first.pid, plain=False), lambda _: None, str(table))
    table.write_text("1000 0 30000")
    watch.look()  # there is room for all
    assert not holding.done()
    table.write_text("20000 0 30000")
    watch.look()
    assert (await holding).exit_code == 137
    assert "w1" in await runtime.containers()


async def test_limits_are_really_on_what_runs(runtime: ProcessRuntime) -> None:
    limits = ResourceLimits(open_files=256, disk_mb=100, cpus=0.5, cpu_weight=50)
    await running(runtime, workload(server(limits=limits)))
    seen = await runtime.exec("w1", ["cat", "/proc/2/limits", "/proc/self/limits"])
    rows = [line.split() for line in seen.output.decode().splitlines()]
    assert [row[3:5] for row in rows if row[:2] == ["Max", "open"]] == [["256", "256"]] * 2
    assert [row[4] for row in rows if row[:3] == ["Max", "file", "size"]] == [str(100 << 20)] * 2
    record = records.read(runtime._layout.of("w1"))
    assert record
    quota = [pathlib.Path(group) / name for group in record.groups for name in ("cpu.cfs_quota_us", "cpu.max")]
    found = [path.read_text().split()[0] for path in quota if path.exists()]
    assert found == (["50000"] if found or AS_ROOT else [])
