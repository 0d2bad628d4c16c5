from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime
from enum import StrEnum
from typing import Any


class SessionStatus(StrEnum):
    SCHEDULED = "SCHEDULED"
    IN_PROGRESS = "IN_PROGRESS"
    COMPLETED = "COMPLETED"
    SKIPPED = "SKIPPED"
    CANCELED = "CANCELED"


class RunStatus(StrEnum):
    RUNNING = "RUNNING"
    COMPLETED = "COMPLETED"
    ABANDONED = "ABANDONED"


class EndReason(StrEnum):
    COMPLETED = "completed"
    INACTIVE = "inactive"
    BY_LEARNER = "by_learner"
    SESSION_SKIPPED = "session_skipped"
    SESSION_CANCELED = "session_canceled"


@dataclass(frozen=True)
class Session:
    """A part of a plan: what is to be learnt, and on which day."""

    id: str
    plan_id: str
    position: int
    key: str
    title: str
    scheduled_for_date: date
    blueprint_hash: str
    status: SessionStatus
    changed_at: datetime
    run_id: str | None  # of its running run
    view_hash: str  # of what its learner sees of the blueprint; the only one that is shown


@dataclass(frozen=True)
class Plan:
    """One learner's dated list of sessions."""

    id: str
    owner: str  # name
    owner_id: str
    title: str
    created_by: str  # name
    created_at: datetime
    course_id: str | None
    course_version: int | None
    starts_on: date | None
    progress: Mapping[SessionStatus, int]  # how many of its sessions are so; every status is named
    sessions: tuple[Session, ...] = ()  # in their order; a list of plans leaves them out


@dataclass(frozen=True)
class Run:
    """One attempt at a session."""

    id: str
    session_id: str
    plan_id: str
    owner: str  # name
    owner_id: str
    status: RunStatus
    step_index: int  # to be done next
    fence: int
    blueprint_hash: str
    predecessor_id: str | None
    workspace_id: str | None
    started_at: datetime
    last_activity_at: datetime
    ended_at: datetime | None
    end_reason: EndReason | None
    end_note: str | None
    snapshot: Any = None  # the state of the last step that was completed
    view_hash: str | None = None  # as of a session; None where nothing asks for it
    inherits_from: str | None = None  # the run that has what was saved before `first_step`
    first_step: int = 0
    snapshot_bytes: int = 0  # of all that was saved, the inherited too
    step: str | None = None  # the kind of the step to be done next; None after the last, and where nothing asks for it

    @property
    def is_recovery(self) -> bool:
        """Was it taken up again since it began? Each time gives it a higher fence."""
        return self.fence > 1


@dataclass(frozen=True)
class Snapshot:
    """What was saved when a step was completed."""

    step_index: int
    state: Any
    at: datetime


@dataclass(frozen=True)
class Tries:
    """Of a CHECK or PRACTICE that was not passed: how often, and what the last one said."""

    step_index: int
    count: int
    last_at: datetime
    last_result: Mapping[str, Any]  # `wrong` and `answers`, or `failed` and `checks`


@dataclass(frozen=True)
class CheckResult:
    """How one check of a PRACTICE went."""

    id: str
    title: str
    passed: bool
    output: str = ""
    hint: str | None = None  # only of one that did not pass
    timed_out: bool = False
    truncated: bool = False  # more was printed than is kept, which is the end of it
    left_out: int = 0  # bytes before that


@dataclass(frozen=True)
class StoredAnswer:
    """What a request with an idempotency key was answered."""

    fingerprint: bytes
    status: int
    body: str
    created_at: datetime


@dataclass(frozen=True)
class Keyed:
    """What is there of a request's idempotency key, and of the same person's others."""

    answer: StoredAnswer | None  # of an earlier request with this key
    live: int  # keys that stand for an answer, counted up to their bound and where one would be added


@dataclass(frozen=True)
class StartView:
    """What a start is decided from, read by one statement but for the run to resume from."""

    session: Session
    owner: str
    owner_id: str
    running: Run | None
    resumable: Run | None  # the run that the request wants to resume from, if it is one of this session
    latest_id: str | None  # of the session's runs
