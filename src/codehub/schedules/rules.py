"""When lessons begin, what a schedule does next, and who is left out. Pure; `now` is an argument.

A lesson's date and time are those on the wall of its time zone. Where clocks are put forward, a time that does not
exist becomes the next one that does; where they are put back, one that exists twice is taken once, the first time.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta, tzinfo
from zoneinfo import ZoneInfo

from codehub.i18n.locales import zone
from codehub.schedules.model import Calendar, Learner, Schedule, StartOutcome, Weekday
from codehub.workspaces.model import Phase

GRACE = timedelta(minutes=15)  # a lesson that began longer ago is not prepared any more
FORGET = timedelta(days=7)  # lessons that were missed longer ago are not even noted
WEEK = tuple(Weekday)
AT_MOST = 20  # schedules of one class
# A lesson lies within these days of the date it is looked for from: a week, and a day more for each end's time zone.
DAYS_AHEAD = 9
SECOND = timedelta(seconds=1)


def complaint(calendar: Calendar) -> tuple[str, str] | None:
    """The field that is wrong, and why."""
    if not calendar.weekdays:
        return "weekdays", "choose at least one day"
    if zone(calendar.time_zone) is None:
        return "time_zone", "a name like Asia/Seoul"
    if calendar.first_day and calendar.last_day and calendar.last_day < calendar.first_day:
        return "last_day", "must not be before the first day"
    return None


def in_order(weekdays: Sequence[Weekday]) -> tuple[Weekday, ...]:
    return tuple(day for day in WEEK if day in weekdays)


def begins_on(calendar: Calendar, day: date) -> datetime:
    """The moment, whatever the clocks do on that day. In UTC."""
    place = _zone(calendar)
    local = datetime.combine(day, calendar.local_time)
    moment = local.replace(tzinfo=place, fold=0).astimezone(UTC)
    if moment.astimezone(place).replace(tzinfo=None) == local:
        return moment
    return _end_of_gap(local, place)


def _end_of_gap(local: datetime, place: tzinfo) -> datetime:
    """When clocks were put forward over this time: between it by the offset after that, and by the one before."""
    early = local.replace(tzinfo=place, fold=1).astimezone(UTC)
    late = local.replace(tzinfo=place, fold=0).astimezone(UTC)
    before = early.astimezone(place).utcoffset()
    while late - early > SECOND:
        middle = early + (late - early) // 2
        if middle.astimezone(place).utcoffset() == before:
            early = middle
        else:
            late = middle
    return late.replace(microsecond=0)


def _zone(calendar: Calendar) -> tzinfo:
    return zone(calendar.time_zone) or ZoneInfo("UTC")  # a machine without this zone's data


def next_begin(calendar: Calendar, after: datetime) -> datetime | None:
    """The first lesson that begins later than this; None: there is none any more."""
    day = after.astimezone(_zone(calendar)).date() - timedelta(days=1)
    day = max(day, calendar.first_day or day)
    for ahead in range(DAYS_AHEAD + 1):
        candidate = day + timedelta(days=ahead)
        if calendar.last_day and candidate > calendar.last_day:
            return None
        if WEEK[candidate.weekday()] in calendar.weekdays and (moment := begins_on(calendar, candidate)) > after:
            return moment
    return None


def upcoming(schedule: Schedule, now: datetime) -> datetime | None:
    """The next lesson, for people: later than now, and not skipped."""
    return None if schedule.paused_at else next_begin(schedule.calendar, _handled(schedule, now))


def _handled(schedule: Schedule, moment: datetime) -> datetime:
    return max(moment, schedule.skipped_through or moment)


def due_at(schedule: Schedule, spread: timedelta) -> datetime | None:
    """When it has to be looked at: so long before its next lesson."""
    if schedule.paused_at:
        return None
    begins = next_begin(schedule.calendar, _handled(schedule, schedule.done_through))
    return begins - spread if begins else None


@dataclass(frozen=True)
class Step:
    """What a schedule that is due does: prepares a lesson, notes that one was missed, or nothing yet."""

    begins_at: datetime | None
    missed: bool = False


NOTHING = Step(None)


def step(schedule: Schedule, now: datetime, spread: timedelta) -> Step:
    if schedule.paused_at:
        return NOTHING
    begins = next_begin(schedule.calendar, max(_handled(schedule, schedule.done_through), now - FORGET))
    if begins is None or begins - spread > now:
        return NOTHING
    return Step(begins, missed=is_too_late(begins, now))


def is_too_late(begins_at: datetime, now: datetime) -> bool:
    return now > begins_at + GRACE


def due_times(count: int, begins_at: datetime, now: datetime, spread: timedelta) -> list[datetime]:
    """For so many starts: evenly over the time that is left until the lesson, the last one before it begins."""
    first = max(begins_at - spread, now)
    left = max(begins_at - first, timedelta(0))
    return [first + left * place / count for place in range(count)]


def left_out(learner: Learner) -> StartOutcome | None:
    """Why nothing is started for this learner, as far as it can be said beforehand."""
    if not learner.attends:
        return StartOutcome.LEFT
    if not learner.active:
        return StartOutcome.INACTIVE
    if learner.workspace is None:
        return StartOutcome.NO_WORKSPACE
    return StartOutcome.IN_ERROR if learner.workspace.phase is Phase.ERROR else None


def awake_until(begins_at: datetime, now: datetime, standby_seconds: int) -> datetime | None:
    """As if its learner had come when the lesson began. None: it does not sleep by itself."""
    return max(begins_at, now) + timedelta(seconds=standby_seconds) if standby_seconds else None


def local_day(calendar: Calendar, begins_at: datetime) -> Weekday:
    return WEEK[begins_at.astimezone(_zone(calendar)).weekday()]


def local_clock(calendar: Calendar, begins_at: datetime) -> str:
    """`08:55`, on the wall of the lesson."""
    return f"{begins_at.astimezone(_zone(calendar)):%H:%M}"
