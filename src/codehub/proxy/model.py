import inspect
import ssl
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple, Protocol

from codehub.proxy.queueing import FairQueue

Pair = tuple[bytes, bytes]  # a header's name and value
NOTHING: frozenset[bytes] = frozenset()
CHUNKED, UNTIL_EOF = -1, -2  # in the place of a body's length


class Address(NamedTuple):
    """Where an upstream listens: a Unix socket when there is a path, a TCP port otherwise."""

    path: str = ""
    host: str = ""
    port: int = 0
    tls: ssl.SSLContext | None = None  # of that port


class Field(NamedTuple):
    """One header, read. Lines repeat from message to message, so these are remembered and shared."""

    key: bytes  # the name in lower case
    value: bytes
    guard: bytes  # the key as CGI-like servers see it: there `X_Real_IP` is `X-Real-IP`
    line: bytes  # name and value, written anew

    @property
    def pair(self) -> Pair:
        return self.line.partition(b":")[0], self.value


class Block:
    """The headers of a request and what they mean. A browser sends the same ones again and again: blocks are shared."""

    __slots__ = ("expects", "fields", "host", "index", "keep_alive", "length", "minor", "named", "small", "upgrade")

    fields: list[Field]  # in the order they came
    index: dict[bytes, bytes]  # by name in lower case; repeated ones joined
    host: bytes
    minor: int  # HTTP/1.minor
    length: int  # of the body; CHUNKED when it is not announced
    keep_alive: bool
    upgrade: bool  # to WebSocket: the only upgrade there is
    expects: bool  # 100-continue
    named: frozenset[bytes]  # further names that `Connection` makes this hop's own
    small: bool  # enough to be remembered


class RequestHead:
    """What a request's head means, as the one strict parser read it."""

    __slots__ = ("block", "length", "method", "minor", "peer", "principal", "target", "upgrade")

    method: bytes
    target: bytes
    minor: int  # HTTP/1.minor
    block: Block
    length: int  # of the body; CHUNKED when it is not announced
    upgrade: bool  # a WebSocket handshake
    peer: str  # who is at the other end of the connection; empty on a Unix socket
    principal: str  # who asks, when the director knows: limits are theirs; empty for strangers

    def get(self, name: bytes, default: bytes = b"") -> bytes:
        """A header's value, by its name in lower case."""
        return self.block.index.get(name, default)

    @property
    def host(self) -> bytes:
        return self.block.host

    @property
    def path(self) -> bytes:
        return self.target.partition(b"?")[0]


class ResponseHead:
    __slots__ = ("fields", "index", "keep_alive", "length", "line", "minor", "named", "status", "upgrade")

    status: int
    line: bytes  # the status line, written anew
    minor: int
    fields: list[Field]
    index: dict[bytes, bytes]
    length: int  # of what follows; CHUNKED or UNTIL_EOF when it is not announced
    keep_alive: bool
    upgrade: bool
    named: frozenset[bytes]


class FrameObserver(Protocol):
    """Sees the bytes of one direction as they pass."""

    def follow(self, data: bytes, /) -> None: ...


class TunnelObserver(Protocol):
    """Watches one tunnel from the side: both directions, and its end."""

    @property
    def from_client(self) -> FrameObserver: ...

    @property
    def from_upstream(self) -> FrameObserver: ...

    def closed(self) -> None: ...


@dataclass(frozen=True, slots=True, eq=False)
class Hygiene:
    """What does not pass between browsers and one kind of upstream. Names in lower case."""

    request: frozenset[bytes] = NOTHING
    response: frozenset[bytes] = NOTHING
    cookies: frozenset[bytes] = NOTHING  # names that are the platform's own
    cookie_prefix: bytes = b""  # and all that begin so; empty for none
    cookie_domains: bool = True  # may answers set cookies for a whole domain?
    grants: tuple[bytes, ...] = ()  # lines that the platform adds to answers
    framed: bool = False  # answers are shown in a frame on another site's page; `grants` say on whose


@dataclass(frozen=True, slots=True, eq=False)
class Forward:
    """Pass the request on. One object serves all requests of a route: keep it, what is made from it is remembered."""

    address: Address
    route: str = ""  # tunnels are counted, and closed, by it
    strip_prefix: bytes = b""
    hygiene: Hygiene = field(default_factory=Hygiene)
    observe: Callable[[RequestHead], TunnelObserver | None] | None = None  # asked once per tunnel
    drop: frozenset[bytes] = NOTHING  # further request headers, in lower case
    add: tuple[Pair, ...] = ()
    at_most: int = 1024  # connections to the upstream under way at once
    queue: FairQueue | None = None  # strangers wait in it for their turn
    reserve: int = 0  # open connections that strangers leave to others
    beyond: int = 0  # so many more for this: health checks get a place when all others have none


class Answer(NamedTuple):
    """Answer at once. `Content-Length` and `Connection` are the engine's to set."""

    status: int
    fields: tuple[Pair, ...]
    body: bytes


@dataclass(frozen=True, slots=True)
class Hold:
    """Wait for the decision, for so many seconds at most; `otherwise` is the answer after that."""

    decision: Awaitable["Forward | Answer"]
    seconds: float
    otherwise: Answer

    def give_up(self) -> None:
        """No connection will wait for it."""
        if inspect.iscoroutine(self.decision):
            self.decision.close()


@dataclass(frozen=True, slots=True, eq=False)
class Later:
    """The decision is handed in by a call, without a task: for what is answered thousands of times a second.

    `begin` is given what to call, once, in a later round of the loop. It sees to it that the call comes: nothing else
    ends the waiting but the client's leaving, after which the call does nothing.
    """

    begin: Callable[[Callable[["Forward | Answer"], None]], None]


Decision = Forward | Answer | Hold | Later


class Failure(Enum):
    """Why an upstream gave no answer; the metric's label and the problem's code."""

    UNREACHABLE = "UPSTREAM_UNREACHABLE"
    SLOW = "UPSTREAM_TIMEOUT"
    BROKE_OFF = "UPSTREAM_BROKE_OFF"
    NONSENSE = "UPSTREAM_INVALID"
    FULL = "UPSTREAM_BUSY"
    SHARE = "TOO_MANY_REQUESTS"  # of one person, or of strangers from one address


class Director(Protocol):
    """Says where requests go. Called for every one of them, so it must not wait for anything.

    It sets the head's `principal` when it knows who asks, before a byte of a body is read.
    """

    def decide(self, head: RequestHead, /) -> Decision: ...

    def unreachable(self, head: RequestHead, forward: Forward, failure: Failure, /) -> Answer: ...


@dataclass(frozen=True)
class Limits:
    """Seconds and bytes that one connection may take."""

    head_seconds: float = 15.0  # for a request's head, from its first byte or the connection's beginning
    idle_seconds: float = 75.0  # between requests
    stall_seconds: float = 60.0  # without a byte of a body, or without room for one; also the grace for slow bodies
    body_rate: float = 512.0  # bytes a second of a request's body, after the grace: phones send ten times that
    unread_seconds: float = 120.0  # in which a client takes something of its answer, were it a few bytes
    connect_seconds: float = 5.0
    answer_seconds: float = 600.0  # from the end of a request to the answer's head
    half_closed_seconds: float = 60.0  # without a byte to a client that has stopped sending
    linger_seconds: float = 5.0  # for a client to read our last words
    pool_idle_seconds: float = 4.0  # an upstream connection unused; Node closes them after 5
    head_bytes: int = 32 * 1024
    head_fields: int = 100
    first_bytes: int = 16 * 1024  # of a stranger's body, before an upstream connection is taken for it
    response_head_bytes: int = 128 * 1024
    response_head_fields: int = 200
    high_water: int = 128 * 1024  # bytes waiting for a slow reader before its writer is stopped
    low_water: int = 32 * 1024
