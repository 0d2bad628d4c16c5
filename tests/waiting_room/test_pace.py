"""What the pump measures reaches those who wait, and the next pump: real PostgreSQL and Redis."""

from codehub.waiting_room import eta_rate
from tests.waiting_room.hall import EXAM, Hall

LAST = "last"


async def seen(hall: Hall) -> float:
    return eta_rate.resumed(await hall.line.forecast(EXAM)).stays.seen


async def used_for(hall: Hall, seconds: float, token: str, *waiting: str) -> None:
    """A reservation that is given back after so long."""
    await hall.enter_when_ready(token)
    await hall.pass_time(seconds, *waiting)
    for place in await hall.places():
        await hall.room.give_back(await hall.person(place.name or ""), EXAM)


async def test_a_pump_that_takes_over_knows_how_long_places_are_kept(hall: Hall) -> None:
    await hall.event(capacity=1)
    first, second, third, last = await hall.join_all("a", "b", "c", LAST)
    for token, waiting in ((first, (second, third, last)), (second, (third, last))):
        await used_for(hall, 120, token, *waiting)
    await hall.enter_when_ready(third)
    await hall.pass_time(10, last)
    assert await seen(hall) == 2
    told = await hall.status(last)
    assert told.eta_high_sec
    assert told.eta_low_sec <= (told.eta_sec or 0) <= told.eta_high_sec
    successor = hall.another()
    try:
        await successor.pass_time(10, last)
        assert await seen(successor) == 2
    finally:
        await successor.aclose()


async def test_who_is_ready_waits_no_longer_and_polls_often(hall: Hall) -> None:
    await hall.event(capacity=1)
    token, other = await hall.join_all("a", "b")
    await hall.tick()
    ready, behind = await hall.status(token), await hall.status(other)
    assert (ready.ready_for_entry, ready.eta_sec, ready.eta_high_sec, ready.poll_after_ms) == (True, 0, 0, 2000)
    assert (behind.eta_high_sec or 0) > 60  # the free place is taken, and told so in the same round


async def test_a_passed_person_is_told_the_wait_of_the_last(hall: Hall) -> None:
    await hall.event(capacity=1)
    idle, *others = await hall.join_all("idle", "a", "b", "c")
    await hall.tick()
    await hall.pass_time(75, idle, *others)
    await hall.pass_time(10, idle, *others)
    told = [await hall.status(token) for token in (idle, others[-1])]
    assert told[0].passed
    assert (told[0].eta_sec or 0) >= (told[1].eta_sec or 0) > 0
