"""What a shepherd wrote down, as the runtime reads it: who runs, since when, where; how the last one ended."""

import os
import pathlib
import stat
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import msgspec

from codehub import ids
from codehub.runtimes import files
from codehub.runtimes.base import Address, Container, Found, UnreadableError
from codehub.runtimes.layout import Layout, WorkspacePaths
from codehub.runtimes.shepherd.spec import HOST_NETWORK
from codehub.system.processes import Identity

# What a damaged file of ours can do to its reader: not JSON, not of our shape, out of range, nested without end.
UNREADABLE = (OSError, ValueError, TypeError, KeyError, OverflowError, RecursionError, msgspec.MsgspecError)
LARGEST = 65_536  # bytes: ours have a few hundred
LARGEST_PID = 2**31 - 1


@dataclass(frozen=True)
class Running:
    """One workspace that runs, or ran until a moment ago: `alive` tells."""

    workspace_id: str
    shepherd: Identity
    first: Identity  # its end is the end of everything inside
    isolation: str
    address: Address
    started_at: datetime
    uid: int | None
    gid: int | None
    user: str  # its name
    directory: str  # the home, as seen inside
    groups: list[str]
    network: str = HOST_NETWORK  # how it goes out; a record of an earlier version does not say
    rlimits: dict[str, int] = field(default_factory=dict)
    filter: str = ""  # of system calls
    ready: str = "/"  # the path that answers below 500 when it is up

    @property
    def alive(self) -> bool:
        return self.first.alive()

    def container(self) -> Container:
        first = self.first
        return Container(self.workspace_id, f"{first.pid}-{first.started}-{first.boot}", self.address, self.started_at)


def read(paths: WorkspacePaths) -> Running | None:
    """Its record. One that cannot be read counts only while the lock is held: then something of it runs."""
    try:
        return _read(paths.record)
    except UNREADABLE as e:
        files.raise_if_exhausted(e)
        if files.is_free(paths.lock):
            return None
        raise UnreadableError(f"it runs, but its record {paths.record.name} cannot be read: {e}") from e


def load(path: pathlib.Path) -> Any:
    """A file of ours, as JSON without what no other part could keep. Raises one of `UNREADABLE`; never waits."""
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)  # what lies there may be a pipe
    try:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            raise ValueError("it is no file")
        data = os.read(fd, LARGEST + 1)
    finally:
        os.close(fd)
    if len(data) > LARGEST:
        raise ValueError("it is too large")
    if b"\\u0000" in data:
        raise ValueError("it has NUL in it")
    return msgspec.json.decode(data)


def _read(path: pathlib.Path) -> Running | None:
    try:
        values = load(path)
    except FileNotFoundError:
        return None
    values["started_at"] = datetime.fromtimestamp(msgspec.convert(values["started_at"], float), UTC)
    running = msgspec.convert(values, Running)
    if not all(0 < who.pid <= LARGEST_PID for who in (running.shepherd, running.first)):
        raise ValueError("a process is known by its number")
    return running


def read_all(layout: Layout) -> Found[Container]:
    """All that are alive. Costs by how many run: nothing else has a file here."""
    found: Found[Container] = Found()
    for id_ in [path.stem for path in layout.running.glob("*.json") if ids.is_label(path.stem)]:
        try:
            running = read(layout.of(id_))
        except UnreadableError as e:
            found.unreadable[id_] = e.detail
            continue
        if running and running.alive:
            found[id_] = running.container()
    return found


@dataclass(frozen=True)
class Ended:
    code: int | None
    at: float


def read_exit(path: pathlib.Path) -> tuple[int | None, datetime] | None:
    try:
        ended = msgspec.convert(load(path), Ended)
        return ended.code, datetime.fromtimestamp(ended.at, UTC)
    except UNREADABLE as e:
        files.raise_if_exhausted(e)
        return None  # what it says is for people: without it they are told less
