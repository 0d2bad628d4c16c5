"""A loop that is woken: it goes on after whatever failed, later each time, and says so."""

import asyncio

from codehub import metrics
from codehub.recurring import Recurring
from tests.virtual_time import ManualClock


async def test_a_failure_is_counted_and_tried_again_after_a_pause_that_grows(clock: ManualClock) -> None:
    outcomes = [KeyError("a row of the future"), OSError("no route"), None, None]
    done: list[float] = []

    async def work() -> None:
        done.append(clock.monotonic())
        if outcome := outcomes.pop(0):
            raise outcome

    counted = metrics.LOOP_TICKS.labels("a-loop", "failed")
    before = counted._value.get()
    loop = Recurring("a-loop", work, clock, period=60)
    loop.start()
    await clock.advance(10)
    loop.wake()
    while len(done) < 4:
        await asyncio.sleep(0.001)
    await loop.stop()
    assert done == [0.0, 0.2, 0.2 + 0.4, 10.0]
    assert counted._value.get() == before + 2
