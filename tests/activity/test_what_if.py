"""What another time to sleep would have done: a table of pasts, and what is true of all of them."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from codehub.activity import what_if
from codehub.activity.what_if import Between, End, Past, Run, Stretch

START = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)
NOW = START + timedelta(hours=24)
TTL, ARCHIVE = 600, 1800


def at(minutes: float) -> datetime:
    return START + timedelta(minutes=minutes)


def slept(began: float, idle: float, back: float | None = None, *, held: float = 0, **more: object) -> Run:
    """Put to sleep ten minutes after the last work; `held`: something kept it awake for so much longer."""
    following = {"next_at": None if back is None else at(back), "came_back": back is not None}
    return Run(at(began), at(idle + 10 + held), End.TIMER, idle_since=at(idle), seconds=TTL, **(following | more))  # type: ignore[arg-type]


def stretch(began: float, ended: float, kept: float | None = None) -> Stretch:
    return Stretch(at(began), at(ended), None if kept is None else at(kept))


def ask(run: Run, standby_minutes: float, archive: int = 0) -> tuple[float, float, float]:
    """Minutes that it would have run, sleeps and wakes, where all is known."""
    found = what_if.would([Past([run])], int(standby_minutes * 60), archive, NOW)
    assert all(between.low == between.high for between in vars(found).values())
    return round(found.hours.high * 60, 6), found.sleeps.high, found.wakes.high


CASES = {
    "the same time does the same": (slept(0, 60, 90), 10, (70, 1, 1)),
    "a longer one bridges a short absence": (slept(0, 60, 75), 15, (75, 0, 0)),
    "a longer one only delays before a long absence": (slept(0, 60, 90), 15, (75, 1, 1)),
    "whoever never comes back wakes nothing": (slept(0, 60), 20, (80, 1, 0)),
    "a shorter one sleeps earlier": (slept(0, 60, 90), 5, (65, 1, 1)),
    "never runs until it is wanted again": (slept(0, 60, 90), 0, (90, 0, 0)),
    "never runs until now": (slept(0, 60), 0, (24 * 60, 0, 0)),
    "a shorter one sleeps in the middle": (slept(0, 60, 90, stretches=(stretch(20, 29),)), 5, (65 - 4, 2, 2)),
    "a stretch that is shorter still changes nothing": (slept(0, 60, stretches=(stretch(20, 29),)), 9, (69, 1, 0)),
    "what kept it awake in the middle does so again": (slept(0, 60, stretches=(stretch(20, 29, 28),)), 5, (64, 2, 1)),
    "what kept it awake at the end does so again": (slept(0, 60, held=30), 5, (100, 1, 0)),
    "and for a longer time it is no reason": (slept(0, 60, held=30), 60, (120, 1, 0)),
    "what a person put to sleep sleeps then": (Run(at(0), at(60), End.ASKED), 30, (60, 0, 0)),
    "unless it slept already": (
        Run(at(0), at(60), End.ASKED, (stretch(40, 60),), next_at=at(80), came_back=True),
        10,
        (50, 1, 1),
    ),
    "what ended by itself ends then": (Run(at(0), at(60), End.GONE), 30, (60, 0, 0)),
    "what is deleted meanwhile ends there": (
        slept(0, 60, next_at=at(80), came_back=False),
        30,
        (80, 0, 0),
    ),
    "what runs yet would sleep by now": (
        Run(at(0), NOW, End.STILL, idle_since=at(24 * 60 - 7)),
        6,
        (24 * 60 - 1, 1, 0),
    ),
    "what runs yet and is held would not": (
        Run(at(0), NOW, End.STILL, idle_since=at(24 * 60 - 7), kept_until=NOW + timedelta(hours=1)),
        6,
        (24 * 60, 0, 0),
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_a_run_with_another_time(case: str) -> None:
    run, minutes, expected = CASES[case]
    assert ask(run, minutes) == expected


def test_what_sleeps_for_long_enough_is_stored_away() -> None:
    pasts = [Past([slept(0, 60, 100), slept(100, 160, 400)]), Past([slept(0, 60)]), Past([slept(0, 60)], 0)]
    found = what_if.would(pasts, TTL, ARCHIVE, NOW)
    assert (found.stored, found.restores) == (Between(2, 2), Between(1, 1))
    found = what_if.would(pasts, TTL, 6 * 3600, NOW)
    assert (found.stored, found.restores) == (Between(1, 1), Between(0, 0))
    assert what_if.would(pasts, TTL, 0, NOW).stored == Between(0, 0)


def test_where_idle_stretches_are_not_known_the_answer_has_two_ends() -> None:
    run = slept(0, 60, 90, seen=False)
    found = what_if.would([Past([run])], 300, 0, NOW)
    assert (found.sleeps, found.wakes) == (Between(1, 13), Between(1, 13))
    assert found.hours.high * 60 == pytest.approx(65)
    assert found.hours.low * 60 == pytest.approx(65 - 6 * 5)  # six absences of almost ten minutes
    longer = what_if.would([Past([run])], 1200, 0, NOW)
    assert longer.sleeps == Between(1, 1)  # what was shorter than the old time puts nothing to sleep by a longer one


def test_shorter_than_what_is_noted_is_not_known_either() -> None:
    found = what_if.would([Past([slept(0, 60)])], 120, 0, NOW)
    assert found.sleeps == Between(1, 31)
    assert found.hours.low < found.hours.high


# --- what is true of every past -------------------------------------------------------------------------------------


@st.composite
def a_past(draw: st.DrawFn) -> Past:
    """As the timer of ten minutes makes them: no absence in a run is longer than that."""
    runs, now = [], 0.0
    for _ in range(draw(st.integers(0, 5))):
        began, stretches = now, []
        for _ in range(draw(st.integers(0, 4))):
            now += draw(st.floats(1, 60))
            length = draw(st.floats(5, 9.9))
            kept = draw(st.none() | st.floats(0, 12).map(lambda more, now=now: now + more))  # type: ignore[misc]
            stretches.append(stretch(now, now + length, kept))
            now += length
        now += draw(st.floats(1, 60))
        seen, end = draw(st.booleans()), draw(st.sampled_from([End.TIMER, End.ASKED, End.GONE]))
        idle, ended = now, now + 10 if end is End.TIMER else now
        now = ended + draw(st.floats(0.1, 200))
        common = {"seen": seen, "next_at": at(now), "came_back": draw(st.booleans()), "seconds": TTL}
        since = at(idle) if end is End.TIMER else None
        stored = end in {End.TIMER, End.ASKED} and (at(now) - at(ended)).total_seconds() > ARCHIVE
        runs.append(Run(at(began), at(ended), end, tuple(stretches), since, stored=stored, **common))  # type: ignore[arg-type]
    return Past(runs)


UNTIL = START + timedelta(days=10)
Pasts = st.lists(a_past(), max_size=4)
Seconds = st.integers(30, 7200)
calmly = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])  # on a busy machine, too


@calmly
@given(Pasts)
def test_the_time_that_was_set_would_have_done_what_was_done(pasts: list[Past]) -> None:
    was, would = what_if.did(pasts, UNTIL), what_if.would(pasts, TTL, ARCHIVE, UNTIL)
    for name in ("sleeps", "wakes", "stored", "restores"):
        assert getattr(would, name) == getattr(was, name)
    assert would.hours.high == pytest.approx(was.hours.high)
    assert would.hours.low == pytest.approx(would.hours.high)


@calmly
@given(Pasts, Seconds, Seconds)
def test_a_longer_time_never_gives_more_sleeps_or_wakes_nor_less_running(pasts: list[Past], a: int, b: int) -> None:
    short, long = sorted((a, b))
    more, less = (what_if.would(pasts, seconds, ARCHIVE, UNTIL) for seconds in (short, long))
    for a_few, many in ((less.sleeps, more.sleeps), (less.wakes, more.wakes)):
        assert a_few.low <= many.low
        assert a_few.high <= many.high
    assert less.hours.low >= more.hours.low - 1e-9
    assert less.hours.high >= more.hours.high - 1e-9


@calmly
@given(Pasts, Seconds)
def test_never_is_the_longest_time_of_all(pasts: list[Past], seconds: int) -> None:
    never, some = (what_if.would(pasts, standby, ARCHIVE, UNTIL) for standby in (0, seconds))
    assert never.sleeps.high <= some.sleeps.low
    assert never.hours.low >= some.hours.high - 1e-9


@calmly
@given(Pasts, Seconds, st.integers(60, 86400), st.integers(60, 86400))
def test_a_longer_time_until_it_is_stored_away_never_stores_more(
    pasts: list[Past], standby: int, a: int, b: int
) -> None:
    short, long = sorted((a, b))
    more, less = (what_if.would(pasts, standby, seconds, UNTIL) for seconds in (short, long))
    assert (less.stored.low <= more.stored.low, less.restores.low <= more.restores.low) == (True, True)
    assert (less.hours, less.sleeps, less.wakes) == (more.hours, more.sleeps, more.wakes)


@calmly
@given(Pasts, Seconds)
def test_bounds_hold_what_they_are_between(pasts: list[Past], standby: int) -> None:
    found = what_if.would(pasts, standby, ARCHIVE, UNTIL)
    assert all(0 <= b.low <= b.high + 1e-9 for b in (found.sleeps, found.wakes, found.stored, found.restores))
    assert -1e-9 <= found.hours.low <= found.hours.high + 1e-9
    assert found.restores.high <= found.stored.high
    assert found.stored.low <= found.sleeps.low + sum(r.end is End.ASKED for p in pasts for r in p.runs)
