"""The upstream's side: a pool of connections per address, and the protocol that passes answers on to the client.

`downstream` takes a connection from the pool and begins a request on it; from then on the answer is written to the
client's transport as it comes. A connection goes back to the pool only when both sides agree on where it stands.
"""

import asyncio
from enum import Enum
from typing import TYPE_CHECKING, cast

from codehub.proxy import chunked, framing, headers
from codehub.proxy.admission import is_stranger, place_refusal, place_refusal_of_worker
from codehub.proxy.framing import Partial, RefusalError
from codehub.proxy.model import CHUNKED, UNTIL_EOF, Address, Failure, Forward, ResponseHead
from codehub.proxy.read_fairness import LARGE, Reader
from codehub.system import connect

if TYPE_CHECKING:
    from codehub.proxy.downstream import Client
    from codehub.proxy.server import Engine

RESERVE_SECONDS = 50.0  # longer than others, and less than the API keeps one that is not used
SURELY_ALIVE_SECONDS = 1.0  # unused for so long a connection has not been closed by any server's time-out


class Phase(Enum):
    IDLE = "nothing is asked"
    HEAD = "waiting for an answer's head, or in it"
    LENGTH = "in a body of known length"
    CHUNKS = "in a chunked body"
    UNTIL_CLOSE = "in a body that ends with the connection"


IDLE, HEAD, LENGTH, CHUNKS, UNTIL_CLOSE = Phase


class Pool:
    """Connections to one address. The one used last is used next, so that those not needed grow old.

    Every request takes a place first, in the name of who asks: one of many must not have them all.
    """

    __slots__ = ("_engine", "_reserve", "address", "busy", "held", "idle")

    def __init__(self, engine: "Engine", address: Address) -> None:
        self._engine = engine
        self.address = address
        self.busy = 0  # in use, tunnels too
        self.held: dict[str, int] = {}  # of those, by whom
        self.idle: list[Upstream] = []
        self._reserve = 0  # open connections that are kept for those who are logged in

    def enter(self, who: str, forward: Forward) -> Failure | None:
        """Take a place; it is given back by `leave`. None: it was taken."""
        engine, held = self._engine, self.held.get(who, 0)
        if self.busy >= forward.at_most >> 2 or engine.places >= engine.few:
            refusal = self._refusal(who, held, forward)
            if refusal is not None:
                return refusal
        self.held[who] = held + 1
        self.busy += 1
        engine.places += 1
        return None

    def _refusal(self, who: str, held: int, forward: Forward) -> Failure | None:
        """Asked only when more than a few places are taken."""
        engine, stranger = self._engine, is_stranger(who)
        if not stranger and held < forward.at_most - self.busy and engine.places < engine.few:
            return None  # as the rules would say, and most often
        if forward.beyond:
            return Failure.FULL if self.busy >= forward.at_most + forward.beyond else None
        strangers = sum(count for one, count in self.held.items() if is_stranger(one)) if stranger else 0
        here = place_refusal(who, held, strangers, self.busy, forward.at_most)
        if here is not None or engine.places < engine.few:
            return here
        return place_refusal_of_worker(engine.held(who), self.busy, engine.places, engine.capacity.upstreams)

    def leave(self, who: str) -> None:
        self.busy -= 1
        self._engine.places -= 1
        held = self.held[who] - 1
        if held:
            self.held[who] = held
        else:
            del self.held[who]

    def take(self, *, repeatable: bool, reserve: int = 0) -> "Upstream | None":
        """An open connection. What could not be repeated goes only on one that was in use a moment ago."""
        now = self._engine.now
        if reserve:
            self._reserve = reserve
            if len(self.idle) <= reserve:
                return None
        while self.idle:
            up = self.idle.pop()
            if up.transport.is_closing():
                continue
            if not repeatable and now - up.since > SURELY_ALIVE_SECONDS:
                self.idle.append(up)
                return None
            return up
        return None

    async def connect(self, seconds: float) -> "Upstream":
        loop, address = self._engine.loop, self.address
        async with asyncio.timeout(seconds):
            if address.path:
                # An upstream may own its socket's folder: no link in its place may lead elsewhere.
                opened = await connect.to_socket(address.path)
                _, up = await loop.create_unix_connection(self._new, sock=opened)
            else:
                _, up = await loop.create_connection(self._new, address.host, address.port, ssl=address.tls)
        return up

    def _new(self) -> "Upstream":
        return Upstream(self._engine, self)

    def release(self, up: "Upstream") -> None:
        engine = self._engine
        self.leave(up.holder)
        if engine.draining or engine.open_upstreams > engine.capacity.upstreams:  # none to spare for later
            up.transport.close()
            return
        up.since = engine.now
        self.idle.append(up)

    def forget(self, up: "Upstream") -> None:
        if up in self.idle:
            self.idle.remove(up)

    def close_idle(self, before: float) -> None:
        """Close what has not been used since then. The oldest are first in the list."""
        while self.idle and self.idle[0].since <= before:
            if len(self.idle) <= self._reserve and self.idle[0].since > before - RESERVE_SECONDS:
                return
            self.idle.pop(0).transport.close()


class Upstream(Reader):
    __slots__ = (
        "_chunks", "_heard", "_keep", "_left", "_partial", "_rechunk", "client", "engine", "holder", "phase", "pool",
        "reused", "since", "write_paused",
    )  # fmt: skip

    holder: str  # of the place that the request at hand has

    def __init__(self, engine: "Engine", pool: Pool) -> None:
        super().__init__()
        self.engine = engine
        self.pool = pool
        self.client: Client | None = None
        self.phase = IDLE
        self.since = 0.0  # when it was last put back
        self.reused = False
        self.write_paused = False  # the upstream does not take what we have for it
        self._heard = False  # a byte of the answer has come
        self._keep = False
        self._partial: Partial | None = None  # the beginning of a head
        self._left = 0
        self._chunks: chunked.Reader | None = None
        self._rechunk = False  # the client gets chunks

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        transport = cast("asyncio.Transport", transport)  # uvloop's are not its children
        self.transport = transport
        transport.set_write_buffer_limits(self.engine.limits.high_water, self.engine.limits.low_water)
        self.engine.open_upstreams += 1

    def begin(self, client: "Client", wire: bytes, holder: str) -> None:
        self.client = client
        self.holder = holder
        self.phase = HEAD
        self._heard = False
        self.transport.write(wire)

    def data_received(self, data: bytes) -> None:
        client = self.client
        if client is None:  # no client asked: whatever this is, it is not an answer
            self.transport.abort()
            return
        phase = self.phase
        if phase is HEAD:
            self._heard = True
            self._read_head(client, data)
            return
        if len(data) >= LARGE:
            self.engine.turns.took(self, len(data))
        if phase is LENGTH:
            self._pass_length(client, data)
        elif phase is CHUNKS:
            self._pass_chunks(client, data)
        else:
            self._write(client, data)

    def connection_lost(self, exc: Exception | None) -> None:
        self.engine.open_upstreams -= 1
        client = self.client
        if client is None:
            self.pool.forget(self)
            return
        phase = self.phase
        self._leave()
        if phase is UNTIL_CLOSE and exc is None:
            if self._rechunk:
                client.transport.write(chunked.LAST)
            client.answered()
        elif phase is HEAD and self.reused and not self._heard and client.may_repeat():
            client.repeat()
        else:
            client.failed(Failure.BROKE_OFF)

    def pause_writing(self) -> None:
        self.write_paused = True
        if self.client:
            self.client.upstream_is_full()

    def resume_writing(self) -> None:
        self.write_paused = False
        if self.client:
            self.client.upstream_has_room()

    def abandon(self) -> None:
        """The client does not want the answer any more."""
        self._leave()
        self.transport.abort()

    def _leave(self) -> None:
        self.client = None
        self.phase = IDLE
        self.pool.leave(self.holder)

    # Heads.

    def _read_head(self, client: "Client", data: bytes) -> None:
        if self._partial is not None:
            if not self._completed(client, self._partial, data):
                return
            data, self._partial = bytes(self._partial.data), None
        limits = self.engine.limits
        while data:
            end = data.find(b"\r\n\r\n")
            if end < 0 or end > limits.response_head_bytes:
                self._partial = Partial()
                if self._completed(client, self._partial, data):  # and too large
                    self._nonsense(client)
                return
            try:
                head = framing.response(data[:end], limits.response_head_fields, client.head.method)
            except RefusalError:
                self._nonsense(client)
                return
            data = data[end + 4 :]
            if head.status >= 200:
                self._begin_answer(client, head, data)
                return
            if head.status == 101:
                self._switch(client, head, data)
                return
            if client.head.minor:
                client.transport.write(headers.response(head, client.forward.hygiene, b"\r\n"))

    def _completed(self, client: "Client", partial: Partial, data: bytes) -> bool:
        try:
            complete = partial.complete(data)
        except RefusalError:
            self._nonsense(client)
            return False
        if not complete and len(partial.data) > self.engine.limits.response_head_bytes:
            self._nonsense(client)
        return complete

    def _switch(self, client: "Client", head: ResponseHead, data: bytes) -> None:
        if not (client.head.upgrade and head.upgrade):
            self._nonsense(client)
            return
        self.client = None  # the tunnel is in its place from here on, and holds our place in the pool
        client.upgraded(self, head, data)

    def _begin_answer(self, client: "Client", head: ResponseHead, data: bytes) -> None:
        keep = client.answer_begins(head)
        self._keep = head.keep_alive
        lines, self._rechunk = headers.response_framing(head, client.head, keep=keep)
        if b"date" not in head.index:  # RFC 9110 6.6.1: a recipient that has a clock says when it came
            lines = self.engine.date + lines
        wire = headers.response(head, client.forward.hygiene, lines)
        self._left = left = head.length
        if left >= 0 and len(data) == left:
            self.engine.counters.bytes_out += left
            client.transport.write(wire + data if data else wire)
            self._finish(client, reusable=True)
            return
        client.transport.write(wire)
        if left == CHUNKED:
            self.phase, self._chunks = CHUNKS, chunked.Reader()
        else:
            self.phase = UNTIL_CLOSE if left == UNTIL_EOF else LENGTH
        if data or left == 0:
            self.data_received(data)

    # Bodies.

    def _pass_length(self, client: "Client", data: bytes) -> None:
        left = self._left - len(data)
        self._left = left
        if left < 0:
            data = data[:left]
        client.sent += len(data)
        self.engine.counters.bytes_out += len(data)
        client.transport.write(data)
        if left <= 0:
            self._finish(client, reusable=left == 0)

    def _pass_chunks(self, client: "Client", data: bytes) -> None:
        chunks = self._chunks
        assert chunks is not None  # noqa: S101
        try:
            found = chunks.feed(data)
        except RefusalError:
            self._nonsense(client)
            return
        if found:
            self._write(client, found)
        if chunks.done:
            if self._rechunk:
                client.transport.write(chunked.end(chunks.trailers))
            self._finish(client, reusable=not chunks.rest)

    def _write(self, client: "Client", data: bytes) -> None:
        client.sent += len(data)
        self.engine.counters.bytes_out += len(data)
        if self._rechunk:
            client.transport.writelines(chunked.chunk(data))
        else:
            client.transport.write(data)

    def _finish(self, client: "Client", *, reusable: bool) -> None:
        self.client, self.phase, self._chunks = None, IDLE, None
        if reusable and self._keep and client.request_is_through():
            self.reused = True
            self.resume_reading()
            self.pool.release(self)
        else:
            self.pool.leave(self.holder)
            self.transport.abort()
        client.answered()

    def _nonsense(self, client: "Client") -> None:
        self._leave()
        self.transport.abort()
        client.failed(Failure.NONSENSE)
