"""The seed's four scenarios as they are written, over HTTP, in virtual time; and what `redis-cli` shows meanwhile."""

import logging
from typing import Any

import pytest
import redis.asyncio
import structlog
from structlog.testing import capture_logs

from tests.waiting_room.queue_site import QueueSite

EVENT = "concert-a"


async def keys(client: redis.asyncio.Redis, pattern: str) -> set[str]:
    """As `redis-cli --scan --pattern …` lists them."""
    return {key.decode() async for key in client.scan_iter(match=pattern)}


def key_of(token: str) -> str:
    """What stands for a token in keys: the event as hash tag, and the person."""
    event, pid, _, _ = token.split(".")
    return f"{{{event}}}.{pid}"


@pytest.fixture
async def concert(queue: QueueSite) -> QueueSite:
    await queue.event(EVENT, capacity=0)
    return queue


async def test_scenario_1_who_goes_on_polling_stays_in_line(
    concert: QueueSite, redis_client: redis.asyncio.Redis
) -> None:
    token = await concert.token("user1", EVENT)
    heartbeat = f"heartbeat:{key_of(token)}"
    assert await keys(redis_client, "heartbeat:*") == {heartbeat}
    assert await redis_client.get(heartbeat) == b"alive"
    assert 295 < await redis_client.ttl(heartbeat) <= 300
    assert 1795 < await redis_client.ttl(f"queue:waiting:{key_of(token)}") <= 1800
    assert await redis_client.type(f"queue:event:{{{EVENT}}}") == b"zset"
    assert 3590 < await redis_client.ttl(f"queue:event:{{{EVENT}}}") <= 3600
    await redis_client.expire(heartbeat, 100)
    for _ in range(150):  # five minutes, every two seconds
        await concert.clock.advance(2)
        answer = await concert.status(token)
        assert (answer.status, answer.body["position"]) == (200, 1)
    assert 295 < await redis_client.ttl(heartbeat) <= 300
    await concert.pass_time(60, token, step=2)
    assert (await concert.status(token)).body["position"] == 1


async def test_scenario_2_who_closes_the_browser_is_removed_when_another_person_polls(
    concert: QueueSite, redis_client: redis.asyncio.Redis
) -> None:
    ghost, other = await concert.token("user2", EVENT), await concert.token("user9", EVENT)
    await concert.tick()
    assert (await concert.status(ghost)).status == 200
    await concert.pass_time(295, other)  # the browser of user2 is closed
    assert (await concert.status(other)).body["position"] == 2
    await concert.clock.advance(6)
    await concert.status(other)  # has found it, before the pump's next tick
    assert (await concert.status(other)).body["position"] == 1
    gone = await concert.status(ghost)
    assert gone.status == 404
    assert gone.body == {
        "error": {"code": "TOKEN_EXPIRED", "message": "Waiting token expired due to inactivity"},
    }
    assert await keys(redis_client, f"*{key_of(ghost)}*") == set()
    assert await redis_client.zcard(f"queue:event:{{{EVENT}}}") == 1
    assert (await concert.join("user2", EVENT))["position"] == 2


async def test_scenario_3_leaving_moves_the_others_up_at_once(
    concert: QueueSite, redis_client: redis.asyncio.Redis
) -> None:
    token, behind = await concert.token("user3", EVENT), await concert.token("user4", EVENT)
    assert (await concert.leave(token)).status == 204
    assert await keys(redis_client, f"*{key_of(token)}*") == set()
    assert (await concert.status(behind)).body["position"] == 1
    assert (await concert.status(token)).code == "TOKEN_EXPIRED"


async def test_scenario_3_leaving_by_a_beacon_does_the_same(concert: QueueSite) -> None:
    token, behind = await concert.token("user3", EVENT), await concert.token("user4", EVENT)
    sent: dict[str, Any] = {
        "data": f'{{"waiting_token":"{token}"}}',
        "headers": {"content-type": "text/plain;charset=UTF-8"},
    }
    assert (await concert.call("POST", "/leave", **sent)).status == 204
    assert (await concert.status(behind)).body["position"] == 1


async def test_scenario_4_after_entering_the_token_is_over(
    concert: QueueSite, redis_client: redis.asyncio.Redis
) -> None:
    await concert.event(EVENT, capacity=1)
    token = await concert.token("user1", EVENT)
    assert (await concert.status(token)).body["position"] == 1
    await concert.tick()
    assert (await concert.status(token)).body["ready_for_entry"]
    entered = await concert.enter(token)
    assert entered.status == 200
    assert entered.body["reservation_token"]
    assert await keys(redis_client, "heartbeat:*") == set()
    assert await redis_client.zcard(f"queue:event:{{{EVENT}}}") == 0
    assert (await concert.status(token)).code == "TOKEN_EXPIRED"


@pytest.fixture
def everything_logged(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests run at the level `warning`."""
    debugging = structlog.make_filtering_bound_logger(logging.DEBUG)
    monkeypatch.setattr("codehub.waiting_room.line.log", structlog.wrap_logger(None, wrapper_class=debugging))


@pytest.mark.usefixtures("everything_logged")
async def test_the_seeds_log_lines_are_written_and_name_no_whole_token(concert: QueueSite) -> None:
    ghost = await concert.token("user2", EVENT)
    with capture_logs() as said:
        assert (await concert.status(ghost)).status == 200
        await concert.pass_time(310)
    shortened = ".".join(ghost.split(".")[:2])
    (renewed,) = [line for line in said if line["event"] == "Heartbeat renewed"]
    assert (renewed["log_level"], renewed["ttl_remaining"], renewed["waiting_token"]) == ("debug", "300s", shortened)
    (expired,) = [line for line in said if line["event"] == "Heartbeat expired - cleaning up abandoned user"]
    assert (expired["log_level"], expired["event_id"], expired["user_id"]) == ("info", EVENT, "user2")
    assert expired["waiting_token"] == shortened
    assert ghost not in str(said)
