"""Listens for database notifications. Subscribers are called on each, and after every (re)connection.

A notification carries nothing but the news that something changed: subscribers re-read. Calling them after a
reconnection covers what was said while there was no connection, so a lost notification delays and never breaks.
"""

import asyncio
import contextlib
from collections.abc import Callable
from typing import Any

import asyncpg

from codehub import logs
from codehub.clock import Clock
from codehub.db.connecting import connect
from codehub.db.pool import AWAY

log = logs.get()
KEEPALIVE_SECONDS = 4.0


class Listener:
    def __init__(self, url: str, clock: Clock) -> None:
        self._url = url
        self._clock = clock
        self._subscribers: dict[str, list[Callable[[], None]]] = {}
        self._task: asyncio.Task[None] | None = None
        self._connected = asyncio.Event()

    def subscribe(self, channel: str, changed: Callable[[], None]) -> None:
        """`changed` must not block: clear a cache, set an event."""
        self._subscribers.setdefault(channel, []).append(changed)

    def start(self) -> None:
        self._task = asyncio.create_task(self._run(), name="listener")

    async def connected(self) -> None:
        """Until it has listened once, and the subscribers were told so."""
        await self._connected.wait()

    async def stop(self) -> None:
        if self._task:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task

    async def _run(self) -> None:
        pause = 0.2
        while True:
            try:
                await self._listen()
                pause = 0.2
            except (*AWAY, asyncpg.PostgresError) as e:
                log.warning("Listener lost the database", error=str(e), retry_in=pause)
            except Exception:  # a subscriber's mistake may not end it for all of them
                from codehub import metrics  # noqa: PLC0415 (the supervisor loads this before it names their folder)

                metrics.LOOP_TICKS.labels("listener", "failed").inc()
                log.exception("The listener failed, and begins again", retry_in=pause)
            await self._clock.sleep(pause)
            pause = min(pause * 2, 5.0)

    async def _listen(self) -> None:
        connection = await connect(self._url, timeout=5, server_settings={"application_name": "codehub-listener"})
        try:
            for channel in self._subscribers:
                await connection.add_listener(channel, self._on_notification)
            for channel in self._subscribers:
                self._call(channel)
            self._connected.set()
            while True:
                await self._clock.sleep(KEEPALIVE_SECONDS)
                await connection.execute("SELECT 1", timeout=4)
        finally:
            connection.terminate()

    def _on_notification(self, _connection: Any, _pid: int, channel: str, _payload: str) -> None:
        self._call(channel)

    def _call(self, channel: str) -> None:
        for changed in self._subscribers[channel]:
            changed()
