"""Logs for the API, which asks the relay beside an IDE and not the cluster: it has no rights there."""

import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace

from codehub.clock import Clock
from codehub.runtimes.base import Address, RuntimeFailureError
from codehub.runtimes.containers.door import ASK_PORT
from codehub.runtimes.kubernetes.asking import Asking
from codehub.system.doors import Doors

CONNECT_SECONDS = 5.0


class RelayLogs:
    def __init__(self, doors: Doors, where: Callable[[str], Awaitable[Address | None]], clock: Clock) -> None:
        self._asking = Asking(doors, clock)
        self._where = where

    async def logs(self, workspace_id: str, *, tail_bytes: int = 65536, follow: bool = False) -> AsyncIterator[bytes]:
        """Nothing of one that does not run: how it ended is in its history."""
        address = await self._where(workspace_id)
        if address is None:
            return
        request = {"do": "logs", "tail_bytes": tail_bytes, "follow": follow}
        with contextlib.suppress(RuntimeFailureError):
            async with self._asking.under_way(
                replace(address, port=ASK_PORT), request, seconds=CONNECT_SECONDS
            ) as asked:
                async for content in asked.pieces():
                    yield bytes(content)
