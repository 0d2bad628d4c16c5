"""Whatever uses Redis, with Sentinels and in a Cluster; and a primary that is lost with what it had acknowledged."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

import pytest
from redis.exceptions import ReadOnlyError

from codehub.activity import keys
from codehub.activity.reader import LostMemoryError
from codehub.auth.tries import QUICK, Tries
from codehub.classes.code_tries import CodeTries
from codehub.clock import SystemClock
from codehub.db.redis import FAILURES, Client, open_redis
from codehub.errors import RateLimitError, TooManyTriesError
from codehub.passkeys.challenges import Challenges
from codehub.passkeys.errors import PasskeyChallengeError
from codehub.passkeys.model import Purpose
from codehub.rates import Rates
from codehub.waiting_room.model import LOSS
from tests.failover.conftest import Several
from tests.failover.sentinels import NAME, PASSWORD, Watched
from tests.reconciler.test_controller import house
from tests.reconciler.test_ttl import clock, falls_asleep, late, stays_awake
from tests.reconciler.ttl_house import STANDBY, Evening
from tests.virtual_time import ManualClock
from tests.waiting_room.clusters import until
from tests.waiting_room.lines import Room, check_line

__all__ = ["clock", "house", "late"]
T = TypeVar("T")


async def when_back(ask: Callable[[], Awaitable[T]]) -> T:
    """What a loop does: it asks again."""
    while True:
        try:
            return await ask()
        except FAILURES:
            await asyncio.sleep(0.1)


async def _use_everything(client: Client) -> None:
    clock = SystemClock()
    tries, rates, codes = Tries(client, clock, "a key"), Rates(client, clock), CodeTries(client, clock)
    for _ in range(QUICK.most):
        await tries.begin("mina", "192.0.2.1")
    with pytest.raises(TooManyTriesError):
        await tries.begin("mina", "192.0.2.1")
    await tries.was_right(await tries.begin("ann", "192.0.2.1"))
    await rates.spend("runs", "mina", 1)
    with pytest.raises(RateLimitError):
        await rates.spend("runs", "mina", 1)
    async with codes.one("192.0.2.1") as attempt:
        attempt.is_wrong = True
    challenges = Challenges(client, clock, "a secret key that is long", 60)
    challenge = challenges.new(Purpose.LOGIN, "browser")
    await challenges.use(challenge)
    with pytest.raises(PasskeyChallengeError):
        await challenges.use(challenge)
    await client.set("codehub:shown:x", "once", nx=True, ex=60)
    assert await client.getdel("codehub:shown:x") == b"once"


async def test_activity_goes_on_after_a_failover_and_nobody_is_put_to_sleep_by_it(
    late: Evening, several: Several, activity: str
) -> None:
    await _use_everything(late.redis)
    by_traffic, by_connections = await late.ws(), await late.ws("c")
    proxy = await late.proxy()
    proxy.connect(by_connections)
    await proxy.tell_connections()
    late.pass_time(STANDBY - 100)
    proxy.visit(by_traffic)
    await proxy.flush()
    await stays_awake(late, by_traffic)
    several.lose(activity + keys.ACTIVITY)
    late.pass_time(STANDBY - 100)
    await when_back(late.reader.round)
    with pytest.raises(LostMemoryError):  # this moment is after the request to stop, and before it
        await late.reader.look([by_traffic])
    await stays_awake(late, by_traffic)
    await proxy.flush()
    assert await late.redis.get(f"{activity}ws_conn:{by_connections}") == b"1"
    late.pass_time(70)
    proxy.visit(by_traffic)
    await proxy.flush()
    await stays_awake(late, by_traffic)
    late.pass_time(STANDBY + 1)
    await proxy.flush()
    await falls_asleep(late, by_traffic)
    await stays_awake(late, by_connections)
    await _check_timer(late, by_connections, proxy.tunnels[0].closed, activity)


async def _check_timer(late: Evening, id_: str, close: Callable[[], None], activity: str) -> None:
    close()
    await late.live[0].tell_connections()
    assert not await late.redis.exists(f"{activity}ws_conn:{id_}")
    assert 290 <= await late.redis.ttl(f"{activity}idle_timer:{id_}") <= 300


@pytest.mark.parametrize("several", ["sentinel"], indirect=True)
async def test_activity_that_only_the_lost_primary_had_is_told_again(late: Evening, several: Several) -> None:
    watched = several.servers
    assert isinstance(watched, Watched)
    id_ = await late.ws()
    proxy = await late.proxy()
    primary = watched.primary()
    replica = next(node for node in watched.servers if node is not primary)
    replica.ask("CONFIG", "SET", "masterauth", "wrong")  # it hears no more
    primary.ask("CLIENT", "KILL", "TYPE", "replica")
    until(lambda: replica.client.info("replication")["master_link_status"] == "down")
    late.pass_time(STANDBY - 10)
    proxy.visit(id_)
    await proxy.flush()
    assert await late.redis.zscore(keys.ACTIVITY, id_)
    several.lose(keys.ACTIVITY)
    await when_back(late.reader.round)
    assert await late.redis.zscore(keys.ACTIVITY, id_) is None
    late.pass_time(60)  # by all that is known it was never visited
    await stays_awake(late, id_)
    await proxy.flush()
    late.pass_time(70)
    await proxy.flush()
    await stays_awake(late, id_)
    late.pass_time(STANDBY - 70)
    await proxy.flush()
    await falls_asleep(late, id_)


async def test_what_only_opens_with_several_servers_says_so_in_its_own_exceptions() -> None:
    for url in ("redis+cluster://127.0.0.1:1", "redis+sentinel://127.0.0.1:1,127.0.0.1:2/labs", "redis://127.0.0.1:1"):
        client = open_redis(url)
        with pytest.raises(FAILURES):
            await client.ping()
        await client.aclose()


@pytest.mark.parametrize("several", ["sentinel"], indirect=True)
async def test_people_in_line_keep_their_places_when_sentinels_choose_another_primary(
    several: Several, redis_client: Client, clock: ManualClock
) -> None:
    room = Room(redis_client, clock)
    await room.open()
    people = await room.join_all("a", "b", "c")
    several.primary_of("").ask("WAIT", 1, 5000)
    several.lose("")
    await when_back(redis_client.ping)
    assert await room.poll(people[0]) is LOSS
    assert await room.open(2, hold=90, window=300)
    assert await room.positions(people) == [1, 2, 3]
    assert (await room.join("d")).seq > people[-1].seq
    await check_line(redis_client, room.event)
    await room.line.aclose()


@pytest.mark.parametrize("several", ["sentinel"], indirect=True)
async def test_a_connection_to_a_former_primary_is_given_up(several: Several, redis_client: Client) -> None:
    """It was turned into a replica, and answers: `READONLY`."""
    watched = several.servers
    assert isinstance(watched, Watched)
    old, new = watched.servers
    password = PASSWORD.replace("/", "%2F").replace("@", "%40")
    alone = open_redis(f"redis://:{password}@127.0.0.1:{old.port}")
    assert await redis_client.set("x", "1")
    watched.sentinels[0].ask("SENTINEL", "FAILOVER", NAME)
    until(lambda: watched.primary() is new and old.client.info("replication")["role"] == "slave")
    with pytest.raises(ReadOnlyError):
        await alone.set("x", "2")
    await when_back(lambda: redis_client.set("x", "3"))
    until(lambda: old.client.get("x") == "3")
    await alone.aclose()
