"""After `101 Switching Protocols`: bytes pass untouched, both ways, each side no faster than the other reads.

`downstream` makes a `Tunnel` and hands it both transports. An observer sees every piece from the side. The engine keeps
tunnels by route, to count them and to end them with a reason.
"""

import asyncio
from math import inf
from typing import TYPE_CHECKING

from codehub import logs
from codehub.proxy.frames import Boundary, close_frame
from codehub.proxy.lingering_close import LingeringClose
from codehub.proxy.model import TunnelObserver
from codehub.proxy.read_fairness import LARGE, Reader

if TYPE_CHECKING:
    from codehub.proxy.server import Engine
    from codehub.proxy.upstream import Upstream

log = logs.get()


class Tunnel:
    __slots__ = (
        "_boundary", "_last_words", "_pool", "_upstream", "_who", "client", "deadline", "engine", "half_closed",
        "holder", "observer", "open", "route", "since", "up",
    )  # fmt: skip

    def __init__(
        self,
        engine: "Engine",
        client: asyncio.Transport,
        up: "Upstream",
        *,
        holder: str,
        route: str,
        observer: TunnelObserver | None,
    ) -> None:
        self.engine = engine
        self.client = client
        self.up = up.transport
        self.holder = holder
        self.since = engine.now
        self.route = route
        self.observer = observer
        self.deadline = inf
        self.open = True
        self.half_closed = False
        self._pool = up.pool
        self._who = up.holder  # holds the place at the upstream
        self._boundary = Boundary()  # in what the client gets
        self._last_words = b""  # to be said at the next boundary
        self._upstream = UpstreamSide(self, self._boundary)

    def start(self, from_client: bytes, from_upstream: bytes, *, eof: bool) -> None:
        """With what has come already."""
        client, upstream = ClientSide(self), self._upstream
        client.other, upstream.other = upstream, client
        self.client.set_protocol(client)
        self.up.set_protocol(upstream)
        self.engine.tunnel_opened(self)
        if from_upstream:
            upstream.data_received(from_upstream)
        if from_client:
            client.data_received(from_client)
        self.client.resume_reading()
        self.up.resume_reading()
        if eof:
            client.eof_received()

    def finish(self, data: bytes) -> None:
        """What the upstream says after we were told to end: only the rest of its frame still passes."""
        self.client.write(self._boundary.finish(data))
        if self._boundary.reached:
            self._say_and_end()

    def close(self, code: int, reason: str) -> None:
        """End it with a WebSocket close frame: at once, or after the frame that is under way."""
        if not self.open or self._last_words:
            return
        self._last_words = close_frame(code, reason)
        self._upstream.boundary = None
        self.deadline = self.engine.now + self.engine.limits.linger_seconds
        if self._boundary.reached:
            self._say_and_end()

    def _say_and_end(self) -> None:
        self.client.write(self._last_words)
        self._forget()
        LingeringClose(self.engine, self.client, self.holder)
        self.up.abort()

    def eof(self, other: asyncio.Transport) -> bool:
        """One side sends nothing any more; the other may still, if it does not take too long."""
        if self.half_closed or not other.can_write_eof():  # which TLS cannot
            self.end()
            return False
        self.half_closed = True
        self.deadline = self.engine.now + self.engine.limits.half_closed_seconds
        other.write_eof()
        return True

    def end(self) -> None:
        if not self.open:
            return
        self._forget()
        for side in (self.client, self.up):
            if side.get_write_buffer_size() and not side.is_closing():
                LingeringClose(self.engine, side, self.holder)  # it has so long to read the rest
            else:
                side.close()

    def _forget(self) -> None:
        self.open = False
        self._pool.leave(self._who)
        self.engine.tunnel_closed(self)
        if self.observer is not None:
            try:
                self.observer.closed()
            except Exception:
                log.exception("An observer of a WebSocket's end failed")

    def expire(self) -> None:
        self.client.abort()
        self.up.abort()

    def is_slow(self) -> bool:
        return False

    def shed(self) -> None:
        self.expire()

    def drain(self) -> None:
        self.close(1001, "The server is restarting.")


class Side(Reader):
    """What one of the two transports reports. What comes goes to the other one, at most as fast as that takes it.

    `data_received` is the path of every message: each call that is saved shows, so its two forms are written out. So
    does each object: with hundreds of busy tunnels none of theirs is in the processor's cache.
    """

    __slots__ = ("_counters", "_observer", "_to", "_tunnel", "_turns", "other")

    other: "Side"

    def __init__(self, tunnel: Tunnel, transport: asyncio.Transport, to: asyncio.Transport) -> None:
        super().__init__()
        self.transport = transport
        self._tunnel = tunnel
        self._to = to
        self._turns = tunnel.engine.turns
        self._counters = tunnel.engine.counters

    def eof_received(self) -> bool:
        return self._tunnel.eof(self.other.transport)

    def connection_lost(self, _exc: Exception | None) -> None:
        self._tunnel.end()

    def pause_writing(self) -> None:
        self.other.pause_reading()

    def resume_writing(self) -> None:
        self.other.resume_reading()


class ClientSide(Side):
    __slots__ = ()

    def __init__(self, tunnel: Tunnel) -> None:
        super().__init__(tunnel, tunnel.client, tunnel.up)
        self._observer = tunnel.observer.from_client if tunnel.observer else None

    def data_received(self, data: bytes) -> None:
        size = len(data)
        self._to.write(data)
        self._counters.bytes_in += size
        if size >= LARGE:
            self._turns.took(self, size)
        if self._observer is not None:
            try:
                self._observer.follow(data)
            except Exception:  # an observer must not be able to stop what it watches
                log.exception("An observer of a WebSocket failed")


class UpstreamSide(Side):
    __slots__ = ("boundary",)

    def __init__(self, tunnel: Tunnel, boundary: Boundary) -> None:
        super().__init__(tunnel, tunnel.up, tunnel.client)
        self.boundary: Boundary | None = boundary  # None: the tunnel ends, and looks at what still comes
        self._observer = tunnel.observer.from_upstream if tunnel.observer else None

    def data_received(self, data: bytes) -> None:
        size = len(data)
        if self.boundary is None:
            self._tunnel.finish(data)
        else:
            self.boundary.follow(data)
            self._to.write(data)
        self._counters.bytes_out += size
        if size >= LARGE:
            self._turns.took(self, size)
        if self._observer is not None:
            try:
                self._observer.follow(data)
            except Exception:
                log.exception("An observer of a WebSocket failed")
