"""A line that Redis has lost, wholly or in its last second: people return at the sequence that their tokens say."""

import pytest

from codehub.waiting_room import keys
from codehub.waiting_room.model import EXPIRED, LOSS, Check, Marked, Why
from tests.waiting_room.lines import EPOCH, Room, Waiter

HEARTBEAT, SILENT = 300, 90


async def lose_all(room: Room, epoch: int = 2) -> None:
    """As after a Redis that comes back empty: the pump opens the next epoch."""
    await room.emptied()
    assert await room.line.counts(room.event) is LOSS
    assert await room.open(epoch, hold=SILENT, window=HEARTBEAT)


async def survive(room: Room, epoch: int = 2) -> None:
    """As after a restart that has read its log, or a failover: all or nearly all is there, and it is another Redis."""
    await room.other_redis()
    assert await room.open(epoch, hold=SILENT, window=HEARTBEAT)


@pytest.mark.parametrize("how", ["emptied", "other_redis"])
async def test_another_redis_is_a_loss_until_the_next_epoch_is_opened(room: Room, how: str) -> None:
    mina = await room.join("mina")
    await getattr(room, how)()
    before = await room.everything()
    assert await room.poll(mina) is LOSS
    assert await room.line.join(room.event, mina.pid, "mina", None) is LOSS
    assert await room.line.drop(room.event, mina.pid, mina.seq, Why.LEFT) is LOSS
    assert await room.everything() == before, "nothing is done"
    assert await room.open(2, window=HEARTBEAT)
    assert await room.poll(mina) is not LOSS


async def test_an_epoch_is_opened_once(room: Room) -> None:
    assert not await room.open(1)
    assert await room.open(3)
    assert not await room.open(2)
    assert not await room.open(3)
    assert (await room.counts()).epoch == 3


async def test_an_epoch_that_a_second_process_begins_for_one_loss_holds_nothing_up(room: Room) -> None:
    """Both met the first join, or the same loss; when the second opens Redis, nothing is lost since the first did."""
    mina = await room.join("mina")
    assert await room.open(2, hold=SILENT, window=HEARTBEAT)
    assert await room.first() == [mina.pid]
    await room.line.drop(room.event, mina.pid, mina.seq, Why.LEFT)
    assert await room.poll(mina) is EXPIRED, "and no token from before comes back"


async def test_after_a_loss_a_second_epoch_neither_shortens_nor_lengthens_the_hold(room: Room) -> None:
    mina = await room.join("mina")
    await survive(room)
    await room.clock.advance(5)
    assert await room.open(3, hold=SILENT, window=HEARTBEAT)
    assert await room.first() == []
    await room.clock.advance(6)
    assert await room.poll(mina) is not EXPIRED
    assert await room.first() == [mina.pid]


async def test_one_whose_join_was_forgotten_returns_before_those_who_joined_since(room: Room) -> None:
    """A joins; a failover forgets it; B joins; A polls."""
    kept, a = await room.join_all("kept", "a")
    await room.line.drop(room.event, a.pid, a.seq, Why.STALE)  # what the new primary had not heard of
    await survive(room)
    b = await room.join("b")
    assert b.seq == 2 * EPOCH + 1
    assert await room.poll(a) == Check(a.seq)
    await room.clock.advance(11)
    assert await room.first() == [kept.pid, b.pid], "unchecked: a position, and no offer"
    assert (await room.standing(b)).position == 3
    assert await room.confirm(a, a.seq)
    assert await room.positions([kept, a, b]) == [1, 2, 3]
    assert await room.first() == [kept.pid, a.pid, b.pid]


async def test_an_emptied_line_comes_back_in_its_order_with_what_it_knew(room: Room) -> None:
    people = await room.join_all("a", "b", "c")
    await lose_all(room)
    await room.clock.advance(3)
    for who in reversed(people):
        assert await room.put_back(who)
    assert await room.positions(people) == [1, 2, 3]
    assert await room.join("b") == people[1], "also the time of joining, so that the token is the same"
    assert await room.client.get(keys.heartbeat(room.event, people[0].pid)) == b"alive"


async def test_nothing_is_offered_until_those_who_were_there_had_time_to_return(room: Room) -> None:
    a = await room.join("a")
    await lose_all(room)
    b = await room.join("b")
    assert await room.first() == []
    await room.pass_time(SILENT - 1, b)
    assert (await room.counts()).holding
    assert await room.first() == []
    await room.put_back(a)
    await room.pass_time(1, a, b)
    assert await room.first() == [a.pid, b.pid]


async def test_a_line_that_survived_holds_offers_for_ten_seconds(room: Room) -> None:
    a = await room.join("a")
    await survive(room)
    await room.pass_time(9)
    assert await room.first() == []
    await room.pass_time(1)
    assert await room.first() == [a.pid]
    assert (await room.standing(a)).position == 1, "and asks nobody to return"


async def test_a_restart_soon_after_an_emptying_does_not_shorten_the_time_to_return(room: Room) -> None:
    mina, juno = await room.join_all("mina", "juno")
    await lose_all(room)
    assert await room.put_back(juno)
    await room.clock.advance(2)
    await survive(room, epoch=3)
    await room.clock.advance(60)
    assert (await room.standing(juno)).position == 1
    assert await room.first() == [], "mina's hidden page asks once a minute"
    assert await room.put_back(mina)
    await room.clock.advance(SILENT - 62)
    assert await room.first() == [mina.pid, juno.pid]


async def test_after_the_window_an_old_token_is_over(room: Room) -> None:
    a = await room.join("a")
    await lose_all(room)
    await room.clock.advance(HEARTBEAT)
    assert await room.poll(a) is EXPIRED
    assert (await room.counts()).waiting == 0


async def test_a_token_of_this_epoch_does_not_return_in_its_window(room: Room) -> None:
    await lose_all(room)
    a = await room.join("a")
    await room.line.drop(room.event, a.pid, a.seq, Why.LEFT)
    assert await room.poll(a) is EXPIRED


async def test_one_whom_postgresql_refuses_is_dropped_again(room: Room) -> None:
    a, b = await room.join_all("a", "b")
    await lose_all(room)
    assert isinstance(await room.poll(a), Check)
    await room.put_back(b)
    assert (await room.standing(b)).position == 2
    await room.line.drop(room.event, a.pid, a.seq, Why.STALE)
    assert (await room.standing(b)).position == 1


async def test_an_unchecked_person_is_checked_at_every_poll_until_confirmed(room: Room) -> None:
    a = await room.join("a")
    await lose_all(room)
    for _ in range(3):
        assert await room.poll(a) == Check(a.seq)
    await room.confirm(a, a.seq)
    assert (await room.standing(a)).position == 1


async def test_one_who_went_silent_unchecked_is_checked_on_return_also_after_the_window(room: Room) -> None:
    a, b = await room.join_all("a", "b")
    await lose_all(room)
    await room.put_back(b)
    await room.pass_time(HEARTBEAT - 10, b)
    assert isinstance(await room.poll(a), Check)
    await room.pass_time(100, b)
    assert (await room.counts()).silent == 1
    assert await room.poll(a) == Check(a.seq)
    assert a.pid not in await room.first()


async def test_one_who_goes_silent_while_they_are_checked_is_offered_nothing(room: Room) -> None:
    a, b = await room.join_all("a", "b")
    await lose_all(room)
    assert isinstance(await room.poll(a), Check)
    await room.put_back(b)
    await room.pass_time(100, b)
    assert await room.confirm(a, a.seq)
    assert await room.first() == [b.pid]


async def test_marks_are_cleared_and_come_back_from_postgresql(room: Room) -> None:
    a, b = await room.join_all("a", "b")
    await room.mark(a, 7)
    await room.mark(b, 8)
    await survive(room)
    assert (await room.counts()).offered == 0
    assert await room.poll(b) == Check(b.seq), "without its mark it is unchecked: PostgreSQL may have lapsed the offer"
    assert await room.mark(a, 7, epoch=1) is Marked.OTHER_EPOCH
    assert await room.mark(a, 7, epoch=2) is Marked.OK
    assert (await room.standing(a)).ready


async def test_an_offer_waits_for_its_person_to_return(room: Room) -> None:
    a = await room.join("a")
    await room.mark(a, 7)
    await lose_all(room)
    assert await room.mark(a, 7, epoch=2) is Marked.RETURNING
    await room.clock.advance(SILENT - 1)
    assert await room.mark(a, 7, epoch=2) is Marked.RETURNING
    await room.put_back(a)
    assert await room.mark(a, 7, epoch=2) is Marked.OK
    assert (await room.standing(a)).ready


async def test_an_offer_does_not_wait_for_longer_than_silence(room: Room) -> None:
    a = await room.join("a")
    await lose_all(room)
    await room.clock.advance(SILENT)
    assert await room.mark(a, 7, epoch=2) is Marked.ABSENT
    await room.put_back(a)
    assert await room.mark(a, 7, epoch=2) is Marked.CLOSED


async def two_tabs(room: Room) -> tuple[Waiter, Waiter]:
    """One person with two tokens: from before the loss, and joined anew after it, before the first tab asked."""
    old = await room.join("mina")
    await lose_all(room)
    await room.join("between")
    new = await room.join("mina")
    assert new.seq > old.seq
    return old, new


async def test_of_two_sequences_of_a_person_the_lower_one_counts_and_the_other_tab_gets_its_token(room: Room) -> None:
    old, new = await two_tabs(room)
    assert (await room.standing(new)).position == 2
    assert await room.poll(old) == Check(new.seq)
    assert (await room.standing(new)).stands is None, "nothing has changed yet"
    assert await room.confirm(old, new.seq)
    assert (await room.standing(old)).position == 1
    standing = await room.standing(new)
    assert standing.position == 1
    assert standing.stands
    assert (standing.stands.seq, standing.stands.joined_ms, standing.stands.name) == (old.seq, old.joined_ms, "mina")
    await room.pass_time(HEARTBEAT, old)
    assert (await room.standing(new)).stands, "also when the window is over"
    assert (await room.counts()).waiting == 1


async def test_an_old_token_that_postgresql_refuses_costs_the_new_place_nothing(room: Room) -> None:
    old, new = await two_tabs(room)
    assert await room.poll(old) == Check(new.seq)
    await room.line.drop(room.event, old.pid, old.seq, Why.STALE)
    assert (await room.standing(new)).position == 2


async def test_a_confirmation_for_a_line_that_has_changed_since_changes_nothing(room: Room) -> None:
    old, new = await two_tabs(room)
    await room.poll(old)
    await room.line.drop(room.event, new.pid, new.seq, Why.LEFT)
    assert not await room.confirm(old, new.seq), "left meanwhile"
    again = await room.join("mina")
    assert not await room.confirm(old, new.seq)
    assert (await room.standing(again)).position == 2


async def test_a_confirmation_that_comes_when_the_window_is_over_moves_nobody_back(room: Room) -> None:
    """It was under way for minutes; meanwhile the others were told that no token returns any more."""
    old, new = await two_tabs(room)
    await room.poll(old)
    await room.pass_time(HEARTBEAT, new)
    assert not await room.confirm(old, new.seq)
    assert (await room.standing(new)).position == 2 - ((await room.counts()).waiting == 1)


async def test_a_sequence_that_was_offered_a_place_stays(room: Room) -> None:
    old, new = await two_tabs(room)
    await room.poll(old)
    assert await room.mark(new, 7, epoch=2) is Marked.OK
    assert not await room.confirm(old, new.seq)
    standing = await room.standing(old)
    assert standing.ready
    assert standing.stands
    assert standing.stands.seq == new.seq
    await room.clock.advance(HEARTBEAT)
    assert await room.poll(old) is EXPIRED


async def test_both_tokens_of_a_person_in_one_round_trip(room: Room) -> None:
    old, new = await two_tabs(room)
    await room.line.drop(room.event, new.pid, new.seq, Why.STALE)
    answers = await room.line._poll(room.event, [(old.pid, old.seq), (new.pid, new.seq), (old.pid, old.seq)])
    assert answers == [Check(old.seq)] * 3


async def test_numbers_of_the_log_go_on_above_every_earlier_one(room: Room) -> None:
    a = await room.join("a")
    await room.line.drop(room.event, a.pid, a.seq, Why.LEFT)
    before = (await room.counts()).logn
    await lose_all(room)
    assert (await room.counts()).logn > before
    assert await room.line.log_since(room.event, before) is None, "what is missing is said"


async def test_a_line_that_survived_goes_on_with_its_log(room: Room) -> None:
    a = await room.join("a")
    await room.line.drop(room.event, a.pid, a.seq, Why.LEFT)
    before = (await room.counts()).logn
    await survive(room)
    entries = await room.line.log_since(room.event, before)
    assert isinstance(entries, list)
    assert [entry.kind for entry in entries] == ["reset"]
