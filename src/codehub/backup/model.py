"""What a backup says about itself: the manifest, its last member. And what is known of one that a page asked for."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any, Protocol

SIGNING_KEY = "secrets/signing-key"
ARCHIVES = "archives/"


@dataclass(frozen=True)
class Member:
    """One file in the backup."""

    bytes: int
    sha256: str


@dataclass(frozen=True)
class TableRecord:
    """A table's content as `COPY` text, in the order of its primary key."""

    name: str
    columns: tuple[str, ...]
    rows: int

    @property
    def member(self) -> str:
        return table_member(self.name)


@dataclass(frozen=True)
class HomeRecord:
    """A home that was on the machine, packed as archives are."""

    workspace_id: str
    generation: str
    restored_from: str | None
    parked: bool
    in_use: bool  # it ran meanwhile: each file is as it was when it was read
    moved: int = 0  # entries that changed, vanished or could not be read in that moment
    moved_names: tuple[str, ...] = ()  # some of them, with what happened
    missing: bool = False  # it was destroyed after the rows were read: there is nothing of it here

    @property
    def in_motion(self) -> bool:
        return self.moved > 0 or self.missing


@dataclass(frozen=True)
class Manifest:
    format: int
    codehub: str  # the version that made it, for people
    schema: int  # the newest migration its database had
    created_at: datetime
    members: dict[str, Member]
    tables: tuple[TableRecord, ...]  # parents before the tables that refer to them
    sequences: dict[str, int]  # the number each gives out next
    homes: tuple[HomeRecord, ...] = ()
    missing_archives: tuple[str, ...] = ()  # destroyed after the rows were read


class Progress(Protocol):
    """Who is told how far it is: a bar on a terminal, or a row that a page shows."""

    def expect(self, things: int, size: int) -> None:
        """Before the first one: how many there are, and how many bytes, about."""

    def begin(self, what: str, total: int | None = None) -> None: ...

    def count(self, size: int) -> None: ...


class State(StrEnum):
    """Of a backup that a page asked for."""

    ASKED = "asked"
    RUNNING = "running"
    CANCELLING = "cancelling"
    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"
    DELETING = "deleting"


class Failure(StrEnum):
    """Why there is none; each has a sentence that says what to do."""

    INTERRUPTED = "interrupted"  # the coordinator that made it is gone
    NO_SPACE = "no_space"
    OTHER = "other"


@dataclass(frozen=True)
class Kept:
    id: str
    state: State
    asked_by: str
    asked_at: datetime
    begun_at: datetime | None
    ended_at: datetime | None
    epoch: int | None
    things_done: int
    things: int
    bytes_done: int
    bytes: int
    file_bytes: int | None
    contents: Mapping[str, Any]
    failure: str | None
    detail: str | None

    @property
    def is_open(self) -> bool:
        return self.state in {State.ASKED, State.RUNNING, State.CANCELLING}


def table_member(name: str) -> str:
    return f"tables/{name}.copy"


def archive_member(key: str) -> str:
    return ARCHIVES + key


def home_member(workspace_id: str) -> str:
    return f"homes/{workspace_id}.tar.zst"
