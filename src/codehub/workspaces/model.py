"""Workspaces as the store returns them, and the words their rules use. One enum per machine."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any


class Observed(StrEnum):
    """What there is. The order is the level."""

    DELETED = "DELETED"
    PENDING = "PENDING"
    STANDBY = "STANDBY"
    RUNNING = "RUNNING"

    @property
    def level(self) -> int:
        return {"DELETED": -1, "PENDING": 0, "STANDBY": 10, "RUNNING": 20}[self.value]


class Health(StrEnum):
    OK = "OK"
    ERROR = "ERROR"


class Operation(StrEnum):
    NONE = "NONE"
    PROVISIONING = "PROVISIONING"
    RESTORING = "RESTORING"
    STARTING = "STARTING"
    STOPPING = "STOPPING"
    ARCHIVING = "ARCHIVING"
    DELETING = "DELETING"


class Desired(StrEnum):
    ARCHIVED = "ARCHIVED"
    STANDBY = "STANDBY"
    RUNNING = "RUNNING"

    @property
    def level(self) -> int:
        return {"ARCHIVED": 0, "STANDBY": 10, "RUNNING": 20}[self.value]


class DesiredBy(StrEnum):
    """On whose behalf a state was last asked for: a person by what they are to the workspace, or the platform."""

    USER = "user"
    GUEST = "guest"
    TEACHER = "teacher"
    ADMIN = "admin"
    OPERATOR = "operator"
    WAKE = "wake"
    TTL = "ttl"
    SESSION = "session"
    WAITING_ROOM = "waiting-room"
    SCHEDULE = "schedule"


class Phase(StrEnum):
    PENDING = "PENDING"
    ARCHIVED = "ARCHIVED"
    STANDBY = "STANDBY"
    RUNNING = "RUNNING"
    ERROR = "ERROR"
    DELETED = "DELETED"


class Reason(StrEnum):
    """Why an operation failed."""

    ACTION_FAILED = "ActionFailed"
    UNREACHABLE = "Unreachable"
    START_FAILED = "StartFailed"
    RETRY_EXCEEDED = "RetryExceeded"
    TIMEOUT = "Timeout"
    DATA_LOST = "DataLost"
    IMAGE_NOT_FOUND = "ImageNotFound"
    CONTAINER_WITHOUT_VOLUME = "ContainerWithoutVolume"
    RECORD_UNREADABLE = "RecordUnreadable"
    VOLUME_UNREADABLE = "VolumeUnreadable"
    ARCHIVE_CORRUPTED = "ArchiveCorrupted"
    ARCHIVE_NOT_FOUND = "ArchiveNotFound"


TERMINAL = frozenset(
    {
        Reason.TIMEOUT,
        Reason.DATA_LOST,
        Reason.IMAGE_NOT_FOUND,
        Reason.CONTAINER_WITHOUT_VOLUME,
        Reason.RECORD_UNREADABLE,
        Reason.VOLUME_UNREADABLE,
        Reason.ARCHIVE_CORRUPTED,
        Reason.ARCHIVE_NOT_FOUND,
    }
)
# Errors that are about reading alone: it is looked at again, and they may be over without a person's doing.
UNREADABLE = frozenset({Reason.RECORD_UNREADABLE, Reason.VOLUME_UNREADABLE})


class Work(StrEnum):
    """What a workspace whose user does nothing was found to be doing."""

    KERNEL = "kernel"
    TERMINAL = "terminal"
    PROCESSES = "processes"


@dataclass(frozen=True)
class Workspace:
    id: str
    name: str
    template: str
    owner: str
    created_at: datetime
    updated_at: datetime
    observed_status: Observed
    health_status: Health
    archive_key: str | None
    operation: Operation
    op_id: str | None
    op_started_at: datetime | None
    volume_generation: str | None
    volume_parked: bool
    error_info: Mapping[str, Any] | None
    failures: int
    progress: Mapping[str, Any] | None
    address: Mapping[str, Any] | None
    disk_bytes: int | None
    disk_measured_at: datetime | None
    phase: Phase
    phase_changed_at: datetime
    attention_at: datetime | None
    desired_state: Desired
    desired_by: DesiredBy
    desired_at: datetime
    deleted_at: datetime | None
    purge: bool
    standby_ttl_seconds: int | None
    archive_ttl_seconds: int | None
    keep_awake_until: datetime | None
    last_access_at: datetime
    idle_since: datetime  # the latest of that, the phase's beginning and the request
    keep_awake_reason: str | None = None
    restore_from: str | None = None  # the archive to go back to
    emptied_at: datetime | None = None  # nothing of it is left, also not in the trash
    node: str | None = None  # where its files are; None: nowhere, or not known yet


@dataclass(frozen=True)
class Observation:
    """What was seen of one workspace's resources, at one moment."""

    container: bool = False
    answering: bool = False
    volume: str | None = None  # its generation; a parked one does not count
    restored_from: str | None = None
    parked: str | None = None  # the generation of one that lies in the trash
    record_unreadable: str | None = None  # something of it runs; this is why it cannot be said what
    volume_unreadable: str | None = None  # why it cannot be said which volume there is

    @property
    def unreadable(self) -> str | None:
        return self.record_unreadable or self.volume_unreadable


@dataclass(frozen=True)
class HistoryEntry:
    """A line of a workspace's history; what its code means, and which data it has, is in `history`."""

    id: int
    workspace_id: str
    at: datetime
    actor: str
    code: str
    data: Mapping[str, Any]
    from_state: str | None
    to_state: str | None
    took_seconds: float | None


@dataclass(frozen=True)
class RestorePoint:
    """A verified archive that one can go back to."""

    archive_key: str
    workspace_id: str
    op_id: str
    created_at: datetime
    size: int  # as it is stored
    content_bytes: int  # of all files together
    files: int


class FetchStatus(StrEnum):
    """Of the git repository that a workspace begins with."""

    WAITING = "WAITING"
    RUNNING = "RUNNING"
    DONE = "DONE"
    FAILED = "FAILED"


class FetchCause(StrEnum):
    """Why it was not fetched."""

    NO_GIT = "no_git"
    NO_NETWORK = "no_network"
    TAKEN = "taken"  # there is something of that name in the home
    LOGIN = "login"  # the server asks for one
    NOT_FOUND = "not_found"
    BRANCH = "branch"
    TIME = "time"
    FULL = "full"
    GIT = "git"  # for another reason, in git's own words
    INTERRUPTED = "interrupted"  # by the end of the workspace, or of the process that ran it


@dataclass(frozen=True)
class Repository:
    """As it was asked for, and what became of it."""

    workspace_id: str
    fetch_id: str
    url: str
    branch: str | None
    folder: str  # below the home
    status: FetchStatus
    attempts: int
    cause: FetchCause | None
    said: str | None
    asked_at: datetime
    started_at: datetime | None
    ended_at: datetime | None

    @property
    def is_open(self) -> bool:
        return self.status in {FetchStatus.WAITING, FetchStatus.RUNNING}
