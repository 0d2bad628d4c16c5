"""What is said of a workspace, for every state there is: the pill, now, next, what can be done, what went wrong."""

import itertools
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from codehub.i18n.locales import Locale, zone
from codehub.web import entry_pages, history_view, presentation, texts
from codehub.web.presentation import Badge
from codehub.workspaces import rules
from codehub.workspaces.model import Desired, Health, HistoryEntry, Observed, Operation, Phase, Reason, Workspace
from tests.web.rows import workspace

NOW = datetime(2026, 3, 2, 14, 30, tzinfo=UTC)
ENGLISH = Locale("en", UTC, texts.TEXTS["en"])
KOREAN = Locale("ko", ZoneInfo("Asia/Seoul"), texts.TEXTS["ko"])
EVERY_STATE = [
    workspace(observed_status=o, health_status=h, operation=op, archive_key=key, desired_state=d, deleted_at=gone)
    for (o, h, op), key, d, gone in itertools.product(
        sorted(rules.COMBINATIONS), (None, "a/b/1/home.tar.zst"), Desired, (None, NOW)
    )
]


@pytest.mark.parametrize("locale", [ENGLISH, KOREAN], ids=["en", "ko"])
def test_every_state_there_is_has_its_words_and_a_way_on(locale: Locale) -> None:
    for w in EVERY_STATE:
        assert locale.say(f"state_{presentation.state(w)}")
        assert presentation.SIGNS[presentation.badge(w)]
        assert presentation.now_line(w, locale, NOW, position=2)
        if w.deleted_at is None:
            assert presentation.primary(w), w
        for verb in presentation.menu(w):
            assert locale.say(f"do_{verb}")
        assert all(how in {"done", "now", "later"} for how in entry_pages.steps(w).values())


def test_what_is_offered_is_not_refused() -> None:
    """A menu never holds what the rules would answer with a refusal, as far as the row shows it."""
    wanted = {"start": Desired.RUNNING, "stop": Desired.STANDBY, "archive": Desired.ARCHIVED}
    for w in EVERY_STATE:
        for verb in presentation.menu(w):
            judged = rules.delete_verdict(w) if verb == "delete" else rules.verdict(w, wanted[verb])
            assert judged.code is None, (verb, w)


@pytest.mark.parametrize(
    ("changes", "badge", "text", "verb"),
    [
        ({"observed_status": Observed.RUNNING}, Badge.RUNNING, "do_open", ""),
        ({"observed_status": Observed.STANDBY, "desired_state": Desired.STANDBY}, Badge.ASLEEP, "do_wake", ""),
        ({"observed_status": Observed.STANDBY, "operation": Operation.STARTING}, Badge.MOVING, "do_open_later", ""),
        ({"observed_status": Observed.STANDBY, "desired_state": Desired.RUNNING}, Badge.MOVING, "do_open_later", ""),
        ({"observed_status": Observed.RUNNING, "operation": Operation.STOPPING}, Badge.MOVING, "do_wake_again", ""),
        ({"desired_state": Desired.ARCHIVED, "archive_key": "k"}, Badge.STORED, "do_restore", "start"),
        ({"desired_state": Desired.STANDBY, "archive_key": None}, Badge.NEW, "do_begin", "start"),
        ({"observed_status": Observed.STANDBY, "health_status": Health.ERROR}, Badge.WRONG, "do_details", ""),
        ({"deleted_at": NOW, "observed_status": Observed.DELETED}, Badge.TRASH, "do_undelete", "undelete"),
    ],
)
def test_the_one_button_changes_with_the_state(changes: dict[str, Any], badge: Badge, text: str, verb: str) -> None:
    w = workspace(**changes)
    action = presentation.primary(w)
    assert presentation.badge(w) is badge
    assert action is not None
    assert (action.text, action.verb) == (text, verb)


def test_copying_says_how_far_it_is_and_guesses_only_when_it_can() -> None:
    w = workspace(operation=Operation.RESTORING, op_started_at=NOW - timedelta(seconds=10), archive_key="k")

    def line(done: int, total: int) -> str:
        return presentation.now_line(replace(w, progress={"bytes": done, "total": total}), ENGLISH, NOW)

    assert line(420_000_000, 900_000_000) == "420 MB of 900 MB, about 11 s left."
    assert line(1_000_000, 900_000_000) == "1.0 MB of 900 MB."
    assert line(900_000_000, 900_000_000) == "900 MB of 900 MB."
    assert line(0, 0) == "Fetching its files."
    assert line(2_000_000_000, 1_500_000_000) == "1.5 GB of 1.5 GB."
    assert presentation.now_line(replace(w, progress=None), ENGLISH, NOW) == "Fetching its files."


def test_when_it_sleeps_is_said_in_the_readers_time() -> None:
    w = workspace(observed_status=Observed.RUNNING, idle_since=NOW - timedelta(minutes=10))
    sleeps = NOW + timedelta(minutes=5)
    assert presentation.next_line(w, ENGLISH, NOW, sleeps) == "Sleeps at 14:35: nobody has typed since 14:20."
    assert presentation.next_line(w, KOREAN, NOW, sleeps) == "23:35에 잠듭니다. 23:20 이후로 입력이 없었습니다."
    assert presentation.next_line(w, ENGLISH, NOW, None) is None
    awake = replace(w, keep_awake_until=NOW + timedelta(hours=10))
    assert presentation.next_line(awake, ENGLISH, NOW, sleeps) == "Stays awake until tomorrow 00:30, as you asked."
    held = replace(awake, keep_awake_reason="training")
    assert presentation.next_line(held, ENGLISH, NOW, sleeps) == "Stays awake until tomorrow 00:30: training."
    longer = NOW + timedelta(hours=11)  # it would not sleep before that anyway
    assert presentation.next_line(held, ENGLISH, NOW, longer) == "Stays awake until tomorrow 01:30, as you asked."
    asleep = replace(w, phase=Phase.STANDBY, observed_status=Observed.STANDBY)
    assert presentation.next_line(asleep, ENGLISH, NOW, sleeps) is None


@pytest.mark.parametrize("reason", Reason)
def test_files_are_called_safe_only_when_they_are(reason: Reason) -> None:
    lost = {Reason.DATA_LOST, Reason.CONTAINER_WITHOUT_VOLUME}
    broken_copy = {Reason.ARCHIVE_CORRUPTED, Reason.ARCHIVE_NOT_FOUND}
    for operation, key in itertools.product((Operation.ARCHIVING, Operation.RESTORING), (None, "k")):
        info = {"reason": reason, "operation": operation, "last_error": "x"}
        w = workspace(health_status=Health.ERROR, error_info=info, archive_key=key)
        trouble = presentation.trouble(w, ENGLISH)
        unsure = reason is Reason.VOLUME_UNREADABLE or (reason in broken_copy and operation is not Operation.ARCHIVING)
        assert trouble.safe == (reason not in lost and not unsure)
        assert trouble.safe == ("safe" in trouble.files)
        assert trouble.accept_loss == (reason in lost)
        assert trouble.what != ENGLISH.say("trouble_other")


def test_an_error_without_details_is_still_told() -> None:
    trouble = presentation.trouble(workspace(health_status=Health.ERROR, error_info=None), ENGLISH)
    assert trouble.what == "CodeHub could not go on."
    assert trouble.message


@pytest.mark.parametrize(
    ("at", "english", "korean"),
    [
        (NOW, "14:30", "23:30"),
        (NOW + timedelta(hours=1), "15:30", "내일 00:30"),
        (NOW - timedelta(days=1), "yesterday 14:30", "어제 23:30"),
        (NOW + timedelta(days=40), "11 Apr, 14:30", "4월 11일 23:30"),
    ],
)
def test_times_are_written_as_people_write_them(at: datetime, english: str, korean: str) -> None:
    assert ENGLISH.time(at, NOW) == english
    assert KOREAN.time(at, NOW) == korean


@pytest.mark.parametrize(
    ("seconds", "english", "korean"),
    [(0, "1 s", "1초"), (12.4, "12 s", "12초"), (119, "119 s", "119초"), (180, "3 min", "3분"), (7200, "2 h", "2시간")],
)
def test_spans_are_as_exact_as_anybody_cares(seconds: float, english: str, korean: str) -> None:
    assert ENGLISH.span(seconds) == english
    assert KOREAN.span(seconds) == korean


@pytest.mark.parametrize("name", ["", "Nowhere/Land", "../../etc/passwd", "/etc/passwd", "a" * 500, "Asia/\0", "Asia"])
def test_a_time_zone_nobody_knows_is_this_machines(name: str) -> None:
    assert zone(name) is None


def test_a_time_zone_is_the_browsers() -> None:
    assert zone("Asia/Seoul") == ZoneInfo("Asia/Seoul")
    assert zone("America/Argentina/Buenos_Aires") == ZoneInfo("America/Argentina/Buenos_Aires")


def entry(
    code: str, to_state: str | None = None, took: float | None = None, actor: str = "mina", **data: Any
) -> HistoryEntry:
    return HistoryEntry(1, "w", NOW, actor, code, data, None, to_state, took)


@pytest.mark.parametrize(
    ("line", "said", "quoted"),
    [
        (entry("created", desired_state="RUNNING"), "mina created it", None),
        (entry("start_requested", "RUNNING", by="user"), "mina asked for it to run", None),
        (entry("woken", "RUNNING"), "mina opened it, so it wakes", None),
        (entry("idle_sleep", "STANDBY", actor="ttl", seconds=600), "Put to sleep: nobody had typed for 10 min", None),
        (entry("idle_archive", "ARCHIVED", actor="ttl", seconds=600), "Stored away: it had slept for 10 min", None),
        (entry("shared", user="jun"), "mina shared it with jun", None),
        (entry("observed", "STANDBY"), "Found to be: Asleep", None),
        (
            entry("problem_found", reason="DataLost"),
            "Its files have vanished from the disk. CodeHub did not remove them.",
            None,
        ),
        (entry("started", "RUNNING", 3.2), "Running", None),
        (
            entry("operation_retried", operation="STARTING", reason="StartFailed", message="no numpy"),
            "Starting did not work and is tried again",
            "no numpy",
        ),
        (
            entry("restore_requested", created_at="2026-03-01T09:00:00+00:00"),
            "mina went back to the restore point of yesterday 09:00",
            None,
        ),
        (entry("held", purpose="training"), "A program inside asked for it to stay awake", "training"),
        (entry("note", event="something new", text="with its reason"), "something new", "with its reason"),
        (entry("of_a_later_version"), "of_a_later_version", None),
    ],
)
def test_history_is_told_in_sentences(line: HistoryEntry, said: str, quoted: str | None) -> None:
    told = history_view.lines([entry("operation_begun", operation="STARTING", plan="start"), line], ENGLISH, NOW)
    assert [(t.text, t.detail) for t in told] == [(said, quoted)]
    assert told[0].took == ("took 3 s" if line.took_seconds else None)


def test_the_steps_of_waking_tick_in_order() -> None:
    def at(**changes: Any) -> str:
        return next(step for step, how in entry_pages.steps(workspace(**changes)).items() if how == "now")

    assert at(observed_status=Observed.PENDING, operation=Operation.RESTORING, archive_key="k") == "files"
    assert at(observed_status=Observed.RUNNING, operation=Operation.STOPPING) == "files"
    assert at(observed_status=Observed.STANDBY, operation=Operation.NONE) == "start"
    assert at(observed_status=Observed.STANDBY, operation=Operation.STARTING) == "start"
    assert at(observed_status=Observed.RUNNING) == "open"


def test_a_row_is_shown_with_its_phase() -> None:
    """The helper of these tests keeps the phase true, as the database does."""
    assert isinstance(workspace(), Workspace)
    assert workspace(observed_status=Observed.PENDING, archive_key="k").phase is Phase.ARCHIVED


@pytest.mark.parametrize(
    ("own", "usual", "most", "values", "chosen"),
    [
        (None, 600, 0, ["", "300", "600", "1800", "3600", "7200", "14400", "28800"], ""),
        (1800, 600, 3600, ["", "300", "600", "1800", "3600"], "1800"),
        (86400, 600, 1800, ["", "300", "600", "1800", "86400"], "86400"),
        (0, 0, 300, ["", "300", "0"], "0"),
    ],
)
def test_a_sleep_time_is_offered_within_the_operators_bound_and_with_what_is_set(
    own: int | None, usual: int, most: int, values: list[str], chosen: str
) -> None:
    for locale in (ENGLISH, KOREAN):
        found = presentation.sleep_choices(own, usual, most, locale)
        assert [choice.value for choice in found] == values
        assert [choice.value for choice in found if choice.chosen] == [chosen]
        assert len({choice.text for choice in found}) == len(found)
