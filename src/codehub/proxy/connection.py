"""A client's connection as such: what came and waits for its turn, when reading stops, who holds it, how it ends.

`downstream.Client` is the only one there is; this part of it knows nothing of HTTP.
"""

import asyncio
from abc import abstractmethod
from math import inf
from typing import TYPE_CHECKING, cast

from codehub.proxy import rates
from codehub.proxy.lingering_close import LingeringClose
from codehub.proxy.read_fairness import Reader

if TYPE_CHECKING:
    from codehub.proxy.headers import Source
    from codehub.proxy.server import Engine

UNKNOWN = -1


class Connection(Reader):
    __slots__ = (
        "_at", "_buffer", "_eof", "_source", "_unsent", "deadline", "engine", "holder", "since", "write_paused",
    )  # fmt: skip

    _source: "Source"
    holder: str  # who counts for it: an address, or a person as soon as one is known

    def __init__(self, engine: "Engine") -> None:
        super().__init__()
        self.engine = engine
        self.deadline = inf
        self.since = engine.now  # when it last achieved something
        self.write_paused = False  # the client does not take what we have for it
        self._buffer = b""  # what came and is not understood yet
        self._at = 0  # it begins here: to cut off every request that was read would be to copy the others each time
        self._eof = False  # the client sends nothing any more
        self._unsent = UNKNOWN  # bytes the client had not taken when we last looked

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        engine = self.engine
        self.transport = cast("asyncio.Transport", transport)  # uvloop's are not its children
        self.transport.set_write_buffer_limits(engine.limits.high_water, engine.limits.low_water)
        self.deadline = engine.now + engine.limits.head_seconds
        self._source = engine.source(self.peer())
        self.holder = self._source.holder
        engine.watched.add(self)
        engine.crowd.enter(self)

    def peer(self) -> str:
        """The other side's address; empty on a Unix socket."""
        name = self.transport.get_extra_info("peername")
        # An IPv4 client on a socket that speaks both comes as ::ffff:192.0.2.1.
        return str(name[0]).removeprefix("::ffff:") if isinstance(name, tuple) else ""

    def _keep_for_later(self, data: bytes) -> None:
        self._buffer = self._take_buffer() + data
        if len(self._buffer) > self.engine.limits.low_water:
            self.pause_reading()

    def _take_buffer(self) -> bytes:
        data, self._buffer = self._buffer, b""
        if self._at:
            data, self._at = data[self._at :], 0
        return data

    def _waiting(self) -> int:
        """Bytes that came and are not understood yet."""
        return len(self._buffer) - self._at

    def _reads_on(self) -> bool:
        """Has the client taken something of what it was sent, since we last looked? Not known at the first look."""
        before, self._unsent = self._unsent, rates.unsent(self.transport)
        return self._unsent > 0 and (before == UNKNOWN or self._unsent < before)

    def _hand_over(self) -> None:
        """Others look after the transport from here on."""
        self.engine.watched.discard(self)
        self.engine.crowd.leave(self)

    def _end(self, *, unheard: bool) -> None:
        """Close it; when the client still sends, only after it has heard what we said."""
        if unheard and not self._eof:
            self._hand_over()
            LingeringClose(self.engine, self.transport, self.holder)
        else:
            self._unsent = UNKNOWN
            self.deadline = self.engine.now + self.engine.limits.linger_seconds
            self.transport.close()

    def shed(self) -> None:
        """End it, to make room for others."""
        self.transport.abort()

    @abstractmethod
    def is_slow(self) -> bool:
        """Nothing is under way, or only what the client itself holds up."""

    @abstractmethod
    def expire(self) -> None:
        """The deadline has passed."""

    @abstractmethod
    def drain(self) -> None:
        """No new requests."""
