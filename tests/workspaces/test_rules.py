"""The tables of the specification, row by row, and what must hold for every state there is."""

import itertools
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codehub.workspaces import rules
from codehub.workspaces.model import (
    TERMINAL,
    UNREADABLE,
    Desired,
    DesiredBy,
    Health,
    Observation,
    Observed,
    Operation,
    Phase,
    Reason,
    Workspace,
)

NOW = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)
P, S, R, D = Observed.PENDING, Observed.STANDBY, Observed.RUNNING, Observed.DELETED
OP = Operation
TORN = {"reason": Reason.VOLUME_UNREADABLE}


def workspace(
    observed: Observed = P,
    health: Health = Health.OK,
    operation: Operation = OP.NONE,
    desired: Desired = Desired.RUNNING,
    *,
    archive: str | None = None,
    deleted: bool = False,
    purge: bool = False,
    op_id: str | None = "op1",
    parked: bool = False,
    failures: int = 0,
) -> Workspace:
    return Workspace(
        id="w",
        name="w",
        template="t",
        owner="mina",
        created_at=NOW,
        updated_at=NOW,
        observed_status=observed,
        health_status=health,
        archive_key=archive,
        operation=operation,
        op_id=op_id,
        op_started_at=NOW,
        volume_generation=None,
        volume_parked=parked,
        error_info=None,
        failures=failures,
        progress=None,
        address=None,
        disk_bytes=None,
        disk_measured_at=None,
        phase=rules.phase(observed, health, archive),
        phase_changed_at=NOW,
        attention_at=None,
        desired_state=desired,
        desired_by=DesiredBy.USER,
        desired_at=NOW,
        deleted_at=NOW if deleted else None,
        purge=purge,
        standby_ttl_seconds=None,
        archive_ttl_seconds=None,
        keep_awake_until=None,
        last_access_at=NOW,
        idle_since=NOW,
    )


@pytest.mark.parametrize(
    ("observed", "health", "archive", "expected"),
    [
        (R, Health.OK, None, Phase.RUNNING),
        (R, Health.OK, "k", Phase.RUNNING),
        (S, Health.OK, None, Phase.STANDBY),
        (S, Health.OK, "k", Phase.STANDBY),
        (P, Health.OK, None, Phase.PENDING),
        (P, Health.OK, "k", Phase.ARCHIVED),
        (R, Health.ERROR, None, Phase.ERROR),
        (S, Health.ERROR, "k", Phase.ERROR),
        (P, Health.ERROR, "k", Phase.ERROR),
        (D, Health.OK, None, Phase.DELETED),
        (D, Health.ERROR, "k", Phase.DELETED),
    ],
)
def test_phase_follows_the_table(observed: Observed, health: Health, archive: str | None, expected: Phase) -> None:
    assert rules.phase(observed, health, archive) is expected


ERROR = Health.ERROR
PLANNED = [
    # observed, health, desired, archive, deleted, purge → operation
    (D, Health.OK, Desired.RUNNING, None, True, False, OP.NONE),
    (D, Health.ERROR, Desired.RUNNING, None, True, False, OP.NONE),
    (P, Health.OK, Desired.RUNNING, None, True, False, OP.DELETING),
    (P, Health.OK, Desired.ARCHIVED, "k", True, False, OP.DELETING),
    (R, ERROR, Desired.RUNNING, None, True, False, OP.DELETING),
    (S, ERROR, Desired.RUNNING, "k", True, False, OP.DELETING),
    (R, Health.OK, Desired.RUNNING, None, True, False, OP.STOPPING),
    (R, Health.OK, Desired.RUNNING, None, True, True, OP.STOPPING),
    (S, Health.OK, Desired.RUNNING, None, True, False, OP.ARCHIVING),
    (S, Health.OK, Desired.RUNNING, None, True, True, OP.DELETING),
    (P, ERROR, Desired.RUNNING, None, False, False, OP.NONE),
    (S, ERROR, Desired.RUNNING, None, False, False, OP.NONE),
    (R, ERROR, Desired.STANDBY, None, False, False, OP.NONE),
    (P, Health.OK, Desired.RUNNING, None, False, False, OP.PROVISIONING),
    (P, Health.OK, Desired.STANDBY, None, False, False, OP.PROVISIONING),
    (P, Health.OK, Desired.RUNNING, "k", False, False, OP.RESTORING),
    (P, Health.OK, Desired.STANDBY, "k", False, False, OP.RESTORING),
    (P, Health.OK, Desired.ARCHIVED, "k", False, False, OP.NONE),
    (P, Health.OK, Desired.ARCHIVED, None, False, False, OP.NONE),
    (S, Health.OK, Desired.RUNNING, None, False, False, OP.STARTING),
    (S, Health.OK, Desired.STANDBY, None, False, False, OP.NONE),
    (S, Health.OK, Desired.ARCHIVED, None, False, False, OP.ARCHIVING),
    (S, Health.OK, Desired.ARCHIVED, "k", False, False, OP.ARCHIVING),
    (R, Health.OK, Desired.RUNNING, None, False, False, OP.NONE),
    (R, Health.OK, Desired.STANDBY, None, False, False, OP.STOPPING),
    (R, Health.OK, Desired.ARCHIVED, None, False, False, OP.STOPPING),
]


@pytest.mark.parametrize(("observed", "health", "desired", "archive", "deleted", "purge", "expected"), PLANNED)
def test_the_operation_is_chosen_as_the_table_says(
    observed: Observed,
    health: Health,
    desired: Desired,
    archive: str | None,
    deleted: bool,
    purge: bool,
    expected: Operation,
) -> None:
    w = workspace(observed, health, desired=desired, archive=archive, deleted=deleted, purge=purge)
    assert rules.plan(w)[0] is expected


@pytest.mark.parametrize("operation", [op for op in Operation if op is not OP.NONE])
def test_an_operation_under_way_is_carried_on(operation: Operation) -> None:
    assert rules.plan(workspace(R, operation=operation, deleted=True))[0] is operation


def test_a_volume_in_the_trash_is_taken_out_rather_than_an_older_archive_restored() -> None:
    w = workspace(P, desired=Desired.STANDBY, archive="k", parked=True)
    assert rules.plan(w)[0] is OP.PROVISIONING
    assert rules.plan(replace(w, observed_status=S, desired_state=Desired.RUNNING))[0] is OP.STARTING  # it is out


def test_one_that_was_just_undeleted_is_not_called_deleted() -> None:
    assert rules.plan(workspace(D)) == (OP.NONE, "as_desired")


@pytest.mark.parametrize(
    ("observed", "desired", "archive", "expected"),
    [
        (P, Desired.STANDBY, None, OP.RESTORING),
        (P, Desired.RUNNING, "k", OP.RESTORING),
        (P, Desired.ARCHIVED, "k", OP.NONE),
        (S, Desired.STANDBY, None, OP.ARCHIVING),
        (S, Desired.RUNNING, "k", OP.ARCHIVING),
        (R, Desired.RUNNING, None, OP.STOPPING),
        (R, Desired.STANDBY, "k", OP.STOPPING),
    ],
)
def test_on_the_way_back_to_a_restore_point_what_there_is_becomes_one_first(
    observed: Observed, desired: Desired, archive: str | None, expected: Operation
) -> None:
    w = replace(workspace(observed, desired=desired, archive=archive), restore_from="w/older/1/home.tar.zst")
    assert rules.plan(w)[0] is expected


STATES = [
    workspace(o, h, op, d, archive=a, deleted=x, purge=p)
    for o, h, op, d, a, x, p in itertools.product(
        Observed,
        Health,
        Operation,
        Desired,
        (None, "w/op1/1/home.tar.zst", "w/old/1/home.tar.zst"),
        (False, True),
        (False, True),
    )
]
SEEN = [
    Observation(container=c, answering=a, volume=v, restored_from=m)
    for c, a, v, m in itertools.product((False, True), (False, True), (None, "g1"), (None, "w/old/1/home.tar.zst"))
    if c or not a
]


def test_what_is_planned_from_a_state_that_exists_leads_to_one_that_exists() -> None:
    for w in STATES:
        if w.operation is OP.NONE and (w.observed_status, w.health_status, w.operation) in rules.COMBINATIONS:
            planned = rules.plan(w)[0]
            assert (w.observed_status, w.health_status, planned) in rules.COMBINATIONS, w


def test_a_plan_moves_one_level_at_a_time_and_towards_what_is_desired() -> None:
    for w in STATES:
        planned = rules.plan(w)[0]
        if w.operation is OP.NONE and planned not in {OP.NONE, OP.DELETING} and w.observed_status is not D:
            after = rules.COMPLETES_AS[planned]
            assert abs(after.level - w.observed_status.level) == 10
            goal = 0 if w.deleted_at else w.desired_state.level
            assert abs(after.level - goal) < abs(w.observed_status.level - goal)


def test_judging_never_hides_a_loss() -> None:
    for w, seen in itertools.product(STATES, SEEN):
        had = w.observed_status in {S, R} and w.health_status is Health.OK
        gone = not seen.container and seen.volume is None
        excused = w.operation is OP.DELETING or (w.operation is OP.ARCHIVING and rules.archived_by(w))
        if had and gone and not excused:
            assert rules.judge(w, seen).problem is Reason.DATA_LOST


def test_a_volume_of_a_generation_that_the_row_does_not_know_is_nobodys() -> None:
    w = replace(workspace(P, archive="k"), volume_generation="g1")
    stray = Observation(volume="late", restored_from="k")
    assert rules.filter_known(w, stray) == Observation()
    assert rules.filter_known(w, Observation(parked="late")) == Observation()
    for known in ("g1", "op1"):
        assert rules.filter_known(w, Observation(volume=known, restored_from="k")).volume == known
        assert rules.filter_known(w, Observation(parked=known)).parked == known


def test_a_first_home_may_be_made_by_anybody_and_one_from_the_trash_may_not() -> None:
    stray = Observation(volume="late")
    assert rules.filter_known(workspace(P, operation=OP.PROVISIONING), stray) == stray
    assert rules.filter_known(workspace(P, operation=OP.PROVISIONING, parked=True), stray) == Observation()


def test_a_home_that_was_moved_to_the_trash_is_not_lost_and_one_that_vanished_from_it_is() -> None:
    assert rules.judge(workspace(S), Observation(parked="g1")) == rules.Judgement(P)
    assert rules.judge(workspace(P, parked=True), Observation()).problem is Reason.DATA_LOST
    assert rules.judge(workspace(S, ERROR), Observation()).problem is None  # what is known to be wrong is not told anew


def test_the_generation_of_a_lost_volume_is_remembered() -> None:
    w = replace(workspace(S), volume_generation="g1")
    lost = rules.after_failure(w, Reason.DATA_LOST, "gone", NOW, 0, 0.0)
    assert rules.volume_after(w, Observation(), lost) == ("g1", False)
    assert rules.volume_after(w, Observation(), None) == (None, False)
    failed = rules.after_failure(w, Reason.CONTAINER_WITHOUT_VOLUME, "no", NOW, 0, 0.0)
    assert rules.volume_after(w, Observation(), failed) == (None, False)
    assert rules.volume_after(w, Observation(volume="g3", parked="g2"), None) == ("g3", False)
    assert rules.volume_after(w, Observation(parked="g2"), None) == ("g2", True)
    assert rules.volume_after(w, Observation(volume="g3"), None) == ("g3", False)


def test_a_container_without_volume_is_always_a_problem() -> None:
    for w in STATES:
        if not (w.observed_status is D and w.deleted_at):
            judged = rules.judge(w, Observation(container=True, answering=True))
            assert judged.problem is Reason.CONTAINER_WITHOUT_VOLUME


def test_a_volume_that_cannot_be_read_is_a_problem_whatever_runs_and_is_remembered() -> None:
    for w in STATES:
        judged = rules.judge(w, Observation(container=True, volume_unreadable="torn"))
        if w.observed_status is D and w.deleted_at:
            assert judged == rules.Judgement(D)
        else:
            assert judged == rules.Judgement(w.observed_status, Reason.VOLUME_UNREADABLE)
    w = replace(workspace(S), volume_generation="g1")
    failed = rules.after_failure(w, Reason.VOLUME_UNREADABLE, "torn", NOW, 0, 0.0)
    assert rules.volume_after(w, Observation(volume_unreadable="torn"), failed) == ("g1", False)
    deleting = replace(workspace(S, ERROR, OP.DELETING, deleted=True), volume_generation="g1")
    assert rules.volume_after(deleting, Observation(volume_unreadable="torn"), None) == ("g1", False)
    purging = replace(deleting, purge=True)
    assert rules.volume_after(purging, Observation(volume_unreadable="torn"), None) == (None, False)
    waiting = replace(purging, operation=OP.NONE)  # for its turn: nothing has been taken away yet
    assert rules.volume_after(waiting, Observation(volume_unreadable="torn"), None) == ("g1", False)


def test_what_runs_and_cannot_be_told_is_running_and_a_problem() -> None:
    for w in STATES:
        judged = rules.judge(w, Observation(container=True, record_unreadable="torn", volume_unreadable="torn"))
        if w.observed_status is D and w.deleted_at:
            assert judged == rules.Judgement(D)
        else:
            assert judged == rules.Judgement(R, Reason.RECORD_UNREADABLE)


@pytest.mark.parametrize("reason", Reason)
def test_only_an_error_about_reading_is_looked_at_again(reason: Reason) -> None:
    failure = rules.after_failure(workspace(R), reason, "torn", NOW, 0, 0.0)
    assert failure.retry_at is None
    assert failure.attention_at == (NOW if reason in UNREADABLE else None)


def test_an_error_about_reading_is_over_when_it_can_be_read_unless_one_more_would_run() -> None:
    for w, reason, wanted in itertools.product(STATES, Reason, Desired):
        w = replace(w, error_info={"reason": reason}, desired_state=wanted)  # noqa: PLW2901
        again = rules.is_readable_again(w, Observation(volume="g1"))
        about_reading = w.health_status is ERROR and w.operation is OP.NONE and reason in UNREADABLE
        one_more = w.observed_status is not R and wanted is Desired.RUNNING and w.deleted_at is None
        assert again == (about_reading and not one_more)
        for torn in (Observation(record_unreadable="torn"), Observation(volume_unreadable="torn")):
            assert not rules.is_readable_again(w, torn)


def test_nothing_is_done_to_what_runs_untold_and_what_lies_untold_can_be_deleted() -> None:
    for operation in OP:
        assert rules.why_blocked(operation, Observation(record_unreadable="torn")) == "torn"
        lies = rules.why_blocked(operation, Observation(volume_unreadable="torn"))
        assert lies == ("torn" if operation is OP.NONE else None)
        assert rules.why_blocked(operation, Observation()) is None


@pytest.mark.parametrize(
    ("w", "seen", "news"),
    [
        (replace(workspace(S), volume_generation="g1"), Observation(volume="g1"), False),
        (replace(workspace(S), volume_generation="g1"), Observation(volume="g1", container=True), True),
        (replace(workspace(S), volume_generation="g1"), Observation(), True),
        (replace(workspace(S, ERROR), volume_generation=None), Observation(volume="g1"), True),
        (replace(workspace(P, ERROR), volume_generation=None), Observation(), False),
        (replace(workspace(R, ERROR), volume_generation=None), Observation(container=True), False),
        (replace(workspace(P), volume_generation="g1"), Observation(parked="g1"), True),
        (replace(workspace(P, parked=True), volume_generation="g1"), Observation(parked="g1"), False),
        (
            replace(workspace(S, ERROR, desired=Desired.STANDBY), volume_generation="g1", error_info=TORN),
            Observation(volume="g1"),
            True,
        ),
        (
            replace(workspace(S, ERROR, desired=Desired.STANDBY), volume_generation="g1"),
            Observation(volume="g1"),
            False,
        ),
        (workspace(S, operation=OP.STARTING), Observation(volume="op1-1", container=True), False),
        (workspace(S, operation=OP.STARTING), Observation(volume="op1-1", container=True, answering=True), True),
        (workspace(S, operation=OP.STARTING), Observation(), True),
        (workspace(S, operation=OP.STARTING), Observation(volume="somebody-else"), True),
    ],
)
def test_an_observation_is_news_when_the_row_does_not_say_it(w: Workspace, seen: Observation, news: bool) -> None:
    assert rules.is_news(w, seen) is news


@pytest.mark.parametrize(
    ("w", "asleep"),
    [
        (workspace(S, desired=Desired.STANDBY), True),
        (workspace(S, desired=Desired.ARCHIVED), True),
        (workspace(S, desired=Desired.RUNNING), False),
        (workspace(S, operation=OP.ARCHIVING, desired=Desired.ARCHIVED), False),
        (workspace(R, desired=Desired.STANDBY), False),
        (workspace(P, desired=Desired.ARCHIVED, archive="w/op1/1/home.tar.zst"), False),
    ],
)
def test_what_sleeps_and_is_left_alone_is_woken_by_coming_to_it(w: Workspace, asleep: bool) -> None:
    assert rules.is_asleep(w) is asleep


def test_an_archive_of_an_earlier_operation_does_not_complete_this_one() -> None:
    w = workspace(S, operation=OP.ARCHIVING, archive="w/old/1/home.tar.zst")
    assert not rules.is_complete(w, Observation())
    done = replace(w, archive_key="w/op1/3/home.tar.zst")
    assert rules.is_complete(done, Observation())
    for left in (Observation(volume="g"), Observation(parked="g")):
        assert not rules.is_complete(done, left)
    assert not rules.archived_by(replace(w, op_id=None, archive_key="w/None/1/home.tar.zst"))


def test_a_half_restore_is_not_standby() -> None:
    w = workspace(P, operation=OP.RESTORING, archive="w/old/1/home.tar.zst")
    half = Observation(volume="g", restored_from=None)
    whole = Observation(volume="g", restored_from="w/old/1/home.tar.zst")
    assert rules.judge(w, half).observed is P
    assert rules.judge(w, whole).observed is S
    assert not rules.is_complete(w, half)
    assert rules.is_complete(w, whole)
    assert not rules.is_complete(replace(w, archive_key=None), Observation())


def test_a_home_is_there_whatever_archive_it_once_came_from() -> None:
    w = workspace(S, archive="w/newer/1/home.tar.zst")
    assert rules.judge(w, Observation(volume="g", restored_from="w/old/1/home.tar.zst")).observed is S


def test_a_start_is_over_when_it_answers() -> None:
    w = workspace(S, operation=OP.STARTING)
    silent = Observation(container=True, volume="g")
    assert rules.judge(w, silent).observed is S
    assert rules.judge(w, replace(silent, answering=True)).observed is R
    assert not rules.is_complete(w, silent)
    assert rules.is_complete(w, replace(silent, answering=True))
    assert not rules.is_complete(w, Observation(answering=True, volume="g"))  # something else answers there


def test_a_stop_is_over_when_the_container_is_gone_and_the_files_are_not() -> None:
    w = workspace(R, operation=OP.STOPPING)
    assert rules.is_complete(w, Observation(volume="g"))
    assert rules.is_complete(w, Observation(parked="g"))
    assert not rules.is_complete(w, Observation())
    assert not rules.is_complete(w, Observation(container=True, volume="g"))


def test_a_deletion_is_over_when_neither_container_nor_volume_is_there() -> None:
    w = workspace(S, operation=OP.DELETING, deleted=True)
    assert rules.is_complete(w, Observation())
    assert rules.is_complete(w, Observation(parked="g"))  # in the trash
    assert not rules.is_complete(w, Observation(volume="g"))
    assert not rules.is_complete(w, Observation(container=True))


ASKED = [
    (P, Desired.ARCHIVED, 200),
    (P, Desired.STANDBY, 202),
    (P, Desired.RUNNING, 202),
    (S, Desired.ARCHIVED, 202),
    (S, Desired.STANDBY, 200),
    (S, Desired.RUNNING, 202),
    (R, Desired.ARCHIVED, 202),
    (R, Desired.STANDBY, 202),
    (R, Desired.RUNNING, 200),
]


@pytest.mark.parametrize(("observed", "wanted", "status"), ASKED)
def test_a_request_is_answered_as_the_table_says(observed: Observed, wanted: Desired, status: int) -> None:
    assert rules.verdict(workspace(observed), wanted).status == status
    assert rules.verdict(workspace(observed, ERROR), wanted).code == "WORKSPACE_IN_ERROR"
    assert rules.verdict(workspace(observed, operation=OP.STARTING), wanted).code == "OPERATION_IN_PROGRESS"


@pytest.mark.parametrize("observed", [P, S, R])
def test_a_delete_is_answered_as_the_table_says(observed: Observed) -> None:
    assert rules.delete_verdict(workspace(observed)).status == 202
    assert rules.delete_verdict(workspace(observed, ERROR)).status == 202
    assert rules.delete_verdict(workspace(observed, operation=OP.STOPPING)).code == "OPERATION_IN_PROGRESS"
    assert rules.delete_verdict(workspace(observed, operation=OP.STOPPING, deleted=True)).status == 202


@pytest.mark.parametrize("observed", [P, S, R])
def test_going_back_is_answered_as_the_table_says(observed: Observed) -> None:
    assert rules.restore_verdict(workspace(observed)).status == 202
    assert rules.restore_verdict(workspace(observed, ERROR)).status == 202
    assert rules.restore_verdict(workspace(observed, operation=OP.STOPPING)).code == "OPERATION_IN_PROGRESS"
    assert rules.restore_verdict(workspace(observed, deleted=True)).code == "WORKSPACE_DELETED"
    for desired, after in zip(Desired, (Desired.STANDBY, Desired.STANDBY, Desired.RUNNING), strict=True):
        assert rules.desired_after_restore(workspace(observed, desired=desired)) is after


def test_a_request_for_one_that_is_deleted_is_refused_and_one_just_undeleted_is_like_a_new_one() -> None:
    assert rules.verdict(workspace(S, deleted=True), Desired.RUNNING).code == "WORKSPACE_DELETED"
    assert rules.verdict(workspace(D), Desired.RUNNING).status == 202
    assert rules.verdict(workspace(D), Desired.ARCHIVED).status == 200


@pytest.mark.parametrize(
    ("w", "counts"),
    [
        (workspace(R, desired=Desired.STANDBY), True),
        (workspace(R, ERROR, desired=Desired.STANDBY, deleted=True), True),
        (workspace(P), True),
        (workspace(S, desired=Desired.STANDBY), False),
        (workspace(S, deleted=True), False),
        (workspace(S, ERROR), False),
    ],
)
def test_what_runs_or_is_to_run_counts(w: Workspace, counts: bool) -> None:
    assert rules.counts_as_running(w) is counts


@pytest.mark.parametrize(
    ("observed", "parked", "desired"),
    [
        (P, False, Desired.ARCHIVED),
        (D, False, Desired.ARCHIVED),
        (D, True, Desired.STANDBY),
        (S, False, Desired.STANDBY),
        (R, False, Desired.STANDBY),
    ],
)
def test_after_an_undelete_what_there_is_decides(observed: Observed, parked: bool, desired: Desired) -> None:
    assert rules.desired_after_undelete(workspace(observed, deleted=True, parked=parked)) is desired


LOST = {"reason": Reason.DATA_LOST}


@pytest.mark.parametrize(
    ("w", "key", "answer"),
    [
        (workspace(S, archive="k"), None, 200),
        (workspace(R, operation=OP.STOPPING), None, 200),
        (workspace(S, ERROR), None, 200),
        (workspace(P, archive="k"), "k", 200),
        (workspace(D, archive="k", deleted=True), "k", 200),
        (workspace(P, ERROR, archive="k"), "k", 200),
        (workspace(P), None, "NOT_FOUND"),
        (workspace(D, archive="k", deleted=True, purge=True), None, "NOT_FOUND"),
        (workspace(S, operation=OP.ARCHIVING), None, "OPERATION_IN_PROGRESS"),
        (workspace(P, archive="k", operation=OP.RESTORING), None, "OPERATION_IN_PROGRESS"),
        (replace(workspace(P, ERROR, archive="k"), error_info=LOST), None, "DATA_LOST"),
        (replace(workspace(P, archive="k"), error_info=LOST), "k", 200),  # accepted since
        (workspace(D, archive="k", deleted=True, parked=True), None, "WORKSPACE_DELETED"),
    ],
)
def test_files_are_had_from_where_they_are(w: Workspace, key: str | None, answer: int | str) -> None:
    found, verdict = rules.download_source(w)
    assert (found, verdict.code or verdict.status) == (key, answer)


@given(
    failures=st.integers(0, 50), max_retry=st.integers(0, 10), jitter=st.floats(0, 1), reason=st.sampled_from(Reason)
)
def test_a_failure_is_retried_with_growing_pauses_and_given_up_in_the_end(
    failures: int, max_retry: int, jitter: float, reason: Reason
) -> None:
    w = workspace(S, operation=OP.STARTING, failures=failures)
    failure = rules.after_failure(w, reason, "no", NOW, max_retry, jitter)
    assert failure.error_info["error_count"] == failures + 1
    if reason in TERMINAL:
        assert failure.retry_at is None
        assert failure.error_info["reason"] is reason
    elif failures + 1 > max_retry:
        assert failure.retry_at is None
        assert failure.error_info["reason"] is Reason.RETRY_EXCEEDED
        assert reason in failure.error_info["last_error"]
    else:
        assert failure.retry_at
        pause = (failure.retry_at - NOW).total_seconds()
        assert 0.8 * min(2**failures, 300) - 0.001 <= pause <= min(2**failures, 300)


def test_an_ide_that_ran_steadily_starts_afresh_and_one_that_died_at_once_does_not() -> None:
    w = workspace(R, failures=2)
    assert rules.failures_so_far(w, NOW + timedelta(seconds=5)) == 2
    assert rules.failures_so_far(w, NOW + rules.STEADY) == 0
    assert rules.failures_so_far(replace(w, observed_status=S), NOW + rules.STEADY) == 2


def test_a_start_that_answers_goes_on_counting_and_anything_else_that_succeeds_does_not() -> None:
    for operation in Operation:
        counted = rules.failures_after_success(workspace(S, operation=operation, failures=2))
        assert counted == (2 if operation is OP.STARTING else 0)


def test_every_rule_has_an_answer_for_every_state() -> None:
    for w in STATES:
        assert rules.delete_verdict(w).status in {202, 409}
        assert rules.desired_after_undelete(w) in Desired
        for wanted in Desired:
            assert rules.verdict(w, wanted).status in {200, 202, 409}
        for seen in SEEN:
            assert rules.judge(w, seen).observed in Observed
            assert rules.is_complete(w, seen) in {True, False}
