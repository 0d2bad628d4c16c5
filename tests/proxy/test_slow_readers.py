"""A client that reads slowly but steadily gets its answer to the last byte; one that reads nothing is cut off.

The seconds are the test's own: it hands the engine a clock, and lets it look at it. The bytes and buffers are real.
"""

import contextlib
import socket
import time
from collections.abc import Iterator

import pytest

from codehub.proxy.downstream import Client
from codehub.proxy.metrics import Refusal
from tests.proxy.harness import HandClock, Proxy, Script, Upstream, proxied, read_all, read_until, refusals, wait_until

RATE = 4096  # bytes a second
MEGABYTES = 8
GET = b"GET / HTTP/1.1\r\nHost: x\r\n%b\r\n"


class Slow:
    """Reads so much a second, by the clock in its hand."""

    def __init__(self, proxy: Proxy, clock: HandClock) -> None:
        self._proxy, self._clock = proxy, clock
        self.client = proxy.connect()

    def passes(self, seconds: float) -> None:
        self._clock.seconds += seconds
        self._proxy.call(self._proxy.engine.sweep)

    def read(self, size: int) -> bytes:
        """Every second RATE bytes, until there are so many or it ends."""
        found = bytearray()
        while len(found) < size:
            wanted, piece = min(RATE, size - len(found)), b""
            while len(piece) < wanted and (more := self.client.recv(wanted - len(piece))):
                piece += more
            found += piece
            if len(piece) < wanted:
                break
            self.passes(1.0)
        return bytes(found)


def sending(size: int, framing: bytes) -> Script:
    def script(peer: socket.socket, _upstream: Upstream) -> None:
        while read_until(peer, b"\r\n\r\n"):
            head = framing % size if b"%d" in framing else framing
            peer.sendall(b"HTTP/1.1 200 OK\r\n" + head + b"\r\n")
            peer.sendall(bytes(range(256)) * (size // 256))
            if b"Length" not in framing:
                return

    return script


@contextlib.contextmanager
def slow(size: int, framing: bytes = b"Content-Length: %d\r\n") -> Iterator[tuple[Slow, Proxy]]:
    clock = HandClock()
    with proxied(sending(size, framing), clock=clock) as (proxy, _):
        reader = Slow(proxy, clock)
        with reader.client:
            yield reader, proxy


@pytest.mark.parametrize("connection", [b"", b"Connection: close\r\n"], ids=["kept", "closed"])
def test_a_steady_reader_of_four_kilobytes_a_second_gets_eight_megabytes(connection: bytes) -> None:
    size = MEGABYTES << 20
    with slow(size) as (reader, _):
        reader.client.sendall(GET % connection)
        head = b""
        while not head.endswith(b"\r\n\r\n"):
            head += reader.client.recv(1)
        assert len(reader.read(size)) == size


def test_also_when_the_end_of_the_connection_is_the_end_of_the_answer() -> None:
    with slow(1 << 20, b"") as (reader, _):
        reader.client.sendall(b"GET / HTTP/1.0\r\n\r\n")
        got = reader.read(2 << 20)
        assert len(got.partition(b"\r\n\r\n")[2]) == 1 << 20


def test_a_reader_that_takes_nothing_at_all_is_cut_off() -> None:
    size = 64 << 20
    with slow(size) as (reader, proxy):
        reader.client.sendall(GET % b"")

        def stuck() -> bool:
            return any(getattr(thing, "write_paused", False) for thing in proxy.engine.watched)

        wait_until("the client's buffers are full", lambda: proxy.call(stuck))
        unread, counted = proxy.engine.limits.unread_seconds, refusals(Refusal.UNREAD)
        # The first look learns how much is unsent, the second one that it is no less.
        for _ in range(3):
            reader.passes(unread)
        assert proxy.call(lambda: len(proxy.engine.watched)) == 0
        assert refusals(Refusal.UNREAD) == counted + 1
        assert len(read_all(reader.client)) < size


@pytest.mark.soak
def test_a_megabyte_really_at_four_kilobytes_a_second() -> None:
    size = 1 << 20
    with proxied(sending(size, b"Content-Length: %d\r\n")) as (proxy, _), proxy.connect() as client:
        client.sendall(GET % b"Connection: close\r\n")
        got, began = 0, time.monotonic()
        while piece := client.recv(RATE):
            got += len(piece)
            time.sleep(max(0.0, began + got / RATE - time.monotonic()))
        assert got > size


def test_a_machine_that_vanished_is_given_up_by_the_kernel_also_where_bytes_are_under_way() -> None:
    """Keep-alive asks only on a connection without any: on a stream that says something every 30 s it never does."""
    with proxied(sending(2, b"Content-Length: %d\r\n")) as (proxy, _), proxy.connect() as client:
        client.sendall(GET % b"")
        client.recv(1)

        def options() -> list[list[int]]:
            sockets = [
                thing.transport.get_extra_info("socket") for thing in proxy.engine.watched if isinstance(thing, Client)
            ]
            wanted = (socket.SOL_SOCKET, socket.SO_KEEPALIVE), (socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT)
            return [[one.getsockopt(*option) for option in wanted] for one in sockets]

        assert proxy.call(options) == [[1, 120_000]]
