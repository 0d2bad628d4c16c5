"""How long samples are kept, and how many become one."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from codehub.monitoring import rules
from codehub.monitoring.model import Resolution, Sample

calmly = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])  # on a busy machine, too
START = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)


def sample(minute: int = 0, **values: object) -> Sample:
    at = START + timedelta(minutes=minute)
    zero = dict.fromkeys(("running", "asleep", "stored", "pending", "broken"), 0.0)
    none = dict.fromkeys(("waiting", "disk_free_bytes", "loop_lag_seconds", "slowest_loop"))
    counts = dict.fromkeys(("active_workspaces", "active_people", "archive_bytes"), 0)
    return Sample(**{"at": at, "taken_at": at, "minutes": 1, **zero, **none, **counts, **values})  # type: ignore[arg-type]


def test_the_table_has_at_most_five_thousand_rows() -> None:
    assert rules.most_rows() == (1440 + 1) + (14 * 96 + 1) + (92 * 24 + 1) == 4995


def test_several_become_one_by_what_an_operator_asks_of_each_figure() -> None:
    merged = rules.merge(
        [
            sample(0, running=2.0, active_people=3, waiting=None, archive_bytes=5, disk_free_bytes=9, wakes=()),
            sample(1, running=4.0, active_people=1, waiting=7, archive_bytes=4, disk_free_bytes=8),
            sample(2, running=6.0, waiting=1, archive_bytes=6, loop_lag_seconds=2.5, slowest_loop="ttl"),
        ],
        START,
    )
    assert (merged.running, merged.minutes) == (4.0, 3)
    assert (merged.active_people, merged.waiting) == (3, 7)
    assert (merged.archive_bytes, merged.disk_free_bytes) == (6, 8)
    assert (merged.loop_lag_seconds, merged.slowest_loop) == (2.5, "ttl")


def test_two_leaders_in_one_minute_count_each_wake_and_no_minute_twice() -> None:
    first, second = sample(running=2, wakes=rules.histogram([1.0])), sample(running=4, wakes=rules.histogram([2.0]))
    both = rules.same_minute(first, second)
    assert (both.minutes, both.running, sum(both.wakes)) == (1, 4, 2)
    assert rules.same_minute(None, second) == second


Samples = st.lists(
    st.builds(
        lambda minute, running, waiting, wakes: sample(
            minute, running=float(running), waiting=waiting, archive_bytes=minute, wakes=rules.histogram(wakes)
        ),
        st.integers(0, 10_000),
        st.integers(0, 1000),
        st.none() | st.integers(0, 1000),
        st.lists(st.floats(0.01, 2000), max_size=5),
    ),
    min_size=2,
    max_size=8,
    unique_by=lambda s: s.at,
)


@calmly
@given(Samples, st.integers(1, 7))
def test_merging_in_steps_gives_what_merging_at_once_gives(samples: list[Sample], cut: int) -> None:
    first, rest = samples[:cut], samples[cut:]
    if not rest:
        return
    at_once = rules.merge(samples, START)
    in_steps = rules.merge([rules.merge(first, START), rules.merge(rest, START)], START)
    assert in_steps.running == pytest.approx(at_once.running)
    assert (in_steps.minutes, in_steps.waiting, in_steps.wakes, in_steps.archive_bytes) == (
        at_once.minutes,
        at_once.waiting,
        at_once.wakes,
        at_once.archive_bytes,
    )


@calmly
@given(st.lists(st.floats(0.1, 500), min_size=1, max_size=50), st.sampled_from([0.5, 0.99]))
def test_a_quantile_is_told_to_within_twelve_percent(seconds: list[float], part: float) -> None:
    exact = sorted(seconds)[max(0, -(-len(seconds) * int(part * 100) // 100) - 1)]
    told = rules.quantile(rules.histogram(seconds), part)
    assert told is not None
    assert exact / 1.1181 <= told <= exact * 1.1181


def test_of_no_wakes_there_is_no_quantile_and_of_endless_ones_there_is() -> None:
    assert rules.histogram([]) == ()
    assert rules.quantile((), 0.5) is None
    assert rules.quantile(rules.histogram([1e6]), 0.99) is not None


@calmly
@given(st.datetimes(datetime(2000, 1, 1), datetime(2100, 1, 1), timezones=st.just(UTC)), st.sampled_from(Resolution))  # noqa: DTZ001
def test_every_moment_lies_in_the_interval_that_begins_before_it(moment: datetime, resolution: Resolution) -> None:
    at = rules.beginning(moment, resolution)
    assert at <= moment < at + timedelta(seconds=resolution)
    assert rules.beginning(at, resolution) == at
    assert 0 < rules.until_next_minute(moment) <= 60
