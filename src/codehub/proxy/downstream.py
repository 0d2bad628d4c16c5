"""The browser's side of a connection: reads requests, asks the director, passes bodies on, answers in order.

`server` makes one `Client` per accepted connection. A request that can go out on an open upstream connection costs no
task and no future; only waiting (for a decision, for a connection) does. The body of somebody who is not logged in
gets an upstream connection only when it has come, or enough of it.
"""

import asyncio
from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any

from codehub import logs
from codehub.proxy import answers, framing, headers, rates
from codehub.proxy.body import ChunkedBody, LengthBody, Waiting
from codehub.proxy.exchange import ANSWER, BODY, FIRST, GONE, HEAD, HELD, OUR_MISTAKE, Exchange
from codehub.proxy.framing import Partial, RefusalError
from codehub.proxy.metrics import Refusal
from codehub.proxy.model import CHUNKED, Answer, Failure, Forward, Hold, RequestHead
from codehub.proxy.turns import LARGE

if TYPE_CHECKING:
    from codehub.proxy.server import Engine
    from codehub.proxy.upstream import Upstream

log = logs.get()
TOO_MANY = answers.problem(
    429, "Too many connections of yours are open: close some tabs or programs.", None, answers.RETRY
)
REPEATABLE = {b"GET", b"HEAD", b"OPTIONS", b"PUT", b"DELETE"}
EMPTY_LINES = 4  # before a request: old clients send one after a body


class Client(Exchange):
    __slots__ = ("_wire",)

    def __init__(self, engine: "Engine") -> None:
        super().__init__(engine)
        self._wire = b""  # the request's head as the upstream gets it

    # What the transport tells us.

    def data_received(self, data: bytes) -> None:
        state = self.state
        if state is HEAD:
            if self._buffer:
                data, self._buffer = self._buffer + data, b""
            if self._partial is None:
                self._read(data)
            else:
                self._read_on(self._partial, data)
        elif state is BODY:
            rest = self._pass_body(data)
            if rest:
                self._keep_for_later(rest)
        elif state is FIRST:
            rest = self._pass_first(data)
            if rest:
                self._keep_for_later(rest)
        elif state is not GONE:
            self._keep_for_later(data)

    def eof_received(self) -> bool:
        """Half-closed: whoever asked completely still gets the answer."""
        self._eof = True
        if self.state is ANSWER or (self.state is HELD and self._body is None):
            self.deadline = self.engine.now + self.engine.limits.half_closed_seconds
            return True
        if self.state is HELD or self.write_paused:
            return True  # its body, or further requests, may be in the buffer
        self._let_go()
        self.state = GONE
        return False

    # Requests.

    def _read(self, data: bytes) -> None:
        """All requests in the data whose turn it is; the rest is kept."""
        limits, empty_lines = self.engine.limits, 0
        while data and self.state is HEAD and not self.write_paused:
            end = data.find(b"\r\n\r\n")
            if end < 0 or end > limits.head_bytes:
                if data == b"\r\n":  # the next request may take its time
                    return
                self._partial = Partial()
                self._read_on(self._partial, data)
                return
            try:
                head = framing.request(data[:end], limits.head_fields)
            except RefusalError as refusal:
                if data.startswith(b"\r\n") and empty_lines < EMPTY_LINES:
                    data = data[2:]
                    empty_lines += 1
                    continue
                self.engine.counters.refused(Refusal.MALFORMED)
                self._refuse_head(refusal.status, refusal.detail, head_only=data.startswith(b"HEAD "))
                return
            data = self._begin(head, data[end + 4 :])
        if data:
            self._keep_for_later(data)

    def _read_on(self, partial: Partial, data: bytes) -> None:
        """In a head that did not come whole."""
        limits = self.engine.limits
        try:
            complete = partial.complete(data)
        except RefusalError as refusal:
            self._partial = None
            self.refuse(refusal.status, refusal.detail)
            return
        found = partial.data
        if complete and found.find(b"\r\n\r\n", 0, limits.head_bytes + 4) >= 0:
            self._partial = None
            self.engine.crowd.keep(self, 0)
            self._read(bytes(found))
        elif len(found) > limits.head_bytes:
            self._partial = None
            self.engine.counters.refused(Refusal.MALFORMED)
            self._refuse_head(431, "The request's head is too large.", head_only=found.startswith(b"HEAD "))
        else:
            self.deadline = min(self.deadline, self.engine.now + limits.head_seconds)
            if self._is_stranger():
                self.engine.crowd.keep(self, len(found))

    def _begin(self, head: RequestHead, data: bytes) -> bytes:
        """A request has come; returns what is left of the data."""
        self.head = head
        head.peer = self._source.address
        head.principal = ""
        self._keep = head.block.keep_alive
        self._begun = False
        if head.length:
            self._body = ChunkedBody() if head.length == CHUNKED else LengthBody(head.length)
        try:
            decision = self.engine.director.decide(head)
        except Exception:  # a mistake of ours must not look like the client's
            log.exception("No decision about a request")
            decision = OUR_MISTAKE
        if type(decision) is Forward:
            return self._go(decision, data)
        if type(decision) is Answer:
            self._answer(decision)
            return data if self.state is HEAD else b""
        assert type(decision) is Hold  # noqa: S101
        self._wait(self._hold(decision))
        return data

    def _go(self, forward: Forward, data: bytes) -> bytes:
        self.forward = forward
        head = self.head
        who = head.principal
        if not who:
            if self._body is not None and self._first is None:
                return self._begin_first(data)
            who = self._source.asker(head)
        elif who != self.holder and not self._source.trusted and not self.engine.crowd.become(self, who):
            self.engine.counters.refused(Refusal.CONNECTIONS)
            self._keep = False
            self._answer(TOO_MANY)
            return b""
        self._who = who
        self._pool = pool = self.engine.pool(forward.address)
        refusal = pool.enter(who, forward)
        if refusal is not None:
            self._excuse(refusal)
            return data if self.state is HEAD else b""
        wire = headers.request(head, forward, self._source, self._first is not None)
        up = pool.take(repeatable=self._may_repeat())
        if up is not None:
            return self._send(up, wire, data)
        self._wire = wire
        self._place = True
        self._wait(self._connect())
        return data

    def _send(self, up: "Upstream", wire: bytes, data: bytes) -> bytes:
        self.up = up
        up.begin(self, wire, self._who)
        self._wire = wire
        if self.write_paused:
            up.pause_reading()
        if self._first is not None:
            up.transport.write(bytes(self._first.pieces))
            self._first = None
            self.engine.crowd.keep(self, 0)
        if self._body is None:
            self._request_through()
            return data
        self.state = BODY
        self._rearm()
        return self._pass_body(data) if data else data

    def _pass_body(self, data: bytes) -> bytes:
        """Write what belongs to the body to the upstream; returns what follows it."""
        assert self.up is not None  # noqa: S101
        assert self._body is not None  # noqa: S101
        self._note_body(len(data))
        if len(data) >= LARGE:
            self.engine.turns.took(self, len(data))
        try:
            rest = self._body.pass_on(data, self.up.transport)
        except RefusalError as refusal:
            self._let_go()
            self.refuse(refusal.status, refusal.detail)
            return b""
        if self._body.done:
            self._body = None
            self._request_through()
        return rest

    def _note_body(self, size: int) -> None:
        engine = self.engine
        engine.counters.bytes_in += size
        if self._begun:  # both sides talk, at whatever pace
            self.deadline = engine.now + engine.limits.stall_seconds
        elif not self.write_paused:
            limits = engine.limits
            self.deadline = rates.body_deadline(
                self.deadline, engine.now, size, rate=limits.body_rate, grace=limits.stall_seconds
            )

    def _request_through(self) -> None:
        self.state = ANSWER
        self._rearm()

    # The first of a stranger's body.

    def _begin_first(self, data: bytes) -> bytes:
        self.state = FIRST
        self._first = Waiting()
        self._rearm()
        if self.head.block.expects:
            self.transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        return self._pass_first(data) if data else data

    def _pass_first(self, data: bytes) -> bytes:
        """Keep it until the body is whole, or enough of it has come to see that it does come."""
        first, body = self._first, self._body
        assert first is not None  # noqa: S101
        assert body is not None  # noqa: S101
        self._note_body(len(data))
        try:
            rest = body.pass_on(data, first)
        except RefusalError as refusal:
            self.refuse(refusal.status, refusal.detail)
            return b""
        if not body.done and len(first.pieces) < self.engine.limits.first_bytes:
            self.engine.crowd.keep(self, len(first.pieces))
            return b""
        if body.done:
            self._body = None
        self.state = HELD
        rest = self._go(self.forward, rest)
        if rest and self.state is HEAD:  # it was answered at once: what follows is the next request
            self._buffer += rest
            self._next()
            return b""
        return rest

    # Waiting.

    def _wait(self, work: Coroutine[Any, Any, None]) -> None:
        self.state = HELD
        self._rearm()
        self._task = self.engine.loop.create_task(work)

    async def _hold(self, hold: Hold) -> None:
        try:
            async with asyncio.timeout(hold.seconds):
                decision = await hold.decision
        except TimeoutError:
            decision = hold.otherwise
        except Exception:
            log.exception("No decision about a request that was held")
            decision = OUR_MISTAKE
        self._task = None
        if type(decision) is Forward:
            self._resume_with(self._go(decision, self._take_buffer()))
        else:
            assert type(decision) is Answer  # noqa: S101
            self._answer(decision)
            self._next()

    async def _connect(self) -> None:
        try:
            up = await self._pool.connect(self.engine.limits.connect_seconds)
        except (OSError, TimeoutError) as e:
            self._task = None
            self._give_place_back()
            self.failed(Failure.SLOW if isinstance(e, TimeoutError) else Failure.UNREACHABLE)
        else:
            self._task = None
            self._place = False
            self._resume_with(self._send(up, self._wire, self._take_buffer()))

    def _resume_with(self, rest: bytes) -> None:
        """The request is on its way; what came meanwhile may be its body."""
        if rest:
            self._keep_for_later(rest)
        if self.state is BODY or self.state is FIRST:
            if self._eof:
                self.close()  # it broke off
            elif not (self.up and self.up.write_paused):
                self.resume_reading()
        else:
            self._next()

    def _next(self) -> None:
        if self.state is HEAD and self._buffer:
            self._read(self._take_buffer())
        if self.state is HEAD and self._eof and not self.write_paused:
            self.close()
        if self._paused and len(self._buffer) <= self.engine.limits.low_water and self.state is not GONE:
            self.resume_reading()

    def repeat(self) -> None:
        """The upstream connection had gone stale before the request reached anybody: once more, on a new one."""
        self.up = None
        refusal = self._pool.enter(self._who, self.forward)
        if refusal is not None:
            self.failed(refusal)
            return
        self._place = True
        self._wait(self._connect())

    def may_repeat(self) -> bool:
        return self._may_repeat() and not self._begun

    def _may_repeat(self) -> bool:
        return self.head.length == 0 and self.head.method in REPEATABLE
