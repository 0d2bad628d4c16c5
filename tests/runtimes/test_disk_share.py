"""From inside a workspace: how much of the disk can be taken, and that its own person can make room again.

Every attack really runs, slowly enough that a busy machine sees it in time, and ends somewhere should nobody end it.
"""

import contextlib
import os
import pathlib
import subprocess
from collections.abc import AsyncIterator, Iterator

import pytest

from codehub.runtimes.base import ExecResult, StartFailedError
from codehub.runtimes.process import ProcessRuntime
from codehub.templates.model import ResourceLimits
from tests.contracts.harness import KINDS, fresh_runtime, log_has, open_runtime, running, until
from tests.contracts.workloads import server, workload
from tests.places import a_place

AS_ROOT = os.geteuid() == 0
LIMIT_MB, MOST_MB = 64, 2000
# 100 MB a second into new files of 2 MB, in a folder and then another; by as many steps as would be far too many.
FILL = """
import os, sys, time
os.makedirs(sys.argv[1], exist_ok=True)
for number in range(int(sys.argv[2]) // 2):
    with open(f"{sys.argv[1]}/{number}", "wb") as file: file.write(os.urandom(1 << 20) * 2)
    time.sleep(0.02)
"""
UNNAMED = """
import os, time
held = []
for number in range(1000):
    file = open(f"f{number}", "wb", buffering=0); os.unlink(f"f{number}"); held.append(file)
    file.write(bytes(2 << 20)); time.sleep(0.02)
"""
# The same without a descriptor: one page is mapped, or it lies unread in a socket.
MAPPED = """
import ctypes, os, time
map_ = ctypes.CDLL(None).mmap  # Python's own keeps a descriptor
map_.restype = ctypes.c_void_p
map_.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
for number in range(600):
    fd = os.open(f"f{number}", os.O_RDWR | os.O_CREAT); os.unlink(f"f{number}")
    os.write(fd, bytes(2 << 20)); map_(None, 4096, 1, 1, fd, 0)
    os.close(fd); time.sleep(0.02)
"""
OWN_TABLE = """
import ctypes, os, threading, time
def hold():
    assert ctypes.CDLL(None).unshare(0x400) == 0
    for number in range(1000):
        fd = os.open(f"f{number}", os.O_RDWR | os.O_CREAT); os.unlink(f"f{number}")
        os.write(fd, bytes(2 << 20)); time.sleep(0.02)
threading.Thread(target=hold).start()
"""
IN_FLIGHT = """
import os, socket, sys, time
one, other = socket.socketpair()
for number in range(1000):
    free = os.statvfs(".").f_bavail * os.statvfs(".").f_frsize >> 20
    if free < 80: break
    fd = os.open(f"f{number}", os.O_RDWR | os.O_CREAT); os.unlink(f"f{number}")
    os.write(fd, bytes(1 << 20)); socket.send_fds(one, [b"x"], [fd]); os.close(fd)
    time.sleep(0.005 if free > 130 else 0.06)  # slower than what is looked for
    if number % 100 == 99: held = (one, other, globals().get("held")); one, other = socket.socketpair()
time.sleep(60)
"""
MANY = """
import os, time
for number in range(200_000):
    os.close(os.open(f"f{number}", os.O_CREAT | os.O_WRONLY))
    if number % 20 == 0: time.sleep(0.004)
"""
# As fast as it can, in a home that takes long to be measured; done long before that has been done over and over.
BURST = """
import os, time
piece = os.urandom(1 << 20)
for number in range(28):
    with open(f"burst{number}", "wb", buffering=0) as file:
        for _ in range(50): file.write(piece)
time.sleep(15)
"""
CLOSED = """
import os, time
for number in range(1000):
    os.mkdir(f"d{number}")
    with open(f"d{number}/file", "wb", buffering=0) as file:
        os.chmod(f"d{number}", 0)
        file.write(os.urandom(1 << 20) * 2)
    time.sleep(0.02)
"""
KILLED = 137


# What a machine would choose; the other one in `make soak`.
SORTS = [KINDS[-1], *(pytest.param(kind, marks=pytest.mark.soak) for kind in KINDS[:-1])]


@pytest.fixture(params=SORTS)
async def runtime(request: pytest.FixtureRequest) -> AsyncIterator[ProcessRuntime]:
    async with fresh_runtime(request.param) as (runtime, _):
        yield runtime


async def _run(runtime: ProcessRuntime, script: str, *arguments: str) -> ExecResult:
    return await runtime.exec("w1", ["python3", "-c", script, *arguments], timeout_seconds=120)


async def _still_serves_and_can_be_emptied(runtime: ProcessRuntime, folder: str = ".") -> None:
    assert "w1" in await runtime.containers()
    assert (await runtime.exec("w1", ["find", folder, "-type", "f", "-delete"])).exit_code == 0
    assert (await runtime.exec("w1", ["sh", "-c", "echo saved > note && cat note"])).output == b"saved\n"


@pytest.mark.parametrize("folder", ["data", "/run/ide/data"])
async def test_a_home_and_its_sockets_folder_do_not_grow_beyond_their_limit(
    runtime: ProcessRuntime, folder: str
) -> None:
    await running(runtime, workload(server(limits=ResourceLimits(disk_mb=LIMIT_MB))))
    assert (await _run(runtime, FILL, folder, str(MOST_MB))).exit_code == KILLED
    assert b"can be emptied" in await log_has(runtime, "w1", b"ended: its home is at its limit")
    await _still_serves_and_can_be_emptied(runtime, folder)


async def test_many_files_do_not_hide_a_burst_from_the_limit(runtime: ProcessRuntime) -> None:
    """The longer a home takes to be measured, the more could be written until then."""
    await runtime.create_volume("w1", "g1")
    _many_files(runtime._layout.of("w1").home, 20_000)
    await running(runtime, workload(server(limits=ResourceLimits(disk_mb=300))))
    fill = await runtime.exec("w1", ["sh", "-c", "head -c 280M /dev/urandom > first"])
    assert fill.exit_code == 0
    assert (await _run(runtime, BURST)).exit_code == KILLED
    await _still_serves_and_can_be_emptied(runtime, "first")


def _many_files(home: pathlib.Path, count: int) -> None:
    for folder in range(count // 1000):
        (home / f"many{folder}").mkdir()
        for number in range(1000):
            os.close(os.open(f"{home}/many{folder}/{number}", os.O_CREAT | os.O_WRONLY | os.O_CLOEXEC))


async def test_folders_that_are_closed_count(runtime: ProcessRuntime) -> None:
    await running(runtime, workload(server(limits=ResourceLimits(disk_mb=LIMIT_MB))))
    assert (await _run(runtime, CLOSED)).exit_code == KILLED
    assert await runtime.disk_usage("w1") > LIMIT_MB << 19
    assert (await runtime.exec("w1", ["chmod", "-R", "u+rwx", "."])).exit_code == 0
    await _still_serves_and_can_be_emptied(runtime)


@pytest.mark.parametrize("script", [UNNAMED, OWN_TABLE, MAPPED], ids=["open", "of a thread", "mapped"])
async def test_files_without_a_name_count(runtime: ProcessRuntime, script: str) -> None:
    if script is MAPPED and not AS_ROOT:
        return  # only root is told how large a mapped file is; below the reserve it matters all the same
    await running(runtime, workload(server(limits=ResourceLimits(disk_mb=LIMIT_MB))))
    assert (await _run(runtime, script)).exit_code == KILLED
    await _still_serves_and_can_be_emptied(runtime)


async def test_the_number_of_files_is_limited(runtime: ProcessRuntime) -> None:
    await running(runtime, workload(server(limits=ResourceLimits(files=3000))))
    assert (await _run(runtime, MANY)).exit_code == KILLED
    await _still_serves_and_can_be_emptied(runtime)


async def test_one_file_ends_at_the_limit_whoever_watches(runtime: ProcessRuntime) -> None:
    await running(runtime, workload(server(limits=ResourceLimits(disk_mb=2))))
    script = """
import os
with open("big", "wb", buffering=0) as file:
    try:
        for _ in range(20): file.write(bytes(1 << 20))
    except OSError as e: print(os.strerror(e.errno), file.tell() >> 20)
"""
    assert (await _run(runtime, script)).output == b"File too large 2\n"


async def test_a_home_that_is_too_large_starts_and_can_be_emptied(runtime: ProcessRuntime) -> None:
    await runtime.create_volume("w1", "g1")
    for number in range(40):
        await runtime.put("w1", {f"big{number}": os.urandom(1 << 20)})
    small = workload(server(limits=ResourceLimits(disk_mb=34)))
    await running(runtime, small)
    await log_has(runtime, "w1", b"its limit is 34 MB")
    await runtime.stop("w1", 0)  # measured by now: the next one knows from the beginning
    await running(runtime, small)
    large = await runtime.exec("w1", ["sh", "-c", "trap '' XFSZ; head -c 33M /dev/zero > large"])
    # It came to the end of what a file may have, or was ended on the way there.
    assert b"File too large" in large.output or b"Killed" in large.output
    await _still_serves_and_can_be_emptied(runtime)


@contextlib.contextmanager
def _small_disk(megabytes: int) -> Iterator[pathlib.Path]:
    """A file system of its own, so that it can be filled."""
    with a_place(on_disk=True) as folder:
        image, disk = folder / "image", folder / "disk"
        disk.mkdir()
        with image.open("wb") as file:
            file.truncate(megabytes << 20)
        subprocess.run(["mkfs.ext4", "-q", "-m", "0", image], check=True)
        subprocess.run(["mount", "-o", "loop", image, disk], check=True)
        try:
            yield disk
        finally:
            subprocess.run(["umount", "--lazy", disk], check=True)


@pytest.mark.parametrize("kind", SORTS)
async def test_workspaces_can_not_have_the_platforms_reserve(kind: str) -> None:
    """Without a limit for the home: there is always room left for the database, and nothing starts into it."""
    if not AS_ROOT:
        return  # only root can make a disk to fill
    with _small_disk(1000) as disk:
        runtime = open_runtime(disk / "data", kind)
        for name in ("w1", "w2"):
            await runtime.create_volume(name, "g1")
        try:
            await running(runtime, workload(server(limits=ResourceLimits(disk_mb=0, files=0))))
            with (disk / "others").open("wb") as others:
                os.posix_fallocate(others.fileno(), 0, 700 << 20)
            result = await _run(runtime, FILL, "data", str(MOST_MB))
            free = os.statvfs(disk)
            assert (result.exit_code, free.f_bavail * free.f_frsize > 25 << 20) == (KILLED, True)
            assert b"disk is nearly full" in await log_has(runtime, "w1", b"disk is nearly full")
            with pytest.raises(StartFailedError, match="CODEHUB_DISK_RESERVE_MB"):
                await runtime.start(workload(server(), "w2"))
            await _still_serves_and_can_be_emptied(runtime)
            await until(lambda: _starts(runtime))
        finally:
            for name in ("w1", "w2"):
                await runtime.stop(name, 0)
            await runtime.close()


@pytest.mark.parametrize("kind", SORTS)
async def test_files_that_lie_unread_in_a_socket_do_not_keep_the_reserve(kind: str) -> None:
    """Nobody can count them: once the disk is nearly full and stays so, who holds such ones is ended."""
    if not AS_ROOT:
        return  # only root can make a disk to fill
    with _small_disk(1000) as disk:
        runtime = open_runtime(disk / "data", kind)
        try:
            await running(runtime, workload(server(limits=ResourceLimits(disk_mb=0, files=0))))
            with (disk / "others").open("wb") as others:
                os.posix_fallocate(others.fileno(), 0, 600 << 20)
            await _run(runtime, IN_FLIGHT)
            assert b"held files without a name" in await log_has(runtime, "w1", b"the workspace was ended")
            await until(lambda: _has_room(disk))
        finally:
            await runtime.stop("w1", 0)
            await runtime.close()


async def _has_room(disk: pathlib.Path) -> bool:
    found = os.statvfs(disk)
    return found.f_bavail * found.f_frsize > 200 << 20


async def _starts(runtime: ProcessRuntime) -> bool:
    """Space that was given back is there a moment later."""
    with contextlib.suppress(StartFailedError):
        await runtime.start(workload(server(), "w2"))
        return True
    return False
