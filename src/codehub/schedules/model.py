"""What the store returns and the service hands out, and the words that the rules use."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime, time
from enum import StrEnum

from codehub.workspaces.model import Phase


class Weekday(StrEnum):
    """In the order of the week."""

    MON = "mon"
    TUE = "tue"
    WED = "wed"
    THU = "thu"
    FRI = "fri"
    SAT = "sat"
    SUN = "sun"


class StartOutcome(StrEnum):
    """What became of one learner's start. All but the first two leave the learner out."""

    STARTED = "started"
    RUNNING = "running"  # it ran already, and is kept awake
    NO_WORKSPACE = "no_workspace"  # or all of theirs are in the trash
    INACTIVE = "inactive"  # a deactivated account
    LEFT = "left"  # is no learner of the class any more
    IN_ERROR = "in_error"
    NO_PLACE = "no_place"  # also while others wait in line
    OWN_LIMIT = "own_limit"
    BUSY = "busy"  # it was being stored away, say, until the lesson had begun
    CANCELED = "canceled"  # a teacher paused or skipped it meanwhile
    MISSED = "missed"  # the platform did not run

    @property
    def is_left_out(self) -> bool:
        return self not in {StartOutcome.STARTED, StartOutcome.RUNNING}


@dataclass(frozen=True)
class Calendar:
    """When lessons begin: the clock on the wall decides, in its time zone."""

    weekdays: tuple[Weekday, ...]
    local_time: time
    time_zone: str
    first_day: date | None = None
    last_day: date | None = None


@dataclass(frozen=True)
class Schedule:
    id: str
    class_id: str
    calendar: Calendar
    for_all: bool  # learners of the class; else those who are named
    created_by: str
    created_at: datetime
    paused_at: datetime | None
    done_through: datetime
    skipped_through: datetime | None
    due_at: datetime | None


@dataclass(frozen=True)
class LastUsed:
    """The workspace that a learner used last."""

    id: str
    name: str
    template: str
    phase: Phase


@dataclass(frozen=True)
class Learner:
    user_id: str
    name: str
    display_name: str
    active: bool
    attends: bool  # as a learner, now
    workspace: LastUsed | None

    @property
    def called(self) -> str:
        return self.display_name or self.name


@dataclass(frozen=True)
class Start:
    """One learner's start for a lesson; `outcome` None: still to be done."""

    name: str
    display_name: str
    outcome: StartOutcome | None
    workspace_id: str | None

    @property
    def called(self) -> str:
        return self.display_name or self.name


@dataclass(frozen=True)
class Lesson:
    begins_at: datetime
    missed: bool
    starts: Sequence[Start] = ()


@dataclass(frozen=True)
class DueStart:
    schedule_id: str
    begins_at: datetime
    user_id: str


@dataclass(frozen=True)
class Planned:
    """A schedule with what a teacher wants to know of it."""

    schedule: Schedule
    learners: Sequence[Learner]
    next_begins_at: datetime | None
    last: Lesson | None  # whose starts have begun most recently
