"""One request of a client and its answer: the states, what may happen in each, and how long each may last.

`downstream.Client` is the only one there is, and adds the reading of requests. `upstream` calls what is public here.
"""

import asyncio
from abc import abstractmethod
from enum import Enum
from math import inf
from typing import TYPE_CHECKING

from codehub import logs
from codehub.proxy import answers, headers
from codehub.proxy.body import Body, Waiting
from codehub.proxy.connection import UNKNOWN, Connection
from codehub.proxy.framing import Partial
from codehub.proxy.metrics import Refusal
from codehub.proxy.model import Answer, Failure, Forward, RequestHead, ResponseHead, TunnelObserver
from codehub.proxy.queueing import FairQueue
from codehub.proxy.read_fairness import LARGE
from codehub.proxy.tunnel import Tunnel

if TYPE_CHECKING:
    from codehub.proxy.server import Engine
    from codehub.proxy.upstream import Pool, Upstream

log = logs.get()
REFUSALS = 8  # of a stranger's requests, by ourselves; then the connection ends
OUR_MISTAKE = answers.problem(500, "This is our mistake; the log has the details.")


class State(Enum):
    HEAD = "reading a head, or waiting for one"
    FIRST = "reading the first of a stranger's body, before there is an upstream"
    HELD = "waiting for a decision, or for a connection to the upstream"
    BODY = "passing on the request's body"
    ANSWER = "the request is through, the answer is not"
    GONE = "closed, or handed over: to a tunnel, or to our last words"


HEAD, FIRST, HELD, BODY, ANSWER, GONE = State


class Exchange(Connection):
    __slots__ = (
        "_begun", "_body", "_first", "_keep", "_partial", "_place", "_pool", "_queue", "_refusals", "_seen", "_task",
        "_who", "forward", "head", "sent", "state", "up",
    )  # fmt: skip

    head: RequestHead
    forward: Forward
    _pool: "Pool"
    _who: str  # holds the place at the upstream

    def __init__(self, engine: "Engine") -> None:
        super().__init__(engine)
        self.state = HEAD
        self.up: Upstream | None = None
        self.sent = 0  # bytes of answers' bodies
        self._seen = 0  # of those, when we last looked
        self._body: Body | None = None
        self._first: Waiting | None = None  # of the body, until there is an upstream
        self._keep = False  # the connection goes on after this answer
        self._begun = False  # the answer's head is out
        self._partial: Partial | None = None  # the beginning of a head
        self._queue: FairQueue | None = None  # this stranger waits in it, or has a place
        self._refusals = 0  # a stranger got from us
        self._place = False  # one at the upstream is ours, and there is no connection yet
        self._task: asyncio.Task[None] | None = None

    @abstractmethod
    def _next(self) -> None:
        """After an answer, or when there is room for one: the next request, if it is here already."""

    # What the transport tells us.

    def connection_lost(self, _exc: Exception | None) -> None:
        self._hand_over()
        self.state = GONE
        self._let_go()

    def pause_writing(self) -> None:
        self.write_paused = True
        if self.up:
            self.up.pause_reading()
        self._unsent = UNKNOWN
        self.deadline = self.engine.now + self.engine.limits.unread_seconds
        if self._is_stranger():
            self.engine.crowd.keep(self, self.engine.limits.high_water)

    def resume_writing(self) -> None:
        self.write_paused = False
        if self.up:
            self.up.resume_reading()
        self.engine.crowd.keep(self, 0)
        self._rearm()
        if self.state is HEAD:
            self._next()

    # Answers.

    def answer_begins(self, head: ResponseHead) -> bool:
        """Called by the upstream before it writes the answer's head; says whether the connection goes on after it."""
        self._begun = True
        if self._queue is not None:
            self._leave_queue()
        ends_by_itself = head.length >= 0 or self.head.minor == 1
        self._keep = self._keep and ends_by_itself and self.state is ANSWER and not self.engine.leaving
        self.engine.counters.statuses[head.status // 100] += 1
        self._rearm()
        return self._keep

    def request_is_through(self) -> bool:
        return self.state is ANSWER

    def answered(self) -> None:
        """Called by the upstream after the last byte of the answer."""
        self.up = None
        if self.state is BODY:
            self._close_lingering()
        elif not self._keep or self.engine.draining:
            self._close_lingering() if self._buffer else self.close()
        else:
            self._wait_for_the_next(self.engine)
            if self._buffer or self._paused or self._eof:
                self._next()

    def _wait_for_the_next(self, engine: "Engine") -> None:
        self.state = HEAD
        self.since = now = engine.now
        self.deadline = now + engine.limits.idle_seconds
        self._unsent = UNKNOWN

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
        self._hand_over()
        tunnel = Tunnel(
            self.engine, self.transport, up, holder=self.holder, route=self.forward.route, observer=observer
        )
        tunnel.start(early, rest, eof=self._eof)

    def _observer(self) -> TunnelObserver | None:
        try:
            return self.forward.observe(self.head) if self.forward.observe else None
        except Exception:
            log.exception("No observer for a WebSocket")
            return None

    def _answer(self, answer: Answer) -> None:
        """Our own answer to the request at hand."""
        self._leave_queue()
        complete = self._body is None
        if self._first is not None:
            self._first = None
            self.engine.crowd.keep(self, 0)
        if answer.status >= 400 and self._is_stranger() and not self._source.trusted:
            self._refusals += 1
            self._keep = self._keep and self._refusals < REFUSALS
        close = not (complete and self._keep) or self.engine.leaving
        self._write_answer(answer, close=close, head_only=self.head.method == b"HEAD", minor=self.head.minor)
        if not complete:
            self._close_lingering()
        elif close:
            self._close_lingering() if self._buffer else self.close()
        else:
            self._wait_for_the_next(self.engine)

    def refuse(self, status: int, detail: str, why: Refusal = Refusal.MALFORMED) -> None:
        """What came is no request, or not a whole one: nothing after it can be understood."""
        self.engine.counters.refused(why)
        if self.state is BODY and self._begun:
            self.cut()
            return
        head_only = self.state in (FIRST, BODY) and self.head.method == b"HEAD"
        self._refuse_head(status, detail, head_only=head_only)

    def _refuse_head(self, status: int, detail: str, *, head_only: bool) -> None:
        self._write_answer(answers.problem(status, detail), close=True, head_only=head_only, minor=1)
        self._close_lingering()

    def _write_answer(self, answer: Answer, *, close: bool, head_only: bool, minor: int) -> None:
        engine = self.engine
        engine.counters.statuses[answer.status // 100] += 1
        head = answers.write_head(answer, engine.date, close=close, minor=minor)
        body = b"" if head_only else answer.body
        engine.counters.bytes_out += len(body)
        if len(body) < LARGE:
            self.transport.write(head + body)
        else:  # not copied: many slow clients may have the same one
            self.transport.write(head)
            self.transport.write(body)

    @property
    def route_under_way(self) -> str:
        """Of the request at hand, once it is forwarded; empty for the platform's own."""
        return self.forward.route if self.state in (BODY, ANSWER) else ""

    def break_off(self) -> None:
        """The client may not have the rest."""
        self._let_go()
        self.cut()

    # Time and the end.

    def expire(self) -> None:
        """The deadline has passed."""
        if self._may_read_on() and self._reads_on():
            self.deadline = self.engine.now + self.engine.limits.unread_seconds
        elif self.state is HEAD and self._partial and not self.write_paused:
            head_only = self._partial.data.startswith(b"HEAD ")
            self.engine.counters.refused(Refusal.HEAD_SECONDS)
            self._refuse_head(408, "The request's head took too long.", head_only=head_only)
        elif (self.state is FIRST or (self.up and not self.up.write_paused)) and self._body and not self._begun:
            self._let_go()
            self.refuse(408, "The request's body took too long.", Refusal.BODY_RATE)
        elif self.state in (BODY, ANSWER) and not self._begun and not self._eof:
            self._let_go()
            self.failed(Failure.SLOW)
        elif self.state is ANSWER and self._eof and self.sent != self._seen and not self.write_paused:
            self._seen = self.sent
            self.deadline = self.engine.now + self.engine.limits.half_closed_seconds
        else:
            if self.write_paused:
                self.engine.counters.refused(Refusal.UNREAD)
            self.transport.abort()

    def _may_read_on(self) -> bool:
        """A client that reads slowly but steadily is not cut off; one that holds us up with a request is."""
        if self.engine.draining:
            return False
        return self._partial is None and (self._begun or self.state in (HEAD, ANSWER, GONE))

    def is_slow(self) -> bool:
        held = self.state is HELD and not self._place  # for a decision, or for its turn
        return held or self.state in (HEAD, FIRST, GONE) or self.write_paused

    def _is_stranger(self) -> bool:
        return self.holder.startswith("@")

    def drain(self) -> None:
        """No new requests: a client in the middle of one finishes it."""
        if self.state is HEAD and not self._buffer and self._partial is None:
            self.close()

    def _rearm(self) -> None:
        """How long the state at hand may last without anything happening."""
        limits = self.engine.limits
        if self.write_paused:
            seconds = limits.unread_seconds
        elif self.state is BODY or self.state is FIRST:
            seconds = limits.stall_seconds
        elif self.state is ANSWER:
            seconds = limits.half_closed_seconds if self._eof else inf if self._begun else limits.answer_seconds
        elif self.state is HEAD:
            seconds = limits.head_seconds if self._partial else limits.idle_seconds
        else:
            seconds = inf  # what a held request waits for is bounded by itself
        self.deadline = self.engine.now + seconds

    def upstream_is_full(self) -> None:
        """The body has to wait; for how long is not the client's fault."""
        self.pause_reading()
        if self.state is BODY:
            self._rearm()

    def upstream_has_room(self) -> None:
        """The body may flow again. The client could not send meanwhile, so its time begins anew."""
        self.resume_reading()
        if self.state is BODY:
            self._rearm()

    def _let_go(self) -> None:
        """Of whatever works for the request at hand."""
        if self._task and not self._task.done():
            self._task.cancel()
        if self.up:
            self.up.abandon()
            self.up = None
        self._give_place_back()
        self._leave_queue()

    def _leave_queue(self) -> None:
        queue, self._queue = self._queue, None
        if queue is not None:
            queue.leave(self)

    @abstractmethod
    def admitted(self) -> None:
        """It is this stranger's turn."""

    @abstractmethod
    def in_vain(self) -> None:
        """This stranger's turn did not come."""

    def _give_place_back(self) -> None:
        if self._place:
            self._place = False
            self._pool.leave(self._who)

    def _close_lingering(self) -> None:
        """All is said, and what still comes is not wanted."""
        self._let_go()
        self.state = GONE
        self._end(unheard=True)

    def close(self) -> None:
        self._let_go()
        self.state = GONE
        self._end(unheard=False)
