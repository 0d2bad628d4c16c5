"""The browser's side of a connection: reads requests, asks the director, passes bodies on, answers in order.

`server` makes one `Client` per accepted connection. A request that can go out on an open upstream connection costs no
task and no future; only waiting (for a decision, for a connection) does. The body of a client that is not logged in
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
from codehub.proxy.model import CHUNKED, Answer, Failure, Forward, Hold, Later, RequestHead
from codehub.proxy.queueing import Entry, FairQueue
from codehub.proxy.read_fairness import LARGE

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
            if self._buffer:  # earlier requests wait for their turn
                self._keep_for_later(data)
            elif self._partial is None:
                self._read(data, 0)
            else:
                self._read_on(self._partial, data)
        elif state is BODY:
            self._pass_body(data)
        elif state is FIRST:
            self._pass_first(data)
        elif state is not GONE:
            self._keep_for_later(data)

    def eof_received(self) -> bool:
        """Half-closed: a client that sent its whole request still gets the answer."""
        self._eof = True
        if self.state is ANSWER or (self.state is HELD and self._body is None):
            self.deadline = self.engine.now + self.engine.limits.half_closed_seconds
            return True
        if self.state is HELD or self.write_paused or self._buffer:
            return True  # its body, or further requests, may be in the buffer
        self._let_go()
        self.state = GONE
        return False

    # Requests.

    def _read(self, data: bytes, at: int) -> None:
        """The request that begins there. What follows it is kept, and a further request waits for its turn."""
        limits, empty_lines = self.engine.limits, 0
        while True:
            end = data.find(b"\r\n\r\n", at)
            if end < 0 or end - at > limits.head_bytes:
                if len(data) == at + 2 and data.endswith(b"\r\n"):  # the next request may take its time
                    return
                self._partial = Partial()
                self._read_on(self._partial, data[at:])
                return
            try:
                head = framing.request(data[at:end], limits.head_fields)
                break
            except RefusalError as refusal:
                if data.startswith(b"\r\n", at) and empty_lines < EMPTY_LINES:
                    at += 2
                    empty_lines += 1
                    continue
                self.engine.counters.refused(Refusal.MALFORMED)
                self._refuse_head(refusal.status, refusal.detail, head_only=data.startswith(b"HEAD ", at))
                return
        if end + 4 < len(data):
            self._buffer, self._at = data, end + 4
        self._begin(head)
        if self._buffer:
            self._wait_for_turn()

    def _wait_for_turn(self) -> None:
        """Nothing more is read while the next request is here already: it is answered in a later round of the loop."""
        if self.state is GONE:
            return
        if len(self._buffer) - self._at > self.engine.limits.low_water:
            self.pause_reading()
        if self._is_stranger():
            self.engine.crowd.keep(self, len(self._buffer))
        if self.state is HEAD and not self.write_paused:
            self.pause_reading()
            self.engine.pipelines.add(self)

    def take_turn(self) -> None:
        """Called by `read_fairness.Pipelines` in a later round."""
        self._next()

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
            self._read(bytes(found), 0)
        elif len(found) > limits.head_bytes:
            self._partial = None
            self.engine.counters.refused(Refusal.MALFORMED)
            self._refuse_head(431, "The request's head is too large.", head_only=found.startswith(b"HEAD "))
        else:
            self.deadline = min(self.deadline, self.engine.now + limits.head_seconds)
            if self._is_stranger():
                self.engine.crowd.keep(self, len(found))

    def _begin(self, head: RequestHead) -> None:
        """A request has come; what came after its head is in the buffer."""
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
            self._go(decision)
        elif type(decision) is Answer:
            self._answer(decision)
        elif type(decision) is Later:
            self._await_call(decision)
        else:
            assert type(decision) is Hold  # noqa: S101
            if not head.principal or self._counts_for(head.principal):
                self._wait(self._hold(decision))
            else:
                decision.give_up()

    def _counts_for(self, who: str) -> bool:
        """From now on the connection is this person's. False: there are too many of them, which we said."""
        if who == self.holder or self._source.trusted or self.engine.crowd.become(self, who):
            return True
        self.engine.counters.refused(Refusal.CONNECTIONS)
        self._keep = False
        self._answer(TOO_MANY)
        return False

    def _has_its_turn(self, queue: FairQueue, who: str) -> bool:
        if self._queue is not None:
            return True
        entry = queue.enter(self, who)
        if entry is Entry.FULL:
            self._excuse(Failure.FULL)
            return False
        self._queue = queue
        if entry is Entry.LATER:
            self.state = HELD
            self._rearm()
        return entry is Entry.NOW

    def admitted(self) -> None:
        """Called by the queue: it is this stranger's turn."""
        if self.transport.is_closing():  # we shut down, or it made room: nothing begins any more
            return
        self._go(self.forward)
        self._resume()

    def in_vain(self) -> None:
        self._excuse(Failure.FULL)
        self._next()

    def _go(self, forward: Forward) -> None:
        self.forward = forward
        head = self.head
        who = head.principal
        if not who:
            if self._body is not None and self._first is None:
                self._begin_first()
                return
            who = self._source.asker(head)
            if forward.queue is not None and not self._has_its_turn(forward.queue, who):
                return
        elif who != self.holder and not self._counts_for(who):
            return
        self._who = who
        self._pool = pool = self.engine.pool(forward.address)
        refusal = pool.enter(who, forward)
        if refusal is not None:
            self._excuse(refusal)
            return
        wire = headers.request(head, forward, self._source, self._first is not None)
        up = pool.take(repeatable=self._may_repeat(), reserve=0 if head.principal else forward.reserve)
        if up is not None:
            self._send(up, wire)
            return
        self._wire = wire
        self._place = True
        self._wait(self._connect())

    def _send(self, up: "Upstream", wire: bytes) -> None:
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
            return
        self.state = BODY
        self._rearm()
        if self._buffer:
            self._pass_body(self._take_buffer())

    def _pass_body(self, data: bytes) -> None:
        """Write what belongs to the body to the upstream, and keep what follows it."""
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
            return
        if self._body.done:
            self._body = None
            self._request_through()
        if rest:
            self._keep_for_later(rest)

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

    def _begin_first(self) -> None:
        self.state = FIRST
        self._first = Waiting()
        self._rearm()
        if self.head.block.expects:
            self.transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        if self._buffer:
            self._pass_first(self._take_buffer())

    def _pass_first(self, data: bytes) -> None:
        """Keep it until the body is whole, or enough of it has come to see that it does come."""
        first, body = self._first, self._body
        assert first is not None  # noqa: S101
        assert body is not None  # noqa: S101
        self._note_body(len(data))
        try:
            rest = body.pass_on(data, first)
        except RefusalError as refusal:
            self.refuse(refusal.status, refusal.detail)
            return
        if not body.done and len(first.pieces) < self.engine.limits.first_bytes:
            self.engine.crowd.keep(self, len(first.pieces))
            return
        if body.done:
            self._body = None
        if rest:
            self._keep_for_later(rest)
        self.state = HELD
        self._go(self.forward)
        if self._buffer:
            self._wait_for_turn()

    def drain(self) -> None:
        """A body that is still coming gets its upstream now: in a moment that takes nothing new any more."""
        super().drain()
        if self.state is FIRST:
            self.state = HELD
            self._go(self.forward)
            self._resume()

    # Waiting.

    def _wait(self, work: Coroutine[Any, Any, None]) -> None:
        self.state = HELD
        self._rearm()
        self._task = self.engine.loop.create_task(work)

    def _await_call(self, later: Later) -> None:
        head = self.head
        self.state = HELD
        self._rearm()

        def decided(decision: Forward | Answer) -> None:
            if self.head is head and self.state is HELD and not self.transport.is_closing():
                self._follow(decision)

        later.begin(decided)

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
        self._follow(decision)

    def _follow(self, decision: Forward | Answer) -> None:
        """What was waited for is decided."""
        if type(decision) is Forward:
            self._go(decision)
            self._resume()
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
            self._send(up, self._wire)
            self._resume()

    def _resume(self) -> None:
        """The request is on its way; what came meanwhile may be its body."""
        if self.state is BODY or self.state is FIRST:
            if self._eof:
                self.close()  # it broke off
            elif not (self.up and self.up.write_paused):
                self.resume_reading()
        else:
            self._next()

    def _next(self) -> None:
        if self.state is HEAD and self._buffer and not self.write_paused:
            data, at = self._buffer, self._at
            self._buffer, self._at = b"", 0
            if self._is_stranger():
                self.engine.crowd.keep(self, 0)
            self._read(data, at)
        if self.state is HEAD and self._eof and not self._buffer and not self.write_paused:
            self.close()
        waits = self.state is HEAD and self._buffer
        if self._paused and not waits and self._waiting() <= self.engine.limits.low_water and self.state is not GONE:
            self.resume_reading()

    def repeat(self) -> None:
        """The upstream connection had gone stale before the request reached the upstream: once more, on a new one."""
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
