"""Questions that are asked at the same time share a round trip, and nothing else."""

import asyncio
from collections.abc import Sequence

import pytest

from codehub.waiting_room import batch
from codehub.waiting_room.batch import Batcher
from tests.virtual_time import settle


class Server:
    """Answers when it is told to; notes what was asked in one round trip."""

    def __init__(self) -> None:
        self.trips: list[tuple[str, list[int]]] = []
        self.slow: dict[str, asyncio.Event] = {}
        self.batcher: Batcher[str, int, int] = Batcher(self.send)

    async def send(self, key: str, questions: Sequence[int]) -> Sequence[int]:
        self.trips.append((key, list(questions)))
        if key in self.slow:
            await self.slow[key].wait()
        if -1 in questions:
            raise ConnectionError("away")
        return [question * 2 for question in questions]

    def ask(self, key: str, *questions: int) -> list[asyncio.Future[int]]:
        return [self.batcher.ask(key, question) for question in questions]


async def test_each_gets_the_answer_to_its_own_question() -> None:
    server = Server()
    assert await asyncio.gather(*server.ask("a", 1, 2, 3)) == [2, 4, 6]
    assert server.trips == [("a", [1, 2, 3])]


async def test_what_is_asked_during_a_round_trip_goes_out_with_the_next() -> None:
    server = Server()
    server.slow["a"] = asyncio.Event()
    first = server.ask("a", 1)
    await settle()
    others = server.ask("a", 2, 3) + server.ask("a", 4)
    await settle()
    assert server.trips == [("a", [1])]
    server.slow["a"].set()
    assert await asyncio.gather(*first, *others) == [2, 4, 6, 8]
    assert server.trips == [("a", [1]), ("a", [2, 3, 4])]


async def test_a_round_trip_has_a_bound() -> None:
    server = Server()
    asked = range(batch.MOST * 2 + 10)
    assert await asyncio.gather(*server.ask("a", *asked)) == [question * 2 for question in asked]
    assert [len(questions) for _, questions in server.trips] == [batch.MOST, batch.MOST, 10]


async def test_a_slow_event_holds_up_no_other() -> None:
    server = Server()
    server.slow["slow"] = asyncio.Event()
    waiting = server.ask("slow", 1)
    await settle()
    for n in range(5):
        assert await server.batcher.ask("quick", n) == 2 * n
    assert not waiting[0].done()
    server.slow["slow"].set()
    assert await waiting[0] == 2


async def test_a_failure_reaches_each_who_asked_and_nobody_later() -> None:
    server = Server()
    failed = await asyncio.gather(*server.ask("a", 1, -1, 2), return_exceptions=True)
    assert [type(e) for e in failed] == [ConnectionError] * 3
    assert await server.batcher.ask("a", 4) == 8


async def test_one_who_does_not_wait_any_more_costs_nothing() -> None:
    server = Server()
    server.slow["a"] = asyncio.Event()
    first, gone, stays = server.ask("a", 1)[0], *server.ask("a", 2, 3)
    await settle()
    second = server.ask("a", 4, 5)
    await settle()
    second[0].cancel()
    gone.cancel()
    await settle()
    server.slow["a"].set()
    assert [await first, await stays, await second[1]] == [2, 6, 10]
    assert server.trips == [("a", [1, 2, 3]), ("a", [5])]
    with pytest.raises(asyncio.CancelledError):
        await second[0]


async def test_if_all_have_gone_there_is_no_round_trip() -> None:
    server = Server()
    server.slow["a"] = asyncio.Event()
    first = server.ask("a", 1)[0]
    await settle()
    second = server.ask("a", 2)[0]
    await settle()
    second.cancel()
    await settle()
    server.slow["a"].set()
    await first
    await settle()
    assert server.trips == [("a", [1])]
    assert server.batcher._tasks == {}
    assert server.batcher._waiting == {}


async def test_closing_ends_what_is_under_way() -> None:
    server = Server()
    server.slow["a"] = asyncio.Event()
    first = server.ask("a", 1)
    await settle()
    second = server.ask("a", 2)
    await settle()
    await server.batcher.aclose()
    for task in first + second:
        with pytest.raises(asyncio.CancelledError):
            await task
    assert server.batcher._tasks == {}


async def test_when_many_ask_the_next_round_trip_does_not_wait_for_the_last() -> None:
    server = Server()
    server.slow["a"] = asyncio.Event()
    first = server.ask("a", 1)
    await settle()
    others = server.ask("a", *range(batch.ENOUGH * 3))
    await settle()
    assert [len(questions) for _, questions in server.trips] == [1, batch.ENOUGH * 3]
    more = server.ask("a", *range(batch.ENOUGH * batch.AT_ONCE))
    await settle()
    assert len(server.trips) == batch.AT_ONCE
    server.slow["a"].set()
    assert await asyncio.gather(*first, *others) == [2, *(2 * n for n in range(batch.ENOUGH * 3))]
    assert await asyncio.gather(*more) == [2 * n for n in range(batch.ENOUGH * batch.AT_ONCE)]


async def test_closing_ends_all_round_trips_that_are_under_way() -> None:
    server = Server()
    server.slow["a"] = asyncio.Event()
    asked = server.ask("a", 1)
    await settle()
    asked += server.ask("a", *range(batch.ENOUGH))
    await settle()
    asked += server.ask("a", 2)
    assert len(server.trips) == 2
    await server.batcher.aclose()
    assert all(answer.cancelled() for answer in asked)
