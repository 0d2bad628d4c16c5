"""The rules of workspaces: phase, what an observation means, what to do next, when it is done, what may be asked.

Pure and total. The tables of the specification are `PLANS`, `COMBINATIONS` and `VERDICTS`; the tests walk through them
row by row, and the diagrams in the docs are drawn from them.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from codehub.retry import back_off
from codehub.workspaces.model import (
    TERMINAL,
    UNREADABLE,
    Desired,
    Health,
    Observation,
    Observed,
    Operation,
    Phase,
    Reason,
    Workspace,
)

FIRST_RETRY_SECONDS, LONGEST_RETRY_SECONDS = 1.0, 300.0
# An IDE that ran for so long was started well: when it dies later, that is the first failure, not one more.
STEADY = timedelta(seconds=60)


def phase(observed: Observed, health: Health, archive_key: str | None) -> Phase:
    """What people see. The database computes the same; a test compares them over all inputs."""
    if observed is Observed.DELETED:
        return Phase.DELETED
    if health is Health.ERROR:
        return Phase.ERROR
    if observed is Observed.PENDING and archive_key is not None:
        return Phase.ARCHIVED
    return Phase(observed.value)


# --- judge: observation → status and health -------------------------------------------------------------------------


@dataclass(frozen=True)
class Judgement:
    observed: Observed
    problem: Reason | None = None  # something no operation explains: health becomes ERROR


def new_generation(op_id: str, epoch: int) -> str:
    """What a volume is known by: the operation that made it, and the leader who carried that out.

    Two leaders at the same operation make two generations, so that what the later one destroys, an earlier one who was
    stopped and continued cannot make again under the same name.
    """
    return f"{op_id}-{epoch}"


def made_by(op_id: str | None, generation: str) -> bool:
    return generation.partition("-")[0] == op_id


def filter_known(w: Workspace, seen: Observation) -> Observation:
    """What was seen, without volumes of a generation that the row does not know.

    A leader that was stopped and continued may make a volume long after the next leader went on. It is no home, and
    must not be taken for the person's. A first home is the exception: whichever leader makes it, it is empty.
    """
    first = w.operation is Operation.PROVISIONING and not w.volume_parked
    if seen.volume is not None and not is_known(w, seen.volume) and not first:
        seen = replace(seen, volume=None, restored_from=None)
    if seen.parked is not None and not is_known(w, seen.parked):
        seen = replace(seen, parked=None)
    return seen


def is_known(w: Workspace, generation: str) -> bool:
    """Is this the volume that was last seen, or one that the operation under way made?"""
    return generation == w.volume_generation or made_by(w.op_id, generation)


def judge(w: Workspace, seen: Observation) -> Judgement:
    """What an observation means for a workspace in this state. Reality wins over the row."""
    if w.observed_status is Observed.DELETED and w.deleted_at is not None:
        return Judgement(Observed.DELETED)
    if seen.record_unreadable is not None:
        return Judgement(Observed.RUNNING, Reason.RECORD_UNREADABLE)
    if seen.volume_unreadable is not None:
        return Judgement(w.observed_status, Reason.VOLUME_UNREADABLE)
    if seen.container and seen.volume is None:
        return Judgement(Observed.RUNNING, Reason.CONTAINER_WITHOUT_VOLUME)
    if seen.container:
        # A start is over when it answers; until then the workspace is on its way.
        starting = w.operation is Operation.STARTING and not seen.answering
        return Judgement(Observed.STANDBY if starting else Observed.RUNNING)
    if seen.volume is not None:
        half = w.operation is Operation.RESTORING and seen.restored_from != w.archive_key
        return Judgement(Observed.PENDING if half else Observed.STANDBY)
    return Judgement(Observed.PENDING, Reason.DATA_LOST if _lost(w, seen) else None)


def is_news(w: Workspace, seen: Observation) -> bool:
    """Does this observation say anything that the row does not? If not, there is nothing to save."""
    seen = filter_known(w, seen)
    judged = judge(w, seen)
    if (judged.problem is not None and w.health_status is Health.OK) or is_readable_again(w, seen):
        return True
    if w.operation is not Operation.NONE:
        return is_complete(w, seen)
    known = (w.observed_status, w.volume_generation, w.volume_parked)
    return (judged.observed, *volume_after(w, seen, None)) != known


def is_readable_again(w: Workspace, seen: Observation) -> bool:
    """Is its error over, because what could not be read can be? Then it goes on by itself.

    Not where one more would run after that: this needs admission, which a person asks for by recovering it.
    """
    if w.health_status is Health.OK or w.operation is not Operation.NONE or seen.unreadable:
        return False
    fine = replace(w, health_status=Health.OK)
    return _reason(w) in UNREADABLE and (counts_as_running(w) or not counts_as_running(fine))


def _reason(w: Workspace) -> str | None:
    return (w.error_info or {}).get("reason")


def _lost(w: Workspace, seen: Observation) -> bool:
    """The volume is gone, also from the trash, and none of our operations took it."""
    had_volume = w.observed_status in {Observed.STANDBY, Observed.RUNNING} or w.volume_parked
    taken = w.operation is Operation.DELETING or (w.operation is Operation.ARCHIVING and archived_by(w))
    return had_volume and seen.parked is None and not taken and w.health_status is Health.OK


def archived_by(w: Workspace) -> bool:
    """Has the archive of the operation under way been committed to the row?"""
    return w.archive_key is not None and w.op_id is not None and f"/{w.op_id}/" in w.archive_key


# --- plan: what to do next ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Plan:
    """A row of the table: when it applies, and the operation it asks for. History names it by its code."""

    code: str
    when: str
    applies: Callable[[Workspace], bool]
    operation: Operation


def _deleted(w: Workspace) -> bool:
    return w.deleted_at is not None


def _at(w: Workspace, observed: Observed) -> bool:
    return w.observed_status is observed


def _wants_more(w: Workspace) -> bool:
    return w.desired_state.level > w.observed_status.level


PLANS: tuple[Plan, ...] = (
    Plan(
        "is_deleted", "deleted and observed DELETED", lambda w: _deleted(w) and _at(w, Observed.DELETED), Operation.NONE
    ),
    Plan(
        "delete",
        "deleted, and PENDING or in ERROR",
        lambda w: _deleted(w) and (_at(w, Observed.PENDING) or w.health_status is Health.ERROR),
        Operation.DELETING,
    ),
    Plan("stop_deleted", "deleted, RUNNING", lambda w: _deleted(w) and _at(w, Observed.RUNNING), Operation.STOPPING),
    Plan("purge", "deleted with purge, STANDBY", lambda w: _deleted(w) and w.purge, Operation.DELETING),
    Plan("archive_deleted", "deleted, STANDBY", _deleted, Operation.ARCHIVING),
    Plan("in_error", "in ERROR", lambda w: w.health_status is Health.ERROR, Operation.NONE),
    # Whatever state is desired: no one deleted it, and what lies there may be in no archive.
    Plan(
        "unpark",
        "PENDING, its volume in the trash",
        lambda w: _at(w, Observed.PENDING) and w.volume_parked,
        Operation.PROVISIONING,
    ),
    Plan(
        "restore_point",
        "PENDING, wanted above, to go back to a restore point",
        lambda w: _at(w, Observed.PENDING) and _wants_more(w) and w.restore_from is not None,
        Operation.RESTORING,
    ),
    Plan(
        "provision",
        "PENDING, wanted above, no archive",
        lambda w: _at(w, Observed.PENDING) and _wants_more(w) and w.archive_key is None,
        Operation.PROVISIONING,
    ),
    Plan(
        "restore",
        "PENDING, wanted above, archive",
        lambda w: _at(w, Observed.PENDING) and _wants_more(w),
        Operation.RESTORING,
    ),
    # What there is becomes a restore point itself, before an older one takes its place.
    Plan(
        "stop_for_restore",
        "RUNNING, to go back to a restore point",
        lambda w: _at(w, Observed.RUNNING) and w.restore_from is not None,
        Operation.STOPPING,
    ),
    Plan(
        "archive_for_restore",
        "STANDBY, to go back to a restore point",
        lambda w: _at(w, Observed.STANDBY) and w.restore_from is not None,
        Operation.ARCHIVING,
    ),
    Plan(
        "start",
        "STANDBY, wanted RUNNING",
        lambda w: _at(w, Observed.STANDBY) and w.desired_state is Desired.RUNNING,
        Operation.STARTING,
    ),
    Plan(
        "archive",
        "STANDBY, wanted ARCHIVED",
        lambda w: _at(w, Observed.STANDBY) and w.desired_state is Desired.ARCHIVED,
        Operation.ARCHIVING,
    ),
    Plan(
        "stop",
        "RUNNING, wanted below",
        lambda w: _at(w, Observed.RUNNING) and w.desired_state is not Desired.RUNNING,
        Operation.STOPPING,
    ),
)


def plan(w: Workspace) -> tuple[Operation, str]:
    """The operation this workspace needs now, with the code of the rule. One under way is carried on."""
    if w.operation is not Operation.NONE:
        return w.operation, "under_way"
    for row in PLANS:
        if row.applies(w):
            return row.operation, row.code
    return Operation.NONE, "as_desired"


def why_blocked(operation: Operation, seen: Observation) -> str | None:
    """Why nothing can be done to it now: what runs is not known, or nothing is planned but to read its volume."""
    return seen.record_unreadable or (seen.volume_unreadable if operation is Operation.NONE else None)


# --- completion -----------------------------------------------------------------------------------------------------


def is_complete(w: Workspace, seen: Observation) -> bool:
    """Is the operation under way finished, by what was observed?"""
    match w.operation:
        case Operation.NONE:
            return True
        case Operation.PROVISIONING:
            return seen.volume is not None
        case Operation.RESTORING:
            return seen.volume is not None and seen.restored_from == w.archive_key
        case Operation.STARTING:
            return seen.container and seen.answering
        case Operation.STOPPING:
            # Also one that a leader who came late has put aside: the next look takes it back.
            return not seen.container and (seen.volume is not None or seen.parked is not None)
        case Operation.ARCHIVING:
            return archived_by(w) and seen.volume is None and seen.parked is None
        case Operation.DELETING:
            return not seen.container and seen.volume is None


COMPLETES_AS: Mapping[Operation, Observed] = {
    Operation.PROVISIONING: Observed.STANDBY,
    Operation.RESTORING: Observed.STANDBY,
    Operation.STARTING: Observed.RUNNING,
    Operation.STOPPING: Observed.STANDBY,
    Operation.ARCHIVING: Observed.PENDING,
    Operation.DELETING: Observed.DELETED,
}

# Which combinations of status, health and operation exist at all: an invariant of every row.
COMBINATIONS: frozenset[tuple[Observed, Health, Operation]] = frozenset(
    {
        (Observed.PENDING, Health.OK, Operation.NONE),
        (Observed.PENDING, Health.OK, Operation.PROVISIONING),
        (Observed.PENDING, Health.OK, Operation.RESTORING),
        (Observed.PENDING, Health.OK, Operation.DELETING),
        (Observed.STANDBY, Health.OK, Operation.NONE),
        (Observed.STANDBY, Health.OK, Operation.STARTING),
        (Observed.STANDBY, Health.OK, Operation.ARCHIVING),
        (Observed.STANDBY, Health.OK, Operation.DELETING),
        (Observed.RUNNING, Health.OK, Operation.NONE),
        (Observed.RUNNING, Health.OK, Operation.STOPPING),
        (Observed.DELETED, Health.OK, Operation.NONE),
        *((observed, Health.ERROR, Operation.NONE) for observed in Observed),
        *((observed, Health.ERROR, Operation.DELETING) for observed in Observed if observed is not Observed.DELETED),
    }
)


def failures_after_success(w: Workspace) -> int:
    """A start that answers has not proved itself yet: what dies right after it goes on counting."""
    return w.failures if w.operation is Operation.STARTING else 0


def seconds_for(operation: Operation, start_seconds: float) -> float:
    """How long one attempt may take before it counts as hanging."""
    return {
        Operation.PROVISIONING: 60.0,
        Operation.STARTING: start_seconds,
        Operation.STOPPING: 120.0,
        Operation.DELETING: 600.0,
    }.get(operation, 6 * 3600.0)  # copying a home takes as long as it is large


# --- failure --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Failure:
    """What a failed attempt leads to: tried again at `retry_at`, or, when that is None, health ERROR.

    An error that may be over by itself is looked at again from `look_at` on.
    """

    error_info: Mapping[str, Any]
    retry_at: datetime | None
    look_at: datetime | None = None

    @property
    def attention_at(self) -> datetime | None:
        return self.retry_at or self.look_at


def after_failure(w: Workspace, reason: Reason, message: str, now: datetime, max_retry: int, jitter: float) -> Failure:
    """Count, back off, give up. `jitter`, from 0 to 1, keeps failures of one moment apart."""
    count = failures_so_far(w, now) + 1
    exceeded = reason not in TERMINAL and count > max_retry
    terminal = reason in TERMINAL or exceeded
    info = {
        "reason": Reason.RETRY_EXCEEDED if exceeded else reason,
        "operation": w.operation,
        "is_terminal": terminal,
        "error_count": count,
        "last_error": f"{reason}: {message}" if exceeded else message,
        "occurred_at": now.isoformat(),
    }
    if terminal:
        return Failure(info, None, look_at=now if reason in UNREADABLE else None)
    pause = back_off(count, FIRST_RETRY_SECONDS, LONGEST_RETRY_SECONDS)
    return Failure(info, now + timedelta(seconds=pause * (1 - 0.2 * jitter)))


def failures_so_far(w: Workspace, now: datetime) -> int:
    """Failures in a row. An IDE that ran steadily before it died starts afresh."""
    steady = w.observed_status is Observed.RUNNING and now - w.phase_changed_at >= STEADY
    return 0 if steady else w.failures


def volume_after(w: Workspace, seen: Observation, failure: Failure | None) -> tuple[str | None, bool]:
    """The generation of the workspace's volume, and whether it lies in the trash: as seen.

    One that is lost or cannot be read is remembered, so that it is known again should it come back: also in the trash.
    """
    purged = w.purge and w.operation is Operation.DELETING
    lost = failure is not None and failure.error_info["reason"] == Reason.DATA_LOST
    if lost or (seen.volume_unreadable is not None and not purged):
        return w.volume_generation, w.volume_parked
    return seen.volume or seen.parked, seen.volume is None and seen.parked is not None


# --- what may be asked ----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Verdict:
    """200: already so; 202: will be; else the code of the refusal."""

    status: int
    code: str | None = None


IN_PROGRESS = Verdict(409, "OPERATION_IN_PROGRESS")
IN_ERROR = Verdict(409, "WORKSPACE_IN_ERROR")
VERDICTS: Mapping[tuple[Observed, Desired], int] = {
    (Observed.PENDING, Desired.ARCHIVED): 200,
    (Observed.PENDING, Desired.STANDBY): 202,
    (Observed.PENDING, Desired.RUNNING): 202,
    (Observed.STANDBY, Desired.ARCHIVED): 202,
    (Observed.STANDBY, Desired.STANDBY): 200,
    (Observed.STANDBY, Desired.RUNNING): 202,
    (Observed.RUNNING, Desired.ARCHIVED): 202,
    (Observed.RUNNING, Desired.STANDBY): 202,
    (Observed.RUNNING, Desired.RUNNING): 200,
}


def verdict(w: Workspace, wanted: Desired) -> Verdict:
    """May `wanted` be asked for now?"""
    if w.deleted_at is not None:
        return Verdict(409, "WORKSPACE_DELETED")
    if w.operation is not Operation.NONE:
        return IN_PROGRESS
    if w.health_status is Health.ERROR:
        return IN_ERROR
    # Just undeleted and not looked at yet: like one that has nothing running.
    observed = Observed.PENDING if w.observed_status is Observed.DELETED else w.observed_status
    return Verdict(VERDICTS[observed, wanted])


def restore_verdict(w: Workspace) -> Verdict:
    """May it go back to a restore point now? Also out of an error: that is the way past an archive that is broken."""
    if w.deleted_at is not None:
        return Verdict(409, "WORKSPACE_DELETED")
    return IN_PROGRESS if w.operation is not Operation.NONE else Verdict(202)


def desired_after_restore(w: Workspace) -> Desired:
    """Its files are there again; it runs only if it was to run."""
    return Desired.RUNNING if w.desired_state is Desired.RUNNING else Desired.STANDBY


def delete_verdict(w: Workspace) -> Verdict:
    """May it be deleted now? Asking again is fine."""
    if w.deleted_at is not None or w.operation is Operation.NONE:
        return Verdict(202)
    return IN_PROGRESS


def is_standby_allowed(seconds: int | None, most: int) -> bool:
    """May a workspace be let sleep after so long without activity? None: as its template says; 0: never."""
    return seconds is None or 0 < seconds <= most


def is_asleep(w: Workspace) -> bool:
    """Would coming to it wake it? While something is under way, or it is asked to run already, there is no need."""
    return w.phase is Phase.STANDBY and w.operation is Operation.NONE and w.desired_state is not Desired.RUNNING


def counts_as_running(w: Workspace) -> bool:
    """What the limits count; the partial index `workspaces_counted` says the same."""
    wanted = w.health_status is Health.OK and w.deleted_at is None and w.desired_state is Desired.RUNNING
    return w.observed_status is Observed.RUNNING or wanted


def desired_after_undelete(w: Workspace) -> Desired:
    """What there is decides: a volume wakes as STANDBY, anything else rests as ARCHIVED."""
    has_volume = w.volume_parked or w.observed_status in {Observed.STANDBY, Observed.RUNNING}
    return Desired.STANDBY if has_volume else Desired.ARCHIVED


def keep_awake_until(wanted: datetime, now: datetime, max_seconds: int) -> datetime:
    """As long as was asked for, and no longer than the operator allows (`CODEHUB_MAX_KEEP_AWAKE_SECONDS`)."""
    return min(wanted, now + timedelta(seconds=max_seconds))


MOVING_FILES = frozenset({Operation.PROVISIONING, Operation.RESTORING, Operation.ARCHIVING, Operation.DELETING})


def download_source(w: Workspace) -> tuple[str | None, Verdict]:
    """Where its files are now: (archive key, or None for the home itself), or why they cannot be had."""
    if w.purge:
        return None, Verdict(404, "NOT_FOUND")
    if w.operation in MOVING_FILES:
        return None, IN_PROGRESS
    if w.observed_status in {Observed.STANDBY, Observed.RUNNING}:
        return None, Verdict(200)
    if w.health_status is Health.ERROR and _reason(w) == Reason.DATA_LOST:
        return None, Verdict(409, "DATA_LOST")  # an older copy only for who asks for it by name
    if w.volume_parked:
        return None, Verdict(409, "WORKSPACE_DELETED")
    return w.archive_key, Verdict(200) if w.archive_key else Verdict(404, "NOT_FOUND")
