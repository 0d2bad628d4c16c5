"""The rules of sessions and runs: which status follows which, what a start does, what a write to a run gets. Pure.

Asked by `Sessions`, `Runs` and the sweeper, which act on the outcome by compare-and-set.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import Enum

from codehub.sessions.errors import (
    IdempotencyKeyLimitError,
    InvalidTransitionError,
    RunNotRunningError,
    RunTakenOverError,
    SnapshotLimitError,
    StepOutOfOrderError,
)
from codehub.sessions.model import EndReason, Run, RunStatus, Session, SessionStatus, StartView, StoredAnswer

MOST_SNAPSHOT_BYTES = 4 * 1024 * 1024  # of one run: it is kept for ever
S, R = SessionStatus, RunStatus
SESSION_MOVES: Mapping[SessionStatus, frozenset[SessionStatus]] = {
    S.SCHEDULED: frozenset({S.IN_PROGRESS, S.SKIPPED, S.CANCELED}),
    S.IN_PROGRESS: frozenset({S.COMPLETED, S.SCHEDULED, S.SKIPPED, S.CANCELED}),
    S.COMPLETED: frozenset(),
    S.SKIPPED: frozenset(),
    S.CANCELED: frozenset(),
}
RUN_MOVES: Mapping[RunStatus, frozenset[RunStatus]] = {
    R.RUNNING: frozenset({R.COMPLETED, R.ABANDONED}),
    R.COMPLETED: frozenset(),
    R.ABANDONED: frozenset(),
}


def require_move(session: Session, to: SessionStatus) -> None:
    """The one door for what a person asks a session to become."""
    if to not in SESSION_MOVES[session.status]:
        raise InvalidTransitionError(
            f"the session is {session.status}, from which it cannot become {to}", status_now=session.status
        )


class Refusal(Enum):
    """Why a start creates and recovers nothing."""

    ALREADY_COMPLETED = "the session is completed"
    ENDED = "the session was skipped or canceled"
    NOT_RESUMABLE = "the run to resume from is not an earlier one of this session"


@dataclass(frozen=True)
class Recover:
    """The running run, with a higher fence for the client that asked."""

    run: Run


@dataclass(frozen=True)
class Create:
    """A new run."""

    ends: Run | None  # a running run without activity for too long is abandoned first
    resumes: Run | None  # it begins where this one stopped, else with the first step
    predecessor_id: str | None


def start(
    view: StartView, *, resume_from: str | None, active_at: datetime | None, now: datetime, recovery: timedelta
) -> Recover | Create | Refusal:
    """`active_at`: the last activity of the running run, its workspace's included."""
    match view.session.status:
        case S.COMPLETED:
            return Refusal.ALREADY_COMPLETED
        case S.SKIPPED | S.CANCELED:
            return Refusal.ENDED
    if view.running and active_at and not is_inactive(active_at, now, recovery):
        return Recover(view.running)
    if resume_from is not None and not _resumes(view):
        return Refusal.NOT_RESUMABLE
    before = view.resumable.id if view.resumable else view.latest_id
    return Create(view.running, view.resumable, before)


def _resumes(view: StartView) -> bool:
    old = view.resumable
    return old is not None and old.status is not R.COMPLETED and old.blueprint_hash == view.session.blueprint_hash


def inherits_from(old: Run) -> str | None:
    """The run that has the last step which `old` did: itself, or, if it has saved nothing, the one it goes on from."""
    return old.id if old.step_index > old.first_step else old.inherits_from


def saved_bytes(run: Run, state: str) -> int:
    """What the run has saved when this is added to it."""
    after = run.snapshot_bytes + len(state.encode())
    if after > MOST_SNAPSHOT_BYTES:
        hint = "save less with each step; a run that is started anew begins with nothing saved"
        raise SnapshotLimitError(
            f"with this step the run would have saved {after} bytes; {MOST_SNAPSHOT_BYTES} is the most: {hint}"
        )
    return after


def require_room_for_key(live: int, most: int) -> None:
    """The whole answer is stored with each key."""
    if most and live >= most:
        hint = "use one key for one start and its repetitions, or send the request without a key"
        raise IdempotencyKeyLimitError(
            f"{live} of your keys stand for an answer; {most} is the most: {hint}", keys=live
        )


def abandoned(run: Run, now: datetime, why: EndReason, note: str | None = None) -> Run:
    return replace(run, status=R.ABANDONED, ended_at=now, end_reason=why, end_note=note)


def completed(run: Run, now: datetime) -> Run:
    return replace(run, status=R.COMPLETED, ended_at=now, end_reason=EndReason.COMPLETED)


def is_inactive(active_at: datetime, now: datetime, recovery: timedelta) -> bool:
    """Too long for the run to be recovered. A moment that is exactly so long ago is not."""
    return now - active_at > recovery


def is_replay(stored: StoredAnswer | None, now: datetime, kept: timedelta) -> bool:
    """Is there an answer that the key stands for, as opposed to none, or one past its time?"""
    return stored is not None and now - stored.created_at <= kept


class Verdict(Enum):
    """What a write to a run gets."""

    WRITE = "it is done"
    REPLAY = "it was done before"
    NOT_RUNNING = "the run has ended"
    TAKEN_OVER = "another client has the run"
    OUT_OF_ORDER = "another step comes next"


def write(run: Run, fence: int) -> Verdict:
    """Of a client that holds this fence."""
    if run.status is not R.RUNNING:
        return Verdict.NOT_RUNNING
    return Verdict.WRITE if fence == run.fence else Verdict.TAKEN_OVER


def step(run: Run, fence: int, index: int, digest: bytes, saved: bytes | None) -> Verdict:
    """`digest`: of what is sent for this step; `saved`: of what was saved for it."""
    same = saved is not None and saved == digest
    verdict = write(run, fence)
    if verdict is Verdict.NOT_RUNNING and same and fence == run.fence:
        return Verdict.REPLAY
    if verdict is not Verdict.WRITE or index == run.step_index:
        return verdict
    return Verdict.REPLAY if same else Verdict.OUT_OF_ORDER


def passed(verdict: Verdict, run: Run) -> Verdict:
    """The one door for what a client writes to a run: what is refused becomes its error."""
    match verdict:
        case Verdict.NOT_RUNNING:
            raise RunNotRunningError(f"this run is {run.status}: start the session again", status_now=run.status)
        case Verdict.TAKEN_OVER:
            raise RunTakenOverError(
                "another page has taken this run up: start the session again to go on here", fence=run.fence
            )
        case Verdict.OUT_OF_ORDER:
            raise StepOutOfOrderError(f"the step to do next is {run.step_index}", step_index=run.step_index)
    return verdict
