"""The one driver of background loops. It owns period, nudge, single flight, jitter, back-off, time-out and status.

A loop is a `tick` that reads the world, does a bounded amount of work and returns what it did. The driver calls it on a
period or when nudged, never twice at once. A tick that fails or hangs is counted and tried again later; whatever goes
wrong in one loop leaves the others alone.
"""

import asyncio
import random
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

import structlog

from codehub import ids, logs, metrics
from codehub.clock import Clock
from codehub.errors import LeaseLostError
from codehub.retry import back_off

log = logs.get()
Stats = Mapping[str, Any]
STUCK_SECONDS = 60.0  # beyond its time-out


@dataclass(frozen=True)
class Tick:
    """What a tick did, and, when it knows better than the period, how soon it wants to run again."""

    stats: Stats = field(default_factory=dict)
    again_in: float | None = None


@dataclass(frozen=True)
class Loop:
    name: str
    tick: Callable[[], Awaitable[Tick]]
    period: float  # seconds from the end of one tick to the start of the next
    timeout: float = 300.0
    jitter: float = 0.1  # up to this part of a pause is taken off, so that many loops do not march in step
    first_pause: float = 1.0  # of the back-off after a failure, doubled each time
    longest_pause: float = 60.0


@dataclass
class LoopStatus:
    """What `GET /api/v1/admin/loops` shows of one loop."""

    name: str
    period: float
    runs: int = 0
    failures: int = 0
    failures_in_a_row: int = 0
    running: bool = False
    last_run_at: datetime | None = None
    next_run_at: datetime | None = None
    took_seconds: float | None = None
    stats: Stats = field(default_factory=dict)
    last_error: str | None = None
    last_error_at: datetime | None = None

    def as_json(self) -> dict[str, Any]:
        return {k: v.isoformat() if isinstance(v, datetime) else v for k, v in vars(self).items()}


def pause_after(loop: Loop, failures_in_a_row: int, again_in: float | None, dice: float) -> float:
    """How long until the next tick. `dice` is between 0 and 1."""
    if failures_in_a_row:
        base = back_off(failures_in_a_row, loop.first_pause, loop.longest_pause)
    else:
        base = loop.period if again_in is None else again_in
    return base * (1 - loop.jitter * dice)


class Driver:
    """Runs loops while its process leads. `nudge` may be called from anywhere at any time."""

    def __init__(self, loops: list[Loop], clock: Clock, dice: Callable[[], float] = random.random) -> None:
        self._loops = {loop.name: loop for loop in loops}
        self._clock = clock
        self._dice = dice
        self._nudges = {name: asyncio.Event() for name in self._loops}
        self._status = {name: LoopStatus(name, loop.period) for name, loop in self._loops.items()}
        self._begun: dict[str, float] = {}  # ticks that run now
        self._lags: dict[str, float] = {}

    def status(self) -> list[LoopStatus]:
        return list(self._status.values())

    def lags(self) -> dict[str, float]:
        """By loop, in seconds, the worst since this was asked last: how much later than due a tick began, or how much
        longer than the loop's period it took.
        """
        for name, since in self._begun.items():
            self._note_lag(name, self._clock.monotonic() - since - self._loops[name].period)
        found, self._lags = self._lags, {}
        return found

    def stuck(self) -> list[str]:
        """Loops whose tick goes on long after it should have been ended: the process is of no use any more."""
        now = self._clock.monotonic()
        return [name for name, since in self._begun.items() if now - since > self._loops[name].timeout + STUCK_SECONDS]

    def _note_lag(self, name: str, seconds: float) -> None:
        self._lags[name] = max(self._lags.get(name, 0.0), seconds)

    def nudge(self, name: str) -> None:
        """Run this loop now, or once more right after the tick that is running."""
        self._nudges[name].set()

    async def run(self) -> None:
        """Until cancelled. A loop whose driving code itself breaks is started again."""
        async with asyncio.TaskGroup() as group:
            for loop in self._loops.values():
                group.create_task(self._drive_for_ever(loop), name=f"loop-{loop.name}")

    async def _drive_for_ever(self, loop: Loop) -> None:
        while True:
            again_in = await self._tick_once(loop)
            status = self._status[loop.name]
            pause = pause_after(loop, status.failures_in_a_row, again_in, self._dice())
            status.next_run_at = self._clock.now() + timedelta(seconds=pause)
            due = self._clock.monotonic() + pause
            await self._pause(self._nudges[loop.name], pause)
            self._note_lag(loop.name, self._clock.monotonic() - due)

    async def _tick_once(self, loop: Loop) -> float | None:
        status = self._status[loop.name]
        self._nudges[loop.name].clear()  # before the tick reads anything: news that comes later runs it again
        status.running, status.last_run_at = True, self._clock.now()
        self._begun[loop.name] = begun = self._clock.monotonic()
        again_in, result = None, "ok"
        with structlog.contextvars.bound_contextvars(loop=loop.name, tick=ids.new(8)):
            try:
                tick = await self._bounded(loop)
                status.stats, again_in = tick.stats, tick.again_in
                status.failures_in_a_row = 0
                log.debug("Tick", **tick.stats)
            except LeaseLostError:
                raise  # not a failure of the loop: the whole driver has to end
            except Exception as e:  # noqa: BLE001 (whatever a loop does, the others go on)
                result = "failed"
                self._note_failure(status, e)
            finally:
                status.running, status.runs = False, status.runs + 1
                status.took_seconds = self._clock.monotonic() - begun
                self._note_lag(loop.name, status.took_seconds - loop.period)
                del self._begun[loop.name]
                metrics.LOOP_TICKS.labels(loop.name, result).inc()
                metrics.LOOP_SECONDS.labels(loop.name).observe(status.took_seconds)
        return again_in

    def _note_failure(self, status: LoopStatus, error: Exception) -> None:
        status.failures += 1
        status.failures_in_a_row += 1
        status.last_error = logs.redact_text(f"{type(error).__name__}: {error}")
        status.last_error_at = self._clock.now()
        log.error("Tick failed", failures_in_a_row=status.failures_in_a_row, exc_info=error)

    async def _bounded(self, loop: Loop) -> Tick:
        """The tick, ended when it takes too long by the driver's own clock."""
        work = asyncio.ensure_future(loop.tick())
        alarm = asyncio.ensure_future(self._clock.sleep(loop.timeout))
        try:
            await asyncio.wait({work, alarm}, return_when=asyncio.FIRST_COMPLETED)
            if work.done():
                return work.result()
            raise TimeoutError(f"took longer than {loop.timeout:g} s")
        finally:
            for task in (work, alarm):
                task.cancel()
            await asyncio.gather(work, alarm, return_exceptions=True)

    async def _pause(self, nudge: asyncio.Event, seconds: float) -> None:
        waits = {asyncio.create_task(nudge.wait()), asyncio.create_task(self._clock.sleep(seconds))}
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for wait in waits:
                wait.cancel()
            await asyncio.gather(*waits, return_exceptions=True)
