"""What people were told, compared with how long they waited: for the operator's metrics."""

import pytest

from codehub import metrics
from codehub.waiting_room import eta_check
from codehub.waiting_room.eta import Eta
from codehub.waiting_room.eta_check import Told, outcome
from tests.waiting_room.hall import EXAM, Hall


@pytest.mark.parametrize(
    ("eta", "waited", "error", "inside"),
    [
        (Eta(100, 50, 200), 100, 0.0, True),
        (Eta(100, 50, 200), 80, 0.25, True),
        (Eta(100, 50, 200), 400, 0.75, False),
        (Eta(100, 50, 200), 20, 4.0, False),
        (Eta(2, 0, 4), 1, 0.1, True),  # of ten seconds, not of one
        (Eta(0, 0, 0), 1, 0.1, True),  # the next second of the pump
    ],
)
def test_an_error_is_a_part_of_the_wait(eta: Eta, waited: float, error: float, *, inside: bool) -> None:
    found = outcome(Told(1_000.0, eta), 1_000.0 + waited)
    assert found
    assert found.error == pytest.approx(error)
    assert found.inside is inside


def test_who_was_told_that_there_is_no_end_cannot_have_been_told_wrong() -> None:
    assert outcome(Told(1_000.0, Eta(None, 5, None)), 2_000.0) is None


def compared() -> float:
    found = [s.value for m in metrics.QUEUE_ETA.collect() for s in m.samples if s.name.endswith("_total")]
    return float(sum(found))


async def test_the_pump_compares_what_it_told_with_when_the_turn_came(hall: Hall) -> None:
    before = compared()
    await hall.event(1)
    first, second = await hall.join_all("a", "b")
    await hall.tick()
    await hall.room.enter(first)
    await hall.pass_time(5 * eta_check.EVERY, second)
    assert compared() == before  # nobody's turn came
    await hall.room.give_back(await hall.person("a"), EXAM)
    await hall.tick()
    assert await hall.ready(second)
    assert compared() == before + 1


async def test_whose_turn_never_comes_is_forgotten(hall: Hall) -> None:
    before = compared()
    await hall.event(1)
    first, second, third = await hall.join_all("a", "b", "c")
    await hall.tick()
    await hall.room.enter(first)
    await hall.pass_time(5 * eta_check.EVERY, second, third)
    await hall.room.leave(second)
    await hall.room.leave(third)
    await hall.room.give_back(await hall.person("a"), EXAM)
    await hall.tick(3)
    assert compared() == before
