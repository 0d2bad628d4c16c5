"""In a client's place after our last words: reads on until they were heard, so that no reset overtakes them.

A close with unread bytes in the socket makes the kernel send a reset, which may throw away what we said before it.
"""

import asyncio
from typing import TYPE_CHECKING

from codehub.proxy import rates
from codehub.proxy.admission import is_stranger

if TYPE_CHECKING:
    from codehub.proxy.server import Engine

UNHEARD_BYTES = 16 * 1024 * 1024  # of an unwanted body or of old messages
UNHEARD_OF_STRANGERS = 1024 * 1024


class LingeringClose(asyncio.Protocol):
    __slots__ = ("_engine", "_left", "_transport", "_unsent", "deadline", "holder", "since")

    def __init__(self, engine: "Engine", transport: asyncio.Transport, holder: str) -> None:
        self._engine = engine
        self._transport = transport
        self._left = UNHEARD_OF_STRANGERS if is_stranger(holder) else UNHEARD_BYTES
        self._unsent = rates.unsent(transport)
        self.holder = holder
        self.since = engine.now
        self.deadline = engine.now + engine.limits.linger_seconds
        engine.watched.add(self)
        engine.crowd.enter(self)
        transport.set_protocol(self)
        if transport.can_write_eof():
            transport.write_eof()
        transport.resume_reading()

    def data_received(self, data: bytes) -> None:
        self._left -= len(data)
        if self._left < 0:
            self._transport.abort()

    def eof_received(self) -> bool:
        return False

    def connection_lost(self, _exc: Exception | None) -> None:
        self._engine.watched.discard(self)
        self._engine.crowd.leave(self)

    def expire(self) -> None:
        """Unless our last words are many, and the other side still reads them."""
        before, self._unsent = self._unsent, rates.unsent(self._transport)
        if 0 < self._unsent < before and not self._engine.draining:
            self.deadline = self._engine.now + self._engine.limits.unread_seconds
        else:
            self._transport.abort()

    def is_slow(self) -> bool:
        return True

    def shed(self) -> None:
        self._transport.abort()

    def drain(self) -> None:
        """It ends by itself."""
