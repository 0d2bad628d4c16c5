"""Plans, sessions and steps in words and signs: badges, days, progress, the track of steps. Pure.

`learning_view` and `player_view` put it on pages.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from enum import Enum

from codehub.i18n.locales import Locale
from codehub.sessions import rules
from codehub.sessions.blueprint import Step
from codehub.sessions.model import Run, RunStatus, Session, SessionStatus

SIGNS = {
    SessionStatus.SCHEDULED: "○",
    SessionStatus.IN_PROGRESS: "◐",
    SessionStatus.COMPLETED: "✓",
    SessionStatus.SKIPPED: "»",
    SessionStatus.CANCELED: "✕",
}
OPEN = (SessionStatus.IN_PROGRESS, SessionStatus.SCHEDULED)
TRACK = 7  # steps that are drawn at most; of more, those around the present one


@dataclass(frozen=True)
class Badge:
    status: SessionStatus
    sign: str
    word: str


def badge(status: SessionStatus, locale: Locale) -> Badge:
    return Badge(status, SIGNS[status], locale.say(f"session_{status.lower()}"))


# --- days -----------------------------------------------------------------------------------------------------------


def today(now: datetime, locale: Locale) -> date:
    return now.astimezone(locale.zone).date()


def day(on: date, today_: date, locale: Locale) -> str:
    """`today`, `tomorrow`, `3 Nov`, `3 Nov 2027`."""
    near = {0: "day_today", 1: "day_tomorrow", -1: "day_yesterday"}.get((on - today_).days)
    if near:
        return locale.say(near)
    month = locale.say("months").split(" ")[on.month - 1]
    return locale.say("day_this_year" if on.year == today_.year else "day_other", day=on.day, month=month, year=on.year)


def when(session: Session, today_: date, locale: Locale) -> tuple[str, bool]:
    """When what its state says happened; of what is ahead, when it is planned, and whether that is past."""
    if session.status is SessionStatus.SCHEDULED:
        late = session.scheduled_for_date < today_
        on = day(session.scheduled_for_date, today_, locale)
        return locale.say("session_overdue" if late else "session_planned", day=on), late
    happened = day(today(session.changed_at, locale), today_, locale)
    if session.status is SessionStatus.IN_PROGRESS:
        return locale.say("session_since", day=happened), False
    return happened, False


# --- plans ----------------------------------------------------------------------------------------------------------


def next_session(sessions: Sequence[Session]) -> Session | None:
    """The one to go on with: what was begun, else the first that is open."""
    for status in OPEN:
        if found := next((session for session in sessions if session.status is status), None):
            return found
    return None


def progress(counts: Mapping[SessionStatus, int], locale: Locale) -> str:
    """Completed of total, and what else there is: counted, not guessed."""
    total = sum(counts.values())
    done = locale.say("plan_progress", done=counts[SessionStatus.COMPLETED], total=total)
    others = (SessionStatus.IN_PROGRESS, SessionStatus.SKIPPED, SessionStatus.CANCELED)
    counted = [locale.say(f"plan_{status.lower()}", n=counts[status]) for status in others if counts[status]]
    return " · ".join([done, *counted])


# --- the track of steps ---------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Mark:
    """A step on the track."""

    index: int
    kind: Step
    word: str
    state: str  # `done`, `now`, `later`


@dataclass(frozen=True)
class Track:
    marks: tuple[Mark, ...]
    place: str  # "Step 2 of 4"
    before: bool  # are steps left out before the first one that is drawn
    after: bool


def track(steps: Sequence[Step], at: int, locale: Locale) -> Track:
    """`at`: the step to be done next; the number of steps when all are done."""
    first = 0 if len(steps) <= TRACK else max(0, min(at - TRACK // 2, len(steps) - TRACK))
    shown = range(first, min(len(steps), first + TRACK))
    marks = tuple(
        Mark(i, steps[i], locale.say(f"step_{steps[i].lower()}"), "done" if i < at else "now" if i == at else "later")
        for i in shown
    )
    place = locale.say("step_place", n=min(at + 1, len(steps)), total=len(steps))
    return Track(marks, place, first > 0, first + TRACK < len(steps))


# --- which screen a session's page is -------------------------------------------------------------------------------


class Screen(Enum):
    CLOSED = "closed"  # completed, skipped or canceled
    REVIEW = "review"  # completed, and its learner reads it again
    READ_ONLY = "read_only"  # another person's
    BEGIN = "begin"  # no run yet, or none that got anywhere
    ABANDONED = "abandoned"  # a run got somewhere and has ended: go on from there, or anew
    RESUME = "resume"  # a run goes on, and this page does not have it
    TAKEN_OVER = "taken_over"  # this page had it, and another has it now
    PLAY = "play"


def screen(
    session: Session,
    runs: Sequence[Run],
    held: tuple[str, int] | None,
    *,
    is_learner: bool,
    reads_again: bool = False,
    now: datetime,
    recovery: timedelta,
) -> tuple[Screen, Run | None]:
    """And the run it is about. `runs`: all of the session, oldest first; `held`: run and fence as the address says."""
    last = runs[-1] if runs else None
    if reads_again and is_learner and last and last.status is RunStatus.COMPLETED:
        return Screen.REVIEW, last
    if session.status not in OPEN:
        return Screen.CLOSED, last
    if not is_learner:
        return Screen.READ_ONLY, last
    if last is None or (last.status is not RunStatus.RUNNING and last.step_index == 0):
        return Screen.BEGIN, None
    if last.status is not RunStatus.RUNNING or rules.is_inactive(last.last_activity_at, now, recovery):
        return (Screen.ABANDONED, last) if last.step_index else (Screen.BEGIN, None)
    if held is None:
        return Screen.RESUME, last
    return (Screen.PLAY if held == (last.id, last.fence) else Screen.TAKEN_OVER), last
