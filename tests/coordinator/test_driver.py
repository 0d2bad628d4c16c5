"""The driver of loops, in virtual time: period, nudge, single flight, back-off, time-out, status."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codehub.coordinator.driver import Driver, Loop, Tick, pause_after
from codehub.errors import LeaseLostError
from tests.virtual_time import ManualClock, settle


@asynccontextmanager
async def driving(clock: ManualClock, *loops: Loop) -> AsyncIterator[Driver]:
    driver = Driver(list(loops), clock, dice=lambda: 0.0)
    task = asyncio.create_task(driver.run())
    await settle()
    try:
        yield driver
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


class Recorder:
    """A tick that notes when it ran, and does what the test says."""

    def __init__(self, clock: ManualClock, then: Callable[[], Awaitable[Tick]] | None = None) -> None:
        self.clock = clock
        self.times: list[float] = []
        self.then = then

    async def __call__(self) -> Tick:
        self.times.append(self.clock.monotonic())
        return await self.then() if self.then else Tick({"done": len(self.times)})


async def test_a_loop_runs_at_once_and_then_every_period(clock: ManualClock) -> None:
    tick = Recorder(clock)
    async with driving(clock, Loop("a", tick, period=10)):
        await clock.advance(25)
    assert tick.times == [0, 10, 20]


async def test_a_nudge_runs_it_now_and_starts_the_period_anew(clock: ManualClock) -> None:
    tick = Recorder(clock)
    async with driving(clock, Loop("a", tick, period=10)) as driver:
        await clock.advance(4)
        driver.nudge("a")
        await clock.advance(11)
    assert tick.times == [0, 4, 14]


async def test_a_tick_never_runs_twice_at_once_and_a_nudge_meanwhile_runs_it_once_more(clock: ManualClock) -> None:
    async def slow() -> Tick:
        await clock.sleep(5)
        return Tick()

    tick = Recorder(clock, slow)
    async with driving(clock, Loop("a", tick, period=100)) as driver:
        await clock.advance(1)
        for _ in range(3):
            driver.nudge("a")
        await clock.advance(20)
    assert tick.times == [0, 5]


async def test_a_tick_may_ask_to_come_back_sooner(clock: ManualClock) -> None:
    async def busy() -> Tick:
        return Tick(again_in=1.0 if clock.monotonic() < 2 else None)

    tick = Recorder(clock, busy)
    async with driving(clock, Loop("a", tick, period=15)):
        await clock.advance(20)
    assert tick.times == [0, 1, 2, 17]


async def test_a_failing_tick_is_counted_and_retried_with_back_off_and_leaves_others_alone(clock: ManualClock) -> None:
    async def broken() -> Tick:
        if len(bad.times) <= 3:
            raise ValueError("postgresql://codehub:hunter2@host is broken")
        return Tick({"fine": 1})

    bad, good = Recorder(clock, broken), Recorder(clock)
    async with driving(clock, Loop("bad", bad, period=100), Loop("good", good, period=5)) as driver:
        await clock.advance(3.5)
        status = driver.status()[0]
        assert (status.failures, status.failures_in_a_row, status.runs) == (3, 3, 3)
        assert status.last_error == "ValueError: postgresql://codehub:***@host is broken"
        await clock.advance(10)
        assert (driver.status()[0].failures_in_a_row, driver.status()[0].stats) == (0, {"fine": 1})
    assert bad.times == [0, 1, 3, 7]
    assert good.times == [0, 5, 10]


async def test_a_hanging_tick_is_ended_and_retried(clock: ManualClock) -> None:
    async def hang() -> Tick:
        await asyncio.Event().wait()
        return Tick()

    tick = Recorder(clock, hang)
    async with driving(clock, Loop("a", tick, period=10, timeout=30)) as driver:
        await clock.advance(31.5)
        assert driver.status()[0].last_error == "TimeoutError: took longer than 30 s"
    assert tick.times == [0, 31]


async def test_a_lost_lease_ends_the_driver_and_all_its_loops(clock: ManualClock) -> None:
    async def lost() -> Tick:
        raise LeaseLostError("over")

    other = Recorder(clock)
    driver = Driver([Loop("a", lost, period=1), Loop("b", other, period=1)], clock)
    with pytest.raises(ExceptionGroup) as caught:
        await asyncio.wait_for(driver.run(), 5)
    assert caught.group_contains(LeaseLostError)
    await clock.advance(10)
    assert len(other.times) <= 1


async def test_the_status_tells_when_it_ran_and_when_it_will(clock: ManualClock) -> None:
    async def slow() -> Tick:
        await clock.sleep(2)
        return Tick({"rows": 7})

    async with driving(clock, Loop("a", slow, period=10)) as driver:
        await clock.advance(3)
        shown = driver.status()[0].as_json()
    assert shown["took_seconds"] == 2
    assert shown["stats"] == {"rows": 7}
    assert shown["last_run_at"] == "2026-03-02T09:00:00+00:00"
    assert shown["next_run_at"] == "2026-03-02T09:00:12+00:00"


@given(failures=st.integers(0, 2000), dice=st.floats(0, 1), again=st.none() | st.floats(0, 1e6))
def test_a_pause_is_never_negative_and_a_back_off_never_longer_than_its_bound(
    failures: int, dice: float, again: float | None
) -> None:
    async def tick() -> Tick:
        return Tick()

    loop = Loop("a", tick, period=10)
    pause = pause_after(loop, failures, again, dice)
    assert pause >= 0
    if failures:
        assert pause <= loop.longest_pause
