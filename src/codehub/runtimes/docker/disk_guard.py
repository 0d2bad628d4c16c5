"""Keeps homes within their limits and the disk from filling up: the engine's volumes have no quota. Run by the leader.

Homes are measured one after the other, at the lowest priority. One beyond its limit ends, with a line in its log; it
can be started again to be emptied, and ends again when it grows instead. Below the platform's reserve of free disk, the
one that writes most ends at once.
"""

import asyncio
import contextlib
import json
import os
import pathlib
import stat
from collections.abc import AsyncIterator, Mapping
from dataclasses import asdict, dataclass
from enum import Enum
from typing import Any

from codehub import logs
from codehub.clock import Clock
from codehub.runtimes import files, limits
from codehub.runtimes.base import RuntimeFailureError
from codehub.runtimes.config import RuntimeConfig
from codehub.runtimes.docker import entering, names
from codehub.runtimes.docker.engine import Engine, labelled, path
from codehub.runtimes.docker.names import Names
from codehub.runtimes.layout import Layout
from codehub.runtimes.shepherd import tree

log = logs.get()
LOOK_SECONDS = 1.0
SHORTEST_REST = 5.0  # between two measurements of one home
PART_OF_A_CORE = 20  # it rests so many times as long as it took
MORE_FILES = 1000  # that a home may get that is too large already
MEASURE_SECONDS = 300.0
LEAST_GROWTH = 4 << 20  # bytes between two looks: who writes less does not fill a disk
MEASURE = 'du -sx --block-size=1 -- "$0"; du -sx --inodes -- "$0"'


@dataclass(frozen=True)
class Amount:
    bytes: int = 0
    files: int = 0


class Free(Enum):
    """Disk of the machine: below twice the platform's reserve we look who takes it, below the reserve one ends."""

    ENOUGH, LITTLE, SHORT = range(3)


def verdict(most: Amount, at_start: Amount, now: Amount) -> str | None:
    """Why a workspace has to end; None: it may go on. 0 = no limit."""
    if most.bytes and now.bytes > max(most.bytes, at_start.bytes + limits.FILE_WHEN_FULL):
        return limits.full(now.bytes, most.bytes)
    if most.files and now.files > max(most.files, at_start.files + MORE_FILES):
        return f"the home is full ({now.files} of {most.files} files): delete what is not needed, then try again"
    return None


def amount_when_full(usage_file: pathlib.Path, most: Amount) -> Amount:
    """What a home had when it was last measured, where that was too much: from there on it may only shrink."""
    try:
        used = Amount(**json.loads(usage_file.read_text(encoding="ascii")))
    except (OSError, ValueError, TypeError):
        return Amount()
    over = (most.bytes and used.bytes > most.bytes) or (most.files and used.files > most.files)
    return used if over else Amount()


@dataclass(frozen=True)
class _Guarded:
    workspace_id: str
    container: str
    first: int  # its first process
    home: str  # on this machine
    most: Amount
    at_start: Amount


class DiskGuard:
    def __init__(self, engine: Engine, own: Names, layout: Layout, config: RuntimeConfig, clock: Clock) -> None:
        self._engine = engine
        self._names = own
        self._layout = layout
        self._config = config
        self._clock = clock
        self._known: dict[str, _Guarded] = {}
        self._due: dict[str, float] = {}
        self._taken: dict[str, tuple[int, int]] = {}

    @contextlib.asynccontextmanager
    async def watching(self) -> AsyncIterator[None]:
        task = asyncio.create_task(self._watch(), name="disk guard")
        try:
            yield
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def _watch(self) -> None:
        while True:
            try:
                await self.look()
            except (RuntimeFailureError, OSError) as e:
                log.warning("Homes could not be measured", error=str(e))
            await self._clock.sleep(LOOK_SECONDS)

    async def look(self) -> None:
        running = await self._running()
        free = await asyncio.to_thread(self._free, running[0].home) if running else Free.ENOUGH
        if free is not Free.ENOUGH:
            await self.compare(running, end=free is Free.SHORT)
        waiting = [one for one in running if self._due.get(one.container, 0.0) <= self._clock.monotonic()]
        for one in waiting[:1]:  # the disk is looked at between two
            await self.measure(one)

    async def compare(self, running: list[_Guarded], *, end: bool) -> None:
        """Who has taken most since the last look. By the size of homes, and by what processes wrote: to files without a
        name, too, but not by processes that have ended. Of one that is seen for the first time nothing can be said.
        """
        before = self._taken
        self._taken = {one.container: await self._take(one, before.get(one.container)) for one in running}
        grown = {
            id_: max(size - before[id_][0], written - before[id_][1])
            for id_, (size, written) in self._taken.items()
            if id_ in before
        }
        most = max(running, key=lambda one: grown.get(one.container, 0))
        if end and grown.get(most.container, 0) >= LEAST_GROWTH:
            await self._end(most, "the disk of this machine is nearly full, and this workspace wrote most to it")

    async def _take(self, one: _Guarded, before: tuple[int, int] | None) -> tuple[int, int]:
        """Bytes of its home, as far as they can be measured, and bytes written."""
        measured = await _measured(one.home)
        unmeasured = before[0] if before else 1 << 62  # so that the next look finds no growth in it
        return measured.bytes if measured else unmeasured, await asyncio.to_thread(_written, one.first)

    async def measure(self, one: _Guarded) -> None:
        began = self._clock.monotonic()
        now = await _measured(one.home)
        took = self._clock.monotonic() - began
        self._due[one.container] = began + took + max(SHORTEST_REST, took * PART_OF_A_CORE)
        if now is None:
            return
        usage = self._layout.of(one.workspace_id).usage_file
        with contextlib.suppress(FileNotFoundError):  # it has just been deleted
            await asyncio.to_thread(files.write_whole, usage, json.dumps(asdict(now)))
        if reason := verdict(one.most, one.at_start, now):
            await self._end(one, reason)

    def _free(self, home: str) -> "Free":
        reserved, reserved_files = limits.reserve(self._config, pathlib.Path(home))
        found = os.statvfs(home)
        free, files_ = found.f_bavail * found.f_frsize, found.f_favail if found.f_files else reserved_files * 2
        if free < reserved or files_ < reserved_files:
            return Free.SHORT
        return Free.LITTLE if free < reserved * 2 or files_ < reserved_files * 2 else Free.ENOUGH

    async def _end(self, one: _Guarded, reason: str) -> None:
        log.warning("A workspace is ended because of the disk", workspace=one.workspace_id, reason=reason)
        await asyncio.to_thread(_say, one, f"\n[codehub] {reason}\n")
        await self._engine.call("POST", path("containers", one.container, "kill"), missing=True)

    async def _running(self) -> list[_Guarded]:
        filters = labelled(self._names.ours, f"{names.ROLE}={names.IDE}", status=["running"])
        listed = {str(one["Id"]) for one in await self._engine.call("GET", "/containers/json", filters=filters)}
        for table in (self._known, self._due):
            for gone in table.keys() - listed:
                del table[gone]
        for new in listed - self._known.keys():
            info = await self._engine.call("GET", path("containers", new, "json"), missing=True)
            if info and (one := _guarded(info)):
                self._known[new] = one
        return list(self._known.values())


def _guarded(info: Mapping[str, Any]) -> _Guarded | None:
    labels, pid = info["Config"]["Labels"], int(info["State"]["Pid"])
    home = next((mount for mount in info["Mounts"] if mount["Destination"] == f"/home/{labels.get(names.USER)}"), None)
    if home is None or not pid:
        return None
    numbers = [labels.get(label, "") for label in (names.DISK_BYTES, names.DISK_FILES, *names.AT_START)]
    size, count, *before = (int(text) if text.isdigit() else 0 for text in numbers)
    return _Guarded(
        labels[names.WORKSPACE], info["Id"], pid, home["Source"], Amount(size, count), Amount(before[0], before[1])
    )


async def _measured(home: str) -> Amount | None:
    process = await asyncio.create_subprocess_exec(
        *("nice", "-n", "19", "sh", "-c", MEASURE, home),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,  # files that vanish meanwhile
        start_new_session=True,
    )
    try:
        async with asyncio.timeout(MEASURE_SECONDS):
            output, _ = await process.communicate()
    except TimeoutError:
        return None
    finally:
        if process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, 9)
            await process.wait()
    try:
        size, count = (int(line.split()[0]) for line in output.splitlines())
    except (ValueError, IndexError):
        return None
    return Amount(size, count)


def _written(first: int) -> int:
    """Bytes that the living processes of a workspace have written, or are about to."""
    return sum(_written_by(pid) for pid in (first, *tree.descendants(first)))


def _written_by(pid: int) -> int:
    try:
        lines = pathlib.Path(f"/proc/{pid}/io").read_text(encoding="ascii").splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) for line in lines if line.startswith("write_bytes:")), 0)


def _say(one: _Guarded, text: str) -> None:
    """Into the container's own log, where people look: the pipe that its first process writes to, and nothing else."""
    with contextlib.suppress(OSError):
        fd = os.open(f"/proc/{one.first}/fd/1", os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            if stat.S_ISFIFO(os.fstat(fd).st_mode) and entering.is_of(one.first, one.container):
                os.write(fd, text.encode())
        finally:
            os.close(fd)
