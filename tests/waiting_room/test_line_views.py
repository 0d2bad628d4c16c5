"""What is shown of a line: counts, the log of why positions moved, a page of members."""

from codehub.waiting_room.model import LogKind, Member, MemberState, Standing, Why
from tests.waiting_room.lines import EPOCH, Room


async def test_the_log_says_what_happened_since(room: Room) -> None:
    a, b, _ = await room.join_all("a", "b", "c")
    begin = (await room.standing(a)).logn
    assert begin == EPOCH + 1
    await room.line.drop(room.event, a.pid, a.seq, Why.ENTERED)
    await room.line.drop(room.event, b.pid, b.seq, Why.LEFT)
    entries = await room.line.log_since(room.event, begin)
    assert entries == [(begin + 1, LogKind.ENTERED, a.seq), (begin + 2, LogKind.LEFT, b.seq)]
    assert await room.line.log_since(room.event, begin + 2) == []
    assert await room.line.log_since(room.event, begin + 3) is None, "a number that this line never had"
    assert await room.line.log_since(room.event, 0) is None


async def test_a_log_that_was_trimmed_says_that_something_is_missing(room: Room) -> None:
    a = await room.join("a")
    begin = (await room.standing(a)).logn
    for _ in range(5):
        await room.configure(paused=True)
        await room.configure(paused=False)
    await room.client.xtrim("queue:log:{exam}", maxlen=4, approximate=False)
    assert await room.line.log_since(room.event, begin) is None
    entries = await room.line.log_since(room.event, begin + 6)
    assert isinstance(entries, list)
    assert [entry.kind for entry in entries] == [LogKind.PAUSED, LogKind.RESUMED] * 2


async def test_the_log_is_capped(room: Room) -> None:
    """By whole nodes, which Redis makes as large as it is told."""
    await room.client.xadd("queue:log:{exam}", {"left": 1}, id=f"{EPOCH + 1}-1")
    async with room.client.pipeline(transaction=False) as pipe:
        for n in range(12_000):
            pipe.xadd("queue:log:{exam}", {"left": n}, id=f"{EPOCH + 2 + n}-0")
        await pipe.execute()
    await room.client.hset("queue:meta:{exam}", "logn", EPOCH + 12_002)
    await room.configure(paused=True)
    assert await room.client.xlen("queue:log:{exam}") < 10_500


async def test_what_the_pump_says_about_the_event_is_in_every_answer(room: Room) -> None:
    a = await room.join("a")
    await room.configure(paused=True, eta="opaque")
    standing = await room.standing(a)
    assert (standing.eta, standing.paused) == ("opaque", True)
    await room.configure(eta="other")
    assert (await room.standing(a)).eta == "other"


async def test_counts_are_by_state(room: Room) -> None:
    offered, passed, live, _, _ = await room.join_all("offered", "passed", "live", "silent", "silent-too")
    await room.mark(passed, 1)
    await room.standing(passed)
    await room.line.lapse(room.event, passed.pid, 1)
    await room.pass_time(95, offered, passed, live)
    await room.mark(offered, 2)
    counts = await room.counts()
    assert (counts.waiting, counts.live, counts.silent, counts.passed, counts.offered) == (5, 1, 2, 1, 1)


async def test_a_page_shows_members_in_order_with_name_and_state(room: Room) -> None:
    offered, passed, live, silent = await room.join_all("offered", "passed", "live", "silent")
    await room.mark(passed, 1)
    await room.standing(passed)
    await room.line.lapse(room.event, passed.pid, 1)
    await room.pass_time(95, offered, passed, live)
    await room.mark(offered, 2)
    page = await room.line.page(room.event, 0, 10)
    assert isinstance(page, list)
    assert [(m.position, m.name, m.state) for m in page] == [
        (1, "offered", MemberState.OFFERED),
        (2, "passed", MemberState.PASSED),
        (3, "live", MemberState.LIVE),
        (4, "silent", MemberState.SILENT),
    ]
    assert page[2] == Member(3, live.pid, live.seq, MemberState.LIVE, room.now_ms, "live", live.joined_ms)
    assert page[3].seen_ms == silent.joined_ms
    assert await room.line.page(room.event, 2, 1) == page[2:3]
    assert await room.line.page(room.event, 9, 10) == []
    await room.client.delete(f"queue:waiting:{{exam}}.{silent.pid}")
    page = await room.line.page(room.event, 3, 1)
    assert isinstance(page, list)
    assert (page[0].name, page[0].joined_ms) == (None, None)


async def test_an_unchecked_member_is_shown_as_such(room: Room) -> None:
    a = await room.join("a")
    await room.emptied()
    await room.open(2, window=300)
    await room.poll(a)
    page = await room.line.page(room.event, 0, 10)
    assert isinstance(page, list)
    assert [m.state for m in page] == [MemberState.UNCHECKED]
    peeked = await room.line.peek(room.event, a.pid, a.seq)
    assert isinstance(peeked, Standing)
    assert (peeked.position, peeked.ready) == (1, False)


async def test_a_personal_stream_is_small(room: Room) -> None:
    """Redis would give each one 4 KB; the embedded one is told not to."""
    a = await room.join("a")
    await room.mark(a, 1)
    await room.line.drop(room.event, a.pid, a.seq, Why.ENTERED, name="a")
    assert await room.client.memory_usage("stream:event:{exam}:user:a") < 600
