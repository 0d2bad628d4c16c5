"""The browser's side of a connection: reads requests, asks the director, passes bodies on, answers in order.

`server` makes one `Client` per accepted connection. A request that can go out on an open upstream connection costs no
task and no future; only waiting (for a decision, for a connection) does.
"""

import asyncio
from collections.abc import Coroutine
from enum import Enum
from math import inf
from typing import TYPE_CHECKING, Any

from codehub import logs
from codehub.proxy import answers, framing, headers
from codehub.proxy.body import Body, ChunkedBody, LengthBody
from codehub.proxy.connection import Connection
from codehub.proxy.framing import RefusalError
from codehub.proxy.model import CHUNKED, Answer, Failure, Forward, Hold, Observer, RequestHead, ResponseHead
from codehub.proxy.tunnel import Tunnel
from codehub.proxy.turns import LARGE

if TYPE_CHECKING:
    from codehub.proxy.server import Engine
    from codehub.proxy.upstream import Pool, Upstream

log = logs.get()
OUR_MISTAKE = answers.problem(500, "This is our mistake; the log has the details.")
REPEATABLE = {b"GET", b"HEAD", b"OPTIONS", b"PUT", b"DELETE"}


class State(Enum):
    HEAD = "reading a head, or waiting for one"
    HELD = "waiting for a decision, or for a connection to the upstream"
    BODY = "passing on the request's body"
    ANSWER = "the request is through, the answer is not"
    GONE = "closed, or handed over: to a tunnel, or to our last words"


HEAD, HELD, BODY, ANSWER, GONE = State


class Client(Connection):
    __slots__ = (
        "_begun", "_body", "_keep", "_pool", "_seen", "_source", "_task", "_wire", "forward", "head", "sent", "state",
        "up",
    )  # fmt: skip

    head: RequestHead
    _source: headers.Source
    forward: Forward
    _pool: "Pool"

    def __init__(self, engine: "Engine") -> None:
        super().__init__(engine)
        self.state = HEAD
        self.up: Upstream | None = None
        self.sent = 0  # bytes of answers' bodies
        self._seen = 0  # of those, when we last looked
        self._body: Body | None = None
        self._keep = False  # the connection goes on after this answer
        self._begun = False  # the answer's head is out
        self._wire = b""  # the request's head as the upstream gets it
        self._task: asyncio.Task[None] | None = None

    # What the transport tells us.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self._source = self.engine.source(self.peer())

    def data_received(self, data: bytes) -> None:
        state = self.state
        if state is HEAD:
            if self._buffer:
                data, self._buffer = self._buffer + data, b""
            self._read(data)
        elif state is BODY:
            rest = self._pass_body(data)
            if rest:
                self._keep_for_later(rest)
        elif state is not GONE:
            self._keep_for_later(data)

    def eof_received(self) -> bool:
        """Half-closed: whoever asked completely still gets the answer."""
        self._eof = True
        if self.state is ANSWER or (self.state is HELD and self.head.length == 0):
            self.deadline = self.engine.now + self.engine.limits.half_closed_seconds
            return True
        if self.state is HELD or self.write_paused:
            return True  # its body, or further requests, may be in the buffer
        self._let_go()
        self.state = GONE
        return False

    def connection_lost(self, _exc: Exception | None) -> None:
        self.engine.watched.discard(self)
        self.state = GONE
        self._let_go()

    def pause_writing(self) -> None:
        self.write_paused = True
        if self.up:
            self.up.pause_reading()
        self.deadline = self.engine.now + self.engine.limits.stall_seconds

    def resume_writing(self) -> None:
        self.write_paused = False
        if self.up:
            self.up.resume_reading()
        self._rearm()
        if self.state is HEAD:
            self._next()

    # Requests.

    def _read(self, data: bytes) -> None:
        """All requests in the data whose turn it is; the rest is kept."""
        limits = self.engine.limits
        while data and self.state is HEAD and not self.write_paused:
            end = data.find(b"\r\n\r\n")
            if end < 0 or end > limits.head_bytes:
                self._wait_for_more(data)
                return
            try:
                head = framing.request(data[:end], limits.head_fields)
            except RefusalError as refusal:
                self.refuse(refusal.status, refusal.detail)
                return
            data = self._begin(head, data[end + 4 :])
        if data:
            self._keep_for_later(data)

    def _wait_for_more(self, data: bytes) -> None:
        limits = self.engine.limits
        if len(data) > limits.head_bytes:
            self.refuse(431, "The request's head is too large.")
        elif framing.UNREADABLE.search(data):
            self.refuse(400, "The head has a bare line end or a control character.")
        elif data:
            self.deadline = min(self.deadline, self.engine.now + limits.head_seconds)
            self._buffer = data

    def _begin(self, head: RequestHead, data: bytes) -> bytes:
        """A request has come; returns what is left of the data."""
        self.head = head
        head.peer = self._source.address
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
        self._pool = pool = self.engine.pool(forward.address)
        if pool.busy >= forward.at_most:
            self._excuse(Failure.FULL)
            return data if self.state is HEAD else b""
        wire = headers.request(self.head, forward, self._source)
        up = pool.take(repeatable=self._may_repeat())
        if up is not None:
            return self._send(up, wire, data)
        self._wire = wire
        self._wait(self._connect())
        return data

    def _send(self, up: "Upstream", wire: bytes, data: bytes) -> bytes:
        self.up = up
        up.begin(self, wire)
        self._wire = wire
        if self.write_paused:
            up.pause_reading()
        if self.head.length == 0:
            self._request_through()
            return data
        self.state = BODY
        self._rearm()
        return self._pass_body(data) if data else data

    def _pass_body(self, data: bytes) -> bytes:
        """Write what belongs to the body to the upstream; returns what follows it."""
        assert self.up is not None  # noqa: S101
        assert self._body is not None  # noqa: S101
        self.deadline = self.engine.now + self.engine.limits.stall_seconds
        self.engine.counters.bytes_in += len(data)
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

    def _request_through(self) -> None:
        self.state = ANSWER
        self._rearm()

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
        if self._pool.busy >= self.forward.at_most:  # others, who came at the same moment, were first
            self._task = None
            self.failed(Failure.FULL)
            return
        try:
            up = await self._pool.connect(self.engine.limits.connect_seconds)
        except (OSError, TimeoutError) as e:
            self._task = None
            self.failed(Failure.SLOW if isinstance(e, TimeoutError) else Failure.UNREACHABLE)
        else:
            self._task = None
            self._resume_with(self._send(up, self._wire, self._take_buffer()))

    def _resume_with(self, rest: bytes) -> None:
        """The request is on its way; what came meanwhile may be its body."""
        if rest:
            self._keep_for_later(rest)
        if self.state is BODY:
            if self._eof:
                self.close()  # it broke off
            elif self.up and not self.up.write_paused:
                self.resume_reading()
        else:
            self._next()

    # Answers.

    def answer_begins(self, head: ResponseHead) -> bool:
        """Called by the upstream before it writes the answer's head; says whether the connection goes on after it."""
        self._begun = True
        ends_by_itself = head.length >= 0 or self.head.minor == 1
        self._keep = self._keep and ends_by_itself and self.state is ANSWER and not self.engine.draining
        self.engine.counters.statuses[head.status // 100] += 1
        self._rearm()
        return self._keep

    def request_is_through(self) -> bool:
        return self.state is ANSWER

    def answered(self) -> None:
        """Called by the upstream after the last byte of the answer."""
        self.up = None
        if self.state is BODY:
            self._say_farewell()
        elif not self._keep or self.engine.draining:
            self._say_farewell() if self._buffer else self.close()
        else:
            self.state = HEAD
            self.deadline = self.engine.now + self.engine.limits.idle_seconds
            if self._buffer or self._paused or self._eof:
                self._next()

    def _next(self) -> None:
        """After an answer, or when there is room for one: the next request, if it is here already."""
        if self.state is HEAD and self._buffer:
            self._read(self._take_buffer())
        if self.state is HEAD and self._eof and not self.write_paused:
            self.close()
        if self._paused and len(self._buffer) <= self.engine.limits.low_water and self.state is not GONE:
            self.resume_reading()

    def repeat(self) -> None:
        """The upstream connection had gone stale before the request reached anybody: once more, on a new one."""
        self.up = None
        self._wait(self._connect())

    def may_repeat(self) -> bool:
        return self._may_repeat() and not self._begun

    def _may_repeat(self) -> bool:
        return self.head.length == 0 and self.head.method in REPEATABLE

    def failed(self, failure: Failure) -> None:
        """The upstream does not answer, or does not go on answering."""
        self.up = None
        if self.state is GONE:
            return
        if self._begun:
            self.engine.counters.failed(failure)
            self.cut()
        else:
            self._excuse(failure)
            self._next()

    def _excuse(self, failure: Failure) -> None:
        """The answer in place of the upstream's."""
        self.engine.counters.failed(failure)
        try:
            answer = self.engine.director.unreachable(self.head, self.forward, failure)
        except Exception:
            log.exception("No answer for a request that failed")
            answer = OUR_MISTAKE
        self._answer(answer)

    def cut(self) -> None:
        """The answer cannot be finished. The client must be able to tell: its end is missing, or there is a reset."""
        if self.head.minor == 0:
            self.engine.reset(self.transport)
        else:
            self.close()

    def upgraded(self, up: "Upstream", head: ResponseHead, rest: bytes) -> None:
        """The upstream speaks WebSocket from here on, and so do we."""
        framing_lines = b"Connection: Upgrade\r\nUpgrade: websocket\r\n\r\n"
        self.engine.counters.statuses[1] += 1
        self.transport.write(headers.response(head, self.forward.hygiene, framing_lines))
        observer = self._observer()
        early, self.state, self.up = self._take_buffer(), GONE, None
        self.engine.watched.discard(self)
        tunnel = Tunnel(
            self.engine, self.transport, up.transport, self._pool, route=self.forward.route, observer=observer
        )
        tunnel.start(early, rest, eof=self._eof)

    def _observer(self) -> Observer | None:
        try:
            return self.forward.observe(self.head) if self.forward.observe else None
        except Exception:
            log.exception("No observer for a WebSocket")
            return None

    def _answer(self, answer: Answer) -> None:
        """Our own answer to the request at hand."""
        complete = self.state is ANSWER or self.head.length == 0
        close = not (complete and self._keep) or self.engine.draining
        self._write_answer(answer, close=close, head_only=self.head.method == b"HEAD", minor=self.head.minor)
        if not complete:
            self._say_farewell()
        elif close:
            self.close()
        else:
            self.state = HEAD
            self.deadline = self.engine.now + self.engine.limits.idle_seconds

    def refuse(self, status: int, detail: str) -> None:
        """What came is no request, or not a whole one: nothing after it can be understood."""
        if self.state is BODY and self._begun:
            self.cut()
            return
        self._write_answer(answers.problem(status, detail), close=True, head_only=False, minor=1)
        self._say_farewell()

    def _write_answer(self, answer: Answer, *, close: bool, head_only: bool, minor: int) -> None:
        self.engine.counters.statuses[answer.status // 100] += 1
        self.engine.counters.bytes_out += len(answer.body)
        self.transport.write(answers.write(answer, close=close, head_only=head_only, minor=minor))

    # Time and the end.

    def expire(self) -> None:
        """The deadline has passed."""
        if self.state is HEAD and self._buffer and not self.write_paused:
            self.refuse(408, "The request's head took too long.")
        elif self.state is BODY and self.up and not self.up.write_paused and not self._begun:
            self._let_go()
            self.refuse(408, "The request's body took too long.")
        elif self.state in (BODY, ANSWER) and not self._begun and not self._eof:
            self._let_go()
            self.failed(Failure.SLOW)
        elif self.state is ANSWER and self._eof and self.sent != self._seen and not self.write_paused:
            self._seen = self.sent
            self.deadline = self.engine.now + self.engine.limits.half_closed_seconds
        else:
            self.transport.abort()

    def drain(self) -> None:
        """No new requests: whoever is in the middle of one finishes it."""
        if self.state is HEAD and not self._buffer:
            self.close()

    def _rearm(self) -> None:
        """How long the state at hand may last without anything happening."""
        limits = self.engine.limits
        if self.state is BODY or self.write_paused:
            seconds = limits.stall_seconds
        elif self.state is ANSWER:
            seconds = limits.half_closed_seconds if self._eof else inf if self._begun else limits.answer_seconds
        elif self.state is HEAD:
            seconds = limits.head_seconds if self._buffer else limits.idle_seconds
        else:
            seconds = inf  # what a held request waits for is bounded by itself
        self.deadline = self.engine.now + seconds

    def _let_go(self) -> None:
        """Of whatever works for the request at hand."""
        if self._task and not self._task.done():
            self._task.cancel()
        if self.up:
            self.up.abandon()
            self.up = None

    def _say_farewell(self) -> None:
        """All is said, and what still comes is not wanted."""
        self._let_go()
        self.state = GONE
        self._end(unheard=True)

    def close(self) -> None:
        self._let_go()
        self.state = GONE
        self._end(unheard=False)
