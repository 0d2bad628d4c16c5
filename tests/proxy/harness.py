"""The real engine on uvloop in a thread, a recording upstream, and plain sockets to talk through: nothing is mocked."""

import asyncio
import concurrent.futures
import contextlib
import re
import socket
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, TypeVar

import h11
import uvloop

from codehub.clock import Clock, SystemClock
from codehub.proxy import answers
from codehub.proxy.admission import Capacity
from codehub.proxy.metrics import REFUSALS, Refusal
from codehub.proxy.model import Address, Answer, Decision, Director, Failure, Forward, Limits, RequestHead
from codehub.proxy.server import Engine

PATIENCE = 20.0  # seconds before a test that waits for bytes gives up
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
# What a proxy takes away, adds, or frames anew; everything else must arrive as it was sent.
HOPS = {b"connection", b"keep-alive", b"proxy-connection", b"proxy-authorization", b"te", b"transfer-encoding"}
HOPS |= {b"content-length", b"upgrade", b"http2-settings", b"expect", b"x-forwarded-for", b"x-forwarded-proto"}
HOPS |= {b"x-forwarded-host", b"forwarded", b"x-real-ip", b"proxy-authenticate", b"host", b"via", b"date"}
ABSOLUTE = re.compile(rb"(?i:https?)://[^/?]+(.*)")
T = TypeVar("T")


@dataclass(frozen=True)
class Seen:
    """A request as h11 understands it."""

    method: bytes
    target: bytes
    headers: tuple[tuple[bytes, bytes], ...]
    body: bytes
    trailers: tuple[tuple[bytes, bytes], ...] = ()

    def header(self, name: bytes) -> bytes | None:
        found = [value for key, value in self.headers if key == name]
        return b", ".join(found) if found else None

    def end_to_end(self) -> "Seen":
        """Without what belongs to one hop."""
        named = {w.strip().lower() for w in (self.header(b"connection") or b"").split(b",")}
        kept = tuple((k, v) for k, v in self.headers if re.sub(rb"[^a-z0-9]+", b"-", k).strip(b"-") not in HOPS | named)
        return Seen(self.method, self._origin_form(), kept, self.body, self.trailers)

    def _origin_form(self) -> bytes:
        absolute = ABSOLUTE.fullmatch(self.target)
        if absolute is None:
            return self.target
        path = absolute[1] or (b"*" if self.method == b"OPTIONS" else b"/")
        return path if path[:1] in b"/*" else b"/" + path


@dataclass
class Recorder:
    """Takes bytes, keeps the complete requests in them. `broken` says why there are no more."""

    requests: list[Seen] = field(default_factory=list)
    broken: str = ""

    def __post_init__(self) -> None:
        self._connection = h11.Connection(h11.SERVER, max_incomplete_event_size=1 << 20)
        self._head: Any = None
        self._body = bytearray()

    def feed(self, data: bytes) -> int:
        """How many requests became complete."""
        before = len(self.requests)
        try:
            self._connection.receive_data(data)
            self._skip_empty_lines()
            while self._take(self._connection.next_event()):
                self._skip_empty_lines()
        except h11.RemoteProtocolError as e:
            self.broken = str(e)
        return len(self.requests) - before

    def _skip_empty_lines(self) -> None:
        """Before a request, as RFC 9112 2.2 asks of servers; h11 does not."""
        waiting = self._connection._receive_buffer
        while self._connection.their_state is h11.IDLE and bytes(waiting).startswith(b"\r\n"):
            waiting._extract(2)

    def _take(self, event: Any) -> bool:
        match event:
            case h11.Request():
                self._head, self._body = event, bytearray()
            case h11.Data():
                self._body += event.data
            case h11.EndOfMessage():
                self._finish(tuple(event.headers))
                if self._connection.our_state is not h11.IDLE:
                    return False
            case _:
                return False
        return True

    def _finish(self, trailers: tuple[tuple[bytes, bytes], ...]) -> None:
        head = self._head
        self.requests.append(Seen(head.method, head.target, tuple(head.headers), bytes(self._body), trailers))
        if head.method == b"CONNECT":
            return  # what follows is no HTTP
        self._connection.send(h11.Response(status_code=200, headers=[("content-length", "0")]))
        self._connection.send(h11.EndOfMessage())
        if self._connection.our_state is h11.DONE and self._connection.their_state is h11.DONE:
            self._connection.start_next_cycle()


def meaning(data: bytes) -> Recorder:
    """What h11 makes of a client's bytes."""
    recorder = Recorder()
    if data:
        recorder.feed(data)
    return recorder


Script = Callable[[socket.socket, "Upstream"], None]


class Upstream:
    """A server on a Unix or TCP socket. By default it records requests and answers each with `answer`."""

    def __init__(self, script: Script | None = None, *, answer: bytes = OK, path: str = "") -> None:
        self.seen: list[Seen] = []
        self.broken: list[str] = []
        self.connections = 0
        self.answer = answer
        self._script = script or record
        self._listener = socket.socket(socket.AF_UNIX if path else socket.AF_INET)
        self._listener.bind(path or ("127.0.0.1", 0))
        self._listener.listen(512)
        self.address = Address(path=path) if path else Address(host="127.0.0.1", port=self._listener.getsockname()[1])
        self._open: list[socket.socket] = []
        self._thread = threading.Thread(target=self._accept, daemon=True)
        self._thread.start()

    def _accept(self) -> None:
        while True:
            try:
                peer, _ = self._listener.accept()
            except OSError:
                return
            peer.settimeout(PATIENCE)
            self.connections += 1
            self._open.append(peer)
            threading.Thread(target=self._serve, args=(peer,), daemon=True).start()

    def _serve(self, peer: socket.socket) -> None:
        with contextlib.suppress(OSError), peer:
            self._script(peer, self)

    def close(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)  # or its thread would go on waiting at a number that others get
        self._thread.join(PATIENCE)
        self._listener.close()
        for peer in self._open:
            with contextlib.suppress(OSError):
                peer.shutdown(socket.SHUT_RDWR)


def record(peer: socket.socket, upstream: Upstream) -> None:
    """Answer every complete request, until the connection ends."""
    recorder = Recorder()
    while data := peer.recv(65536):
        for _ in range(recorder.feed(data)):
            upstream.seen.append(recorder.requests[-1])
            peer.sendall(upstream.answer)
        if recorder.broken:
            upstream.broken.append(recorder.broken)
            return


class ToOne:
    """A director that sends everything to one place; `decide_by` takes over when it is set.

    Who asks is said in the header `X-Who`, as `stranger` or a person's name; without it, it is somebody logged in.
    """

    def __init__(self, forward: Forward) -> None:
        self.forward = forward
        self.decide_by: Callable[[RequestHead], Decision] | None = None

    def decide(self, head: RequestHead) -> Decision:
        who = head.get(b"x-who", b"somebody").decode()
        head.principal = "" if who == "stranger" else who
        return self.decide_by(head) if self.decide_by else self.forward

    def unreachable(self, _head: RequestHead, _forward: Forward, failure: Failure) -> Answer:
        return answers.of_failure(failure)


class HandClock(SystemClock):
    """Shows what it is set to. Setting a number is safe from any thread."""

    def __init__(self) -> None:
        self.seconds = 1000.0

    def monotonic(self) -> float:
        return self.seconds


def refusals(why: Refusal) -> float:
    """How many of a kind were handed to Prometheus in this process."""
    return float(REFUSALS.labels(why.value)._value.get())


def wait_until(what: str, condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline, f"in vain: {what}"
        time.sleep(0.01)


class Proxy:
    """An engine on a port of its own."""

    def __init__(self, director: Director, limits: Limits | None = None, **options: Any) -> None:
        self._director, self._limits, self._options = director, limits, options
        self._clock: Clock = options.pop("clock", None) or SystemClock()
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=512)
        self._listener.setblocking(False)
        self.port: int = self._listener.getsockname()[1]
        self.loop: asyncio.AbstractEventLoop
        self.engine: Engine
        self._ready = threading.Event()
        self._thread = threading.Thread(target=lambda: uvloop.run(self._run()), daemon=True)
        self._thread.start()
        assert self._ready.wait(PATIENCE)

    async def _run(self) -> None:
        self.loop = asyncio.get_running_loop()
        self._stop = asyncio.Event()
        self.engine = Engine(self._director, self._clock, self._limits, **self._options)
        await self.engine.start(self._listener)
        self._ready.set()
        await self._stop.wait()
        await self.engine.drain(0)

    def call(self, function: Callable[[], T]) -> T:
        """Run something in the engine's own thread."""
        result: concurrent.futures.Future[T] = concurrent.futures.Future()
        self.loop.call_soon_threadsafe(lambda: result.set_result(function()))
        return result.result(PATIENCE)

    def connect(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.port), PATIENCE)

    def close(self) -> None:
        self.loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(PATIENCE)
        assert not self._thread.is_alive()


@contextlib.contextmanager
def proxied(
    script: Script | None = None,
    *,
    answer: bytes = OK,
    limits: Limits | None = None,
    clock: Clock | None = None,
    capacity: Capacity | None = None,
    **forward: Any,
) -> Iterator[tuple[Proxy, Upstream]]:
    """A proxy in front of one upstream."""
    upstream = Upstream(script, answer=answer)
    proxy = Proxy(ToOne(Forward(upstream.address, **forward)), limits, clock=clock, capacity=capacity)
    try:
        yield proxy, upstream
    finally:
        proxy.close()
        upstream.close()


def read_all(client: socket.socket) -> bytes:
    """Until the other side closes; a reset ends it too."""
    found = []
    with contextlib.suppress(ConnectionResetError):
        while data := client.recv(65536):
            found.append(data)
    return b"".join(found)


def read_until(client: socket.socket, end: bytes) -> bytes:
    found = b""
    while end not in found:
        data = client.recv(65536)
        if not data:
            raise ConnectionError(f"ended with {found[-200:]!r}")
        found += data
    return found


def exchange(proxy: Proxy, *pieces: bytes, half_close: bool = False) -> bytes:
    """Send the pieces, return everything until the proxy closes."""
    with proxy.connect() as client:
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            for piece in pieces:
                client.sendall(piece)
            if half_close:
                client.shutdown(socket.SHUT_WR)
        return read_all(client)


@dataclass
class Got:
    """An answer as h11 understands it."""

    status: int
    headers: list[tuple[bytes, bytes]]
    body: bytes
    trailers: list[tuple[bytes, bytes]]
    informational: list[int]
    complete: bool

    def header(self, name: bytes) -> bytes | None:
        found = [value for key, value in self.headers if key == name]
        return b", ".join(found) if found else None


def answers_in(data: bytes, *methods: bytes, closed: bool = True) -> list[Got]:
    """The answers in what a client received, to requests with these methods."""
    found: list[Got] = []
    connection = h11.Connection(h11.CLIENT, max_incomplete_event_size=1 << 20)
    connection.receive_data(data)
    if closed and data:
        connection.receive_data(b"")
    for method in methods:
        connection.send(h11.Request(method=method, target="/", headers=[("host", "x")]))
        connection.send(h11.EndOfMessage())
        got = _next_answer(connection)
        if got is None:
            break
        found.append(got)
        if connection.their_state is not h11.DONE or connection.our_state is not h11.DONE:
            break
        connection.start_next_cycle()
    return found


def _next_answer(connection: h11.Connection) -> Got | None:
    got: Got | None = None
    informational: list[int] = []
    while True:
        try:
            event = connection.next_event()
        except h11.RemoteProtocolError:
            return got  # it ended early
        match event:
            case h11.InformationalResponse():
                informational.append(event.status_code)
            case h11.Response():
                got = Got(event.status_code, list(event.headers), b"", [], informational, complete=False)
            case h11.Data() if got:
                got.body += bytes(event.data)
            case h11.EndOfMessage() if got:
                got.trailers, got.complete = list(event.headers), True
                return got
            case _:
                return got


def one_answer(data: bytes, method: bytes = b"GET") -> Got:
    found = answers_in(data, method)
    assert found, f"no answer in {data!r}"
    return found[0]
