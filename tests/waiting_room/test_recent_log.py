"""How far back a client asks is the client's choice: what Redis has to read for it is not."""

import asyncio
from collections.abc import Sequence

import pytest

from codehub.waiting_room import line, recent_log
from codehub.waiting_room.model import LogEntry, Loss, Why
from codehub.waiting_room.recent_log import OLDEST, RecentLogs
from tests.waiting_room.lines import EPOCH, Room
from tests.waiting_room.queue_site import QueueSite

BEGIN = EPOCH + 1  # the number of the entry that says that the line was opened


class Reads:
    """What is read of a room's log, and how much."""

    def __init__(self, room: Room) -> None:
        self._room = room
        self.entries: list[int] = []

    async def __call__(self, event: str, after: int) -> Sequence[LogEntry] | Loss | None:
        found = await self._room.line.log_since(event, after)
        self.entries.append(len(found) if isinstance(found, list) else -1)
        return found


async def _leave(room: Room, *names: str) -> None:
    for name in names:
        who = await room.join(name)
        await room.line.drop(room.event, who.pid, who.seq, Why.LEFT, name=name)


async def test_a_log_is_read_once_for_all_who_ask_and_then_only_what_is_new(room: Room) -> None:
    await _leave(room, *"abcdef")
    reads = Reads(room)
    recent = RecentLogs(reads)
    answers = await asyncio.gather(*(recent.since(room.event, BEGIN + n % 3) for n in range(30)))
    assert [len(answer or ()) for answer in answers[:3]] == [6, 5, 4]
    assert sum(reads.entries) == 7, "however many ask, and however far back"
    await _leave(room, "g")
    assert [entry.number for entry in await recent.since(room.event, BEGIN + 5) or ()] == [BEGIN + 6, BEGIN + 7]
    assert sum(reads.entries) == 8


async def test_what_is_older_than_the_log_is_not_known_and_costs_no_reading(room: Room) -> None:
    await _leave(room, *"ab")
    reads = Reads(room)
    recent = RecentLogs(reads)
    assert await recent.since(room.event, BEGIN) is not None
    read = sum(reads.entries)
    assert [await recent.since(room.event, n) for n in (0, 5, BEGIN + 99)] == [None, None, None]
    assert sum(reads.entries) == read


async def test_after_a_loss_the_log_is_read_anew(room: Room) -> None:
    await _leave(room, *"ab")
    recent = RecentLogs(room.line.log_since)
    assert len(await recent.since(room.event, BEGIN) or ()) == 2
    await room.client.flushdb()
    assert await recent.since(room.event, BEGIN) is None
    await room.open(2)
    await _leave(room, "c")
    assert await recent.since(room.event, BEGIN) is None
    assert len(await recent.since(room.event, 2 * EPOCH + 1) or ()) == 1


async def test_a_line_that_survived_goes_on_in_its_log_at_a_higher_number(room: Room) -> None:
    await _leave(room, "a")
    recent = RecentLogs(room.line.log_since)
    await recent.since(room.event, BEGIN)
    await room.open(2)
    await _leave(room, "b")
    assert [entry.number for entry in await recent.since(room.event, BEGIN) or ()] == [
        *(BEGIN + 1, 2 * EPOCH + 1, 2 * EPOCH + 2)
    ]
    assert [entry.number for entry in await recent.since(room.event, 2 * EPOCH + 1) or ()] == [2 * EPOCH + 2]


async def test_only_events_that_were_asked_for_lately_are_kept(room: Room, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recent_log, "KEPT_EVENTS", 1)
    other = Room(room.client, room.clock, "other")
    await other.open()
    reads = Reads(room)
    recent = RecentLogs(reads)
    for event in (room.event, room.event, "other", room.event):
        await recent.since(event, BEGIN)
    await other.line.aclose()
    assert reads.entries == [1, 0, 1, 1]


async def test_a_long_log_is_read_in_parts(room: Room, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(line, "LOG_PART", 2)
    await _leave(room, *"abcde")
    found = await room.line.log_since(room.event, OLDEST)
    assert isinstance(found, list)
    assert [entry.number for entry in found] == [BEGIN + n for n in range(6)]


async def test_streams_and_pages_that_ask_from_the_oldest_entry_on_share_what_was_read(
    queue: QueueSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    await queue.event(capacity=0)
    for name in ("a", "b", "c"):
        await queue.leave(await queue.token(name))
    mine, streams = await queue.token("mina"), queue.site.services.waiting_streams
    begin = (await queue.site.services.waiting_room.status(mine)).logn - 3
    parts: list[int] = []
    run = streams._line._run

    async def counted(name: str, *arguments: object) -> object:
        answer = await run(name, *arguments)  # type: ignore[arg-type]
        if name == "log":
            parts.append(len(answer[1]))
        return answer

    monkeypatch.setattr(streams._line, "_run", counted)
    for _ in range(5):
        async with queue.listening(mine, str(begin)) as listening:
            _, data = await listening.next()
            assert data["changes"] == {"left": 3}
        assert await streams.changes_since(mine, begin) == {"left": 3}
    assert sum(parts) == 4, "three who left, and the opening"
