"""A loop that works when it is woken and every few seconds in any case, and outlives its failures.

For what every process keeps true in memory (event readers, the routing table, revoked logins). A failure is logged,
counted (`codehub_loop_ticks_total{result="failed"}`) and tried again after a pause that grows. The coordinator's loops,
which run in one place only, have a driver of their own.
"""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable

from codehub import logs, metrics
from codehub.clock import Clock
from codehub.errors import UnavailableError
from codehub.retry import back_off

log = logs.get()
FIRST_PAUSE, LONGEST_PAUSE = 0.2, 10.0  # seconds, after a failure


class Recurring:
    def __init__(self, name: str, work: Callable[[], Awaitable[None]], clock: Clock, *, period: float) -> None:
        """`period`: seconds after which it works without being woken, so that a lost notification only delays."""
        self._name = name
        self._work = work
        self._clock = clock
        self._period = period
        self._woken = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def wake(self) -> None:
        """For a listener: something changed."""
        self._woken.set()

    def start(self) -> None:
        self._task = asyncio.create_task(self._run(), name=self._name)

    async def stop(self) -> None:
        if self._task:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task

    async def _run(self) -> None:
        failures = 0
        while True:
            self._woken.clear()
            try:
                await self._work()
                failures = 0
            except Exception as e:  # noqa: BLE001 (whatever it is, the next attempt may succeed)
                failures += 1
                self._note(e, failures)
                await self._clock.sleep(back_off(failures, FIRST_PAUSE, LONGEST_PAUSE))
                continue
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self._period):
                    await self._woken.wait()

    def _note(self, error: Exception, failures: int) -> None:
        metrics.LOOP_TICKS.labels(self._name, "failed").inc()
        if isinstance(error, UnavailableError):
            log.warning("Waits for the database", loop=self._name, error=error.detail, failures_in_a_row=failures)
        else:
            log.error("Failed, and will be tried again", loop=self._name, failures_in_a_row=failures, exc_info=error)
