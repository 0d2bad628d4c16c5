"""How long a wait is told to be: the table that travels, its bounds, and that simulated waits lie between them."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from codehub.waiting_room import eta, eta_rate
from tests.waiting_room import eta_figures
from tests.waiting_room.eta_scenarios import ALL, alone, coming
from tests.waiting_room.eta_simulation import EPOCH, Room, Scenario

COUNTS = st.integers(0, 5000)
SHORT = Scenario("short", [(0, 20)], alone(120), coming(0.15, 600, crowd=40))
SLICE = ("steady", "many ghosts", "bursty", "capacity changes", "later classes")


def seen(at: float = 0.0, **more: object) -> eta_rate.Seen:
    usual: dict[str, object] = {"live": 10, "joined": 20, "granted": 0, "capacity": 5, "taken": [EPOCH] * 5}
    return eta_rate.Seen(at=EPOCH + at, **(usual | more))  # type: ignore[arg-type]


def told(estimate: eta_rate.Estimate, ahead: int | None, at: float = 0.0) -> eta.Eta:
    return eta.predict(eta.read(estimate.text), ahead, EPOCH + at)


def test_before_anything_was_measured_a_place_takes_two_seconds() -> None:
    for estimate in (eta.NOTHING_KNOWN, eta.read(""), eta.read("nonsense|1")):
        found = eta.predict(estimate, 6, EPOCH)
        assert found.eta_sec == 14
        assert found.low_sec == 0
    first = eta_rate.observe(eta_rate.Estimate(), seen(taken=[EPOCH] * 5))
    assert 8 <= (told(first, 4).eta_sec or 0) <= 12


def test_the_first_wait_nothing_while_places_are_free() -> None:
    estimate = eta_rate.observe(eta_rate.Estimate(), seen(capacity=8))
    assert told(estimate, 2).high_sec == 3
    assert (told(estimate, 3).high_sec or 0) > 3


def test_no_offer_is_promised_before_the_opening() -> None:
    estimate = eta_rate.observe(eta_rate.Estimate(), seen(taken=[], not_before=EPOCH + 600))
    assert told(estimate, 0).low_sec == 600
    assert 600 <= (told(estimate, 0).eta_sec or 0) <= 602
    assert told(estimate, 0, at=590).low_sec == 10


def test_while_paused_only_the_lower_bound_is_told() -> None:
    found = told(eta_rate.observe(eta_rate.Estimate(), seen(paused=True)), 3)
    assert found.eta_sec is None
    assert found.high_sec is None
    assert eta.poll_after_ms(found, 90) == 10_000


def test_an_event_with_a_rate_of_its_own_is_counted_exactly() -> None:
    estimate = eta_rate.observe(
        eta_rate.Estimate(), seen(live=100, capacity=500, per_minute=30, next_grant_at=EPOCH + 2)
    )
    assert 99 <= (told(estimate, 49).eta_sec or 0) <= 102


def test_while_a_lottery_keeps_the_order_a_wait_is_between_the_first_and_the_last() -> None:
    estimate = eta_rate.observe(eta_rate.Estimate(), seen(live=100))
    assert told(estimate, None).low_sec == told(estimate, 0).low_sec
    assert told(estimate, None).high_sec == told(estimate, 100).high_sec


def test_a_pump_that_starts_anew_knows_what_the_last_one_found_out() -> None:
    room = Room(SHORT, seed=0)
    room.run()
    again = eta_rate.resumed(room.estimate.text)
    assert room.estimate.stays.seen > 50
    assert again.stays.seen == pytest.approx(room.estimate.stays.seen, rel=0.01)
    assert again.bursts.number == pytest.approx(room.estimate.bursts.number, rel=0.01)
    assert len(again.text) < 800
    assert again.table == eta.read(room.estimate.text)
    assert eta_rate.resumed(again.text).text == again.text
    assert eta_rate.resumed("") == eta_rate.resumed("1|x") == eta_rate.Estimate()


@settings(max_examples=50, deadline=None)
@given(
    st.lists(st.tuples(st.floats(0.5, 500), COUNTS, st.integers(0, 60), COUNTS), max_size=6),
    COUNTS,
    st.none() | st.floats(0.1, 6000),
)
def test_bounds_are_ordered_whatever_is_seen(
    rounds: list[tuple[float, int, int, int]], ahead: int, rate: float | None
) -> None:
    estimate, at = eta_rate.Estimate(), 0.0
    for seconds, live, taken, joined in rounds:
        at += seconds
        since = [EPOCH + at - n * seconds for n in range(taken)]
        now = seen(at, live=live, joined=joined, taken=since, capacity=30, per_minute=rate, granted=taken // 3)
        estimate = eta_rate.observe(estimate, now)
    near, far = told(estimate, ahead, at), told(estimate, ahead + 7, at)
    for found in (near, far):
        assert found.eta_sec is not None
        assert found.high_sec is not None
        assert 0 <= found.low_sec <= found.eta_sec <= found.high_sec
    assert near.low_sec <= far.low_sec
    assert (near.high_sec or 0) <= (far.high_sec or 0)


@settings(deadline=None)
@given(st.integers(0, 10**7), st.integers(0, 10**7), st.floats(15, 600))
def test_nobody_polls_so_seldom_that_they_fall_silent(low: int, more: int, silent: float) -> None:
    found = eta.poll_after_ms(eta.Eta(low + more, low, low + 2 * more), silent)
    assert min(2000, silent * 1000 / 3) - 1 <= found <= silent * 1000 / 3
    assert eta.poll_after_ms(eta.Eta(15, 5, 40), 90) == 2000


def test_a_reservation_that_becomes_a_workspace_is_no_departure() -> None:
    estimate = eta_rate.observe(eta_rate.Estimate(), seen(0, taken=[EPOCH - 900, EPOCH - 20]))
    started = eta_rate.observe(estimate, seen(6, taken=[EPOCH - 900, EPOCH + 4]))
    assert started.stays.seen == 0
    assert eta_rate.observe(started, seen(12, taken=[EPOCH + 4])).stays.seen == 1


def test_a_pause_and_an_added_place_are_told_in_the_next_round() -> None:
    estimate = eta_rate.observe(eta_rate.Estimate(), seen())
    assert eta_rate.observe(estimate, seen(1)).table is estimate.table
    assert eta_rate.observe(estimate, seen(1, paused=True)).table.endless
    assert told(eta_rate.observe(estimate, seen(1, capacity=6)), 0, at=1).high_sec == 3


def test_a_line_that_moves_as_expected_is_told_less_and_less() -> None:
    people = Room(SHORT, seed=1).run()
    shown = [pair for person in people for pair in zip(person.shown, person.shown[1:], strict=False)]
    rises = [(before, after) for before, after in shown if after > before + max(3, before / 20)]
    assert len(shown) > 500
    assert len(rises) / len(shown) < 0.02


@pytest.mark.parametrize("name", SLICE)
def test_simulated_waits_lie_between_their_bounds(name: str) -> None:
    scenario = next(one for one in ALL if one.name == name)
    found = eta_figures.simulated(scenario, seed=0)
    print(f"{name}: {found.coverage:.3f} in bounds, error {found.error:.3f}, of the seed {found.seed_error:.3f}")
    assert len(found.samples) > 2000
    assert found.coverage >= 0.90
    assert found.error < found.seed_error / 2
    if scenario.steady:
        assert found.error <= 0.15
        assert found.ratio <= 3


def test_a_wait_without_an_end_is_told_as_a_month() -> None:
    """Where no place is ever given back, what is expected grows beyond what a page or a program can use."""
    table = eta.read("1|0.0|0.0|0|5|0,5e10,6e10,inf;5,5e11,6e11,7e11")
    assert eta.predict(table, 3, 0.0) == eta.Eta(2_592_000, 2_592_000, 2_592_000)
