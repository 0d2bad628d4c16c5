"""The TTL runner, tick by tick on the real database and the real Redis: who is put to sleep, and who is not."""

import itertools
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from datetime import timedelta

import pytest
from redis.asyncio import Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import ConnectionError as RedisConnectionError

from codehub.activity import keys
from codehub.db import Database
from codehub.errors import LeaseLostError
from codehub.reconciler.idle_recheck import Returned
from codehub.settings import TtlConfig
from codehub.templates.model import ActivityMode
from codehub.workspaces import idle_store
from codehub.workspaces.admission import admitted
from codehub.workspaces.model import Desired, DesiredBy, Operation, Phase, Workspace
from codehub.workspaces.service import Details
from tests.reconciler.test_controller import MINA, House, house
from tests.reconciler.ttl_house import ARCHIVE, STANDBY, DrivenClock, Evening, Proxy, evening, successor

__all__ = ["house"]
NOWHERE = Redis(port=1, retry=Retry(NoBackoff(), 0))


@pytest.fixture
def clock() -> DrivenClock:
    return DrivenClock()


@pytest.fixture
async def late(house: House, redis_client: Redis) -> Evening:
    made = await evening(house, redis_client)
    await made.settle()
    return made


async def stays_awake(late: Evening, id_: str) -> Workspace:
    await late.runner.tick()
    await late.tick()
    w = await late.get(id_)
    assert (w.desired_state, w.phase, w.operation) == (Desired.RUNNING, Phase.RUNNING, Operation.NONE)
    return w


async def falls_asleep(late: Evening, id_: str) -> Workspace:
    await late.runner.tick()
    await late.tick()  # asks the proxies
    await late.all_flush()
    return await late.until(id_, Phase.STANDBY)


async def about_to_sleep(late: Evening) -> tuple[str, Proxy]:
    """A timer asks for it, and the proxies are asked what they saw."""
    id_ = await late.ws()
    proxy = await late.proxy()
    late.pass_time(STANDBY + 1)
    await proxy.flush()
    await late.runner.tick()
    await late.tick()
    return id_, proxy


async def test_a_workspace_never_visited_sleeps_after_its_time_and_not_before(late: Evening) -> None:
    id_ = await late.ws()
    late.pass_time(STANDBY - 2)
    await stays_awake(late, id_)
    late.pass_time(3)
    w = await falls_asleep(late, id_)
    assert w.desired_by is DesiredBy.TTL
    assert late.nudged == 1


async def test_what_was_said_beforehand_is_when_it_happens(late: Evening) -> None:
    id_ = await late.ws()
    sleeps_at = late.ttl_policies.sleeps_at(await late.get(id_))
    assert sleeps_at
    late.pass_time((sleeps_at - late.clock.now()).total_seconds() - 0.5)
    await stays_awake(late, id_)
    late.pass_time(1)
    await falls_asleep(late, id_)
    assert late.ttl_policies.sleeps_at(await late.get(id_)) is None


async def test_activity_travels_through_redis_into_the_row_and_keeps_it_awake(late: Evening) -> None:
    id_ = await late.ws()
    proxy = await late.proxy()
    late.pass_time(500)
    proxy.visit(id_)
    seen = late.clock.now()
    await proxy.flush()
    late.pass_time(300)
    await proxy.flush()
    w = await stays_awake(late, id_)
    assert abs(w.last_access_at - seen) < timedelta(milliseconds=2)
    assert w.last_access_at >= seen
    assert not await late.redis.exists(keys.ACTIVITY)
    late.pass_time(301)
    await proxy.flush()
    await falls_asleep(late, id_)


async def test_the_older_news_of_a_slow_proxy_move_nothing_backwards(late: Evening) -> None:
    id_ = await late.ws()
    slow, fast = await late.proxy(), await late.proxy()
    late.pass_time(100)
    slow.visit(id_)
    late.pass_time(20)
    fast.visit(id_)
    newest = late.clock.now()
    await fast.flush()
    await slow.flush()
    score = await late.redis.zscore(keys.ACTIVITY, id_)
    assert score
    assert score >= newest.timestamp() * 1000
    await late.runner.tick()
    await slow.flush()
    slow.visit(id_)
    late.clock._elapsed -= 60  # its clock is behind
    slow.visit(id_)
    await slow.flush()
    late.clock._elapsed += 60
    await late.runner.tick()
    assert (await late.get(id_)).last_access_at >= newest


async def test_it_is_decided_as_of_the_slowest_proxys_flush(late: Evening) -> None:
    """What a proxy may still hold in memory puts nobody to sleep."""
    id_ = await late.ws()
    proxy = await late.proxy()
    late.pass_time(STANDBY - 10)
    await proxy.flush()
    late.pass_time(20)
    assert (await stays_awake(late, id_)).phase is Phase.RUNNING  # idle for longer as of now, but not as of the flush
    await proxy.flush()
    assert (await falls_asleep(late, id_)).desired_by is DesiredBy.TTL


async def test_a_proxy_that_is_asked_flushes_and_nobody_waits_for_its_period(late: Evening) -> None:
    id_ = await late.ws()
    proxy = await late.proxy()
    late.pass_time(40)
    proxy.visit(id_)

    async def looks_once_a_second() -> None:
        if await proxy.recorder.is_asked():
            await proxy.flush()

    late.clock.meanwhile = looks_once_a_second  # type: ignore[attr-defined]
    await late.runner.tick()
    assert (await late.get(id_)).last_access_at > late.clock.now() - timedelta(seconds=3)


async def test_a_dead_proxy_holds_nobody_awake(late: Evening) -> None:
    id_ = await late.ws()
    await late.proxy()
    late.live.clear()
    late.pass_time(STANDBY + 1)  # its lease ran out long ago
    assert (await falls_asleep(late, id_)).desired_by is DesiredBy.TTL


async def test_activity_between_the_request_and_the_stopping_keeps_it_running(late: Evening) -> None:
    id_ = await late.ws()
    proxy = await late.proxy()
    late.pass_time(STANDBY + 1)
    await proxy.flush()
    await late.runner.tick()
    assert (await late.get(id_)).desired_state is Desired.STANDBY
    late.pass_time(0.5)
    proxy.visit(id_)
    await late.tick()
    assert (await late.get(id_)).operation is Operation.NONE  # the proxy has not said yet what it saw
    await proxy.flush()
    await late.tick()
    w = await late.get(id_)
    assert (w.desired_state, w.desired_by, w.phase) == (Desired.RUNNING, DesiredBy.WAKE, Phase.RUNNING)
    assert "kept awake" in await late.events(id_)
    assert ("stop", id_) not in late.runtime.calls
    await stays_awake(late, id_)


async def test_activity_just_before_the_request_that_comes_late_keeps_it_running(late: Evening) -> None:
    id_ = await late.ws()
    proxy, other = await late.proxy(), await late.proxy()
    late.pass_time(STANDBY + 1)
    await proxy.flush()
    await other.flush()
    proxy.visit(id_)
    await late.runner.tick()
    assert (await late.get(id_)).desired_state is Desired.STANDBY
    late.pass_time(1)
    for each in (other, proxy):
        await each.flush()
        await late.tick()
    assert (await late.get(id_)).desired_state is Desired.RUNNING


async def test_without_activity_the_recheck_lets_it_go(late: Evening) -> None:
    id_, proxy = await about_to_sleep(late)
    assert (await late.get(id_)).operation is Operation.NONE
    late.pass_time(1)
    assert await proxy.recorder.is_asked()
    await proxy.flush()
    await late.until(id_, Phase.STANDBY)


async def test_what_is_done_after_every_proxy_has_answered_still_keeps_it_running(late: Evening) -> None:
    """The proxy knows that it is about to sleep, and does not wait for its next flush."""
    id_, other = await late.ws(), await late.ws(standby_ttl_seconds=0)
    proxy = await late.proxy()
    tunnel = proxy.connect(id_, ActivityMode.TRAFFIC)
    late.pass_time(STANDBY + 1)
    await proxy.flush()
    await late.runner.tick()
    await late.tick()
    await proxy.flush()
    proxy.visit(other)
    assert not proxy.recorder._buffer.flush_requested.is_set()
    tunnel.from_upstream.follow(b"\x82\x01x")
    assert proxy.recorder._buffer.flush_requested.is_set()
    await proxy.recorder.flush()
    await late.tick()
    assert (await late.get(id_)).desired_state is Desired.RUNNING
    assert ("stop", id_) not in late.runtime.calls


async def test_what_is_done_between_the_controllers_two_looks_keeps_it_running(late: Evening) -> None:
    id_, proxy = await about_to_sleep(late)
    await proxy.flush()
    look = late.controller._idle_recheck
    first = look.recheck

    async def and_then_somebody_comes(about_to_sleep: Sequence[Workspace]) -> Returned:
        found = await first(about_to_sleep)
        proxy.visit(id_)
        await proxy.flush()
        return found

    look.recheck = and_then_somebody_comes  # type: ignore[method-assign]
    await late.tick()
    assert (await late.get(id_)).desired_state is Desired.RUNNING
    assert ("stop", id_) not in late.runtime.calls


async def test_a_clock_set_back_makes_no_answer_of_an_old_flush(late: Evening) -> None:
    id_ = await late.ws()
    proxy = await late.proxy()
    late.pass_time(STANDBY + 70)
    await proxy.flush()
    late.step_clock(-60)
    await late.runner.tick()
    assert (await late.get(id_)).desired_state is Desired.STANDBY
    proxy.visit(id_)
    await late.tick(3)
    assert ("stop", id_) not in late.runtime.calls
    await proxy.flush()
    await late.tick()
    assert (await late.get(id_)).desired_state is Desired.RUNNING


async def test_after_redis_lost_its_memory_nobody_is_stopped_before_the_proxies_are_back(late: Evening) -> None:
    id_, proxy = await about_to_sleep(late)
    proxy.visit(id_)
    await late.redis.flushdb()
    await late.tick(3)  # no proxy is known now
    assert ("stop", id_) not in late.runtime.calls
    await proxy.flush()
    await late.tick()
    assert (await late.get(id_)).desired_state is Desired.RUNNING


async def wake(late: Evening, id_: str) -> None:
    admitted(await late.service.request(MINA, id_, Desired.RUNNING))


async def tick(late: Evening, _id: str) -> None:
    await late.runner.tick()


@pytest.mark.parametrize("order", [(wake, tick), (tick, wake)], ids=["the person first", "the timer first"])
async def test_a_person_wins_over_a_timer_that_fires_in_the_same_moment(
    late: Evening, order: tuple[Callable[[Evening, str], Awaitable[None]], ...]
) -> None:
    id_ = await late.ws()
    late.pass_time(STANDBY + 1)
    for step in order:
        await step(late, id_)
    w = await late.get(id_)
    assert (w.desired_state, w.desired_by) == (Desired.RUNNING, DesiredBy.USER)
    await late.tick(3)
    assert ("stop", id_) not in late.runtime.calls


async def test_the_timers_statement_waits_for_a_persons_and_then_leaves_it_alone(late: Evening) -> None:
    """Both have read that it is idle; the person holds the row."""
    id_ = await late.ws()
    late.pass_time(STANDBY + 1)
    idle_since = (await late.get(id_)).idle_since
    await wake(late, id_)
    decided = idle_store.Idle(id_, "t", None, idle_since, STANDBY)
    async with late.lease.transaction() as c:
        assert await idle_store.put_to_sleep(c, [decided], late.clock.now()) == []


async def test_keep_awake_is_honoured_and_then_over(late: Evening) -> None:
    id_ = await late.ws()
    until = late.clock.now() + timedelta(hours=2)
    await late.service.change(MINA, id_, Details(keep_awake_until=until))
    late.pass_time(7190)
    await stays_awake(late, id_)
    assert late.ttl_policies.sleeps_at(await late.get(id_)) == until
    late.pass_time(20)
    await falls_asleep(late, id_)


@pytest.mark.parametrize("seconds", [0, 60, 7200])
async def test_a_workspaces_own_time_wins_and_nought_is_never(late: Evening, seconds: int) -> None:
    id_ = await late.ws(standby_ttl_seconds=seconds)
    late.pass_time(seconds - 2 if seconds else 30 * 86400)
    assert (await stays_awake(late, id_)).phase is Phase.RUNNING
    if seconds:
        late.pass_time(4)
        assert (await falls_asleep(late, id_)).desired_by is DesiredBy.TTL


async def test_what_sleeps_long_enough_is_stored_away(late: Evening) -> None:
    id_, own, never = await late.ws(), await late.ws(archive_ttl_seconds=60), await late.ws(archive_ttl_seconds=0)
    late.pass_time(STANDBY + 1)
    for each in (id_, own, never):
        await falls_asleep(late, each)
    late.pass_time(61)
    await late.runner.tick()
    await late.until(own, Phase.ARCHIVED)
    late.pass_time(ARCHIVE - 70)
    await late.runner.tick()
    await late.tick()
    assert (await late.get(id_)).phase is Phase.STANDBY
    late.pass_time(10)
    await late.runner.tick()
    w = await late.until(id_, Phase.ARCHIVED)
    assert w.desired_by is DesiredBy.TTL
    assert (await late.get(never)).phase is Phase.STANDBY


async def test_a_platform_whose_time_is_nought_puts_nobody_to_sleep(house: House, redis_client: Redis) -> None:
    late = await evening(house, redis_client, TtlConfig(standby_seconds=0, archive_seconds=0))
    await late.settle()
    id_ = await late.ws()
    late.pass_time(86400)
    assert (await stays_awake(late, id_)).phase is Phase.RUNNING


async def test_a_redis_that_began_anew_puts_nobody_to_sleep(late: Evening) -> None:
    """Traffic: proxies send again what it had been told; meanwhile nothing is decided."""
    id_ = await late.ws()
    proxy = await late.proxy()
    late.pass_time(STANDBY - 30)
    proxy.visit(id_)
    await proxy.flush()
    await late.redis.flushdb()
    late.pass_time(60)
    await stays_awake(late, id_)
    await proxy.flush()  # it notices, and tells again
    w = await stays_awake(late, id_)
    assert late.since(w.last_access_at) < 70
    for _ in range(3):
        late.pass_time(STANDBY / 3)
        await proxy.flush()
        await late.runner.tick()
    await late.tick()
    await late.all_flush()
    await late.until(id_, Phase.STANDBY)


async def test_while_redis_is_away_nobody_is_put_to_sleep_and_nothing_is_lost(late: Evening) -> None:
    id_ = await late.ws()
    proxy = await late.proxy()
    late.pass_time(STANDBY - 5)
    proxy.visit(id_)
    proxy.recorder._client = late.reader._client = NOWHERE
    with pytest.raises(RedisConnectionError):
        await proxy.flush()
    late.pass_time(10)
    with pytest.raises(RedisConnectionError):
        await late.runner.tick()
    late.pass_time(120)  # leases ran out although everybody lives
    late.reader._client = late.redis
    await stays_awake(late, id_)
    proxy.recorder._client = late.redis
    await proxy.flush()
    assert late.since((await stays_awake(late, id_)).last_access_at) < 140


async def test_a_request_waits_while_redis_is_away(late: Evening) -> None:
    id_ = await late.ws()
    late.pass_time(STANDBY + 1)
    await late.runner.tick()
    late.reader._client = NOWHERE
    await late.tick(2)
    assert (await late.get(id_)).operation is Operation.NONE
    late.reader._client = late.redis
    await late.until(id_, Phase.STANDBY)


async def test_a_clock_that_jumps_ahead_puts_nobody_to_sleep(late: Evening) -> None:
    id_ = await late.ws()
    late.pass_time(100)
    await late.runner.tick()
    late.step_clock(3600)
    assert (await stays_awake(late, id_)).phase is Phase.RUNNING
    again = await successor(late)  # the next leader knows, too
    late.pass_time(STANDBY - 10)
    assert (await stays_awake(again, id_)).phase is Phase.RUNNING
    late.pass_time(20)
    assert (await falls_asleep(again, id_)).desired_by is DesiredBy.TTL


async def test_a_clock_that_is_set_back_keeps_nobody_awake_for_longer_than_that(late: Evening) -> None:
    id_ = await late.ws()
    late.pass_time(100)
    await late.runner.tick()
    late.step_clock(-50)
    late.pass_time(STANDBY - 60)
    assert (await stays_awake(late, id_)).phase is Phase.RUNNING
    late.pass_time(120)
    assert (await falls_asleep(late, id_)).desired_by is DesiredBy.TTL


async def test_a_proxy_whose_clock_is_ahead_keeps_nobody_awake_for_ever(late: Evening) -> None:
    id_ = await late.ws()
    proxy = await late.proxy()
    late.step_clock(86400)
    proxy.visit(id_)
    late.step_clock(-86400)
    await proxy.recorder._buffer.flush(late.redis, late.clock.timestamp())
    await late.runner.tick()
    assert (await late.get(id_)).last_access_at <= late.clock.now()


STEPS = [
    "_notice_jumps",
    "settled",
    "_gather",
    "take",
    "read",
    "note_activity",
    "finish",
    "idle",
    "look",
    "put_to_sleep",
]


@pytest.mark.parametrize("step", STEPS)
async def test_a_coordinator_killed_between_any_two_steps_loses_nothing(
    late: Evening, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    """It dies just after the step; the next leader goes on."""
    idle, active = await late.ws(), await late.ws()
    proxy = await late.proxy()
    late.pass_time(STANDBY + 1)
    proxy.visit(active)
    await proxy.flush()

    class KilledError(BaseException):
        pass

    where = idle_store if hasattr(idle_store, step) else late.reader
    real = getattr(where, step)

    def generator(*given: object) -> AsyncIterator[object]:
        async def run() -> AsyncIterator[object]:
            async for item in real(*given):
                yield item
                raise KilledError

        return run()

    async def plain(*given: object, **named: object) -> None:
        await real(*given, **named)
        raise KilledError

    monkeypatch.setattr(where, step, generator if step == "read" else plain)
    with pytest.raises(KilledError):
        await late.runner.tick()
    monkeypatch.undo()
    again = await successor(late)
    await again.runner.tick()
    await again.tick()
    await again.all_flush()
    await again.until(idle, Phase.STANDBY)
    w = await again.get(active)
    assert late.since(w.last_access_at) < 10
    assert w.desired_state is Desired.RUNNING
    assert await late.redis.smembers(keys.TAKEN) == set()


async def test_a_former_leader_puts_nobody_to_sleep(late: Evening) -> None:
    id_ = await late.ws()
    late.pass_time(STANDBY + 1)
    await successor(late)
    with pytest.raises(LeaseLostError):
        await late.runner.tick()
    assert (await late.get(id_)).desired_state is Desired.RUNNING


async def test_a_former_leader_throws_nothing_away_that_was_not_its_own(late: Evening) -> None:
    """It stops after its update and before it throws the set away; meanwhile the next one takes another over."""
    id_, other = await late.ws(), await late.ws()
    proxy = await late.proxy()
    proxy.visit(id_)
    await proxy.flush()
    mine = await late.reader.take(1)
    again = await successor(late)
    await again.runner.tick()
    proxy.visit(other)
    seen = late.clock.now()
    await proxy.flush()
    theirs = await again.reader.take(2)
    for name in mine:
        await late.reader.finish(name)
    assert [name async for name in again.reader.read(theirs[-1])]
    await again.runner.tick()
    assert (await late.get(other)).last_access_at >= seen


Step = Callable[[], Awaitable[None]]


def steps_of_a_tick(late: Evening) -> list[Step]:
    taken: list[str] = []

    async def take() -> None:
        taken.extend(await late.reader.take(1))

    async def update() -> None:
        for name in taken:
            async for newest in late.reader.read(name):
                async with late.database.transaction() as c:
                    await idle_store.note_activity(c, newest)

    async def finish() -> None:
        for name in taken:
            await late.reader.finish(name)

    return [take, update, finish]


@pytest.mark.parametrize(
    "moves", ["faaabbb", pytest.param("ffaaabbb", marks=pytest.mark.soak)], ids=["one flush", "two flushes"]
)
async def test_all_interleavings_of_recording_and_taking_over_lose_nothing(late: Evening, moves: str) -> None:
    """A small model: flushes of a proxy among the steps of two ticks, one of them of a leader that stalls."""
    id_ = await late.ws()
    proxy = await late.proxy()

    async def flush() -> None:
        late.pass_time(1)
        proxy.visit(id_)
        await proxy.flush()

    orders = sorted(set(itertools.permutations(moves)))
    for order in (o for o in orders if o.index("a") < o.index("b")):  # the two ticks are alike
        begun = late.clock.now()
        steps = {"f": iter([flush, flush]), "a": iter(steps_of_a_tick(late)), "b": iter(steps_of_a_tick(late))}
        for whose in order:
            await next(steps[whose])()
        for step in steps_of_a_tick(late):
            await step()
        assert (await late.get(id_)).last_access_at >= begun + timedelta(seconds=moves.count("f")), order


async def test_rows_of_a_template_that_is_gone_live_by_the_platforms_time(late: Evening, database: Database) -> None:
    id_ = await late.ws("gone-tomorrow")
    late.pass_time(STANDBY + 1)
    assert (await falls_asleep(late, id_)).desired_by is DesiredBy.TTL
