"""The pump: settings of an event, what a tick costs, events that rest, and what Redis loses. Ticks are sent by hand."""

import pathlib
from datetime import timedelta

import pytest
from redis.asyncio import Redis

from codehub.db import Database
from codehub.db.redis import open_redis
from codehub.events.outbox import after
from codehub.policy.model import Role
from codehub.waiting_room import keys, store
from codehub.waiting_room.errors import NotYourTurnError, TokenExpiredError
from codehub.waiting_room.model import Activity, State
from tests.virtual_time import ManualClock
from tests.waiting_room.hall import EXAM, FaultySteps, Hall
from tests.waiting_room.valkeys import Valkeys


async def ready(hall: Hall, tokens: list[str]) -> list[int]:
    return [n for n, token in enumerate(tokens) if await hall.ready(token)]


# --- settings


async def test_an_admission_rate_spreads_the_offers(hall: Hall) -> None:
    await hall.event(100, admission_rate=60)
    people = [await hall.join(f"p{n}") for n in range(8)]
    seen = []
    for _ in range(5):
        await hall.tick(2)
        seen.append(len(await hall.places()))
        await hall.clock.advance(1)
    assert seen == [1, 2, 3, 4, 5]
    await hall.change(admission_rate=None)
    await hall.tick()
    assert await ready(hall, people) == list(range(8))


async def test_nobody_is_offered_a_place_before_it_opens(hall: Hall) -> None:
    opens = hall.clock.now() + timedelta(seconds=100)
    await hall.event(1, opens_at=opens)
    token = await hall.join("a")
    await hall.pass_time(95, token)
    shown = await hall.status(token)
    assert (shown.ready_for_entry, shown.opens_at, shown.position) == (False, opens, 1)
    with pytest.raises(NotYourTurnError):
        await hall.room.enter(token)
    await hall.pass_time(5, token)
    assert await hall.ready(token)


async def test_a_pause_keeps_offers_and_their_time_begins_anew_after_it(hall: Hall) -> None:
    await hall.event(1)
    a, b = await hall.join_all("a", "b")
    await hall.tick()
    assert await hall.ready(a)
    await hall.pass_time(50, a, b)
    await hall.change(paused=True)
    await hall.tick()
    shown = await hall.status(a)
    assert (shown.ready_for_entry, shown.paused) == (False, True)
    with pytest.raises(NotYourTurnError):
        await hall.room.enter(a)
    await hall.pass_time(600, a, b)
    assert [place.pid for place in await hall.places()] == [hall.pid(a)]
    await hall.change(paused=False)
    await hall.tick()
    await hall.pass_time(55, a, b)
    assert [await hall.ready(token) for token in (a, b)] == [True, False]
    await hall.room.enter(a)


async def test_lowered_capacity_takes_no_offer_back_and_makes_no_new_one(hall: Hall) -> None:
    await hall.event(3)
    people = await hall.join_all("a", "b", "c", "d")
    await hall.tick()
    await hall.change(capacity=1)
    await hall.tick()
    assert await ready(hall, people) == [0, 1, 2]
    for token in people[:3]:
        await hall.room.enter(token)
    for name in ("a", "b"):
        await hall.room.give_back(await hall.person(name), EXAM)
    await hall.tick()
    assert not await hall.ready(people[3])
    await hall.room.give_back(await hall.person("c"), EXAM)
    await hall.tick()
    assert await hall.ready(people[3])


# --- what it costs


async def steps_of_a_tick(hall: Hall) -> list[str]:
    counted = FaultySteps()
    other = hall.another(counted)
    await other.tick()  # a pump that has just begun tells Redis everything once
    counted.taken.clear()
    await other.tick()
    await other.aclose()
    return counted.taken


async def test_a_tick_costs_the_same_however_many_wait_and_nothing_for_an_event_that_rests(hall: Hall) -> None:
    await hall.event(0)
    for n in range(20):
        await hall.event(1, f"resting-{n}")
    people = [await hall.join(f"p{n}") for n in range(3)]
    few = await steps_of_a_tick(hall)
    people += [await hall.join(f"q{n}") for n in range(60)]
    assert await steps_of_a_tick(hall) == few
    assert few.count("counts") == few.count("sweep") == 1
    for token in people:
        await hall.room.leave(token)
    await hall.tick(3)
    assert (await hall.find()).activity is Activity.IDLE
    idle = await steps_of_a_tick(hall)
    assert set(idle) == {"statement"}
    assert len(idle) <= 3


async def test_who_joins_while_an_event_is_about_to_rest_is_seen(hall: Hall) -> None:
    await hall.event(1)
    gone = await hall.join("gone")
    await hall.room.leave(gone)
    await hall.tick()
    before = await hall.find()
    assert before.activity is Activity.CLOSING
    counts = await hall.line.counts(EXAM)
    token = await hall.join("a")
    await hall.pump._rest(before, 0, counts)  # type: ignore[arg-type]  # counted before, and comes late
    assert (await hall.find()).activity is Activity.BUSY
    await hall.enter_when_ready(token)


async def test_an_event_that_rested_for_more_than_an_hour_is_opened_without_a_hold(hall: Hall) -> None:
    await hall.event(1)
    gone = await hall.join("gone")
    await hall.room.leave(gone)
    await hall.tick(3)
    await hall.lose_line()  # its keys have expired
    token = await hall.join("a")
    await hall.tick()
    assert await hall.ready(token)
    assert (await hall.find()).epoch == 2
    with pytest.raises(TokenExpiredError):
        await hall.status(gone)


async def test_the_trouble_of_one_event_is_not_anothers(hall: Hall) -> None:
    for id_ in ("broken", EXAM):
        await hall.event(1, id_)
        await hall.join("a", id_)
    await hall.client.set(keys.of_event("broken")[4], "not a sorted set")
    done = await hall.tick()
    assert (done["failed"], done["granted"]) == (1, 1)


# --- what others are told, and what is kept


async def test_a_person_is_told_of_their_turn_and_their_entering_wherever_they_are_logged_in(hall: Hall) -> None:
    await hall.event(2)
    token = await hall.join("a")
    stranger = await hall.room.join(await hall.person("boss", Role.ADMIN), EXAM, "no account")
    await hall.tick()
    await hall.room.enter(token)
    await hall.room.enter(stranger.token)
    async with hall.database.connection() as c:
        told = [event for event in (await after(c, 0)).events if event.kind.startswith("queue_")]
    mine = f"user:{(await hall.person('a')).id}"
    assert [(event.audience, event.kind, event.subject) for event in told] == [
        (mine, "queue_ready", EXAM),
        (mine, "queue_entered", EXAM),
    ]


async def test_rows_that_only_say_that_it_is_over_go_when_the_line_was_empty_for_long(
    hall: Hall, database: Database
) -> None:
    await hall.event(1)
    left, entered = await hall.join_all("left", "entered")
    await hall.room.leave(left)
    await hall.enter_when_ready(entered)

    async def pruned() -> int:
        async with database.connection() as c:
            return await store.prune(c, hall.clock.now() - timedelta(days=1), 100)

    await hall.clock.advance(86400 + 1)
    assert await pruned() == 0  # the event is not idle
    await hall.tick(3)
    assert (await hall.find()).activity is Activity.IDLE
    assert await pruned() == 1  # the reservation has ended just now
    await hall.clock.advance(86400 + 1)
    assert await pruned() == 1
    assert await hall.places(*State) == []


# --- what Redis loses


async def test_after_an_emptying_everybody_who_polls_is_back_in_the_old_order(hall: Hall) -> None:
    await hall.event(0)
    people = [await hall.join(f"p{n}") for n in range(30)]
    await hall.tick()
    await hall.lose_line()
    await hall.tick()
    newcomer = await hall.join("new")
    for n in range(30):  # each once, from the last to the first, through a whole heartbeat period
        await hall.pass_time(9, newcomer)
        if n < 29:
            await hall.status(people[29 - n])
    for token in people[1:]:
        await hall.status(token)
    assert await hall.positions(*people[1:], newcomer) == list(range(1, 31))
    await hall.pass_time(60, newcomer, *people[1:])
    with pytest.raises(TokenExpiredError):
        await hall.status(people[0])


@pytest.mark.parametrize("restarted", ["with its log", "without"])
async def test_a_redis_that_is_killed_and_started_again(
    database: Database, clock: ManualClock, tmp_path: pathlib.Path, restarted: str
) -> None:
    server = Valkeys(tmp_path)
    try:
        async with open_redis(server.url) as client:
            hall = Hall(database, client, clock)
            await hall.event(1)
            people = await hall.join_all("a", "b", "c", "d")
            await hall.tick()
            assert await hall.ready(people[0])
            server.ask("CONFIG", "SET", "appendfsync", "always")
            await hall.positions(*people)
            if restarted == "without":
                server.ask("FLUSHALL")
            server.restart()
            await hall.positions(*reversed(people))
            assert await hall.positions(*people) == [1, 2, 3, 4]
            assert (await hall.find()).epoch == 2
            await hall.tick(2)
            assert await ready(hall, people) == [0]  # told before, and still theirs
            await hall.room.enter(people[0])
            await hall.room.give_back(await hall.person("a"), EXAM)
            await hall.pass_time(5, *people[1:])
            assert await ready(hall, people[1:]) == []  # the hold
            await hall.pass_time(90 if restarted == "without" else 10, *people[1:])
            assert await ready(hall, people[1:]) == [0]
            await hall.aclose()
    finally:
        server.end()


async def test_while_redis_is_away_places_end_all_the_same_and_the_rest_waits(
    database: Database, clock: ManualClock, tmp_path: pathlib.Path
) -> None:
    server = Valkeys(tmp_path)
    try:
        async with open_redis(server.url) as client:
            hall = Hall(database, client, clock)
            await hall.event(1)
            a, b = await hall.join_all("a", "b")
            await hall.enter_when_ready(a)
            server.socket.rename(tmp_path / "aside")
            assert isinstance(client, Redis)
            await client.connection_pool.disconnect()
            await hall.clock.advance(301)
            done = await hall.tick()
            assert (done["ended"], done["failed"]) == (1, 1)
            (tmp_path / "aside").rename(server.socket)
            await hall.pass_time(5, b)
            assert await hall.ready(b)  # an outage expires nobody
            await hall.aclose()
    finally:
        server.end()
