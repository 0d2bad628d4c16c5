"""After `101 Switching Protocols`: bytes pass untouched, both ways, each side no faster than the other reads.

`downstream` makes a `Tunnel` and hands it both transports. An observer sees every piece from the side. The engine keeps
tunnels by route, to count them and to end them with a reason.
"""

import asyncio
from collections.abc import Callable
from math import inf
from typing import TYPE_CHECKING

from codehub import logs
from codehub.proxy.farewell import Farewell
from codehub.proxy.frames import Boundary, close_frame
from codehub.proxy.model import Direction, Observer
from codehub.proxy.turns import LARGE, Reader

if TYPE_CHECKING:
    from codehub.proxy.server import Engine
    from codehub.proxy.upstream import Pool

log = logs.get()
FROM_BROWSER, FROM_WORKSPACE = Direction


class Tunnel:
    __slots__ = (
        "_boundary", "_last_words", "_pool", "client", "deadline", "engine", "half_closed", "observer",
        "open", "route", "up",
    )  # fmt: skip

    def __init__(
        self,
        engine: "Engine",
        client: asyncio.Transport,
        up: asyncio.Transport,
        pool: "Pool",
        *,
        route: str,
        observer: Observer | None,
    ) -> None:
        self.engine = engine
        self.client = client
        self.up = up
        self.route = route
        self.observer = Careful(observer) if observer else None
        self.deadline = inf
        self.open = True
        self.half_closed = False
        self._pool = pool
        self._boundary = Boundary()  # in what the browser gets
        self._last_words = b""  # to be said at the next boundary

    def start(self, from_browser: bytes, from_workspace: bytes, *, eof: bool) -> None:
        """With what has come already."""
        browser, workspace = BrowserSide(self), WorkspaceSide(self)
        browser.other, workspace.other = workspace, browser
        self.client.set_protocol(browser)
        self.up.set_protocol(workspace)
        self.engine.tunnel_opened(self)
        if from_workspace:
            workspace.data_received(from_workspace)
        if from_browser:
            browser.data_received(from_browser)
        self.client.resume_reading()
        self.up.resume_reading()
        if eof:
            browser.eof_received()

    def to_browser(self, data: bytes) -> None:
        if not self._last_words:
            self._boundary.follow(data)
            self.client.write(data)
            return
        self.client.write(self._boundary.finish(data))
        if self._boundary.reached:
            self._say_and_end()

    def close(self, code: int, reason: str) -> None:
        """End it with a WebSocket close frame: at once, or after the frame that is under way."""
        if not self.open or self._last_words:
            return
        self._last_words = close_frame(code, reason)
        self.deadline = self.engine.now + self.engine.limits.linger_seconds
        if self._boundary.reached:
            self._say_and_end()

    def _say_and_end(self) -> None:
        self.client.write(self._last_words)
        Farewell(self.engine, self.client)
        self._forget()
        self.up.abort()

    def eof(self, other: asyncio.Transport) -> bool:
        """One side sends nothing any more; the other may still, if it does not take too long."""
        if self.half_closed:
            self.end()
            return False
        self.half_closed = True
        self.deadline = self.engine.now + self.engine.limits.half_closed_seconds
        other.write_eof()
        return True

    def end(self) -> None:
        if self.open:
            self._forget()
            self.client.close()
            self.up.close()

    def _forget(self) -> None:
        self.open = False
        self._pool.busy -= 1
        self.engine.tunnel_closed(self)
        if self.observer is not None:
            self.observer.closed()

    def expire(self) -> None:
        self.client.abort()
        self.up.abort()

    def drain(self) -> None:
        self.close(1001, "The server is restarting.")


class Careful:
    """Whoever watches from the side must not be able to stop what it watches."""

    __slots__ = ("_observer", "_see")

    def __init__(self, observer: Observer) -> None:
        self._observer = observer
        self._see = observer.data

    def data(self, direction: Direction, data: bytes) -> None:
        try:
            self._see(direction, data)
        except Exception:
            log.exception("An observer of a WebSocket failed")

    def closed(self) -> None:
        try:
            self._observer.closed()
        except Exception:
            log.exception("An observer of a WebSocket's end failed")


class Side(Reader):
    """What one of the two transports reports. What comes goes to the other one, at most as fast as that takes it."""

    __slots__ = ("_counters", "_see", "_tunnel", "_turns", "_write", "other")

    other: "Side"

    def __init__(self, tunnel: Tunnel, transport: asyncio.Transport, write: Callable[[bytes], None]) -> None:
        super().__init__()
        self.transport = transport
        self._tunnel = tunnel
        self._write = write
        self._turns = tunnel.engine.turns
        self._counters = tunnel.engine.counters
        self._see = tunnel.observer.data if tunnel.observer else None

    def eof_received(self) -> bool:
        return self._tunnel.eof(self.other.transport)

    def connection_lost(self, _exc: Exception | None) -> None:
        self._tunnel.end()

    def pause_writing(self) -> None:
        self.other.pause_reading()

    def resume_writing(self) -> None:
        self.other.resume_reading()


class BrowserSide(Side):
    __slots__ = ()

    def __init__(self, tunnel: Tunnel) -> None:
        super().__init__(tunnel, tunnel.client, tunnel.up.write)

    def data_received(self, data: bytes) -> None:
        size = len(data)
        self._write(data)
        self._counters.bytes_in += size
        if size >= LARGE:
            self._turns.took(self, size)
        if self._see is not None:
            self._see(FROM_BROWSER, data)


class WorkspaceSide(Side):
    __slots__ = ()

    def __init__(self, tunnel: Tunnel) -> None:
        super().__init__(tunnel, tunnel.up, tunnel.to_browser)

    def data_received(self, data: bytes) -> None:
        size = len(data)
        self._write(data)
        self._counters.bytes_out += size
        if size >= LARGE:
            self._turns.took(self, size)
        if self._see is not None:
            self._see(FROM_WORKSPACE, data)
