"""The only source of time. Every loop, rule and service is handed a `Clock`; tests hand in one they drive."""

import asyncio
import time
from datetime import UTC, datetime
from typing import Protocol


class Clock(Protocol):
    def now(self) -> datetime:
        """Wall time, aware, in UTC: for what is stored and shown."""
        ...

    def timestamp(self) -> float:
        """The same as seconds since 1970: for what is noted so often that making a datetime would be noticed."""
        ...

    def monotonic(self) -> float:
        """Seconds that never go back: for how long something took."""
        ...

    async def sleep(self, seconds: float) -> None: ...


class SystemClock:
    def now(self) -> datetime:
        return datetime.now(UTC)

    timestamp = staticmethod(time.time)  # a fifth of what `now` costs

    def monotonic(self) -> float:
        # CLOCK_BOOTTIME goes on while a laptop sleeps, so that a lease is not believed in after its end.
        return time.clock_gettime(time.CLOCK_BOOTTIME)

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    def pause(self, seconds: float) -> None:
        """For commands, which do one thing at a time."""
        time.sleep(seconds)
