"""What the store returns and the service hands out."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from enum import StrEnum


@dataclass(frozen=True)
class Assignment:
    """A course that a class is given; each learner of the class has a plan of it."""

    id: str
    class_id: str
    course_id: str
    title: str  # of the course, as it is now
    language: str
    starts_on: date
    created_by: str  # name
    created_at: datetime
    ended_at: datetime | None


@dataclass(frozen=True)
class Taught:
    """A class that one teaches, and since when it has a course."""

    id: str
    title: str
    starts_on: date | None  # None: it does not have it


class CellState(StrEnum):
    """How far one learner is with one session."""

    NOT_STARTED = "NOT_STARTED"
    IN_PROGRESS = "IN_PROGRESS"
    FAILING = "FAILING"  # in progress, and the step it is at was tried and not passed
    COMPLETED = "COMPLETED"
    SKIPPED = "SKIPPED"
    CANCELED = "CANCELED"


@dataclass(frozen=True)
class Cell:
    """One learner, one session of an assignment."""

    assignment_id: str
    key: str  # of the course's session
    title: str
    position: int
    plan_id: str
    session_id: str
    state: CellState
    run_id: str | None  # its last
    step_index: int | None  # to be done next, of a running run
    step: str | None  # its kind
    steps: int | None  # how many the run has
    tries: int  # that failed at the step it is at
    check_tries: int  # that failed, of the whole run
    practice_tries: int
    workspace_id: str | None
    hand_id: str | None  # the learner asks for help in this run
    last_activity_at: datetime | None


@dataclass(frozen=True)
class Column:
    """A session of an assigned course."""

    assignment_id: str
    key: str
    title: str


@dataclass(frozen=True)
class LearnerProgress:
    user_id: str
    name: str
    display_name: str
    cells: Mapping[tuple[str, str], Cell]  # by assignment and key
    completed: int
    total: int
    last_activity_at: datetime | None


@dataclass(frozen=True)
class Progress:
    assignments: Sequence[Assignment]
    columns: Sequence[Column]
    learners: Sequence[LearnerProgress]  # by name


@dataclass(frozen=True)
class Hand:
    """A learner's question, from when it was asked until it is answered or taken back; and after that."""

    id: str
    run_id: str
    session_id: str
    plan_id: str
    session_title: str
    owner: str  # name
    owner_id: str
    display_name: str
    step_index: int
    message: str
    raised_at: datetime
    ended_at: datetime | None
    answered_by: str | None  # name
    answer: str | None
    workspace_id: str | None  # of the run

    @property
    def is_open(self) -> bool:
        return self.ended_at is None
