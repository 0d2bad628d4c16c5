"""Starting and ending what runs, through its shepherd. Called by `process`; each step may be killed and repeated."""

import asyncio
import contextlib
import json
import os
import signal
import subprocess

from codehub.runtimes import cgroups, files, launch, records, warm
from codehub.runtimes.base import Cold, RuntimeFailureError, StartFailedError
from codehub.runtimes.layout import WorkspacePaths
from codehub.runtimes.records import Running
from codehub.runtimes.shepherd.spec import Spec
from codehub.runtimes.threads import START, STOP, Threads
from codehub.system.processes import Identity

START_SECONDS = 30.0
KILL_SECONDS = 10.0  # from SIGKILL to dead: only a kernel that waits for a disk needs any
BEGINNING_SECONDS = 15.0  # for a start by somebody else that is under way
ATTEMPTS = 3
# Seen on a busy machine, before anything runs: bubblewrap takes the kernel's answer about its loopback for another's.
# As root we make that network ourselves; as an ordinary user it has to.
PASSING = "bwrap: loopback: "


async def start(spec: Spec, threads: Threads) -> None:
    """Hand over to a shepherd; returns when it has the IDE's process, or had it already."""
    for attempt in range(ATTEMPTS):
        # In a thread: uvloop does not report the end of a process whose own child lives on, which is what shepherds do.
        try:
            said = await threads.run(START, _hand_over, spec)
        except subprocess.TimeoutExpired:
            raise RuntimeFailureError("the start does not come to an end") from None
        trouble = trouble_in(said)
        if not trouble:
            return
        if attempt + 1 == ATTEMPTS or not trouble.startswith(PASSING):
            raise StartFailedError(trouble)


def _hand_over(spec: Spec) -> bytes:
    done = subprocess.run(
        launch.helper("main"),
        input=spec.dumps(),
        capture_output=True,
        env={},
        cwd="/",
        start_new_session=True,
        timeout=START_SECONDS,
        check=False,
    )
    if not done.stdout:
        raise StartFailedError(done.stderr.decode(errors="replace").strip().rpartition("\n")[2] or "no shepherd")
    return done.stdout


def trouble_in(said: bytes) -> str:
    """Of what a shepherd answered; empty when it has the workspace's process."""
    return str(json.loads(said).get("error") or "")


async def start_warm(spec: Spec, kind: warm.Kind, parents: warm.WarmParents, threads: Threads) -> Cold | None:
    """The same by a copy of a warm parent. A reason: nothing was begun."""
    try:
        said = await threads.run(START, parents.hand_over, kind, spec)
    except warm.ParentFailedError as e:
        return e.reason
    except TimeoutError:
        raise RuntimeFailureError("the start does not come to an end") from None
    except OSError:
        said = b""
    if not said:
        raise StartFailedError("the shepherd ended before it answered")
    if cold := json.loads(said).get("cold"):
        return Cold(cold)
    if trouble := trouble_in(said):
        raise StartFailedError(trouble)
    return None


async def stop(paths: WorkspacePaths, grace_seconds: float, threads: Threads) -> None:
    running = await threads.run(STOP, _wait_for_record, paths)
    if running is None:
        return
    if running.alive and grace_seconds > 0:
        running.shepherd.signal(signal.SIGTERM)  # which passes it on to the IDE inside
        await gone(running.first, grace_seconds)
    # The end of a pid namespace's first process is the end of all others in it, and only then is it seen as dead.
    running.first.signal(signal.SIGKILL)
    if not await gone(running.first, KILL_SECONDS):
        raise RuntimeFailureError(f"process {running.first.pid} does not end, not even by SIGKILL")
    if not await gone(running.shepherd, KILL_SECONDS):
        running.shepherd.signal(signal.SIGKILL)
        await gone(running.shepherd, KILL_SECONDS)
    await threads.run(STOP, clear_up, paths, running)


def _wait_for_record(paths: WorkspacePaths) -> Running | None:
    """A start that is under way has the lock, but no record yet: wait until there is one or the other."""
    return records.read(paths) or (
        files.wait_for(lambda: records.read(paths), unless=lambda: files.is_free(paths.lock), seconds=BEGINNING_SECONDS)
    )


async def gone(who: Identity, seconds: float) -> bool:
    """Wait until exactly this process is dead; True when it is."""
    try:
        fd = os.pidfd_open(who.pid)
    except ProcessLookupError:
        return True
    loop = asyncio.get_running_loop()
    ended = asyncio.Event()
    try:
        if not who.alive():  # asked after opening: the descriptor is this process, or it is gone
            return True
        loop.add_reader(fd, ended.set)
        async with asyncio.timeout(seconds):
            await ended.wait()
    except TimeoutError:
        return False
    else:
        return True
    finally:
        loop.remove_reader(fd)
        os.close(fd)


def clear_up(paths: WorkspacePaths, running: Running) -> None:
    """What a shepherd does at its end, for one that could not."""
    if running.alive:
        return
    with contextlib.suppress(RuntimeFailureError), files.locked(paths.lock):
        if not paths.record.exists() or records.read(paths) != running:
            return  # it did
        if not paths.exit_file.exists():
            files.write_whole(paths.exit_file, json.dumps({"code": None, "at": running.started_at.timestamp()}))
        cgroups.remove(running.groups)
        files.remove_tree(paths.socket_dir)
        paths.record.unlink(missing_ok=True)
