"""Samples, tick by tick, on a real database: what is counted, two leaders, and what is left after three months."""

import asyncio
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

import pytest

from codehub.coordinator.driver import Driver, Loop, Tick
from codehub.db import Database
from codehub.errors import LeaseLostError
from codehub.monitoring import rules, store
from codehub.monitoring.model import Readings, Resolution, Sample
from codehub.monitoring.sampler import Sampler
from tests.leading import lead
from tests.virtual_time import ManualClock

MINUTE, QUARTER_HOUR, HOUR = Resolution.MINUTE, Resolution.QUARTER_HOUR, Resolution.HOUR


@dataclass
class Post:
    """A leader's sampler, and rows to look at."""

    database: Database
    clock: ManualClock
    readings: Readings = field(default_factory=lambda: Readings(3, 10**9, {"ttl": 0.5, "gc": 0.1}))
    sampler: Sampler = field(init=False)
    made: int = 0

    async def elect(self) -> Sampler:
        """Another leader; the one before has lost its lease."""
        return Sampler(await lead(self.database), self.clock, self.read)

    async def read(self) -> Readings:
        return self.readings

    async def workspace(self, **columns: Any) -> str:
        self.made += 1
        id_ = f"w{self.made}"
        now = self.clock.now()
        async with self.database.connection() as c:
            await c.execute(
                "INSERT INTO workspaces (id, name, template, owner_id, created_at, updated_at, phase_changed_at,"
                " last_access_at, desired_state, desired_by, desired_at)"
                " VALUES ($1, $1, 't', codehub_user_id('mina'), $2, $2, $2, $2, 'STANDBY', 'user', $2)",
                id_,
                now,
            )
        if columns:
            await self.put(id_, **columns)
        return id_

    async def put(self, id_: str, **columns: Any) -> None:
        names = ", ".join(f"{name} = ${number}" for number, name in enumerate(columns, 2))
        async with self.database.connection() as c:
            await c.execute(f"UPDATE workspaces SET {names} WHERE id = $1", id_, *columns.values())

    async def note(self, id_: str, code: str, at: datetime, from_state: str | None = None) -> None:
        async with self.database.connection() as c:
            await c.execute(
                "INSERT INTO workspace_history (workspace_id, at, actor, code, from_state)"
                " VALUES ($1, $2, 'x', $3, $4)",
                *(id_, at, code, from_state),
            )

    async def samples(self, resolution: Resolution = MINUTE) -> list[Sample]:
        """The oldest first."""
        async with self.database.connection() as c:
            far = timedelta(days=1000)
            found = await store.between(c, resolution, self.clock.now() - far, self.clock.now() + far, 10_000)
        return found[::-1]


@pytest.fixture
async def post(database: Database, clock: ManualClock) -> Post:
    async with database.connection() as c:
        await c.execute("INSERT INTO users (name, role, created_at) VALUES ('mina', 'learner', now())")
    made = Post(database, clock)
    made.sampler = await made.elect()
    return made


async def test_workspaces_are_counted_by_phase_through_all_that_becomes_of_them(post: Post) -> None:
    before = await post.workspace(observed_status="STANDBY")  # was there before the leader
    await post.sampler.tick()
    runs = await post.workspace(observed_status="RUNNING", desired_state="RUNNING")
    stored = await post.workspace(archive_key="a/b/1/home.tar.zst")
    await post.clock.advance(60)
    await post.sampler.tick()
    await post.put(before, deleted_at=post.clock.now())
    await post.put(runs, health_status="ERROR")
    await post.put(stored, observed_status="STANDBY")
    await post.clock.advance(60)
    await post.sampler.tick()
    found = [(s.running, s.asleep, s.stored, s.pending, s.broken) for s in await post.samples()]
    assert found == [(0, 1, 0, 0, 0), (1, 1, 1, 0, 0), (0, 1, 0, 0, 1)]


async def test_counting_anew_gives_what_the_changes_added_up_to(post: Post) -> None:
    ids = [await post.workspace(observed_status="STANDBY") for _ in range(5)]
    await post.sampler.tick()
    for id_ in ids[:3]:
        await post.put(id_, observed_status="RUNNING")
    await post.clock.advance(60)
    await post.sampler.tick()
    again = await post.elect()
    await post.clock.advance(60)
    await again.tick()
    _, added_up, anew = await post.samples()
    assert (added_up.running, added_up.asleep) == (anew.running, anew.asleep) == (3, 2)


async def test_a_change_that_is_not_committed_yet_is_counted_when_it_is(post: Post) -> None:
    id_ = await post.workspace(observed_status="STANDBY")
    async with post.database.transaction() as c:
        await c.execute("UPDATE workspaces SET observed_status = 'RUNNING' WHERE id = $1", id_)
        await post.sampler.tick()  # counts anew, beside it
    await post.clock.advance(60)
    await post.sampler.tick()
    assert [(s.running, s.asleep) for s in await post.samples()] == [(0, 1), (1, 0)]


async def test_archives_are_weighed_as_they_come_and_go(post: Post) -> None:
    id_ = await post.workspace()
    await post.sampler.tick()
    async with post.database.connection() as c:
        for number in (1, 2):
            add = "INSERT INTO restore_points VALUES ($1, $2, $1, now(), $3, 1, 1)"
            await c.execute(add, f"key{number}", id_, 100 * number)
        await c.execute("DELETE FROM restore_points WHERE archive_key = 'key1'")
    await post.clock.advance(60)
    await post.sampler.tick()
    assert [s.archive_bytes for s in await post.samples()] == [0, 200]


async def test_a_wake_takes_from_the_request_to_its_running_and_counts_once(post: Post) -> None:
    woken, new, restored = [await post.workspace() for _ in range(3)]
    await post.sampler.tick()
    asked = post.clock.now() + timedelta(seconds=10)
    await post.note(woken, "woken", asked)
    await post.note(woken, "started", asked + timedelta(seconds=4), "STANDBY")
    await post.note(new, "created", asked)
    await post.note(new, "started", asked + timedelta(seconds=30), "STANDBY")
    await post.note(restored, "start_requested", asked)
    await post.note(restored, "restored", asked + timedelta(seconds=20))
    await post.note(restored, "started", asked + timedelta(seconds=30), "STANDBY")
    for _ in range(3):
        await post.clock.advance(60)
        await post.sampler.tick()
    found = await post.samples()
    assert [sum(s.wakes) for s in found] == [0, 1, 0, 0]
    told = rules.quantile(found[1].wakes, 0.5)
    assert told is not None
    assert 3.5 < told < 4.5


async def test_active_are_those_that_were_at_work_in_the_last_minutes_and_run(post: Post) -> None:
    now = post.clock.now()
    for ago, status in ((1, "RUNNING"), (4, "RUNNING"), (6, "RUNNING"), (1, "STANDBY")):
        id_ = await post.workspace(observed_status=status)
        await post.put(id_, last_access_at=now - timedelta(minutes=ago))
    await post.sampler.tick()
    (found,) = await post.samples()
    assert (found.active_workspaces, found.active_people) == (2, 1)


async def test_the_line_the_disk_and_the_slowest_loop_come_from_the_leader(post: Post) -> None:
    tick = await post.sampler.tick()
    (found,) = await post.samples()
    assert (found.waiting, found.disk_free_bytes) == (3, 10**9)
    assert (found.loop_lag_seconds, found.slowest_loop) == (0.5, "ttl")
    assert tick.again_in == 60


async def test_quarters_and_hours_are_there_while_they_are_being_filled(post: Post) -> None:
    id_ = await post.workspace(observed_status="STANDBY")
    for minute in range(20):
        if minute == 10:
            await post.put(id_, observed_status="RUNNING")
        await post.sampler.tick()
        await post.clock.advance(60)
    assert len(await post.samples()) == 20
    first, second = await post.samples(QUARTER_HOUR)
    assert (first.minutes, second.minutes, second.running) == (15, 5, 1)
    assert first.running == pytest.approx(5 / 15)
    (hour,) = await post.samples(HOUR)
    assert hour.minutes == 20
    assert hour.running == pytest.approx(0.5)


async def test_two_drivers_on_one_database_one_leads_and_writes(post: Post) -> None:
    second = await post.elect()
    with pytest.raises(LeaseLostError):
        await post.sampler.tick()
    await second.tick()
    third = await post.elect()
    await third.tick()  # in the same minute
    with pytest.raises(LeaseLostError):
        await second.tick()
    (found,) = await post.samples()
    assert found.minutes == 1


async def test_two_at_the_same_time_are_never_both_counted(post: Post) -> None:
    await post.workspace(observed_status="STANDBY")
    second = await post.elect()
    results = await asyncio.gather(post.sampler.tick(), second.tick(), return_exceptions=True)
    assert [isinstance(result, LeaseLostError) for result in results] == [True, False]
    (found,) = await post.samples()
    assert found.asleep == 1


async def test_after_three_months_the_table_has_reached_its_bound_and_stays_there(post: Post) -> None:
    """Every minute of the last day and one of each hour before it: the other rows of an hour are removed alike."""
    await post.sampler.tick()
    async with post.database.connection() as c:
        for resolution, kept in rules.KEPT.items():
            await c.execute(
                "INSERT INTO samples (resolution, at, taken_at, minutes, running, asleep, stored, pending, broken,"
                " active_workspaces, active_people, archive_bytes)"
                " SELECT $1, at, at, 1, 1, 0, 0, 0, 0, 0, 0, 0 FROM generate_series($2::timestamptz, $3, $4) AS at"
                " ON CONFLICT DO NOTHING",
                *(resolution, post.clock.now() - 2 * kept, post.clock.now(), timedelta(seconds=resolution)),
            )
    for _ in range(61):
        await post.sampler.tick()
        async with post.database.connection() as c:
            assert await c.fetchval("SELECT count(*) FROM samples") <= rules.most_rows()
        await post.clock.advance(60)
    for resolution, kept in rules.KEPT.items():
        found = await post.samples(resolution)
        assert found[0].at >= rules.beginning(post.clock.now() - kept, resolution) - timedelta(seconds=resolution)
        assert found[-1].at == rules.beginning(post.clock.now() - timedelta(minutes=1), resolution)


async def test_the_table_takes_no_more_than_is_said(post: Post) -> None:
    """docs/operating.md says 4 MB, filled to the bound with every figure known and wakes in each."""
    async with post.database.connection() as c:
        for resolution, kept in rules.KEPT.items():
            await c.execute(
                "INSERT INTO samples (resolution, at, taken_at, minutes, running, asleep, stored, pending, broken,"
                " active_workspaces, active_people, waiting, archive_bytes, disk_free_bytes, loop_lag_seconds,"
                " slowest_loop, wakes) SELECT $1, at, at, 1, 1, 0, 0, 0, 0, 0, 0, 5, 10, 10, 1.5, 'housekeeping',"
                " array_fill(1, ARRAY[41]) FROM generate_series($2::timestamptz, $3, $4) AS at",
                *(resolution, post.clock.now() - kept, post.clock.now(), timedelta(seconds=resolution)),
            )
        assert await c.fetchval("SELECT count(*) FROM samples") == rules.most_rows()
        await c.execute("VACUUM FULL samples")  # the database may have been another test's
        assert await c.fetchval("SELECT pg_total_relation_size('samples')") < 4_000_000


async def test_a_loop_that_begins_late_or_takes_long_lags(clock: ManualClock) -> None:
    async def slow() -> Tick:
        await clock.sleep(25)
        return Tick()

    async def quick() -> Tick:
        return Tick()

    driver = Driver([Loop("slow", slow, period=10), Loop("quick", quick, period=10)], clock, dice=lambda: 0.0)
    task = asyncio.create_task(driver.run())
    await clock.advance(21)
    lags = driver.lags()
    assert lags == {"slow": 11.0, "quick": 0.0}
    await clock.advance(5)
    assert driver.lags()["slow"] == 15.0
    await clock.jump(30)  # as when the machine was asleep
    assert driver.lags()["quick"] > 15
    assert "quick" not in driver.lags()
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
