"""Joining a line: one place for a person, at the end; the keys that the seed names."""

import asyncio
import json

from codehub.waiting_room.model import EXPIRED, LOSS, Joined, Why
from tests.waiting_room.lines import EPOCH, Room, pid_of


async def test_a_line_that_was_never_opened_is_a_loss(closed_room: Room) -> None:
    line, event = closed_room.line, closed_room.event
    assert await line.join(event, "p", "mina", None) is LOSS
    assert await line.status(event, "p", 1) is LOSS
    assert await line.peek(event, "p", 1) is LOSS
    assert await line.confirm(event, "p", 1, expected=1, name="mina", joined_ms=1) is LOSS
    assert await line.drop(event, "p", 1, Why.LEFT) is LOSS
    assert await line.mark(event, "p", 1, 1, 1) is LOSS
    assert await line.sweep(event, 10) is LOSS
    assert await line.lapse(event, "p", 1) is LOSS
    assert await line.first(event, 1) is LOSS
    assert await line.configure(event, paused=True, lottery=False, eta="") is LOSS
    assert await line.counts(event) is LOSS
    assert await line.log_since(event, 0) is LOSS
    assert await line.page(event, 0, 10) is LOSS
    assert await closed_room.everything() == [], "and it does nothing"


async def test_each_goes_behind_those_who_came_before(room: Room) -> None:
    people = await room.join_all("mina", "jun", "sora")
    assert [who.seq for who in people] == [EPOCH + 1, EPOCH + 2, EPOCH + 3]
    assert await room.positions(people) == [1, 2, 3]
    assert [(await room.standing(who)).live_ahead for who in people] == [0, 1, 2]


async def test_a_person_has_one_place_however_often_and_at_once_they_join(room: Room) -> None:
    joined = await asyncio.gather(*(room.line.join(room.event, "p", "mina", None) for _ in range(20)))
    assert {answer.seq for answer in joined if isinstance(answer, Joined)} == {EPOCH + 1}
    assert sum(answer.new for answer in joined if isinstance(answer, Joined)) == 1
    assert (await room.counts()).waiting == 1


async def test_joining_again_gives_what_the_first_time_gave(room: Room) -> None:
    first = await room.line.join(room.event, "p", "mina", None)
    await room.clock.advance(20)
    again = await room.line.join(room.event, "p", "another-name", None)
    assert isinstance(first, Joined)
    assert isinstance(again, Joined)
    assert again == first._replace(new=False)


async def test_the_keys_of_the_seed_are_there_with_their_times(room: Room) -> None:
    mina = await room.join('mi"na')
    heartbeat, waiting = f"heartbeat:{{exam}}.{mina.pid}", f"queue:waiting:{{exam}}.{mina.pid}"
    assert await room.client.get(heartbeat) == b"alive"
    assert 298 <= await room.client.ttl(heartbeat) <= 300
    stored = json.loads(await room.client.get(waiting))
    assert stored == {"user_id": 'mi"na', "seq": mina.seq, "joined": mina.joined_ms}
    assert 1798 <= await room.client.ttl(waiting) <= 1800
    assert await room.client.zscore("queue:event:{exam}", mina.pid) == mina.seq
    assert 3598 <= await room.client.ttl("queue:event:{exam}") <= 3600
    without_end = [key for key in await room.everything() if await room.client.ttl(key) < 0]
    assert without_end == []


async def test_a_poll_renews_heartbeat_and_waiting_and_a_peek_does_not(room: Room) -> None:
    mina = await room.join("mina")
    own = f"heartbeat:{{exam}}.{mina.pid}", f"queue:waiting:{{exam}}.{mina.pid}"
    for key in own:
        await room.client.expire(key, 100)
    await room.line.peek(room.event, mina.pid, mina.seq)
    assert [await room.client.ttl(key) <= 100 for key in own] == [True, True]
    await room.poll(mina)
    assert await room.client.ttl(own[0]) >= 298
    assert await room.client.ttl(own[1]) >= 1798


async def test_a_line_that_is_used_does_not_end(room: Room) -> None:
    mina = await room.join("mina")
    event_keys = [key for key in await room.everything() if not key.endswith(mina.pid)]
    for key in event_keys:
        await room.client.expire(key, 1000)
    await room.pass_time(59, mina)
    assert max([await room.client.ttl(key) for key in event_keys]) <= 1000, "cheaply: not at every poll"
    await room.pass_time(5, mina)
    assert min([await room.client.ttl(key) for key in event_keys]) >= 3590


async def test_leaving_removes_a_person_at_once_and_says_so(room: Room) -> None:
    mina, jun = await room.join_all("mina", "jun")
    assert await room.line.drop(room.event, mina.pid, mina.seq, Why.LEFT, name="mina") is True
    assert await room.line.drop(room.event, mina.pid, mina.seq, Why.LEFT, name="mina") is False
    assert await room.poll(mina) is EXPIRED
    assert (await room.standing(jun)).position == 1
    assert [key for key in await room.everything() if mina.pid in key] == []
    told = await room.client.xrange("stream:event:{exam}:user:mina")
    assert [fields for _, fields in told] == [{b"left": str(mina.seq).encode()}]
    assert 3598 <= await room.client.ttl("stream:event:{exam}:user:mina") <= 3600
    assert await room.kinds() == ["reset", "left"]
    assert (await room.counts()).left == 1


async def test_a_drop_of_an_earlier_sequence_leaves_the_later_place(room: Room) -> None:
    before = await room.join("mina")
    await room.line.drop(room.event, before.pid, before.seq, Why.LEFT)
    after = await room.join("mina")
    assert after.seq > before.seq
    assert await room.line.drop(room.event, before.pid, before.seq, Why.LEFT) is False
    assert await room.poll(before) is EXPIRED, "the old tab's token is over"
    assert (await room.standing(after)).position == 1


async def test_what_is_stale_is_dropped_without_a_word_to_the_person(room: Room) -> None:
    mina = await room.join("mina")
    await room.line.drop(room.event, mina.pid, mina.seq, Why.STALE, name="mina")
    assert not await room.client.exists("stream:event:{exam}:user:mina")
    assert (await room.counts()).left == 0


async def test_a_lottery_orders_by_the_draw_until_it_opens(closed_room: Room) -> None:
    room = closed_room
    await room.open(lottery=True)
    late, early, middle = await room.join("late", 900), await room.join("early", 5), await room.join("middle", 40)
    assert await room.positions([late, early, middle]) == [None, None, None]
    assert (await room.standing(late)).lottery
    assert await room.first() == [], "nobody is offered a place before it opens"
    await room.line.drop(room.event, middle.pid, middle.seq, Why.LEFT)
    assert await room.join("middle", 40) == middle, "leaving and joining again changes nothing"
    await room.configure(lottery=False)
    behind = await room.join("behind", 1)
    assert await room.positions([early, middle, late, behind]) == [1, 2, 3, 4]
    assert await room.first(2) == [early.pid, middle.pid]
    assert await room.kinds() == ["reset", "left", "opened"]


async def test_an_event_that_becomes_a_lottery_later_keeps_later_joiners_behind(room: Room) -> None:
    first = await room.join("first")
    await room.configure(lottery=True)
    drawn = await room.join("drawn", 2**31 - 1)
    await room.configure(lottery=False)
    behind = await room.join("behind", 3)
    assert await room.positions([first, drawn, behind]) == [1, 2, 3]


async def test_two_with_the_same_draw_are_ordered_by_their_keyed_id(closed_room: Room) -> None:
    await closed_room.open(lottery=True)
    people = sorted([await closed_room.join(name, 7) for name in ("a", "b", "c")], key=lambda who: who.pid)
    await closed_room.configure(lottery=False)
    assert await closed_room.positions(people) == [1, 2, 3]
    for who in people[1:]:
        await closed_room.line.drop(closed_room.event, who.pid, who.seq, Why.LEFT)
    assert people[0].pid == min(pid_of(name) for name in "abc")
