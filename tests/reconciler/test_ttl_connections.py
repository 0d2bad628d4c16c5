"""The connections mode, on the real Redis: leases, their sum under the seeds' keys, the timer, and who sleeps by it."""

from codehub.activity import keys
from codehub.templates.model import ActivityMode
from tests.reconciler.test_controller import house
from tests.reconciler.test_ttl import clock, falls_asleep, late, stays_awake
from tests.reconciler.ttl_house import Evening

__all__ = ["clock", "house", "late"]


async def test_connected_is_active_and_the_timer_runs_from_the_last_ones_end(late: Evening) -> None:
    id_ = await late.ws("c")
    proxy = await late.proxy()
    first, second = proxy.connect(id_), proxy.connect(id_)
    await proxy.tell_connections()
    assert await late.redis.get(f"ws_conn:{id_}") == b"2"
    for _ in range(30):
        late.pass_time(60)
        await proxy.flush()
        await stays_awake(late, id_)
    first.closed()
    await proxy.tell_connections()
    assert await late.redis.get(f"ws_conn:{id_}") == b"1"
    assert not await late.redis.exists(f"idle_timer:{id_}")
    second.closed()
    await proxy.tell_connections()
    assert not await late.redis.exists(f"ws_conn:{id_}")
    assert await late.redis.get(f"idle_timer:{id_}") == b"1"
    assert 290 <= await late.redis.ttl(f"idle_timer:{id_}") <= 300
    late.pass_time(301)
    await proxy.flush()
    await stays_awake(late, id_)  # by the timer, which runs in Redis's own time
    await late.redis.delete(f"idle_timer:{id_}")  # as when it is over
    await falls_asleep(late, id_)


async def test_whoever_connects_again_in_time_cancels_the_timer(late: Evening) -> None:
    """A network that drops for three seconds; also between the timer's request and the stopping."""
    id_ = await late.ws("c")
    proxy = await late.proxy()
    proxy.connect(id_).closed()
    await proxy.tell_connections()
    assert not await late.redis.exists(f"ws_conn:{id_}")
    late.pass_time(3)
    proxy.connect(id_)
    await proxy.tell_connections()
    assert not await late.redis.exists(f"idle_timer:{id_}")
    late.pass_time(400)
    await proxy.flush()
    await stays_awake(late, id_)


async def test_an_http_request_restarts_the_timer_and_a_workspaces_own_time_is_its_length(late: Evening) -> None:
    id_ = await late.ws("c", standby_ttl_seconds=900)
    proxy = await late.proxy()
    proxy.visit(id_, ActivityMode.CONNECTIONS, 900)
    await proxy.tell_connections()
    assert 890 <= await late.redis.ttl(f"idle_timer:{id_}") <= 900
    await late.redis.expire(f"idle_timer:{id_}", 100)
    proxy.visit(id_, ActivityMode.CONNECTIONS, 900)
    await proxy.tell_connections()
    assert await late.redis.ttl(f"idle_timer:{id_}") > 800


async def test_a_killed_proxys_thousand_connections_end_and_their_timers_start(late: Evening) -> None:
    ids = [f"w{n}" for n in range(1000)]
    dead, alive = await late.proxy(), await late.proxy()
    for id_ in ids:
        dead.connect(id_)
    alive.connect(ids[0])
    await dead.tell_connections()
    await alive.tell_connections()
    assert await late.redis.get(f"ws_conn:{ids[0]}") == b"2"
    late.pass_time(60)
    await alive.flush()
    assert await late.redis.get(f"ws_conn:{ids[1]}") == b"1"  # it may have missed a flush
    late.pass_time(10)
    await alive.flush()
    assert await late.redis.get(f"ws_conn:{ids[0]}") == b"1"
    assert await late.redis.exists(*(f"ws_conn:{id_}" for id_ in ids)) == 1
    assert await late.redis.exists(*(f"idle_timer:{id_}" for id_ in ids)) == 999


async def test_after_redis_began_anew_the_connected_register_again(late: Evening) -> None:
    id_ = await late.ws("c")
    proxy = await late.proxy()
    proxy.connect(id_)
    await proxy.tell_connections()
    late.pass_time(400)
    await late.redis.flushdb()
    await stays_awake(late, id_)
    await proxy.flush()
    assert await late.redis.get(f"ws_conn:{id_}") == b"1"
    for _ in range(5):
        late.pass_time(60)
        await proxy.flush()
        await stays_awake(late, id_)


async def test_a_worker_that_stops_in_order_leaves_no_lease_behind(late: Evening) -> None:
    proxy = await late.proxy()
    proxy.connect("w1")
    await proxy.tell_connections()
    await proxy.recorder._finish()
    assert not await late.redis.exists("ws_conn:w1", "codehub:proxy:proxy-1")
    assert await late.redis.zcard(keys.PROXIES) == 0
    assert await late.redis.exists("idle_timer:w1")
