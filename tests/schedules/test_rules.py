"""When lessons begin, what a schedule does next, and who is left out: tables, and what holds for every calendar."""

import itertools
from dataclasses import replace
from datetime import UTC, date, datetime, time, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codehub.schedules import rules
from codehub.schedules.model import Calendar, LastUsed, Learner, Schedule, StartOutcome, Weekday
from codehub.workspaces.model import Phase

MON, TUE, WED, SUN = Weekday.MON, Weekday.TUE, Weekday.WED, Weekday.SUN
SPREAD = timedelta(minutes=10)
ZONES = [
    "Asia/Seoul",
    "Europe/Berlin",
    "America/New_York",
    "UTC",
    "Australia/Lord_Howe",
    "Asia/Kathmandu",
    "Africa/Cairo",
]


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def calendar(zone: str = "Asia/Seoul", clock: str = "08:55", *days: Weekday, **more: date) -> Calendar:
    return Calendar(days or (MON,), time.fromisoformat(clock), zone, **more)


@pytest.mark.parametrize(
    ("zone", "clock", "day", "expected"),
    [
        ("Asia/Seoul", "08:55", date(2026, 3, 2), "2026-03-01 23:55"),  # the day before, in UTC
        ("Asia/Seoul", "08:55", date(2026, 7, 6), "2026-07-05 23:55"),  # no daylight saving: the same all year
        ("Europe/Berlin", "08:55", date(2026, 3, 23), "2026-03-23 07:55"),
        ("Europe/Berlin", "08:55", date(2026, 3, 30), "2026-03-30 06:55"),  # the same clock, an hour earlier
        ("Europe/Berlin", "08:55", date(2026, 10, 26), "2026-10-26 07:55"),
        ("Europe/Berlin", "01:59", date(2026, 3, 29), "2026-03-29 00:59"),
        ("Europe/Berlin", "02:00", date(2026, 3, 29), "2026-03-29 01:00"),  # does not exist: 03:00 is next
        ("Europe/Berlin", "02:30", date(2026, 3, 29), "2026-03-29 01:00"),
        ("Europe/Berlin", "02:59", date(2026, 3, 29), "2026-03-29 01:00"),
        ("Europe/Berlin", "03:00", date(2026, 3, 29), "2026-03-29 01:00"),
        ("Europe/Berlin", "02:30", date(2026, 10, 25), "2026-10-25 00:30"),  # exists twice: the first
        ("America/New_York", "23:30", date(2026, 3, 1), "2026-03-02 04:30"),  # the day after, in UTC
        ("Australia/Lord_Howe", "02:15", date(2026, 10, 4), "2026-10-03 15:30"),  # half an hour is skipped there
        ("Africa/Cairo", "00:30", date(2026, 4, 24), "2026-04-23 22:00"),  # the day begins at 01:00
        ("Pacific/Apia", "08:55", date(2011, 12, 30), "2011-12-30 10:00"),  # a day that was left out altogether
    ],
)
def test_the_clock_on_the_wall_decides(zone: str, clock: str, day: date, expected: str) -> None:
    assert rules.begins_on(calendar(zone, clock), day) == at(expected)


@pytest.mark.parametrize(
    ("found", "after", "expected"),
    [
        (calendar(), "2026-03-01 23:54", "2026-03-01 23:55"),
        (calendar(), "2026-03-01 23:55", "2026-03-08 23:55"),  # later than it, a week on
        (calendar("Asia/Seoul", "08:55", MON, WED), "2026-03-02 09:00", "2026-03-03 23:55"),
        (calendar("UTC", "00:00", MON), "2026-03-01 23:59", "2026-03-02 00:00"),
        (calendar("UTC", "23:59", SUN), "2026-03-02 00:00", "2026-03-08 23:59"),
        (calendar("America/New_York", "23:30", SUN), "2026-03-02 04:29", "2026-03-02 04:30"),
        (calendar("Pacific/Kiritimati", "00:10", MON), "2026-03-01 10:00", "2026-03-01 10:10"),
        (calendar("Pacific/Pago_Pago", "23:50", MON), "2026-03-03 10:00", "2026-03-03 10:50"),
        (calendar(first_day=date(2026, 4, 1)), "2026-03-02 09:00", "2026-04-05 23:55"),
        (calendar(first_day=date(2026, 3, 9)), "2026-03-02 09:00", "2026-03-08 23:55"),
        (calendar(last_day=date(2026, 3, 9)), "2026-03-02 09:00", "2026-03-08 23:55"),
        (calendar(last_day=date(2026, 3, 8)), "2026-03-02 09:00", None),
        (calendar(first_day=date(2026, 3, 3), last_day=date(2026, 3, 8)), "2026-01-01 00:00", None),
        (calendar("Europe/Berlin", "02:30", SUN), "2026-03-28 12:00", "2026-03-29 01:00"),
        (calendar("Europe/Berlin", "02:30", SUN), "2026-10-25 00:30", "2026-11-01 01:30"),  # not twice
    ],
)
def test_the_next_lesson_is_found(found: Calendar, after: str, expected: str | None) -> None:
    assert rules.next_begin(found, at(after)) == (at(expected) if expected else None)


calendars = st.builds(
    Calendar,
    st.sets(st.sampled_from(Weekday), min_size=1).map(lambda days: rules.in_order(list(days))),
    st.times().map(lambda t: t.replace(second=0, microsecond=0)),
    st.sampled_from(ZONES),
)
moments = st.integers(0, 20 * 365 * 86400).map(lambda n: at("2020-01-01 00:00") + timedelta(seconds=n))


@given(calendars, moments)
def test_every_lesson_is_on_its_day_at_its_time_or_right_after_a_gap_and_none_is_between(
    found: Calendar, after: datetime
) -> None:
    begins = rules.next_begin(found, after)
    assert begins is not None
    assert begins > after
    local = begins.astimezone(ZoneInfo(found.time_zone))
    assert rules.WEEK[local.weekday()] in found.weekdays
    if local.time().replace(fold=0) != found.local_time:  # the clocks were put forward over it
        just_before = (begins - timedelta(seconds=1)).astimezone(ZoneInfo(found.time_zone))
        assert just_before.time() < found.local_time < local.time().replace(fold=0) or just_before.date() < local.date()
    assert rules.next_begin(found, begins - timedelta(microseconds=1)) == begins


@given(calendars, moments)
def test_a_day_of_the_week_has_one_lesson_a_week_whatever_the_clocks_do(found: Calendar, after: datetime) -> None:
    zone, days, moment = ZoneInfo(found.time_zone), [], after
    for _ in range(len(found.weekdays) * 5):
        following = rules.next_begin(found, moment)
        assert following
        moment = following
        days.append(moment.astimezone(zone).date())
    assert len(set(days)) == len(days)
    assert (days[-1] - days[0]).days <= 35
    counts = {day: sum(rules.WEEK[d.weekday()] is day for d in days) for day in found.weekdays}
    assert set(counts.values()) == {5}


NOW = at("2026-03-02 09:00")
PLAIN = Schedule("s", "k", calendar(), True, "kim", NOW, None, NOW, None, None)  # next: 2026-03-08 23:55
NEXT, AFTER = at("2026-03-08 23:55"), at("2026-03-15 23:55")


@pytest.mark.parametrize(
    ("schedule", "now", "expected"),
    [
        (PLAIN, "2026-03-08 23:44", rules.NOTHING),
        (PLAIN, "2026-03-08 23:45", rules.Step(NEXT)),  # ten minutes before
        (PLAIN, "2026-03-08 23:59", rules.Step(NEXT)),  # late, and still worth it
        (PLAIN, "2026-03-09 00:10", rules.Step(NEXT)),
        (PLAIN, "2026-03-09 00:11", rules.Step(NEXT, missed=True)),
        (PLAIN, "2026-03-15 23:00", rules.Step(NEXT, missed=True)),
        (PLAIN, "2026-04-01 00:00", rules.Step(at("2026-03-29 23:55"), missed=True)),  # older ones are not noted
        (replace(PLAIN, paused_at=NOW), "2026-03-08 23:50", rules.NOTHING),
        (replace(PLAIN, skipped_through=NEXT), "2026-03-08 23:50", rules.NOTHING),
        (replace(PLAIN, skipped_through=NEXT), "2026-03-15 23:50", rules.Step(AFTER)),
        (replace(PLAIN, done_through=NEXT), "2026-03-08 23:50", rules.NOTHING),  # once
        (replace(PLAIN, calendar=calendar(last_day=date(2026, 3, 8))), "2026-03-08 23:50", rules.NOTHING),
    ],
)
def test_what_a_schedule_does_next(schedule: Schedule, now: str, expected: rules.Step) -> None:
    assert rules.step(schedule, at(now), SPREAD) == expected


@pytest.mark.parametrize(
    ("schedule", "expected"),
    [
        (PLAIN, NEXT - SPREAD),
        (replace(PLAIN, paused_at=NOW), None),
        (replace(PLAIN, skipped_through=NEXT), AFTER - SPREAD),
        (replace(PLAIN, done_through=NEXT), AFTER - SPREAD),
        (replace(PLAIN, calendar=calendar(last_day=date(2026, 3, 8))), None),
    ],
)
def test_when_a_schedule_is_looked_at(schedule: Schedule, expected: datetime | None) -> None:
    assert rules.due_at(schedule, SPREAD) == expected


@given(st.integers(0, 200), st.integers(-1200, 1800), st.integers(0, 3600))
def test_starts_are_spread_evenly_and_each_comes_before_the_lesson(count: int, seconds: int, spread: int) -> None:
    now, wide = NEXT + timedelta(seconds=seconds), timedelta(seconds=spread)
    times = rules.due_times(count, NEXT, now, wide)
    assert len(times) == count
    assert times == sorted(times)
    first = max(now, NEXT - wide)
    assert all(first <= moment for moment in times)
    if count and first < NEXT:
        assert times[0] == first
        assert times[-1] < NEXT
        gaps = {round((b - a).total_seconds(), 3) for a, b in itertools.pairwise(times)}
        assert max(gaps, default=0) - min(gaps, default=0) <= 0.002
    elif count:
        assert set(times) == {first}  # it has begun: now


MINE = LastUsed("w1", "lab", "terminal", Phase.STANDBY)
MINA = Learner("u1", "mina", "", active=True, attends=True, workspace=MINE)


@pytest.mark.parametrize(
    ("learner", "expected"),
    [
        (MINA, None),
        *((replace(MINA, workspace=replace(MINE, phase=phase)), None) for phase in (Phase.PENDING, Phase.ARCHIVED)),
        (replace(MINA, workspace=replace(MINE, phase=Phase.RUNNING)), None),
        (replace(MINA, workspace=replace(MINE, phase=Phase.ERROR)), StartOutcome.IN_ERROR),
        (replace(MINA, workspace=None), StartOutcome.NO_WORKSPACE),
        (replace(MINA, active=False), StartOutcome.INACTIVE),
        (replace(MINA, attends=False), StartOutcome.LEFT),
        (replace(MINA, attends=False, active=False, workspace=None), StartOutcome.LEFT),
    ],
)
def test_who_is_left_out_and_why(learner: Learner, expected: StartOutcome | None) -> None:
    assert rules.left_out(learner) is expected


def test_the_time_without_activity_begins_with_the_lesson() -> None:
    before = NEXT - timedelta(minutes=9)
    assert rules.awake_until(NEXT, before, 900) == NEXT + timedelta(minutes=15)
    late = NEXT + timedelta(minutes=3)
    assert rules.awake_until(NEXT, late, 900) == late + timedelta(minutes=15)
    assert rules.awake_until(NEXT, before, 0) is None


@pytest.mark.parametrize(
    ("found", "field"),
    [
        (replace(calendar(), weekdays=()), "weekdays"),
        (calendar("Mars/Olympus"), "time_zone"),
        (calendar("../etc/passwd"), "time_zone"),
        (calendar(first_day=date(2026, 3, 2), last_day=date(2026, 3, 1)), "last_day"),
        (calendar(), None),
    ],
)
def test_a_calendar_that_is_wrong_says_where(found: Calendar, field: str | None) -> None:
    complaint = rules.complaint(found)
    assert (complaint[0] if complaint else None) == field


def test_the_day_and_time_that_history_names_are_those_on_the_wall() -> None:
    found = calendar("Europe/Berlin", "02:30", SUN)
    begins = rules.begins_on(found, date(2026, 3, 29))
    assert (rules.local_day(found, begins), rules.local_clock(found, begins)) == (SUN, "03:00")
    assert (rules.local_day(calendar(), NEXT), rules.local_clock(calendar(), NEXT)) == (MON, "08:55")
