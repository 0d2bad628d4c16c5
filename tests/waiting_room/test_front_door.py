"""The front door answers plain polls by itself, and sends everything else on to the API."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
import redis.asyncio

from codehub.proxy import framing
from codehub.proxy.model import Address, Answer, Forward, Later, RequestHead
from codehub.settings import QueueConfig
from codehub.waiting_room.front_door import PATH, Polls
from codehub.waiting_room.line import Line
from codehub.waiting_room.tokens import Tokens, Waiting
from tests.virtual_time import ManualClock
from tests.waiting_room.lines import Room, Waiter

TO_API = Forward(Address(path="/nowhere"))
TOKENS = Tokens("a key of tests")


class Door:
    def __init__(self, room: Room) -> None:
        self.room = room
        self._polls = Polls(room.line, TOKENS, room.clock, room.config)

    async def ask(self, target: str, method: str = "GET") -> Answer | Forward:
        head: RequestHead = framing.request(f"{method} {target} HTTP/1.1\r\nHost: x".encode(), 100)
        decision = self._polls(head, lambda _head: TO_API)
        if not isinstance(decision, Later):
            assert isinstance(decision, Answer | Forward)
            return decision
        decided: asyncio.Future[Answer | Forward] = asyncio.get_running_loop().create_future()
        decision.begin(decided.set_result)
        assert not decided.done(), "it is decided in a later round of the loop"
        return await decided

    def token(self, who: Waiter) -> str:
        return TOKENS.waiting(Waiting(self.room.event, who.pid, who.seq, who.joined_ms, f"id-{who.name}", who.name))

    async def poll(self, who: Waiter) -> dict[str, Any] | None:
        """None: sent on to the API."""
        answer = await self.ask(f"{PATH.decode()}?token={self.token(who)}")
        if isinstance(answer, Forward):
            return None
        assert answer.status == 200
        found: dict[str, Any] = json.loads(answer.body)
        return found


@pytest.fixture
def door(room: Room) -> Door:
    return Door(room)


async def test_who_waits_is_told_where(door: Door) -> None:
    room = door.room
    _, jun = await room.join_all("mina", "jun")
    await room.clock.advance(15)
    told = await door.poll(jun)
    assert told is not None
    assert (told["status"], told["position"], told["waiting_time"]) == ("waiting", 2, 15)
    assert (told["ready_for_entry"], told["paused"], told["passed"], told["opens_at"]) == (False, False, False, None)
    assert told["eta_low_sec"] <= told["eta_sec"] <= told["eta_high_sec"]
    assert told["waiting_token"] == door.token(jun)


async def test_a_poll_at_the_front_door_is_a_heartbeat(door: Door) -> None:
    (mina,) = await door.room.join_all("mina")
    for _ in range(5):
        await door.room.clock.advance(80)
        await door.room.line.sweep(door.room.event, 100)
        told = await door.poll(mina)
        assert told is not None
        assert told["position"] == 1


async def test_when_it_opens_and_that_it_is_paused_is_said(door: Door) -> None:
    room = door.room
    (mina,) = await room.join_all("mina")
    opens_ms = room.now_ms + 60_000
    await room.line.configure(room.event, paused=True, lottery=False, eta="", opens_ms=opens_ms)
    told = await door.poll(mina)
    assert told is not None
    assert told["paused"]
    assert told["opens_at"] is not None
    await room.clock.advance(61)
    told = await door.poll(mina)
    assert told is not None
    assert told["opens_at"] is None, "it lies behind"


async def test_their_turn_and_what_is_over_are_the_apis_to_say(door: Door) -> None:
    room = door.room
    mina, jun = await room.join_all("mina", "jun")
    await room.line.mark(room.event, mina.pid, mina.seq, 1, 1)
    assert await door.poll(mina) is None
    stranger = Waiter("ana", "000000000000", 7, room.now_ms)
    assert await door.poll(stranger) is None
    assert await door.poll(jun) is not None


@pytest.mark.parametrize("method", ["POST", "HEAD", "DELETE"])
async def test_other_requests_are_the_apis(door: Door, method: str) -> None:
    (mina,) = await door.room.join_all("mina")
    assert await door.ask(f"{PATH.decode()}?token={door.token(mina)}", method) is TO_API


@pytest.mark.parametrize(
    "query", ["", "?", "?token=", "?token={}x", "?token={}&token={}", "?tok%65n={}", "?a=1&token={}"]
)
async def test_what_is_not_just_a_good_token_is_the_apis(door: Door, query: str) -> None:
    (mina,) = await door.room.join_all("mina")
    assert await door.ask(PATH.decode() + query.replace("{}", door.token(mina))) is TO_API


@pytest.fixture
async def unreachable(clock: ManualClock) -> AsyncIterator[Room]:
    client = redis.asyncio.Redis(unix_socket_path="/nowhere/redis.sock")
    room = Room(client, clock)
    yield room
    await room.line.aclose()
    await client.aclose()


async def test_without_redis_the_api_says_so(unreachable: Room) -> None:
    assert await Door(unreachable).poll(Waiter("mina", "a" * 12, 2**32 + 1, 0)) is None


async def test_polls_that_are_under_way_when_the_worker_ends_go_on_to_the_api(
    redis_client: redis.asyncio.Redis, clock: ManualClock
) -> None:
    room = Room(redis_client, clock)
    room.line = Line(redis_client, clock, QueueConfig())
    await room.open()
    (mina,) = await room.join_all("mina")
    asked = asyncio.create_task(Door(room).poll(mina))
    await asyncio.sleep(0)
    await room.line.aclose()
    assert await asked is None
