"""Back-pressure: a slow reader on one side slows the other, and no body is too large for the memory at hand."""

import contextlib
import select
import socket
import threading
from collections.abc import Iterator

import pytest

from tests.proxy.harness import Script, Upstream, read_all, read_until, record
from tests.proxy.workers import Workers, memory, running

MUCH = 1 << 28  # ten times the room there is; ten gigabytes in bench/proxy_limits.py
PIECE = b"\xa5" * (1 << 20)
# Our own buffers, the allocator's slack, and both sockets' in the kernel.
ROOM = 24 << 20
SWITCH = b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n"
HANDSHAKE = b"GET / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"
POST = b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n"


def swallow(peer: socket.socket, _upstream: Upstream) -> None:
    """Read a body, answer with its size."""
    head, _, body = read_until(peer, b"\r\n\r\n").partition(b"\r\n\r\n")
    size = int(head.lower().partition(b"content-length: ")[2].split()[0])
    got, buffer = len(body), bytearray(1 << 20)
    while got < size:
        got += peer.recv_into(buffer)
    peer.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%d" % (len(str(got)), got))


def pour_length(peer: socket.socket, _upstream: Upstream) -> None:
    read_until(peer, b"\r\n\r\n")
    peer.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % MUCH)
    for _ in range(MUCH // len(PIECE)):
        peer.sendall(PIECE)


def pour_chunks(peer: socket.socket, _upstream: Upstream) -> None:
    read_until(peer, b"\r\n\r\n")
    peer.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
    chunk = b"%x\r\n%b\r\n" % (len(PIECE), PIECE)
    for _ in range(MUCH // len(PIECE)):
        peer.sendall(chunk)
    peer.sendall(b"0\r\n\r\n")


def push_until_stuck(sender: socket.socket) -> int:
    """How many bytes find room before nobody takes any more."""
    sender.setblocking(False)
    sent = 0
    while select.select([], [sender], [], 0.5)[1]:
        sent += sender.send(PIECE)
    sender.setblocking(True)
    return sent


class Stuck:
    """An upstream that pushes until nothing moves, and tells how far it came."""

    def __init__(self, greeting: bytes) -> None:
        self._greeting = greeting
        self.sent = 0
        self.done = threading.Event()

    def __call__(self, peer: socket.socket, _upstream: Upstream) -> None:
        read_until(peer, b"\r\n\r\n")
        peer.sendall(self._greeting)
        self.sent = push_until_stuck(peer)
        self.done.set()
        read_all(peer)


@pytest.fixture
def through(socket_path: str) -> Iterator["Through"]:
    ends: list[Upstream] = []
    with running(socket_path) as workers:
        yield Through(workers, socket_path, ends)
    for end in ends:
        end.close()


class Through:
    def __init__(self, workers: Workers, path: str, ends: list[Upstream]) -> None:
        self._workers, self._path, self._ends = workers, path, ends
        (self._pid,) = workers.pids()
        self._before = memory(self._pid)

    def to(self, script: Script) -> socket.socket:
        self._ends.append(Upstream(script, path=self._path))
        return self._workers.connect()

    def connect(self) -> socket.socket:
        return self._workers.connect()

    def grown(self) -> int:
        return memory(self._pid) - self._before


def test_much_goes_up_with_flat_memory(through: Through) -> None:
    with through.to(swallow) as client:
        client.sendall(POST % MUCH)
        for _ in range(MUCH // len(PIECE)):
            client.sendall(PIECE)
        assert read_until(client, str(MUCH).encode()).startswith(b"HTTP/1.1 200")
    assert through.grown() < ROOM


@pytest.mark.parametrize("script", [pour_length, pour_chunks], ids=["by length", "in chunks"])
def test_much_comes_down_with_flat_memory(through: Through, script: Script) -> None:
    with through.to(script) as client:
        client.sendall(b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        got, buffer = 0, bytearray(1 << 20)
        while size := client.recv_into(buffer):
            got += size
    assert got > MUCH
    assert through.grown() < ROOM


@pytest.mark.parametrize(("ask", "greeting"), [
    (b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", b"HTTP/1.1 200 OK\r\n\r\n"),
    (b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: 9999999999\r\n\r\n"),
    (HANDSHAKE, SWITCH),
], ids=["until the end", "by length", "WebSocket"])  # fmt: skip
def test_a_client_that_does_not_read_stops_the_upstream(through: Through, ask: bytes, greeting: bytes) -> None:
    upstream = Stuck(greeting)
    with through.to(upstream) as client:
        client.sendall(ask)
        assert upstream.done.wait(20)
    assert upstream.sent < ROOM
    assert through.grown() < ROOM


@pytest.mark.parametrize("ask", [POST % 9_999_999_999, HANDSHAKE], ids=["body", "WebSocket"])
def test_an_upstream_that_does_not_read_stops_the_client(through: Through, ask: bytes) -> None:
    release = threading.Event()

    def deaf(peer: socket.socket, _upstream: Upstream) -> None:
        read_until(peer, b"\r\n\r\n")
        if ask is HANDSHAKE:
            peer.sendall(SWITCH)
        release.wait(20)

    with through.to(deaf) as client:
        client.sendall(ask)
        if ask is HANDSHAKE:
            read_until(client, b"\r\n\r\n")
        sent = push_until_stuck(client)
        release.set()
    assert sent < ROOM
    assert through.grown() < ROOM


def test_requests_without_end_on_one_connection_do_not_pile_up(through: Through) -> None:
    """Somebody who only asks and never reads the answers."""
    with through.to(record) as client:
        asked = b"GET /w/nobody HTTP/1.1\r\nHost: x\r\n\r\n" * 30_000
        client.setblocking(False)
        sent = 0
        with contextlib.suppress(ConnectionError):  # a stranger whom we refuse again and again is cut off
            while select.select([], [client], [], 0.5)[1] and sent < 64 << 20:
                sent += client.send(asked)
    assert sent < ROOM
    assert through.grown() < ROOM


def test_idle_websockets_cost_little_memory(through: Through) -> None:
    def silent(peer: socket.socket, _upstream: Upstream) -> None:
        read_until(peer, b"\r\n\r\n")
        peer.sendall(SWITCH)
        peer.recv(1)

    first = through.to(silent)
    clients = [first, *(through.connect() for _ in range(499))]
    for client in clients:
        client.sendall(HANDSHAKE)
        read_until(client, b"\r\n\r\n")
    assert through.grown() < len(clients) * 40 * 1024
    for client in clients:
        client.close()
