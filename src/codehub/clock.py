"""The only source of time. Every loop, rule and service is handed a `Clock`; tests hand in one they drive."""

import asyncio
import time
from datetime import UTC, datetime
from typing import Protocol


class Clock(Protocol):
    def now(self) -> datetime:
        """Wall time, aware, in UTC: for what is stored and shown."""
        ...

    def monotonic(self) -> float:
        """Seconds that never go back: for how long something took."""
        ...

    async def sleep(self, seconds: float) -> None: ...


class SystemClock:
    def now(self) -> datetime:
        return datetime.now(UTC)

    def monotonic(self) -> float:
        # CLOCK_BOOTTIME goes on while a laptop sleeps, so that a lease is not believed in after its end.
        return time.clock_gettime(time.CLOCK_BOOTTIME)

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)
