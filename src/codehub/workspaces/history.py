"""What a workspace's history can say: one class for each code, with the data that it carries.

The services, the reconciler and retention hand one to `store.note`; statements that write many lines at once name the
same codes (a test compares them). No sentence is kept: `i18n.history` makes it for the reader, in their language.
"""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from datetime import datetime
from typing import Any, ClassVar

from codehub.workspaces.model import Desired, DesiredBy, FetchCause, Operation, Reason, Work

CODES: dict[str, type["Record"]] = {}


class Record:
    """`event` is the name that clients of the API know it by; it may be made of fields."""

    code: ClassVar[str]
    event_form: ClassVar[str]

    def __init_subclass__(cls, *, code: str = "", event: str = "") -> None:
        if code:  # else it is what several have in common
            cls.code, cls.event_form = code, event
            CODES[code] = cls

    def data(self) -> dict[str, Any]:
        found = {name: getattr(self, name) for name in names(type(self))}
        return {name: v.isoformat() if isinstance(v, datetime) else v for name, v in found.items()}


def names(kind: type[Record]) -> tuple[str, ...]:
    """Of the data that it carries."""
    return tuple(field.name for field in fields(kind))  # type: ignore[arg-type]  # every one is a dataclass


def event(code: str, data: Mapping[str, Any]) -> str:
    """The stable name that the API gives it; of a code that this version does not know, the code."""
    return CODES[code].event_form.format_map(data) if code in CODES else code


@dataclass(frozen=True)
class Note(Record, code="note", event="{event}"):
    """Written before there were codes, and not recognised."""

    event: str
    text: str


# --- asked for ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Created(Record, code="created", event="created"):
    desired_state: Desired


@dataclass(frozen=True)
class StartRequested(Record, code="start_requested", event="wish"):
    by: DesiredBy


@dataclass(frozen=True)
class SleepRequested(Record, code="sleep_requested", event="wish"):
    by: DesiredBy


@dataclass(frozen=True)
class ArchiveRequested(Record, code="archive_requested", event="wish"):
    by: DesiredBy


@dataclass(frozen=True)
class Woken(Record, code="woken", event="wish"):
    """A client came to it while it slept."""


@dataclass(frozen=True)
class OwnerDeactivated(Record, code="owner_deactivated", event="wish"):
    pass


@dataclass(frozen=True)
class DeleteRequested(Record, code="delete_requested", event="delete"):
    pass


@dataclass(frozen=True)
class PurgeRequested(Record, code="purge_requested", event="purge"):
    pass


@dataclass(frozen=True)
class UndeleteRequested(Record, code="undelete_requested", event="undelete"):
    pass


@dataclass(frozen=True)
class RecoverRequested(Record, code="recover_requested", event="recover"):
    pass


@dataclass(frozen=True)
class RestoreRequested(Record, code="restore_requested", event="restore"):
    created_at: datetime  # of the restore point
    archive_key: str


@dataclass(frozen=True)
class ArchiveRestoreRequested(Record, code="archive_restore_requested", event="restore"):
    """Back to its own archive, which is not among the restore points."""

    archive_key: str


@dataclass(frozen=True)
class Shared(Record, code="shared", event="shared"):
    user: str


@dataclass(frozen=True)
class Unshared(Record, code="unshared", event="unshared"):
    user: str


@dataclass(frozen=True)
class GuestDeactivated(Record, code="guest_deactivated", event="unshared"):
    user: str


@dataclass(frozen=True)
class Entered(Record, code="entered", event="entered"):
    """By an admin, whom the owner did not ask."""


@dataclass(frozen=True)
class Downloaded(Record, code="downloaded", event="downloaded"):
    """In the same way."""


@dataclass(frozen=True)
class Held(Record, code="held", event="hold"):
    """By `codehub hold`, from inside."""

    purpose: str | None  # in the user's own words


@dataclass(frozen=True)
class SwapRequested(Record, code="swap_requested", event="swap"):
    """It is to start in the place of another one, which goes to sleep for it."""

    other: str  # its name


@dataclass(frozen=True)
class SwapExpired(Record, code="swap_expired", event="swap over"):
    """The other one did not sleep in time, or this one could not be started then."""

    other: str


@dataclass(frozen=True)
class FetchRequested(Record, code="fetch_requested", event="fetch"):
    """A git repository is to be cloned into it."""

    url: str
    branch: str | None


# --- by timers ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class IdleSleep(Record, code="idle_sleep", event="wish"):
    idle_since: datetime
    seconds: int


@dataclass(frozen=True)
class IdleArchive(Record, code="idle_archive", event="wish"):
    asleep_since: datetime
    seconds: int


@dataclass(frozen=True)
class WorkResumed(Record, code="work_resumed", event="kept awake"):
    """A timer had asked it to sleep, and its user came back before that began."""

    active_at: datetime


@dataclass(frozen=True)
class KeptAwake(Record, code="kept_awake", event="kept awake"):
    """No person typed, and it computed: one line for a stretch of that, whose end moves."""

    work: Work
    idle_since: datetime
    until: datetime
    seconds: int  # between the two


@dataclass(frozen=True)
class StartedForLesson(Record, code="started_for_lesson", event="wish"):
    """By a schedule of its owner's class, before the lesson began."""

    title: str  # of the class
    weekday: str
    time: str  # on the lesson's wall


@dataclass(frozen=True)
class LeftOutOfLesson(Record, code="left_out_of_lesson", event="left out"):
    """It was to be started in the same way."""

    title: str
    weekday: str
    time: str
    outcome: str  # why not: of `schedules.model.StartOutcome`


# --- by the controller ----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class OperationBegun(Record, code="operation_begun", event="{operation} begins"):
    operation: Operation
    plan: str  # the code of the rule, in `rules.PLANS`
    op_id: str


@dataclass(frozen=True)
class Done(Record):
    """An operation was observed to be complete."""

    op_id: str | None


@dataclass(frozen=True)
class Provisioned(Done, code="provisioned", event=Operation.PROVISIONING):
    pass


@dataclass(frozen=True)
class Restored(Done, code="restored", event=Operation.RESTORING):
    pass


@dataclass(frozen=True)
class Started(Done, code="started", event=Operation.STARTING):
    pass


@dataclass(frozen=True)
class StartedCold(Record, code="started_cold", event="started cold"):
    """Its template wants warm starts."""

    cold: str  # one of `runtimes.base.Cold`


@dataclass(frozen=True)
class Stopped(Done, code="stopped", event=Operation.STOPPING):
    pass


@dataclass(frozen=True)
class Archived(Done, code="archived", event=Operation.ARCHIVING):
    pass


@dataclass(frozen=True)
class Deleted(Done, code="deleted", event=Operation.DELETING):
    pass


@dataclass(frozen=True)
class OperationRetried(Record, code="operation_retried", event="{operation} will be tried again"):
    operation: Operation
    reason: Reason
    message: str  # as the machine said it


@dataclass(frozen=True)
class OperationGivenUp(Record, code="operation_given_up", event="{operation} given up"):
    operation: Operation
    reason: Reason
    message: str


@dataclass(frozen=True)
class IdeEnded(Record, code="ide_ended", event="IDE ended"):
    exit_code: int | None
    log_tail: str


@dataclass(frozen=True)
class IdeGone(Record, code="ide_gone", event="IDE ended"):
    """And has left nothing that says why."""


@dataclass(frozen=True)
class ProblemFound(Record, code="problem_found", event="{reason}"):
    reason: Reason


@dataclass(frozen=True)
class ReadableAgain(Record, code="readable_again", event="readable again"):
    """What the error was about can be read again, so it is over."""


@dataclass(frozen=True)
class FoundSo(Record, code="observed", event="observed"):
    """Outside of any operation."""


@dataclass(frozen=True)
class Fetched(Record, code="fetched", event="fetched"):
    url: str
    folder: str


@dataclass(frozen=True)
class FetchFailed(Record, code="fetch_failed", event="fetch failed"):
    """It runs all the same."""

    url: str
    cause: FetchCause
    message: str  # git's own words


# --- by retention ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class TrashExpired(Record, code="trash_expired", event="emptied"):
    pass


@dataclass(frozen=True)
class Purged(Record, code="purged", event="emptied"):
    pass


@dataclass(frozen=True)
class ArchiveCollected(Record, code="archive_collected", event="archive collected"):
    rule: str  # the code of the rule, in `retention.rules`
    bytes: int
    orphan_since: datetime


@dataclass(frozen=True)
class VolumeCollected(Record, code="volume_collected", event="volume collected"):
    rule: str
    bytes: int
    orphan_since: datetime


COMPLETED: Mapping[Operation, type[Done]] = {
    Operation.PROVISIONING: Provisioned,
    Operation.RESTORING: Restored,
    Operation.STARTING: Started,
    Operation.STOPPING: Stopped,
    Operation.ARCHIVING: Archived,
    Operation.DELETING: Deleted,
}
REQUESTED: Mapping[Desired, type[StartRequested | SleepRequested | ArchiveRequested]] = {
    Desired.RUNNING: StartRequested,
    Desired.STANDBY: SleepRequested,
    Desired.ARCHIVED: ArchiveRequested,
}


def requested(wanted: Desired, by: DesiredBy) -> Record:
    return Woken() if by is DesiredBy.WAKE else REQUESTED[wanted](by)
