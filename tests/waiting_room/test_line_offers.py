"""Offers in a line: who is next, who is told, how long an offer waits, and what late news about one can do."""

import pytest

from codehub.waiting_room.model import Marked, Overdue, Standing, Why
from tests.waiting_room.lines import Room, Waiter, pid_of

OFFER_MS = 60_000


async def test_the_first_are_next_in_their_order(room: Room) -> None:
    people = await room.join_all("a", "b", "c")
    assert await room.first(2) == [who.pid for who in people[:2]]
    assert await room.first(9) == [who.pid for who in people]


async def test_one_who_has_an_offer_is_ready_keeps_the_position_and_is_not_next_again(room: Room) -> None:
    a, b = await room.join_all("a", "b")
    assert not (await room.standing(a)).ready
    assert await room.mark(a, 7) is Marked.OK
    standing = await room.standing(a)
    assert (standing.ready, standing.position, standing.offer_deadline_ms) == (True, 1, room.now_ms + OFFER_MS)
    assert await room.first() == [b.pid]
    told = await room.client.xrange("stream:event:{exam}:user:a")
    assert [fields for _, fields in told] == [{b"ready": str(a.seq).encode()}]
    assert await room.kinds() == ["reset", "ready"]
    assert (await room.counts()).offered == 1


async def test_the_clock_of_an_offer_starts_when_its_person_is_told_and_only_then(room: Room) -> None:
    a = await room.join("a")
    await room.mark(a, 7)
    await room.pass_time(60)
    first = await room.standing(a)
    assert first.offer_deadline_ms == room.now_ms + 2 * 60_000, "twice the interval they poll at"
    await room.pass_time(30, a)
    assert (await room.standing(a)).offer_deadline_ms == first.offer_deadline_ms, "never renewed"


async def test_peeking_tells_nothing_and_starts_no_clock(room: Room) -> None:
    a = await room.join("a")
    await room.mark(a, 7)
    peeked = await room.line.peek(room.event, a.pid, a.seq)
    assert isinstance(peeked, Standing)
    assert peeked.ready
    assert peeked.offer_deadline_ms is None
    assert await room.line.peek(room.event, pid_of("stranger"), 1) is None


async def test_an_offer_that_its_person_never_hears_of_is_closed_when_they_are_silent(room: Room) -> None:
    a = await room.join("a")
    await room.mark(a, 7)
    assert all(not swept.overdue for swept in await room.pass_time(85))
    [*_, last] = await room.pass_time(10)
    assert last.overdue == [Overdue(a.pid, 7)]
    assert (await room.counts()).silent == 1
    await room.line.lapse(room.event, a.pid, 7)
    assert (await room.counts()).offered == 0
    assert await room.first() == []
    assert not (await room.standing(a)).passed, "one who was never told missed nothing"
    assert await room.first() == [a.pid]


async def test_a_told_offer_is_closed_five_seconds_after_its_end(room: Room) -> None:
    a = await room.join("a")
    await room.mark(a, 7)
    await room.standing(a)
    found = await room.pass_time(64, a, step=1)
    assert all(not swept.overdue for swept in found)
    assert (await room.standing(a)).ready, "what was sent in time may be under way"
    [swept] = await room.pass_time(1, step=1)
    assert swept.overdue == [Overdue(a.pid, 7)]


async def test_a_closed_offer_is_not_shown_and_is_found_again_until_it_lapses(room: Room) -> None:
    """A late sweep: an overdue offer was read, its person polls, the lapse commits."""
    a = await room.join("a")
    await room.mark(a, 7)
    await room.clock.advance(9)
    await room.sweep()
    await room.pass_time(82)
    assert (await room.sweep()).overdue == [Overdue(a.pid, 7)]
    standing = await room.standing(a)
    assert not standing.ready
    assert standing.offer_deadline_ms is None
    assert (await room.sweep()).overdue == [Overdue(a.pid, 7)]
    await room.line.lapse(room.event, a.pid, 7)
    assert (await room.sweep()).overdue == []
    assert await room.first() == [a.pid], "live: it was heard of again, and never told"


async def lapsed(room: Room, who: Waiter, offer_id: int) -> None:
    """Told, not taken, over."""
    assert await room.mark(who, offer_id) is Marked.OK
    assert (await room.standing(who)).ready
    await room.line.lapse(room.event, who.pid, offer_id)


async def test_one_who_did_not_take_an_offer_is_behind_all_who_were_offered_none(room: Room) -> None:
    """A lapsed idle tab that is eligible at once gets every offer."""
    idle, next_one = await room.join_all("idle", "next")
    await lapsed(room, idle, 7)
    assert await room.first() == [next_one.pid]
    standing = await room.standing(idle)
    assert (standing.passed, standing.position, standing.live_ahead) == (True, 1, 1), "told so; a poll is no act"
    assert await room.first() == [next_one.pid]
    await room.mark(next_one, 8)
    assert await room.first() == [idle.pid], "only when no other is left"
    assert await room.kinds() == ["reset", "ready", "passed", "ready"]
    assert await room.mark(idle, 9) is Marked.OK
    assert (await room.standing(idle)).ready
    assert (await room.counts()).passed == 0


@pytest.mark.parametrize("act", ["enter", "join", "return"])
async def test_an_act_ends_being_passed_over(room: Room, act: str) -> None:
    idle = await room.join("idle")
    other = await room.join("other")
    await lapsed(room, idle, 7)
    if act == "enter":
        peeked = await room.line.peek(room.event, idle.pid, idle.seq, act=True)
        assert isinstance(peeked, Standing)
        assert not peeked.passed
    elif act == "join":
        await room.join("idle")
    else:
        await room.pass_time(95, other)
    assert not (await room.standing(idle)).passed
    assert await room.first() == [idle.pid, other.pid]


async def test_a_mark_that_comes_after_its_lapse_shows_nothing(room: Room) -> None:
    a = await room.join("a")
    await room.line.lapse(room.event, a.pid, 7)
    assert await room.mark(a, 7) is Marked.CLOSED
    assert not (await room.standing(a)).ready
    assert await room.mark(a, 8) is Marked.OK
    assert await room.mark(a, 7) is Marked.CLOSED
    assert await room.mark(a, 8) is Marked.OK, "again is the same"
    assert (await room.kinds()).count("ready") == 1


async def test_an_offer_for_one_who_is_not_in_line_is_closed_with_that_answer(room: Room) -> None:
    a = await room.join("a")
    await room.line.drop(room.event, a.pid, a.seq, Why.LEFT)
    assert await room.mark(a, 7) is Marked.ABSENT
    again = await room.join("a")
    assert await room.mark(a, 7) is Marked.CLOSED
    assert await room.mark(again, 7) is Marked.CLOSED
    assert await room.mark(again, 8) is Marked.OK


async def test_a_lapse_ends_only_the_offer_that_it_names(room: Room) -> None:
    a = await room.join("a")
    await room.mark(a, 7)
    await room.line.lapse(room.event, a.pid, 7)
    await room.mark(a, 8)
    await room.line.lapse(room.event, a.pid, 7)
    assert (await room.standing(a)).ready
    await room.line.lapse(room.event, a.pid, 8)
    assert not (await room.standing(a)).ready


async def test_a_newer_offer_takes_the_place_of_an_older_one_and_is_told_anew(room: Room) -> None:
    a = await room.join("a")
    await room.mark(a, 7)
    await room.standing(a)
    await room.clock.advance(5)
    assert await room.mark(a, 9) is Marked.OK
    assert (await room.standing(a)).offer_deadline_ms == room.now_ms + OFFER_MS
    assert await room.mark(a, 8) is Marked.CLOSED
    await room.line.lapse(room.event, a.pid, 9)
    assert not (await room.standing(a)).ready


async def test_joining_again_with_an_offer_changes_nothing_about_it(room: Room) -> None:
    a = await room.join("a")
    await room.mark(a, 7)
    assert await room.join("a") == a
    assert await room.first() == []
    assert (await room.standing(a)).ready


async def test_leaving_with_an_old_token_costs_no_later_offer(room: Room) -> None:
    old = await room.join("a")
    await room.line.drop(room.event, old.pid, old.seq, Why.LEFT)
    new = await room.join("a")
    await room.mark(new, 7)
    await room.line.drop(room.event, old.pid, old.seq, Why.LEFT)
    assert (await room.standing(new)).ready


async def test_an_offer_of_another_epoch_is_refused(room: Room) -> None:
    a = await room.join("a")
    assert await room.mark(a, 7, epoch=2) is Marked.OTHER_EPOCH
    assert not (await room.standing(a)).ready


async def test_entering_takes_member_and_offer_out_and_counts_it(room: Room) -> None:
    a, b = await room.join_all("a", "b")
    await room.mark(a, 7)
    await room.line.drop(room.event, a.pid, a.seq, Why.ENTERED, name="a")
    counts = await room.counts()
    assert (counts.waiting, counts.offered, counts.entered) == (1, 0, 1)
    assert (await room.standing(b)).position == 1
    assert [list(f) for _, f in await room.client.xrange("stream:event:{exam}:user:a")] == [[b"ready"], [b"entered"]]


async def test_during_a_pause_offers_keep_their_place_and_their_clock_starts_again_afterwards(room: Room) -> None:
    told, untold = await room.join_all("told", "untold")
    await room.mark(told, 7)
    await room.mark(untold, 8)
    await room.standing(told)
    await room.configure(paused=True)
    found = await room.pass_time(600, told, untold)
    assert all(not swept.overdue for swept in found)
    standing = await room.standing(told)
    assert (standing.ready, standing.paused, standing.position) == (False, True, 1)
    assert await room.first() == []
    await room.configure(paused=False)
    for who in (told, untold):
        assert (await room.standing(who)).offer_deadline_ms == room.now_ms + OFFER_MS
    assert await room.kinds() == ["reset", "ready", "ready", "paused", "resumed"]


async def test_an_offer_whose_person_does_not_come_back_after_a_pause_is_closed(room: Room) -> None:
    a = await room.join("a")
    await room.mark(a, 7)
    await room.standing(a)
    await room.configure(paused=True)
    await room.pass_time(200)
    await room.configure(paused=False)
    found = await room.pass_time(55)
    assert all(not swept.overdue for swept in found)
    [*_, last] = await room.pass_time(10)
    assert last.overdue == [Overdue(a.pid, 7)]


async def test_an_outage_closes_no_offer_at_once(room: Room) -> None:
    told, untold = await room.join_all("told", "untold")
    await room.mark(told, 7)
    await room.mark(untold, 8)
    await room.standing(told)
    await room.clock.advance(500)
    assert (await room.sweep()).overdue == []
    assert (await room.standing(told)).ready
    found = await room.pass_time(95)
    assert {overdue.offer_id for swept in found for overdue in swept.overdue} == {7, 8}


async def test_an_expired_persons_mark_stays_until_its_offer_has_lapsed(room: Room) -> None:
    a = await room.join("a")
    await room.mark(a, 7)
    await room.pass_time(305)
    counts = await room.counts()
    assert (counts.waiting, counts.offered) == (0, 1)
    await room.line.lapse(room.event, a.pid, 7)
    assert (await room.counts()).offered == 0
