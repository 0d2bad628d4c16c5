"""What another time would have done, from what the timer, the controller and people really wrote on a real database."""

from datetime import timedelta

import pytest
from redis.asyncio import Redis

from codehub.activity.what_if import Between
from codehub.activity.what_if_service import Answer, WhatIf
from codehub.command import operator
from codehub.errors import ForbiddenError
from codehub.i18n import texts, what_if
from codehub.i18n.locales import Locale
from codehub.workspaces import idle_history
from codehub.workspaces.model import Phase
from codehub.workspaces.service import Details
from tests.reconciler.test_controller import MINA, House, house
from tests.reconciler.test_ttl import falls_asleep
from tests.reconciler.ttl_house import STANDBY, DrivenClock, Evening, Proxy, evening

__all__ = ["house"]
MINUTE = 60


@pytest.fixture
def clock() -> DrivenClock:
    return DrivenClock()


@pytest.fixture
async def late(house: House, redis_client: Redis) -> Evening:
    made = await evening(house, redis_client)
    async with made.database.connection() as c:
        await c.execute("UPDATE platform SET idle_periods_since = $1", made.clock.now())
    await made.settle()
    return made


async def ask(late: Evening, standby: int, archive: int | None = None, days: int = 7) -> Answer:
    return await WhatIf(late.database, late.clock, late.ttl_policies).ask(operator(), standby, archive, days)


async def works(late: Evening, proxy: Proxy, id_: str, *pauses: int) -> None:
    """Does something after each of these minutes of doing nothing."""
    for minutes in pauses:
        late.pass_time(minutes * MINUTE)
        proxy.visit(id_)
        await proxy.flush()
        await late.runner.tick()


async def a_morning(late: Evening) -> str:
    """Two pauses, of 7 and of 9 minutes; asleep; back a quarter of an hour after the last work; asleep."""
    id_, proxy = await late.ws(), await late.proxy()
    await works(late, proxy, id_, 1, 2, 7, 3, 9, 1)
    late.pass_time(STANDBY + 1)
    await proxy.flush()
    await falls_asleep(late, id_)
    late.pass_time(5 * MINUTE)
    await late.service.wake(MINA, id_)
    await late.until(id_, Phase.RUNNING)
    await works(late, proxy, id_, 1)
    late.pass_time(STANDBY + 1)
    await proxy.flush()
    await falls_asleep(late, id_)
    late.pass_time(3600)
    return id_


async def test_the_time_that_is_set_would_have_done_what_it_did(late: Evening) -> None:
    await a_morning(late)
    found = await ask(late, STANDBY)
    assert (found.workspaces, found.others, found.is_exact) == (1, 0, True)
    assert (found.did.sleeps, found.did.wakes) == (Between(2, 2), Between(1, 1))
    assert (found.would.sleeps, found.would.wakes) == (found.did.sleeps, found.did.wakes)
    assert found.would.hours.high == pytest.approx(found.did.hours.high, abs=0.01)


async def test_a_longer_time_bridges_the_absence_and_costs_the_hours_of_it(late: Evening) -> None:
    await a_morning(late)
    found = await ask(late, 20 * MINUTE)
    assert (found.would.sleeps, found.would.wakes, found.is_exact) == (Between(1, 1), Between(0, 0), True)
    more = found.would.hours.high - found.did.hours.high
    assert more * 60 == pytest.approx(5 + 10, abs=1)


async def test_a_shorter_time_sleeps_in_the_pauses_that_were_noted(late: Evening) -> None:
    await a_morning(late)
    found = await ask(late, 8 * MINUTE)
    assert (found.would.sleeps, found.would.wakes, found.is_exact) == (Between(3, 3), Between(2, 2), True)
    found = await ask(late, 6 * MINUTE)
    assert (found.would.sleeps, found.would.wakes, found.is_exact) == (Between(4, 4), Between(3, 3), True)


async def test_before_pauses_were_noted_the_answer_has_two_ends_and_says_so(late: Evening) -> None:
    await a_morning(late)
    async with late.database.connection() as c:
        await c.execute("TRUNCATE idle_periods")
        await c.execute("UPDATE platform SET idle_periods_since = $1", late.clock.now())
    found = await ask(late, 6 * MINUTE)
    assert found.would.sleeps.low == 2
    assert found.would.sleeps.high >= 4
    assert not found.is_exact
    for language in texts.LANGUAGES:
        locale = Locale(language, None, texts.TEXTS[language])
        assert what_if.notes(locale, found)[1] == locale.say(
            "what_if_unknown_before", time=locale.exact(found.known_since)
        )
    assert (await ask(late, 20 * MINUTE)).is_exact  # of a longer time nothing is missing


async def test_what_has_a_time_of_its_own_or_lives_by_connections_is_left_out(late: Evening) -> None:
    own, _ = await late.ws(), await late.ws("c")
    await late.service.change(MINA, own, Details(standby_ttl_seconds=3600))
    late.pass_time(60)
    found = await ask(late, STANDBY)
    assert (found.workspaces, found.others, found.did.hours) == (0, 2, Between(0, 0))


async def test_what_computes_stays_awake_with_a_shorter_time_too(late: Evening) -> None:
    id_, proxy = await late.ws(), await late.proxy()
    late.busy.add(id_)
    for _ in range(3):
        late.pass_time(STANDBY + 1)
        await proxy.flush()
        await late.runner.tick()
    found = await ask(late, 6 * MINUTE)
    assert (found.would.sleeps, found.is_exact) == (Between(0, 0), True)


async def test_a_hold_keeps_it_awake_with_a_shorter_time_too(late: Evening) -> None:
    id_, proxy = await late.ws(), await late.proxy()
    until = late.clock.now() + timedelta(minutes=9)
    await late.service.change(MINA, id_, Details(keep_awake_until=until))
    await works(late, proxy, id_, 9)
    found = await ask(late, 6 * MINUTE)
    assert found.would.sleeps == Between(0, 0)


async def test_a_long_archive_time_stores_fewer(late: Evening) -> None:
    await a_morning(late)
    assert (await ask(late, STANDBY, 1800)).would.stored == Between(1, 1)
    assert (await ask(late, STANDBY, 7200)).would.stored == Between(0, 0)


async def test_only_those_who_may_are_told(late: Evening) -> None:
    with pytest.raises(ForbiddenError):
        await WhatIf(late.database, late.clock, late.ttl_policies).ask(MINA, 600, None, 7)


async def test_idle_periods_are_kept_for_a_time_and_say_from_when_on_none_is_missing(late: Evening) -> None:
    id_ = await late.ws()
    now = late.clock.now()
    async with late.database.connection() as c:
        for ago in (16, 15.5, 1, 0.5):
            ended = now - timedelta(days=ago)
            add = "INSERT INTO idle_periods (workspace_id, began_at, ended_at) VALUES ($1, $2, $2)"
            await c.execute(add, id_, ended)
        await c.execute("UPDATE platform SET idle_periods_since = $1", now - timedelta(days=30))
        assert await idle_history.prune(c, now, 1) == 1
        assert await idle_history.prune(c, now, 100) == 1
        assert await idle_history.prune(c, now, 100) == 0
        assert await idle_history.known_since(c) == now - timedelta(days=15.5)
        assert await c.fetchval("SELECT count(*) FROM idle_periods") == 2


async def test_there_are_never_more_idle_periods_than_may_be_kept(
    late: Evening, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(idle_history, "MOST", 3)
    id_, now = await late.ws(), late.clock.now()
    async with late.database.connection() as c:
        await c.execute(
            "INSERT INTO idle_periods (workspace_id, began_at, ended_at)"
            " SELECT $1, at, at FROM generate_series($2::timestamptz, $3, '1 minute') AS at",
            *(id_, now - timedelta(minutes=9), now),
        )
        await c.execute("UPDATE platform SET idle_periods_since = '-infinity'")
        assert await idle_history.prune(c, now, 100) == 7
        assert await idle_history.known_since(c) == now - timedelta(minutes=3)
