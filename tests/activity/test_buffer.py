"""The buffer and its scripts on the real Redis: counts, listings that several proxies see, what a failure leaves."""

from typing import Any

from redis.asyncio import Redis

from codehub.activity import keys, scripts
from codehub.activity.model import Watched
from codehub.activity.recorder import Recorder
from codehub.settings import ActivityConfig
from codehub.templates.model import ActivityProfile
from tests.reconciler.ttl_house import head
from tests.virtual_time import ManualClock

LAB = Watched("w1", ActivityProfile.JUPYTER)
LISTING = head(b"/w/w1/api/contents?content=1&hash=0&1794783146335")
FOLDER = head(b"/w/w1/api/contents/notes?content=1&hash=0&1794783146335")


def worker(redis: Redis, clock: ManualClock, name: str) -> Recorder:
    return Recorder(redis, clock, name, ActivityConfig())


async def seen(redis: Redis) -> dict[str, int]:
    found: Any = await redis.hgetall(keys.details("w1"))
    return {name.decode(): int(value) for name, value in found.items() if not name.startswith(b"last")}


async def test_what_was_seen_is_counted_by_kind(redis_client: Redis, clock: ManualClock) -> None:
    recorder = worker(redis_client, clock, "a")
    recorder.request(LAB, head(b"/w/w1/lab"))
    recorder.request(LAB, head(b"/w/w1/api/kernels?1"))
    await recorder.flush()
    recorder.request(LAB, head(b"/w/w1/api/kernels?2"))
    await recorder.flush()
    assert await seen(redis_client) == {"request": 1, "polling": 2}


async def test_the_same_listing_within_a_minute_is_a_refresh(redis_client: Redis, clock: ManualClock) -> None:
    recorder = worker(redis_client, clock, "a")
    for _ in range(30):  # five minutes, every ten seconds
        recorder.request(LAB, LISTING)
        await recorder.flush()
        await clock.advance(10)
    assert await seen(redis_client) == {"browsing": 1, "refresh": 29}
    score = await redis_client.zscore(keys.ACTIVITY, "w1")
    assert score
    assert score < clock.now().timestamp() * 1000 - 290_000
    recorder.request(LAB, FOLDER)
    await recorder.flush()
    assert (await seen(redis_client))["browsing"] == 2


async def test_a_listing_that_wanders_between_proxies_is_still_a_refresh(
    redis_client: Redis, clock: ManualClock
) -> None:
    workers = [worker(redis_client, clock, name) for name in "abcd"]
    for turn in range(40):
        if turn % 3 == 0:
            await clock.advance(1)
        workers[turn % 4].request(LAB, LISTING)
        await workers[turn % 4].flush()
        await clock.advance(10)
    assert (await seen(redis_client))["browsing"] == 1


async def test_a_listing_after_more_than_a_minute_is_somebodys(redis_client: Redis, clock: ManualClock) -> None:
    recorder = worker(redis_client, clock, "a")
    for _ in range(3):
        recorder.request(LAB, LISTING)
        await recorder.flush()
        await clock.advance(61)
    assert (await seen(redis_client))["browsing"] == 3


async def test_taking_over_a_second_time_because_the_answer_was_not_heard_loses_nothing(redis_client: Redis) -> None:
    """A client of a Cluster asks again by itself when a connection breaks, by then maybe of another primary."""
    name = f"{keys.TAKEN}:1:x"
    await redis_client.zadd(keys.ACTIVITY, {"w1": 1})
    await scripts.run(redis_client, "take", name)
    await redis_client.zadd(keys.ACTIVITY, {"w2": 2})
    assert await scripts.run(redis_client, "take", name) == [name.encode()]
    assert await redis_client.zrange(name, 0, -1) == [b"w1"]
    assert await redis_client.zrange(keys.ACTIVITY, 0, -1) == [b"w2"]
