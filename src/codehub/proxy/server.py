"""The engine of one worker: accepts on the inherited sockets, keeps time for all connections, drains at the end.

One sweep a second looks at every connection's deadline: a timer per request would cost more than the request's parsing.
"""

import asyncio
import resource
import socket
import struct
from email.utils import formatdate
from typing import Protocol

from codehub.clock import Clock
from codehub.proxy import admission
from codehub.proxy.admission import Capacity
from codehub.proxy.crowd import Crowd
from codehub.proxy.downstream import Client
from codehub.proxy.headers import Source
from codehub.proxy.metrics import Counters
from codehub.proxy.model import Address, Director, Limits
from codehub.proxy.read_fairness import Pipelines, Turns
from codehub.proxy.tunnel import Tunnel
from codehub.proxy.upstream import Pool
from codehub.settings import Network

SWEEP_SECONDS = 1.0
SETTLE_SECONDS = 0.1  # what was sent to us before we stopped listening is read before idle connections are closed
# Dead peers of tunnels and streams are found by the kernel, two minutes after their last sign of life. It asks only
# where nothing is under way; for what a machine that vanished does not acknowledge, it would try for fifteen minutes,
# in which an open stream keeps a place in line. Linux hands these on from the listening socket to accepted ones.
KEEP_ALIVE = ((socket.TCP_KEEPIDLE, 60), (socket.TCP_KEEPINTVL, 15), (socket.TCP_KEEPCNT, 4))
UNACKNOWLEDGED_MS = 120_000  # as long as a client may take nothing of its answer (`Limits.unread_seconds`)


class Watched(Protocol):
    deadline: float

    def expire(self) -> None: ...

    def drain(self) -> None: ...


class Engine:
    def __init__(
        self,
        director: Director,
        clock: Clock,
        limits: Limits | None = None,
        *,
        trusted: tuple[Network, ...] = (),
        scheme: bytes = b"http",
        capacity: Capacity | None = None,
    ) -> None:
        self.director = director
        self.limits = limits or Limits()
        self.loop = asyncio.get_running_loop()
        self.now = clock.monotonic()  # as of the last sweep: good enough for time-outs, and free
        self.date = b""  # a header line with its end, as of the last sweep
        self.capacity = capacity or admission.capacity(resource.getrlimit(resource.RLIMIT_NOFILE)[0])
        self.places = 0  # taken at all upstreams together
        self.few = admission.few(self.capacity.upstreams)
        self.open_upstreams = 0  # connections
        self.leaving = False  # each connection ends with the answer at hand; new ones are taken
        self.draining = False
        self.watched: set[Watched] = set()
        self.counters = Counters()
        self.crowd = Crowd(self.capacity, self.counters)
        self.turns = Turns(self.loop)
        self.pipelines = Pipelines(self.loop)
        self._clock = clock
        self._trusted = trusted
        self._scheme = scheme
        self._pools: dict[Address, Pool] = {}
        self._tunnels: dict[str, set[Tunnel]] = {}
        self._servers: list[asyncio.Server] = []
        self._sweeping: asyncio.TimerHandle | None = None
        self._sweep_seconds = min(SWEEP_SECONDS, *(s / 4 for s in self._all_seconds()))

    def _all_seconds(self) -> list[float]:
        limits = self.limits
        waits = [limits.head_seconds, limits.idle_seconds, limits.stall_seconds, limits.answer_seconds]
        return [*waits, limits.unread_seconds]

    async def start(self, *listeners: socket.socket) -> None:
        for listener in listeners:
            if listener.family in (socket.AF_INET, socket.AF_INET6):
                listener.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
                for option, value in (*KEEP_ALIVE, (socket.TCP_USER_TIMEOUT, UNACKNOWLEDGED_MS)):
                    listener.setsockopt(socket.IPPROTO_TCP, option, value)
            server = await self.loop.create_server(lambda: Client(self), sock=listener, backlog=self.capacity.backlog)
            self._servers.append(server)
        self._keep_time()

    # What the connections need.

    def source(self, address: str) -> Source:
        return Source(address, self._trusted, self._scheme)

    def pool(self, address: Address) -> Pool:
        pool = self._pools.get(address)
        if pool is None:
            pool = self._pools[address] = Pool(self, address)
        return pool

    def held(self, who: str) -> int:
        """Places at upstreams, of one holder."""
        return sum(pool.held.get(who, 0) for pool in self._pools.values())

    def reset(self, transport: asyncio.Transport) -> None:
        """End a connection so that the other side sees an error, not an end."""
        raw = transport.get_extra_info("socket")
        if raw is not None:
            raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        transport.abort()

    # Tunnels.

    def tunnel_opened(self, tunnel: Tunnel) -> None:
        self.watched.add(tunnel)
        self.crowd.enter(tunnel)
        self._tunnels.setdefault(tunnel.route, set()).add(tunnel)
        if self.draining:
            tunnel.drain()

    def tunnel_closed(self, tunnel: Tunnel) -> None:
        self.watched.discard(tunnel)
        self.crowd.leave(tunnel)
        self.open_upstreams -= 1  # its protocol is not the one that would tell
        ours = self._tunnels[tunnel.route]
        ours.discard(tunnel)
        if not ours:
            del self._tunnels[tunnel.route]

    def open_tunnels(self, route: str | None = None) -> int:
        if route is not None:
            return len(self._tunnels.get(route, ()))
        return sum(map(len, self._tunnels.values()))

    def close_tunnels(self, route: str, code: int, reason: str) -> int:
        """End the open WebSockets of a route: it was stopped, or a user may not enter it any more."""
        tunnels = list(self._tunnels.get(route, ()))
        for tunnel in tunnels:
            tunnel.close(code, reason)
        return len(tunnels)

    # What is open, by route.

    def open_routes(self) -> set[str]:
        """The routes with a WebSocket open, or a request under way."""
        under_way = {thing.route_under_way for thing in self.watched if isinstance(thing, Client)}
        return (under_way | set(self._tunnels)) - {""}

    def cut_requests(self, routes: set[str]) -> None:
        """Break off the answers under way on these routes; the client can tell."""
        for thing in list(self.watched):
            if isinstance(thing, Client) and thing.route_under_way in routes:
                thing.break_off()

    # Time.

    def _keep_time(self) -> None:
        self.sweep()
        self._sweeping = self.loop.call_later(self._sweep_seconds, self._keep_time)

    def sweep(self) -> None:
        """Look at the clock, and for whom it matters."""
        self.now = now = self._clock.monotonic()
        self.date = b"Date: %b\r\n" % formatdate(self._clock.timestamp(), usegmt=True).encode()
        for thing in [thing for thing in self.watched if thing.deadline <= now]:
            thing.expire()
        before = now - self.limits.pool_idle_seconds
        for pool in list(self._pools.values()):
            pool.close_idle(before)
            if not pool.busy and not pool.idle:
                del self._pools[pool.address]
        self.flush_metrics()

    def flush_metrics(self) -> None:
        websockets = self.open_tunnels()
        self.counters.flush(len(self.watched) - websockets, websockets)

    async def drain(self, seconds: float, *, one_by_one: bool = False) -> None:
        """Stop accepting; let what is under way finish; then end the rest.

        `one_by_one`: WebSockets are told to come again over half of that time, not all at once. They have somewhere to
        go, and whoever takes them gets them one after the other.
        """
        self.leaving = self.draining = True
        for server in self._servers:
            server.close()
        await self._clock.sleep(min(SETTLE_SECONDS, seconds))
        deadline = self._clock.monotonic() + seconds
        tunnels = [thing for thing in self.watched if one_by_one and isinstance(thing, Tunnel)]
        for thing in self.watched.difference(tunnels):
            thing.drain()
        for tunnel in tunnels:
            if tunnel.open:
                tunnel.drain()
                await self._clock.sleep(seconds / 2 / len(tunnels))
        while self.watched and self._clock.monotonic() < deadline:
            await self._clock.sleep(0.02)
        for thing in list(self.watched):
            thing.expire()
        for pool in self._pools.values():
            pool.close_idle(float("inf"))
        if self._sweeping:
            self._sweeping.cancel()
        for _ in range(4):  # clients' transports end in the loop's next round, their upstreams' after that
            await self._clock.sleep(0)
        self.flush_metrics()
