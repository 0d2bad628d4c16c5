"""The rules of sessions and runs as tables: every move, every verdict on a write."""

import itertools
from datetime import UTC, date, datetime, timedelta

import pytest

from codehub.sessions import rules
from codehub.sessions.errors import InvalidTransitionError
from codehub.sessions.model import EndReason, Run, RunStatus, Session, SessionStatus, StartView
from codehub.sessions.rules import Create, Recover, Refusal, Verdict

NOW = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)
DAY = timedelta(days=1)
SESSION_TABLE = {
    "SCHEDULED": {"IN_PROGRESS", "SKIPPED", "CANCELED"},
    "IN_PROGRESS": {"COMPLETED", "SCHEDULED", "SKIPPED", "CANCELED"},
    "COMPLETED": set(),
    "SKIPPED": set(),
    "CANCELED": set(),
}
RUN_TABLE = {"RUNNING": {"COMPLETED", "ABANDONED"}, "COMPLETED": set(), "ABANDONED": set()}


def a_session(status: SessionStatus) -> Session:
    return Session("s", "p", 0, "1", "One", date(2026, 3, 2), "hash", status, NOW, None, "view")


def a_run(status: RunStatus = RunStatus.RUNNING, id_: str = "r", step: int = 1, fence: int = 2) -> Run:
    return Run(
        id=id_,
        session_id="s",
        plan_id="p",
        owner="mina",
        owner_id="u1",
        status=status,
        step_index=step,
        fence=fence,
        blueprint_hash="hash",
        predecessor_id=None,
        workspace_id=None,
        started_at=NOW,
        last_activity_at=NOW,
        ended_at=None,
        end_reason=None,
        end_note=None,
    )


def test_the_tables_of_moves_are_those_of_the_specification() -> None:
    assert {**rules.SESSION_MOVES} == SESSION_TABLE
    assert {**rules.RUN_MOVES} == RUN_TABLE


@pytest.mark.parametrize(("now", "to"), list(itertools.product(SessionStatus, repeat=2)))
def test_every_move_that_is_not_in_the_table_is_refused_at_the_one_door(now: SessionStatus, to: SessionStatus) -> None:
    if to in SESSION_TABLE[now]:
        rules.require_move(a_session(now), to)
        return
    with pytest.raises(InvalidTransitionError):
        rules.require_move(a_session(now), to)


OLD = a_run(RunStatus.ABANDONED, "old")
DONE = a_run(RunStatus.COMPLETED, "done")
STARTS = [
    ("SCHEDULED", None, None, None, Create(None, None, None)),
    ("SCHEDULED", None, OLD, "old", Create(None, OLD, "old")),
    ("SCHEDULED", None, None, "x", Refusal.NOT_RESUMABLE),
    ("SCHEDULED", None, DONE, "done", Refusal.NOT_RESUMABLE),
    ("IN_PROGRESS", timedelta(0), None, None, Recover(a_run())),
    ("IN_PROGRESS", DAY, None, None, Recover(a_run())),
    ("IN_PROGRESS", DAY, OLD, "old", Recover(a_run())),
    ("IN_PROGRESS", DAY + timedelta(microseconds=1), None, None, Create(a_run(), None, "latest")),
    ("IN_PROGRESS", DAY * 2, a_run(), "r", Create(a_run(), a_run(), "r")),
    ("IN_PROGRESS", DAY * 2, None, "x", Refusal.NOT_RESUMABLE),
    ("COMPLETED", None, None, None, Refusal.ALREADY_COMPLETED),
    ("COMPLETED", None, None, "x", Refusal.ALREADY_COMPLETED),
    ("SKIPPED", None, None, None, Refusal.ENDED),
    ("CANCELED", None, None, None, Refusal.ENDED),
]


@pytest.mark.parametrize(("status", "idle", "old", "resume_from", "expected"), STARTS)
def test_a_start_by_the_table(
    status: str, idle: timedelta | None, old: Run | None, resume_from: str | None, expected: object
) -> None:
    running = None if idle is None else a_run()
    latest = None if running is None else "latest"
    view = StartView(a_session(SessionStatus(status)), "mina", "u1", running, old, latest)
    active_at = None if idle is None else NOW - idle
    assert rules.start(view, resume_from=resume_from, active_at=active_at, now=NOW, recovery=DAY) == expected


def test_a_run_of_another_blueprint_is_not_resumed_from() -> None:
    old = Run(**{**vars(OLD), "blueprint_hash": "another"})
    view = StartView(a_session(SessionStatus.SCHEDULED), "mina", "u1", None, old, "old")
    assert rules.start(view, resume_from="old", active_at=None, now=NOW, recovery=DAY) is Refusal.NOT_RESUMABLE


V = Verdict
# Of a run whose next step is 1 and whose fence is 2: status, fence, step, saved the same or not → verdict.
WRITES = [
    ("RUNNING", 2, 1, None, V.WRITE),
    ("RUNNING", 2, 0, b"same", V.REPLAY),
    ("RUNNING", 2, 0, b"other", V.OUT_OF_ORDER),
    ("RUNNING", 2, 2, None, V.OUT_OF_ORDER),
    ("RUNNING", 1, 1, None, V.TAKEN_OVER),
    ("RUNNING", 3, 1, None, V.TAKEN_OVER),
    ("RUNNING", 1, 0, b"same", V.TAKEN_OVER),
    ("RUNNING", 1, 2, None, V.TAKEN_OVER),
    *[
        case
        for ended in ("COMPLETED", "ABANDONED")
        for case in (
            (ended, 2, 0, b"same", V.REPLAY),
            (ended, 1, 0, b"same", V.NOT_RUNNING),
            (ended, 2, 0, b"other", V.NOT_RUNNING),
            (ended, 2, 1, None, V.NOT_RUNNING),
            (ended, 1, 1, None, V.NOT_RUNNING),
            (ended, 2, 2, None, V.NOT_RUNNING),
        )
    ],
]


@pytest.mark.parametrize(("status", "fence", "index", "saved", "expected"), WRITES)
def test_a_step_by_the_table(status: str, fence: int, index: int, saved: bytes | None, expected: Verdict) -> None:
    run = a_run(RunStatus(status))
    assert rules.step(run, fence, index, b"same", saved) is expected
    if saved is None and index == run.step_index:
        assert rules.write(run, fence) is expected


def test_an_end_says_when_and_why() -> None:
    gone = rules.abandoned(a_run(), NOW, EndReason.BY_LEARNER, "enough")
    assert (gone.status, gone.ended_at, gone.end_reason, gone.end_note) == ("ABANDONED", NOW, "by_learner", "enough")
    done = rules.completed(a_run(), NOW)
    assert (done.status, done.ended_at, done.end_reason) == ("COMPLETED", NOW, "completed")
