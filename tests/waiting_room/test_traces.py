"""Sixteen short histories, each of which broke a simpler design: what happened there, and that it does not happen here.

On real PostgreSQL and Redis. `Hall.another()` is a second process; a step of one that is to come late is called late.
Those about `lab` and admission (13, 14, 15) are in `test_lab.py` and in the workspaces' `test_swap.py`.
"""

import asyncio
from typing import Any
from unittest import mock

import pytest

from codehub.db import EXCLUSIVE_SECONDS, pool
from codehub.errors import UnavailableError
from codehub.waiting_room import keys, rules, store
from codehub.waiting_room.epochs import OPENERS
from codehub.waiting_room.errors import AlreadyAdmittedError, NotYourTurnError, TokenExpiredError
from codehub.waiting_room.model import EPOCH, Joined, Marked, Overdue, Pick, State, Swept, Why
from tests.waiting_room.hall import EXAM, CrashError, FaultySteps, Hall, token_with


async def granted_late(hall: Hall, picks: list[Pick]) -> list[str]:
    """A pump that has picked these people a moment ago, and comes to its transaction now. To whom it gave offers."""
    async with hall.database.connection() as c:
        picked_at = await c.fetchval(store.sql.clock)
    decided = await hall.pump._offers._decide(await hall.find(), picks, picked_at)
    return [place.pid for place in decided.fresh]


async def first(hall: Hall, k: int = 1) -> list[Pick]:
    picks = await hall.line.first(EXAM, k)
    assert isinstance(picks, list)
    return picks


async def test_1_two_pumps_that_both_saw_one_free_place_offer_it_once(hall: Hall) -> None:
    """Offers only in Redis: A was offered it and entered, the second pump offered it to B, who was told ready."""
    await hall.event(capacity=1)
    a, b = await hall.join_all("a", "b")
    late = [Pick(hall.pid(b), (await first(hall, 2))[1].seq)]
    await hall.enter_when_ready(a)
    assert await granted_late(hall.another(), late) == []
    assert not await hall.ready(b)
    assert [place.state for place in await hall.places()] == [State.RESERVED]


async def test_2_an_offer_whose_person_never_polls_ends(hall: Hall) -> None:
    """The clock started only when told: offered, never polls, and the place is held for ever."""
    await hall.event(capacity=1)
    a, b = await hall.join_all("a", "b")
    await hall.tick()
    assert [place.pid for place in await hall.places()] == [hall.pid(a)]
    await hall.pass_time(95, b)
    assert [place.pid for place in await hall.places()] == [hall.pid(b)]
    assert await hall.ready(b)


async def test_3_a_sequence_that_redis_has_forgotten_comes_back_and_is_nobody_elses(hall: Hall) -> None:
    """Sequences above the counter: A joined (1), a failover forgot it, B joined (1), and A's poll was TOKEN_EXPIRED."""
    await hall.event(capacity=0)
    a = await hall.join("a")
    await hall.tick()
    await hall.lose_line()
    b = await hall.join("b")
    assert await hall.positions(a, b) == [1, 2]
    read = [hall.tokens.read_waiting(token) for token in (a, b)]
    assert [token.seq for token in read if token] == [EPOCH + 1, 2 * EPOCH + 1]


async def test_4_after_an_emptying_nobody_is_offered_a_place_before_the_others_could_come_back(hall: Hall) -> None:
    """No hold: A waits; emptied; B joins and is offered the place before A's next poll."""
    await hall.event(capacity=0)
    a = await hall.join("a")
    await hall.tick()
    await hall.lose_line()
    await hall.change(capacity=1)
    b = await hall.join("b")
    await hall.tick(3)
    assert await hall.places() == []
    await hall.pass_time(60, b)
    assert (await hall.status(a)).position == 1
    await hall.pass_time(35, a, b)
    assert [await hall.ready(token) for token in (a, b)] == [True, False]


async def test_5_a_token_with_which_a_person_entered_is_never_offered_a_place_again(hall: Hall) -> None:
    """No tombstone: A enters; crash before the drop; the place is released; A is offered it again on the same token."""
    await hall.event(capacity=1)
    a, b = await hall.join_all("a", "b")
    await hall.tick()
    with pytest.raises(CrashError):
        await hall.another(FaultySteps(crash_after=1)).room.enter(a)
    assert hall.pid(a) in await hall.in_line()
    await hall.room.give_back(await hall.person("a"), EXAM)
    await hall.line.lapse(EXAM, hall.pid(a), await first_offer(hall, a))
    assert hall.pid(a) in {pick.pid for pick in await first(hall)}
    assert await granted_late(hall, await first(hall, 2)) == [hall.pid(b)]
    await hall.tick()
    assert await hall.in_line() == [hall.pid(b)]
    with pytest.raises(TokenExpiredError):
        await hall.status(a)


async def first_offer(hall: Hall, token: str) -> int:
    place = await hall.place(token)
    assert place
    assert place.offer_id
    return place.offer_id


async def test_6_a_second_tab_that_joins_while_the_first_enters_does_not_head_the_line(hall: Hall) -> None:
    """Join checked PostgreSQL first: the tab passed the check; A entered; the tab joined; A headed the line."""
    await hall.event(capacity=1)
    a = await hall.join("a")
    await hall.enter_when_ready(a)
    # The tab was on its way to Redis all the time, and arrives now.
    joined = await hall.line.join(EXAM, hall.pid(a), "a", None)
    assert isinstance(joined, Joined)
    with pytest.raises(AlreadyAdmittedError):
        await hall.another().room._check_join(await hall.find(), hall.pid(a), joined)
    assert await hall.in_line() == []
    # And one that dies before its check is refused by the next grant, and dropped.
    await hall.line.join(EXAM, hall.pid(a), "a", None)
    await hall.change(capacity=2)
    b = await hall.join("b")
    await hall.tick()
    assert await hall.in_line() == [hall.pid(b)]
    assert await hall.ready(b)


async def test_7_what_a_sweep_has_found_overdue_is_told_ready_to_nobody(hall: Hall) -> None:
    """Late sweep: an overdue untold offer was read; A polls: READY; the lapse commits."""
    await hall.event(capacity=1)
    a = await hall.join("a")
    await hall.tick()
    offer = await first_offer(hall, a)
    for _ in range(19):
        await hall.clock.advance(5)
        swept = await hall.line.sweep(EXAM, 100)
    assert isinstance(swept, Swept)
    assert swept.overdue == [Overdue(hall.pid(a), offer)]
    assert not await hall.ready(a)  # before the lapse
    await hall.pump._offers.lapse(await hall.find(), swept.overdue)
    assert await hall.places() == []
    assert not (await hall.status(a)).passed  # they were told nothing, so they have declined nothing
    await hall.tick()
    assert await hall.ready(a)


async def test_7_who_enters_before_a_late_lapse_keeps_the_place(hall: Hall) -> None:
    await hall.event(capacity=1)
    a = await hall.join("a")
    await hall.tick()
    overdue = [Overdue(hall.pid(a), await first_offer(hall, a))]
    assert await hall.ready(a)
    await hall.room.enter(a)
    assert await hall.pump._offers.lapse(await hall.find(), overdue) == 0
    assert [place.state for place in await hall.places()] == [State.RESERVED]


async def test_8_a_mark_that_comes_after_the_lapse_shows_nothing(hall: Hall) -> None:
    """Late mark after a lapse: READY without an offer."""
    await hall.event(capacity=1)
    a = await hall.join("a")
    picks = await first(hall)
    (pid,) = await granted_late(hall, picks)
    place = (await hall.places())[0]
    assert place.offer_id
    await hall.pump._offers.lapse(await hall.find(), [Overdue(pid, place.offer_id)])
    assert await hall.line.mark(EXAM, pid, place.seq, place.offer_id, 1) is Marked.CLOSED
    assert not await hall.ready(a)


async def test_9_the_lapse_of_one_offer_does_not_end_the_next_one(hall: Hall) -> None:
    """A lapse without offer id ended the offer that the same person had been given since."""
    await hall.event(capacity=1)
    a = await hall.join("a")
    await hall.tick()
    old = Overdue(hall.pid(a), await first_offer(hall, a))
    await hall.pump._offers.lapse(await hall.find(), [old])
    await hall.tick()
    assert await hall.ready(a)
    assert await hall.pump._offers.lapse(await hall.find(), [old]) == 0
    assert await hall.ready(a)
    await hall.room.enter(a)


@pytest.mark.parametrize("loses", ["all", "nothing"])
async def test_10_that_redis_has_heard_of_an_offer_is_not_believed_after_a_loss(hall: Hall, loses: str) -> None:
    """Unfenced noted: mark; emptied; epoch; noted = true: no pump ever marked the offer again, and the place leaked."""
    await hall.event(capacity=1)
    a = await hall.join("a")
    await granted_late(hall, await first(hall))
    place, event = (await hall.places())[0], await hall.find()
    assert place.offer_id
    assert await hall.line.mark(EXAM, place.pid, place.seq, place.offer_id, 1) is Marked.OK
    await (hall.lose_line() if loses == "all" else hall.fail_over())
    await hall.status(a)  # meets the loss
    async with hall.database.connection() as c:
        await store.note(c, EXAM, event.epoch, [place])  # comes late
    assert [late.pid for late in await hall.unnoted()] == [place.pid]
    await hall.tick()
    assert await hall.ready(a)
    await hall.room.enter(a)


@pytest.mark.parametrize("loses", ["all", "nothing"])
async def test_10_an_offer_that_was_told_before_a_loss_is_told_again_and_can_be_taken(hall: Hall, loses: str) -> None:
    await hall.event(capacity=1)
    a, b = await hall.join_all("a", "b")
    await hall.tick()
    assert await hall.ready(a)
    assert await hall.unnoted() == []
    await (hall.lose_line() if loses == "all" else hall.fail_over())
    await hall.positions(b, a)
    await hall.tick(2)
    assert [await hall.ready(token) for token in (a, b)] == [True, False]
    await hall.room.enter(a)


async def test_11_an_entered_person_whom_a_failover_revives_is_out_of_the_line_again_at_the_next_tick(
    hall: Hall,
) -> None:
    """Nobody told the new Redis: A stood in line with a place, and counted in every position behind."""
    await hall.event(capacity=1)
    a, b = await hall.join_all("a", "b")
    before = await first(hall, 2)
    await hall.enter_when_ready(a)
    names = keys.of_event(EXAM)
    for key in names[:2]:
        await hall.client.zadd(key, {hall.pid(a): before[0].seq})
    await hall.client.zadd(names[3], {hall.pid(a): hall.clock.timestamp() * 1000})
    await hall.fail_over()
    assert await hall.positions(b) == [2]
    await hall.tick(2)
    assert await hall.positions(b) == [1]
    assert [place.state for place in await hall.places()] == [State.RESERVED]


@pytest.mark.parametrize("repaired_by", ["the next poll", "the pump"])
async def test_12_a_person_with_a_place_who_was_put_back_in_line_is_found(hall: Hall, repaired_by: str) -> None:
    """Put back, crash before the check: a placed person stays in line."""
    await hall.event(capacity=2)
    a = await hall.join("a")
    await hall.enter_when_ready(a)
    await hall.lose_line()
    b = await hall.join("b")  # meets the loss
    read = hall.tokens.read_waiting(a)
    assert read
    await hall.line.status(EXAM, read.pid, read.seq)  # CHECK, and the process ends here
    assert hall.pid(a) in await hall.in_line()
    if repaired_by == "the pump":
        await hall.tick()
    else:
        with pytest.raises(TokenExpiredError):
            await hall.status(a)
    assert await hall.in_line() == [hall.pid(b)]
    await hall.pass_time(95, b)
    assert [place.pid for place in await hall.places(State.OFFERED)] == [hall.pid(b)]


async def test_16_an_idle_tab_does_not_get_every_offer(hall: Hall) -> None:
    """A lapsed idle tab, eligible at once, was first in line again, and the next one starved."""
    await hall.event(capacity=1)
    idle, patient = await hall.join_all("idle", "patient")
    await hall.tick()
    turns = {idle: 0, patient: 0}
    for _ in range(60):
        await hall.pass_time(5, idle, patient)
        for token in turns:
            turns[token] += await hall.ready(token)
        if turns[patient]:
            break
    assert turns[patient] == 1
    await hall.room.enter(patient)


async def test_two_sequences_of_one_person_become_the_lower_one_and_the_other_tab_is_told(hall: Hall) -> None:
    await hall.event(capacity=0)
    a, b = await hall.join_all("a", "b")
    await hall.tick()
    await hall.lose_line()
    second_tab = await hall.join("a")
    assert second_tab != a
    assert await hall.positions(b, a, second_tab, b) == [1, 1, 1, 2]
    assert (await hall.status(second_tab)).token == a
    assert len(await hall.in_line()) == 2


async def test_a_wrong_seq_of_a_person_with_an_offer_does_not_enter(hall: Hall) -> None:
    await hall.event(capacity=1)
    a = await hall.join("a")
    await hall.tick()
    other = token_with(hall, a, seq=EPOCH + 7)
    with pytest.raises((NotYourTurnError, TokenExpiredError)):
        await hall.room.enter(other)
    assert [place.state for place in await hall.places()] == [State.OFFERED]
    assert rules.drop_up_to((await hall.places())[0]) is None
    await hall.line.drop(EXAM, hall.pid(a), 0, Why.STALE)


async def test_two_joins_around_a_place_that_is_given_back_end_with_one_who_waits(hall: Hall) -> None:
    """The first join saw the place and was about to drop its sequence; the place was given back, and the second join
    found that sequence in line and waited with it: then the drop came."""
    await hall.event(capacity=1)
    a = await hall.join("a")
    await hall.enter_when_ready(a)
    slow, second = hall.another(), list[str]()
    drop = slow.line.drop

    async def late(*arguments: Any, **named: Any) -> Any:
        await hall.room.give_back(await hall.person("a"), EXAM)
        second.append(await hall.join("a"))
        return await drop(*arguments, **named)

    slow.line.drop = late  # type: ignore[method-assign]
    with pytest.raises(AlreadyAdmittedError):
        await slow.join("a")
    assert await hall.positions(*second) == [1]
    await hall.enter_when_ready(second[0])
    assert [place.state for place in await hall.places()] == [State.RESERVED]


async def test_a_join_that_finds_its_place_given_back_waits_with_the_other_one(hall: Hall) -> None:
    await hall.event(capacity=1)
    a = await hall.join("a")
    await hall.enter_when_ready(a)
    slow, second = hall.another(), list[str]()
    end_join = slow.room._end_join

    async def late(*arguments: Any) -> bool:
        if not second:
            await hall.room.give_back(await hall.person("a"), EXAM)
            second.append(await hall.join("a"))
        return await end_join(*arguments)

    slow.room._end_join = late  # type: ignore[method-assign, assignment]
    assert await slow.join("a") == second[0]
    assert await hall.positions(second[0]) == [1]


@pytest.mark.parametrize("loses", ["lose_line", "fail_over"])
async def test_who_had_an_offer_before_a_loss_does_not_join_anew(hall: Hall, loses: str) -> None:
    await hall.event(1)
    token = await hall.join("a")
    await hall.tick()
    await getattr(hall, loses)()
    ticket = await hall.ticket("a")
    assert (ticket.token, ticket.new) == (token, False)


async def test_who_joins_while_another_process_opens_an_idle_event_waits_for_it(hall: Hall) -> None:
    """So it is one epoch, in which nobody was told anything before it was open."""
    await hall.event(1)
    slow = hall.another()
    began, goes_on = asyncio.Event(), asyncio.Event()
    opens = slow.line.open

    async def late(*arguments: Any, **more: Any) -> bool:
        began.set()
        await goes_on.wait()
        return await opens(*arguments, **more)

    slow.line.open = late  # type: ignore[method-assign]
    first = asyncio.create_task(slow.join("a"))
    await began.wait()
    second = asyncio.create_task(hall.join("b"))
    done, _ = await asyncio.wait([second], timeout=0.3)
    assert not done
    goes_on.set()
    assert {*await hall.positions(await first, await second)} == {1, 2}
    assert (await hall.find()).epoch == 1


async def test_an_epoch_that_was_begun_and_never_opened_holds_nobody_up(hall: Hall) -> None:
    await hall.event(1)
    async with hall.database.transaction() as c:
        await store.reopen(c, rules.reopened(await hall.find(), hall.clock.now()), hall.clock.now())
    token = await hall.join("a")
    await hall.tick()
    assert (await hall.status(token)).ready_for_entry
    assert (await hall.find()).epoch == 2


async def test_a_process_that_was_stopped_while_it_opened_a_line_does_not_open_it_afterwards(hall: Hall) -> None:
    """The lock is not its any more: a line that others have opened, and in which people wait, may be empty again."""
    await hall.event(1)
    opened: list[int] = []
    opens, reopen = hall.line.open, store.reopen

    async def seen(event: str, epoch: int, *arguments: Any, **more: Any) -> bool:
        opened.append(epoch)
        return await opens(event, epoch, *arguments, **more)

    async def stopped(*arguments: Any) -> None:
        await reopen(*arguments)
        if arguments[1].epoch == 1:
            await hall.clock.advance(EXCLUSIVE_SECONDS)

    hall.line.open = seen  # type: ignore[method-assign]
    with mock.patch.object(store, "reopen", stopped):
        assert await hall.positions(await hall.join("a")) == [1]
    assert opened == [2]


async def test_what_a_stopped_process_holds_is_free_for_the_others_in_the_end(hall: Hall) -> None:
    """By the server, which ends the connection that has the lock."""
    await hall.event(1)
    with mock.patch.object(pool, "EXCLUSIVE_SECONDS", 1), pytest.raises(UnavailableError):
        async with hall.database.exclusive(OPENERS, EXAM):
            async with asyncio.timeout(30):
                assert await hall.positions(await hall.join("a")) == [1]
