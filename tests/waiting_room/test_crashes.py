"""A process ends between any two steps of a use case, each in turn: what it leaves is repaired as the table says.

By a retry, by the pump, or by time (docs/waiting-room.md). The steps are counted in a run that goes well; then there is
one run for each, which ends after that step.
"""

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest

from codehub.waiting_room.errors import TokenExpiredError
from codehub.waiting_room.model import State
from tests.waiting_room.hall import CrashError, FaultySteps, Hall
from tests.waiting_room.lines import check_line

Prepare = Callable[[Hall, str], Awaitable[Any]]
Act = Callable[[Hall, Any], Awaitable[Any]]
Check = Callable[[Hall, str, Any], Awaitable[None]]


async def crashes(hall: Hall, name: str, prepare: Prepare, act: Act) -> AsyncIterator[tuple[str, Any, str]]:
    """Runs it well once; then once for each step, with the process ended after it: the event, what was prepared."""
    whole = FaultySteps()
    prepared = await prepare(hall, f"{name}-0")
    await act(hall.another(whole), prepared)
    await settled(hall)
    assert len(whole.taken) > 1
    for n in range(1, len(whole.taken) + 1):
        event = f"{name}-{n}"
        prepared = await prepare(hall, event)
        with pytest.raises(CrashError):
            await act(hall.another(FaultySteps(n)), prepared)
        yield event, prepared, whole.taken[n - 1]
        await settled(hall)
        await check_line(hall.client, event)


async def settled(hall: Hall) -> None:
    """Nothing of this event moves any more, so that the next tick is about the next one."""
    async with hall.database.connection() as c:
        await c.execute("UPDATE waiting_events SET activity = 'idle'")
        await c.execute("UPDATE waiting_places SET noted = true, expires_at = 'infinity' WHERE state <> 'none'")


async def everything_is_noted(hall: Hall, event: str) -> None:
    assert await hall.unnoted(event) == []


async def one_waits(hall: Hall, event: str) -> str:
    await hall.event(1, event)
    return await hall.join("a", event)


async def one_is_ready(hall: Hall, event: str) -> str:
    token = await one_waits(hall, event)
    await hall.tick()
    assert await hall.ready(token)
    return token


async def test_a_join_is_finished_by_a_retry(hall: Hall) -> None:
    async def prepare(hall: Hall, event: str) -> str:
        await hall.event(1, event)
        await hall.person("a")
        return event

    async def join(hall: Hall, event: str) -> str:
        return await hall.join("a", event)

    async for event, _, _ in crashes(hall, "join", prepare, join):
        token = await hall.join("a", event)
        assert (await hall.status(token)).position == 1
        assert len(await hall.in_line(event)) == 1
        await hall.enter_when_ready(token)


async def test_join_that_is_never_tried_again_leaves_a_ghost_that_holds_no_place_for_ever(hall: Hall) -> None:
    async def prepare(hall: Hall, event: str) -> tuple[str, str]:
        await hall.event(1, event)
        await hall.person("a")
        return event, await hall.join("b", event)

    async def join(hall: Hall, prepared: tuple[str, str]) -> str:
        return await hall.join("a", prepared[0])

    async for event, (_, waiting), _ in crashes(hall, "ghost", prepare, join):
        await hall.enter_when_ready(waiting)
        await hall.room.give_back(await hall.person("b"), event)
        late = await hall.join("c", event)
        await hall.pass_time(200, late)
        assert await hall.ready(late)
        await hall.room.enter(late)
        await hall.pass_time(120)
        assert await hall.in_line(event) == []


async def enter(hall: Hall, token: str) -> None:
    await hall.room.enter(token)


@pytest.mark.parametrize("repaired_by", ["a retry", "the pump"])
async def test_an_enter_is_finished_by_a_retry_or_the_pump(hall: Hall, repaired_by: str) -> None:
    async for event, token, _ in crashes(hall, f"enter-{repaired_by[-4:]}", one_is_ready, enter):
        assert [place.state for place in await hall.places(event=event)] == [State.RESERVED]
        if repaired_by == "a retry":
            reservation = await hall.room.enter(token)
            assert await hall.room.enter(token) == reservation
        else:
            await hall.tick()
        assert await hall.in_line(event) == []
        await everything_is_noted(hall, event)
        with pytest.raises(TokenExpiredError):
            await hall.status(token)


async def leave(hall: Hall, token: str) -> None:
    await hall.room.leave(token)


@pytest.mark.parametrize("prepare", [one_waits, one_is_ready])
@pytest.mark.parametrize("repaired_by", ["a retry", "the pump"])
async def test_a_leave_is_finished_by_a_retry_or_the_pump(hall: Hall, prepare: Prepare, repaired_by: str) -> None:
    name = f"leave-{prepare.__name__[-5:]}-{repaired_by[-4:]}"
    async for event, token, _ in crashes(hall, name, prepare, leave):
        await (hall.room.leave(token) if repaired_by == "a retry" else hall.tick())
        assert await hall.in_line(event) == []
        assert await hall.places(event=event) == []
        await everything_is_noted(hall, event)
        with pytest.raises(TokenExpiredError):
            await hall.status(token)
        next_one = await hall.join("b", event)
        await hall.enter_when_ready(next_one)


async def tick(hall: Hall, _prepared: Any) -> None:
    await hall.tick()
    raise_if_hidden(hall)


def raise_if_hidden(hall: Hall) -> None:
    """A pump goes on with the next event after any failure; this process is to end."""
    steps = hall.steps
    if steps and steps.crashed:
        raise CrashError("in a tick")


async def test_a_grant_is_finished_by_the_next_tick(hall: Hall) -> None:
    async def prepare(hall: Hall, event: str) -> list[str]:
        await hall.event(1, event)
        return await hall.join_all("a", "b", event=event)

    async for event, (a, b), _ in crashes(hall, "grant", prepare, tick):
        await hall.tick()
        assert [await hall.ready(token) for token in (a, b)] == [True, False]
        assert len(await hall.places(event=event)) == 1
        await everything_is_noted(hall, event)
        await hall.room.enter(a)


async def test_a_grant_whose_person_has_gone_before_it_was_shown_goes_to_the_next_one(hall: Hall) -> None:
    async def prepare(hall: Hall, event: str) -> list[str]:
        await hall.event(1, event)
        return await hall.join_all("a", "b", event=event)

    async for event, (a, b), _ in crashes(hall, "gone", prepare, tick):
        await hall.room.leave(a)
        await hall.tick(2)
        assert await hall.ready(b)
        assert [place.pid for place in await hall.places(event=event)] == [hall.pid(b)]


async def test_a_lapse_is_finished_by_the_next_tick(hall: Hall) -> None:
    async def prepare(hall: Hall, event: str) -> list[str]:
        await hall.event(1, event)
        tokens = await hall.join_all("a", "b", event=event)
        await hall.tick()
        assert await hall.ready(tokens[0])
        await hall.pass_time(60, *tokens)
        await hall.clock.advance(6)  # five seconds later than told it is over
        return tokens

    async for event, (a, b), _ in crashes(hall, "lapse", prepare, tick):
        assert not await hall.ready(a) or len(await hall.places(event=event)) == 1
        await hall.tick(2)
        assert [await hall.ready(token) for token in (a, b)] == [False, True]
        assert [place.pid for place in await hall.places(event=event)] == [hall.pid(b)]


async def test_the_end_of_a_place_is_finished_by_the_next_tick(hall: Hall) -> None:
    async def prepare(hall: Hall, event: str) -> list[str]:
        await hall.event(1, event)
        tokens = await hall.join_all("a", "b", event=event)
        await hall.enter_when_ready(tokens[0])
        await hall.pass_time(295, tokens[1])
        await hall.clock.advance(6)
        return tokens

    async for event, (a, b), _ in crashes(hall, "end", prepare, tick):
        await hall.tick(2)
        assert await hall.ready(b)
        assert [place.pid for place in await hall.places(event=event)] == [hall.pid(b)]
        with pytest.raises(TokenExpiredError):
            await hall.room.enter(a)


@pytest.mark.parametrize("loses", ["all", "nothing"])
async def test_a_loss_and_the_return_after_it_are_finished_by_the_next_poll(hall: Hall, loses: str) -> None:
    """Epoch, open, put back, check, confirm: wherever it ends, the next poll goes on, and the order is the old one."""

    async def prepare(hall: Hall, event: str) -> list[str]:
        await hall.event(0, event)
        tokens = await hall.join_all("a", "b", "c", event=event)
        await hall.tick()
        await (hall.lose_line() if loses == "all" else hall.fail_over(event))
        return tokens

    async def poll(hall: Hall, tokens: list[str]) -> None:
        await hall.status(tokens[1])

    async for event, (a, b, c), _ in crashes(hall, f"loss-{loses}", prepare, poll):
        await hall.positions(c, b, a)
        assert await hall.positions(a, b, c) == [1, 2, 3]
        assert await hall.in_line(event) == [hall.pid(token) for token in (a, b, c)]
        assert len({hall.pid(token) for token in (a, b, c)}) == 3
