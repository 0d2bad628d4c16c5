"""The upstream's side: a pool of connections per address, and the protocol that passes answers on to the client.

`downstream` takes a connection from the pool and begins a request on it; from then on the answer is written to the
client's transport as it comes. A connection goes back to the pool only when both sides agree on where it stands.
"""

import asyncio
from enum import Enum
from typing import TYPE_CHECKING, cast

from codehub.proxy import chunked, framing, headers
from codehub.proxy.framing import RefusalError
from codehub.proxy.model import CHUNKED, UNTIL_EOF, Address, Failure, ResponseHead
from codehub.proxy.turns import LARGE, Reader
from codehub.runtimes import connect

if TYPE_CHECKING:
    from codehub.proxy.downstream import Client
    from codehub.proxy.server import Engine

SURELY_ALIVE_SECONDS = 1.0  # unused for so long a connection has not been closed by any server's time-out


class Phase(Enum):
    IDLE = "nothing is asked"
    HEAD = "waiting for an answer's head, or in it"
    LENGTH = "in a body of known length"
    CHUNKS = "in a chunked body"
    UNTIL_CLOSE = "in a body that ends with the connection"


IDLE, HEAD, LENGTH, CHUNKS, UNTIL_CLOSE = Phase


class Pool:
    """Connections to one address. The one used last is used next, so that those not needed grow old."""

    __slots__ = ("_engine", "address", "busy", "idle")

    def __init__(self, engine: "Engine", address: Address) -> None:
        self._engine = engine
        self.address = address
        self.busy = 0  # in use, tunnels too
        self.idle: list[Upstream] = []

    def take(self, *, repeatable: bool) -> "Upstream | None":
        """An open connection. What could not be repeated goes only on one that was in use a moment ago."""
        now = self._engine.now
        while self.idle:
            up = self.idle.pop()
            if up.transport.is_closing():
                continue
            if not repeatable and now - up.since > SURELY_ALIVE_SECONDS:
                self.idle.append(up)
                return None
            self.busy += 1
            return up
        return None

    async def connect(self, seconds: float) -> "Upstream":
        loop, address = self._engine.loop, self.address
        self.busy += 1
        try:
            async with asyncio.timeout(seconds):
                if address.path:
                    # A workspace owns its socket's folder: no link in its place may lead elsewhere.
                    opened = await connect.to_socket(address.path)
                    _, up = await loop.create_unix_connection(self._new, sock=opened)
                else:
                    _, up = await loop.create_connection(self._new, address.host, address.port)
        except BaseException:
            self.busy -= 1
            raise
        return up

    def _new(self) -> "Upstream":
        return Upstream(self._engine, self)

    def release(self, up: "Upstream") -> None:
        self.busy -= 1
        up.since = self._engine.now
        self.idle.append(up)

    def forget(self, up: "Upstream") -> None:
        if up in self.idle:
            self.idle.remove(up)

    def close_idle(self, before: float) -> None:
        """Close what has not been used since then. The oldest are first in the list."""
        while self.idle and self.idle[0].since <= before:
            self.idle.pop(0).transport.close()


class Upstream(Reader):
    __slots__ = (
        "_chunks", "_heard", "_keep", "_kept", "_left", "_rechunk", "client", "engine", "phase", "pool",
        "reused", "since", "write_paused",
    )  # fmt: skip

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
        self._kept = b""  # the beginning of a head
        self._left = 0
        self._chunks: chunked.Reader | None = None
        self._rechunk = False  # the client gets chunks

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        transport = cast("asyncio.Transport", transport)  # uvloop's are not its children
        self.transport = transport
        transport.set_write_buffer_limits(self.engine.limits.high_water, self.engine.limits.low_water)

    def begin(self, client: "Client", wire: bytes) -> None:
        self.client = client
        self.phase = HEAD
        self._heard = False
        self.transport.write(wire)

    def data_received(self, data: bytes) -> None:
        client = self.client
        if client is None:  # nobody asked: whatever this is, it is not an answer
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
            self.client.pause_reading()

    def resume_writing(self) -> None:
        self.write_paused = False
        if self.client:
            self.client.resume_reading()

    def abandon(self) -> None:
        """The client does not want the answer any more."""
        self._leave()
        self.transport.abort()

    def _leave(self) -> None:
        self.client = None
        self.phase = IDLE
        self.pool.busy -= 1

    # Heads.

    def _read_head(self, client: "Client", data: bytes) -> None:
        if self._kept:
            data, self._kept = self._kept + data, b""
        limits = self.engine.limits
        while data:
            end = data.find(b"\r\n\r\n")
            if end < 0 or end > limits.response_head_bytes:
                if len(data) > limits.response_head_bytes or framing.UNREADABLE.search(data):
                    self._nonsense(client)
                else:
                    self._kept = data
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
            self.pool.busy -= 1
            self.transport.abort()
        client.answered()

    def _nonsense(self, client: "Client") -> None:
        self._leave()
        self.transport.abort()
        client.failed(Failure.NONSENSE)
