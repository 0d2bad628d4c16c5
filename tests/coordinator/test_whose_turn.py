"""When something is asked for, the controller has its turn first, and other loops when no IDE is on its way."""

import asyncio
import contextlib
import pathlib
from collections import Counter
from collections.abc import AsyncIterator

import pytest

from codehub import settings
from codehub.backup import maker
from codehub.clock import SystemClock
from codehub.coordinator.driver import Driver, Loop, Tick
from codehub.ides import loop as ides
from codehub.retention import preview
from codehub.waiting_room import pump
from codehub.wiring import coordinator
from codehub.wiring.coordinator import Coordinator
from codehub.workspaces import bulk, fetch_loop, swaps

FIRST, NEXT = ("controller",), (swaps.NAME, pump.NAME)
OTHERS = ("trash", bulk.NAME, ides.NAME, fetch_loop.NAME, preview.NAME, maker.NAME)
NEVER = 10_000.0


class Turns:
    """The coordinator with loops that only count their ticks."""

    def __init__(self, made: Coordinator) -> None:
        self.made = made
        self.counts: Counter[str] = Counter()
        self.starting = True
        made._is_starting = lambda: self.starting

    def loop(self, name: str) -> Loop:
        async def tick() -> Tick:
            self.counts[name] += 1
            return Tick()

        return Loop(name, tick, period=NEVER)

    async def until(self, names: tuple[str, ...]) -> None:
        async with asyncio.timeout(60):
            while any(self.counts[name] == 0 for name in names):
                await asyncio.sleep(0.01)

    def none_of(self, names: tuple[str, ...]) -> bool:
        return not any(self.counts[name] for name in names)


@contextlib.asynccontextmanager
async def taking_turns(tmp_path: pathlib.Path) -> AsyncIterator[Turns]:
    environment = {"CODEHUB_DATA_DIR": str(tmp_path), "CODEHUB_REDIS_URL": "unix:///nonexistent/redis.sock"}
    turns = Turns(Coordinator(settings.load(environment), SystemClock()))
    names = (*FIRST, *NEXT, *OTHERS)
    turns.made._driver = Driver([turns.loop(name) for name in names], SystemClock())
    driving = asyncio.create_task(turns.made._driver.run())
    await turns.until(names)  # each runs once at the beginning
    turns.counts.clear()
    try:
        yield turns
    finally:
        driving.cancel()
        await asyncio.gather(driving, return_exceptions=True)
        await turns.made.close()


async def test_other_loops_leave_the_processor_to_an_ide_that_starts(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(coordinator, "AFTER_STARTS", NEVER)
    async with taking_turns(tmp_path) as turns:
        turns.made.wake()
        await turns.until((*FIRST, *NEXT))
        turns.counts.clear()
        turns.made.wake()  # what concerns people is looked at each time
        await turns.until((*FIRST, *NEXT))
        assert turns.none_of(OTHERS)
        turns.starting = False
        await turns.until(OTHERS)


async def test_but_not_for_long(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(coordinator, "AFTER_STARTS", 2 * coordinator.AFTER_CONTROLLER)
    async with taking_turns(tmp_path) as turns:
        turns.made.wake()
        await turns.until(OTHERS)
        assert turns.starting
