"""Before a lottery opens, the order is a uniform shuffle that nobody influences."""

import itertools
import random
from collections import Counter
from datetime import timedelta
from typing import Any

import pytest

from codehub.waiting_room import store, tokens
from codehub.waiting_room.model import Event, Order, State
from tests.waiting_room.hall import EXAM, Hall

PEOPLE = ("ann", "bob", "cy", "dan", "eve")
EVENTS = 9_600


def drawn(secret: bytes, people: tuple[str, ...] = PEOPLE) -> tuple[str, ...]:
    """As the line has it: by number, and where two are the same, by pid."""
    return tuple(sorted(people, key=lambda p: (tokens.lottery_number(secret, p), tokens.pid(secret, p))))


def chi_square(counts: Counter[Any], cells: int) -> float:
    expected = counts.total() / cells
    seen = sum((count - expected) ** 2 / expected for count in counts.values())
    return seen + (cells - len(counts)) * expected


def too_much(cells: int) -> float:
    """What a fair draw exceeds once in a million times (Wilson and Hilferty)."""
    freedom = cells - 1
    return float(freedom * (1 - 2 / (9 * freedom) + 4.753 * (2 / (9 * freedom)) ** 0.5) ** 3)


def test_every_order_of_five_people_is_as_likely_as_any_other() -> None:
    dice = random.Random(20261117)
    orders = Counter(drawn(dice.randbytes(32)) for _ in range(EVENTS))
    assert chi_square(orders, 120) < too_much(120)


def test_every_place_of_one_person_among_many_is_as_likely_as_any_other() -> None:
    dice = random.Random(4)
    people = tuple(f"p{n}" for n in range(20))
    places = Counter(drawn(dice.randbytes(32), people).index("p7") for _ in range(2_000))
    assert chi_square(places, 20) < too_much(20)


def test_the_draw_of_one_event_says_nothing_about_that_of_another() -> None:
    dice = random.Random(5)
    pairs = [(drawn(dice.randbytes(32))[0], drawn(dice.randbytes(32))[0]) for _ in range(EVENTS // 4)]
    assert chi_square(Counter(pairs), 25) < too_much(25)


async def lottery(hall: Hall, capacity: int = 1) -> Event:
    await hall.event(capacity, order=Order.LOTTERY, opens_at=hall.clock.now() + timedelta(hours=1))
    return await hall.find()


async def admitted_in_order(hall: Hall, held: dict[str, str]) -> list[str]:
    """Open, and let everybody in, one after the other."""
    await hall.clock.advance(3601)
    names = {hall.pid(token): name for name, token in held.items()}
    order = []
    for _ in held:
        await hall.tick(2)
        (place,) = await hall.places(State.OFFERED)
        name = names[place.pid]
        order.append(name)
        assert await hall.ready(held[name])
        await hall.room.enter(held[name])
        await hall.room.give_back(await hall.person(name), EXAM)
    return order


@pytest.mark.parametrize("way", ["once", "backwards", "often", "left and back", "after a loss"])
async def test_when_and_how_often_one_joins_changes_nothing(hall: Hall, way: str) -> None:
    event = await lottery(hall)
    people = [await hall.person(name) for name in PEOPLE]
    ids = {person.id: person.name for person in people}
    expected = [ids[id_] for id_ in drawn(event.secret, tuple(ids))]
    names = [*reversed(PEOPLE)] if way == "backwards" else list(PEOPLE)
    held = {name: await hall.join(name) for name in names}
    if way == "often":
        for name in (names[0], names[0], names[3]):
            assert await hall.join(name) == held[name]
    if way == "left and back":
        for name in names[:3]:
            await hall.room.leave(held[name])
            await hall.clock.advance(60)
            held[name] = await hall.join(name)
    if way == "after a loss":
        await hall.lose_line()
        held = {name: await hall.join(name) for name in names}
    assert set(await hall.positions(*held.values())) == {None}
    for name in names:
        await hall.room.status(held[name])
    await hall.clock.advance(3500)
    held = {name: await hall.join(name) for name in names}
    assert await admitted_in_order(hall, held) == expected


async def test_who_comes_after_it_has_opened_goes_behind_all_who_were_drawn(hall: Hall) -> None:
    await lottery(hall)
    await hall.clock.advance(3550)
    early = await hall.join_all("ann", "bob", "cy")
    await hall.clock.advance(51)
    late = await hall.join("dan")
    await hall.tick()
    assert (await hall.positions(late)) == [4]
    assert sorted(p or 0 for p in await hall.positions(*early)) == [1, 2, 3]
    await hall.room.leave(early[0])
    again = await hall.join("ann")
    assert (await hall.positions(again)) == [4], "leaving after the draw costs the place"


async def test_a_second_join_of_one_who_came_back_does_not_end_the_offer_of_the_opening(
    hall: Hall, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It read the row from before; until it gets the event's lock, the event opens and the person is told ready."""
    await lottery(hall)
    await hall.clock.advance(3590)
    token = await hall.join("ann")
    await hall.room.leave(token)
    late, locking = hall.another(), store.lock_event
    waits = True

    async def held_up(c: Any, id_: str) -> Event | None:
        nonlocal waits
        if waits:
            waits = False
            await hall.join("ann")
            await hall.clock.advance(11)
            await hall.tick(2)
            assert await hall.ready(token)
        return await locking(c, id_)

    monkeypatch.setattr(store, "lock_event", held_up)
    await late.join("ann")
    assert not waits
    assert (await hall.room.enter(token)).event_id == EXAM


def test_the_check_itself_sees_a_draw_that_is_not_fair() -> None:
    dice = random.Random(6)
    orders = Counter(tuple(sorted(PEOPLE, key=lambda p: dice.random() + (p == "ann") * 0.2)) for _ in range(EVENTS))
    assert chi_square(orders, 120) > too_much(120)
    assert len(list(itertools.permutations(PEOPLE))) == 120
