"""A client's connection as such: what came and waits for its turn, when reading stops, how it ends.

`downstream.Client` is the only one there is; this half of it knows nothing of HTTP.
"""

import asyncio
from math import inf
from typing import TYPE_CHECKING, cast

from codehub.proxy.farewell import Farewell
from codehub.proxy.turns import Reader

if TYPE_CHECKING:
    from codehub.proxy.server import Engine


class Connection(Reader):
    __slots__ = ("_buffer", "_eof", "deadline", "engine", "write_paused")

    def __init__(self, engine: "Engine") -> None:
        super().__init__()
        self.engine = engine
        self.deadline = inf
        self.write_paused = False  # the client does not take what we have for it
        self._buffer = b""  # what came and is not understood yet
        self._eof = False  # the client sends nothing any more

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        engine = self.engine
        self.transport = cast("asyncio.Transport", transport)  # uvloop's are not its children
        self.transport.set_write_buffer_limits(engine.limits.high_water, engine.limits.low_water)
        self.deadline = engine.now + engine.limits.head_seconds
        engine.watched.add(self)

    def peer(self) -> str:
        """The other side's address; empty on a Unix socket."""
        name = self.transport.get_extra_info("peername")
        # An IPv4 client on a socket that speaks both comes as ::ffff:192.0.2.1.
        return str(name[0]).removeprefix("::ffff:") if isinstance(name, tuple) else ""

    def _keep_for_later(self, data: bytes) -> None:
        self._buffer += data
        if len(self._buffer) > self.engine.limits.low_water:
            self.pause_reading()

    def _take_buffer(self) -> bytes:
        data, self._buffer = self._buffer, b""
        return data

    def _end(self, *, unheard: bool) -> None:
        """Close it; when the client still sends, only after it has heard what we said."""
        if unheard and not self._eof:
            self.engine.watched.discard(self)
            Farewell(self.engine, self.transport)
        else:
            self.transport.close()

    def expire(self) -> None:
        """The deadline has passed."""
        self.transport.abort()

    def drain(self) -> None:
        """No new requests."""
        self.transport.close()
