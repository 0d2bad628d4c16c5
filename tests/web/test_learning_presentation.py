"""What the pages of learning say and which screen a session's page is: tables."""

from dataclasses import replace
from datetime import UTC, date, datetime, timedelta

import pytest

from codehub.i18n.locales import Locale
from codehub.sessions.blueprint import Step
from codehub.sessions.model import EndReason, Run, RunStatus, Session, SessionStatus
from codehub.web import learning_presentation as presentation
from codehub.web import texts
from codehub.web.learning_presentation import Screen

NOW = datetime(2026, 3, 2, 9, tzinfo=UTC)
DAY = timedelta(days=1)
ENGLISH, KOREAN = (Locale(language, UTC, texts.TEXTS[language]) for language in ("en", "ko"))
SESSION = Session("s", "p", 0, "1", "Loops", NOW.date(), "h", SessionStatus.SCHEDULED, NOW, None, "v")
GOING = replace(SESSION, status=SessionStatus.IN_PROGRESS)
RUN = Run(
    *("r", "s", "p", "mina", "m", RunStatus.RUNNING, 1, 3, "h", None, None, NOW, NOW, None, None, None),
)
ENDED = replace(RUN, id="old", status=RunStatus.ABANDONED, end_reason=EndReason.INACTIVE)
S = Screen


@pytest.mark.parametrize(
    ("session", "runs", "held", "screen", "about"),
    [
        (SESSION, [], None, S.BEGIN, None),
        (SESSION, [replace(ENDED, step_index=0)], None, S.BEGIN, None),
        (SESSION, [ENDED], None, S.ABANDONED, "old"),
        (SESSION, [ENDED], ("old", 3), S.ABANDONED, "old"),
        (GOING, [RUN], None, S.RESUME, "r"),
        (GOING, [ENDED, RUN], ("r", 3), S.PLAY, "r"),
        (GOING, [RUN], ("r", 2), S.TAKEN_OVER, "r"),
        (GOING, [RUN], ("r", 4), S.TAKEN_OVER, "r"),  # no fence that was ever given
        (GOING, [ENDED, RUN], ("old", 3), S.TAKEN_OVER, "r"),
        (GOING, [replace(RUN, last_activity_at=NOW - DAY)], ("r", 3), S.PLAY, "r"),
        (GOING, [replace(RUN, last_activity_at=NOW - DAY - timedelta(seconds=1))], ("r", 3), S.ABANDONED, "r"),
        (GOING, [replace(RUN, step_index=0, last_activity_at=NOW - 2 * DAY)], None, S.BEGIN, None),
        (replace(SESSION, status=SessionStatus.COMPLETED), [RUN], ("r", 3), S.CLOSED, "r"),
        (replace(SESSION, status=SessionStatus.SKIPPED), [], None, S.CLOSED, None),
        (replace(SESSION, status=SessionStatus.CANCELED), [ENDED], None, S.CLOSED, "old"),
    ],
)
def test_which_screen_a_sessions_page_is(
    session: Session, runs: list[Run], held: tuple[str, int] | None, screen: Screen, about: str | None
) -> None:
    found, run = presentation.screen(session, runs, held, is_learner=True, now=NOW, recovery=DAY)
    assert (found, run and run.id) == (screen, about)
    found, _ = presentation.screen(session, runs, held, is_learner=False, now=NOW, recovery=DAY)
    assert found is (S.CLOSED if screen is S.CLOSED else S.READ_ONLY)


def test_only_its_learner_reads_a_completed_session_again() -> None:
    done, run = replace(SESSION, status=SessionStatus.COMPLETED), replace(RUN, status=RunStatus.COMPLETED)

    def screen(session: Session, runs: list[Run], *, is_learner: bool = True) -> Screen:
        asked = presentation.screen(session, runs, None, is_learner=is_learner, reads_again=True, now=NOW, recovery=DAY)
        return asked[0]

    assert screen(done, [ENDED, run]) is S.REVIEW
    assert screen(done, [run], is_learner=False) is S.CLOSED
    assert screen(replace(SESSION, status=SessionStatus.SKIPPED), [ENDED]) is S.CLOSED
    assert screen(GOING, [RUN]) is S.RESUME


@pytest.mark.parametrize(
    ("on", "english", "korean", "late"),
    [
        (date(2026, 3, 2), "Planned for today", "예정일: 오늘", False),
        (date(2026, 3, 3), "Planned for tomorrow", "예정일: 내일", False),
        (date(2026, 3, 1), "Was planned for yesterday", "예정일 지남: 어제", True),
        (date(2026, 1, 5), "Was planned for 5 Jan", "예정일 지남: 1월 5일", True),
        (date(2027, 1, 5), "Planned for 5 Jan 2027", "예정일: 2027년 1월 5일", False),
    ],
)
def test_when_it_is_to_be_done(on: date, english: str, korean: str, late: bool) -> None:
    session = replace(SESSION, scheduled_for_date=on)
    assert presentation.when(session, NOW.date(), ENGLISH) == (english, late)
    assert presentation.when(session, NOW.date(), KOREAN) == (korean, late)
    done = replace(session, status=SessionStatus.COMPLETED, changed_at=NOW - DAY)
    assert presentation.when(done, NOW.date(), ENGLISH) == ("yesterday", False), "when it was done, not when planned"
    begun = replace(done, status=SessionStatus.IN_PROGRESS)
    assert presentation.when(begun, NOW.date(), ENGLISH) == ("since yesterday", False)


def test_what_comes_next_is_what_was_begun() -> None:
    done, first, begun = (
        replace(SESSION, id=status, status=status)
        for status in (SessionStatus.COMPLETED, SessionStatus.SCHEDULED, SessionStatus.IN_PROGRESS)
    )
    assert presentation.next_session([done, first, begun]) == begun
    assert presentation.next_session([done, first]) == first
    assert presentation.next_session([done]) is None


def test_progress_is_counted_and_not_guessed() -> None:
    counts = dict.fromkeys(SessionStatus, 0) | {SessionStatus.COMPLETED: 2, SessionStatus.SCHEDULED: 3}
    assert presentation.progress(counts, ENGLISH) == "2 of 5 completed"
    counts[SessionStatus.SKIPPED] = 1
    assert presentation.progress(counts, ENGLISH) == "2 of 6 completed · 1 skipped"


@pytest.mark.parametrize(
    ("steps", "at", "shown", "place", "gaps"),
    [
        (4, 0, range(4), "Step 1 of 4", (False, False)),
        (4, 4, range(4), "Step 4 of 4", (False, False)),
        (40, 0, range(7), "Step 1 of 40", (False, True)),
        (40, 20, range(17, 24), "Step 21 of 40", (True, True)),
        (40, 39, range(33, 40), "Step 40 of 40", (True, False)),
        (40, 40, range(33, 40), "Step 40 of 40", (True, False)),
    ],
)
def test_a_long_track_is_drawn_around_the_present_step(
    steps: int, at: int, shown: range, place: str, gaps: tuple[bool, bool]
) -> None:
    track = presentation.track([Step.LEARN] * steps, at, ENGLISH)
    assert [mark.index for mark in track.marks] == list(shown)
    assert (track.place, (track.before, track.after)) == (place, gaps)
    for mark in track.marks:
        assert mark.state == ("done" if mark.index < at else "now" if mark.index == at else "later")
