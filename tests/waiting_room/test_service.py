"""The seed's four scenarios, and what a waiting person is promised, at the service: real PostgreSQL and Redis."""

import pytest

from codehub.waiting_room import keys
from codehub.waiting_room.errors import (
    AlreadyAdmittedError,
    EventClosedError,
    EventNotFoundError,
    NotYourTurnError,
    TokenExpiredError,
)
from codehub.waiting_room.model import State
from tests.waiting_room.hall import EXAM, Hall


async def test_who_keeps_polling_stays_in_line(hall: Hall) -> None:
    await hall.event(capacity=0)
    token = await hall.join("user1")
    beat = keys.heartbeat(EXAM, hall.pid(token))
    for _ in range(150):
        await hall.clock.advance(2)
        assert (await hall.status(token)).position == 1
        assert 290 < await hall.client.ttl(beat) <= 300
    await hall.tick()
    assert (await hall.status(token)).waiting_time == 300


async def test_who_closes_the_browser_is_out_after_five_minutes_and_others_move_up(hall: Hall) -> None:
    await hall.event(capacity=0)
    gone, other = await hall.join_all("user2", "other")
    await hall.status(gone)
    assert await hall.positions(other) == [2]
    await hall.pass_time(295, other)
    assert await hall.positions(other) == [2]
    await hall.pass_time(10, other)
    assert await hall.positions(other) == [1]
    with pytest.raises(TokenExpiredError):
        await hall.status(gone)


async def test_leaving_takes_effect_at_once_and_may_be_repeated(hall: Hall) -> None:
    await hall.event(capacity=0)
    leaves, stays = await hall.join_all("user3", "stays")
    await hall.room.leave(leaves)
    assert await hall.positions(stays) == [1]
    assert not await hall.client.exists(keys.heartbeat(EXAM, hall.pid(leaves)), keys.waiting(EXAM, hall.pid(leaves)))
    await hall.room.leave(leaves)
    with pytest.raises(TokenExpiredError):
        await hall.status(leaves)


async def test_entering_reserves_a_place_and_ends_the_token(hall: Hall) -> None:
    await hall.event(capacity=1)
    token = await hall.join("user1")
    with pytest.raises(NotYourTurnError) as refused:
        await hall.room.enter(token)
    assert refused.value.extra == {"position": 1}
    reservation = await hall.enter_when_ready(token)
    assert (reservation.expires_at - hall.clock.now()).total_seconds() == 300
    assert await hall.room.enter(token) == reservation
    assert await hall.room.place(await hall.person("user1"), EXAM) == reservation
    with pytest.raises(TokenExpiredError):
        await hall.status(token)
    assert await hall.in_line() == []
    assert not await hall.client.exists(keys.heartbeat(EXAM, hall.pid(token)))
    with pytest.raises(AlreadyAdmittedError):
        await hall.join("user1")


async def test_joining_again_gives_the_same_token_byte_for_byte(hall: Hall) -> None:
    await hall.event(capacity=0)
    first = await hall.ticket("mina")
    await hall.join("jun")
    await hall.clock.advance(30)
    again = await hall.another().ticket("mina")
    assert (again.token, again.status.position, again.new, first.new) == (first.token, 1, False, True)


async def test_there_is_no_line_for_an_event_that_nobody_made(hall: Hall) -> None:
    for wrong in ("none", "", "a b", "x" * 65, "{exam}"):
        with pytest.raises(EventNotFoundError):
            await hall.join("mina", wrong)


async def test_a_token_that_is_not_ours_is_like_an_expired_one(hall: Hall) -> None:
    await hall.event()
    token = await hall.join("mina")
    for wrong in ("", "exam", token[:-1], token + "x", token.replace("exam", "other"), "é", "x" * 5000):
        for act in (hall.room.status, hall.room.enter, hall.room.leave):
            with pytest.raises(TokenExpiredError):
                await act(wrong)


async def test_places_are_offered_in_order_as_many_as_there_are(hall: Hall) -> None:
    await hall.event(capacity=2)
    people = await hall.join_all("a", "b", "c", "d")
    await hall.tick()
    assert [await hall.ready(token) for token in people] == [True, True, False, False]
    assert [(await hall.status(token)).position for token in people] == [1, 2, 3, 4]
    await hall.room.enter(people[1])
    assert [await hall.ready(token) for token in (people[0], people[2])] == [True, False]
    await hall.room.leave(people[0])
    await hall.tick()
    assert [await hall.ready(token) for token in people[2:]] == [True, False]


async def test_an_unused_reservation_goes_to_the_next_one(hall: Hall) -> None:
    await hall.event(capacity=1)
    first, second = await hall.join_all("a", "b")
    await hall.enter_when_ready(first)
    await hall.pass_time(295, second)
    assert not await hall.ready(second)
    await hall.pass_time(10, second)
    assert await hall.ready(second)
    with pytest.raises(TokenExpiredError):
        await hall.room.enter(first)
    assert await hall.join("a")  # behind


async def test_an_offer_that_is_not_taken_passes_over_its_person_until_they_act(hall: Hall) -> None:
    await hall.event(capacity=1)
    idle, second = await hall.join_all("idle", "second")
    await hall.tick()
    assert await hall.ready(idle)
    await hall.pass_time(70, idle, second)
    assert (await hall.status(idle)).passed
    assert await hall.ready(second)
    await hall.room.leave(second)
    third = await hall.join("third")
    await hall.tick()
    assert [await hall.ready(token) for token in (idle, third)] == [False, True]
    with pytest.raises(NotYourTurnError):
        await hall.room.enter(idle)
    assert not (await hall.status(idle)).passed


async def test_an_event_that_drains_takes_no_new_people_and_serves_those_in_line(hall: Hall) -> None:
    await hall.event(capacity=1)
    token = await hall.join("mina")
    await hall.change(draining=True)
    with pytest.raises(EventClosedError):
        await hall.join("jun")
    assert await hall.join("mina") == token
    assert len(await hall.in_line()) == 1
    await hall.enter_when_ready(token)
    assert [place.state for place in await hall.places()] == [State.RESERVED]
