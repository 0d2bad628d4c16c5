"""`GET /api/v1/queue/stream`: pushed on change, with why; a heartbeat; resumed; and no reader holds up another."""

import asyncio
from collections import Counter
from collections.abc import Callable

import pytest

from codehub.waiting_room import stream, watching
from codehub.waiting_room.model import LogEntry, LogKind
from codehub.waiting_room.recent_log import Entries
from tests.waiting_room.queue_site import API, SOON, QueueSite


async def test_a_stream_begins_with_where_one_stands_and_tells_why_one_moved(queue: QueueSite) -> None:
    await queue.event(capacity=0)
    first, second, third, mine = [await queue.token(name) for name in ("a", "b", "c", "d")]
    async with queue.listening(mine) as listening:
        kind, data = await listening.next()
        assert (kind, data["position"], data["changes"]) == ("position", 4, {})
        assert data.keys() >= {"status", "eta_sec", "waiting_time", "ready_for_entry", "poll_after_ms"}
        await queue.leave(second)
        kind, data = await listening.next()
        assert (kind, data["position"], data["changes"]) == ("position", 3, {"left": 1})
        await queue.event(capacity=1)
        await queue.tick()
        assert (await queue.enter(first)).status == 200
        while data["position"] != 2:
            kind, data = await listening.next()
        assert data["changes"] == {"entered": 1}
        await queue.leave(third)
        assert (await listening.until("position"))["changes"] == {"left": 1}


async def test_ready_entered_left_and_expired_are_told_and_end_the_stream(queue: QueueSite) -> None:
    await queue.event()
    mine, other, third = [await queue.token(name) for name in ("mina", "jun", "bo")]
    async with queue.listening(mine) as listening, queue.listening(other) as behind:
        await listening.next()
        await queue.tick()
        ready = await listening.until("ready")
        assert ready["ready_for_entry"]
        assert ready["offer_sec"] > 0
        assert (await queue.enter(mine)).status == 200
        await listening.until("entered")
        await listening.ends()
        await queue.leave(other)
        await behind.until("left")
        await behind.ends()
    async with queue.site.client() as client, client.get(f"{API}/stream", params={"token": mine}) as answer:
        assert (answer.status, (await answer.json())["error"]["code"]) == (404, "TOKEN_EXPIRED")
    assert (await queue.status(third)).body["position"] == 1


async def test_an_open_stream_is_a_heartbeat_and_a_closed_one_is_not(queue: QueueSite) -> None:
    await queue.event(capacity=0)
    mine, other = await queue.token("mina"), await queue.token("jun")
    async with queue.listening(mine) as listening, queue.listening(other):
        await listening.next()
        for _ in range(120):  # ten minutes, in which they say nothing
            await queue.clock.advance(5)
            await _settled(queue)
            await queue.tick()
        assert (await queue.status(other)).body["position"] == 2
    await _until(lambda: queue.site.services.waiting_streams.count == 0)
    await queue.pass_time(320)
    assert (await queue.status(mine)).code == "TOKEN_EXPIRED"


async def test_a_stream_resumes_with_what_happened_meanwhile(queue: QueueSite) -> None:
    await queue.event(capacity=0)
    one, two, mine = [await queue.token(name) for name in ("a", "b", "mina")]
    async with queue.listening(mine) as listening:
        await listening.next()
    await queue.leave(one)
    await queue.leave(two)
    async with queue.listening(mine, listening.last_id) as again:
        kind, data = await again.next()
        assert (kind, data["position"], data["changes"]) == ("position", 1, {"left": 2})
        assert again.last_id == str(int(listening.last_id or 0) + 2)
    for last in ("999999", "nonsense", "0"):
        async with queue.listening(mine, last) as anew:
            assert (await anew.next())[1]["position"] == 1


async def test_a_pause_and_a_passed_turn_are_told(queue: QueueSite) -> None:
    await queue.event()
    mine, other = await queue.token("mina"), await queue.token("jun")
    async with queue.listening(mine) as listening:
        await listening.next()
        await queue.tick()
        await listening.until("ready")
        await queue.event(paused=True)
        await queue.tick()
        assert (await listening.until("position"))["paused"]
        await queue.event(paused=False)
        await queue.tick()
        assert (await listening.until("ready"))["ready_for_entry"]
        data = {"passed": False}
        async with asyncio.timeout(SOON):
            while not data["passed"]:
                await queue.pass_time(30, other)
                _, data = await listening.next()
        assert not data["ready_for_entry"]


async def test_a_reader_who_does_not_read_holds_up_no_other_and_gets_the_newest(
    queue: QueueSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    await queue.event(capacity=0)
    ahead = [await queue.token(f"p{n}") for n in range(8)]
    slow, quick = await queue.token("slow"), await queue.token("quick")
    reads, take = asyncio.Event(), watching.Listener.next

    async def take_later(listener: watching.Listener) -> bytes | None:
        """As when what was sent before does not go out."""
        if listener.token == slow:
            await reads.wait()
        return await take(listener)

    monkeypatch.setattr(watching.Listener, "next", take_later)
    async with queue.listening(slow) as asleep, queue.listening(quick) as awake:
        await awake.next()
        for token in ahead:
            await queue.leave(token)
            await awake.until("position")
        reads.set()
        _, data = await asleep.next()
        assert (data["position"], data["changes"]) == (1, {"left": len(ahead)})


async def test_one_place_has_few_streams_and_a_process_a_number_of_them(
    queue: QueueSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    await queue.event(capacity=0)
    mine, other = await queue.token("mina"), await queue.token("jun")
    monkeypatch.setattr(stream, "PER_TOKEN", 2)
    async with queue.listening(mine) as one, queue.listening(mine) as two:
        await one.next()
        await two.next()
        refused = await queue.call("GET", "/stream", params={"token": mine})
        assert (refused.status, refused.code) == (429, "STREAM_LIMIT")
        async with queue.listening(other) as third:
            await third.next()
    await _until(lambda: queue.site.services.waiting_streams.count == 0)
    async with queue.listening(mine) as again:
        await again.next()


async def test_streams_that_are_opened_at_the_same_moment_are_counted_too(queue: QueueSite) -> None:
    await queue.event(capacity=0)
    mine = await queue.token("mina")
    async with queue.site.client() as client:
        opening = [client.get(f"{API}/stream", params={"token": mine}) for _ in range(40)]
        answers = await asyncio.gather(*opening)
        statuses = Counter(answer.status for answer in answers)
        for answer in answers:
            answer.close()
    assert statuses == {200: stream.PER_TOKEN, 429: 40 - stream.PER_TOKEN}


def test_changes_count_those_ahead_by_kind() -> None:
    kinds = (LogKind.ENTERED, LogKind.LEFT, LogKind.EXPIRED, LogKind.READY, LogKind.PAUSED, LogKind.LEFT)
    entries = [LogEntry(n, kind, seq) for n, (kind, seq) in enumerate(zip(kinds, (1, 2, 3, 4, 0, 9), strict=True))]
    assert watching.changes(entries, 5) == {"entered": 1, "left": 1, "expired": 1}


def test_the_log_that_was_read_says_what_is_missing() -> None:
    kept = Entries()
    assert kept.since(3) is None
    kept.add([LogEntry(n, LogKind.LEFT, n) for n in (5, 6, 7)], 4)
    assert [entry.number for entry in kept.since(5) or ()] == [6, 7]
    assert [kept.since(n) for n in (7, 8, 3)] == [(), None, None]
    kept.forget(20)
    assert (kept.since(20), kept.since(7)) == ((), None)


async def _settled(queue: QueueSite) -> None:
    """The watcher has asked for those who were due."""
    async with asyncio.timeout(20):
        while max(queue.clock.monotonic() - listener.asked_at for listener in _listeners(queue)) > 35:
            await queue.clock.advance(0.2)
            await asyncio.sleep(0.01)


def _listeners(queue: QueueSite) -> list[watching.Listener]:
    watchers = queue.site.services.waiting_streams._watchers.values()
    return [listener for watcher in watchers for listener in watcher.listeners]


async def _until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(20):
        while not condition():
            await asyncio.sleep(0.01)
