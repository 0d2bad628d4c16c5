"""WebSockets through the real proxy: every kind of frame arrives byte for byte as without it; ends have reasons."""

import hashlib
import socket
import threading
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from codehub.proxy.frames import Boundary, close_frame, frame_size
from codehub.proxy.model import Forward, Limits, RequestHead, TunnelObserver
from tests.proxy.harness import Proxy, ToOne, Upstream, one_answer, proxied, read_all, read_until

HANDSHAKE = (
    b"GET /ws HTTP/1.1\r\nHost: x\r\nConnection: keep-alive, Upgrade\r\nUpgrade: WebSocket\r\n"
    b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n"
    b"Sec-WebSocket-Extensions: permessage-deflate\r\n\r\n"
)
SWITCH = (
    b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    b"Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n"
)


def frame(opcode: int, payload: bytes, *, mask: bytes = b"", fin: bool = True) -> bytes:
    size = len(payload)
    short = size if size < 126 else 126 if size < 65536 else 127
    head = bytes([opcode | (0x80 if fin else 0), short | (0x80 if mask else 0)])
    head += b"" if short < 126 else size.to_bytes(2 if short == 126 else 8, "big")
    if mask:
        repeated = (mask * (size // 4 + 1))[:size]
        payload = (int.from_bytes(payload, "big") ^ int.from_bytes(repeated, "big")).to_bytes(size, "big")
    return head + mask + payload


def echo(peer: socket.socket, _upstream: Upstream) -> None:
    """Everything comes back as it came."""
    data = read_until(peer, b"\r\n\r\n")
    peer.sendall(SWITCH + data.partition(b"\r\n\r\n")[2])
    while data := peer.recv(1 << 20):
        peer.sendall(data)


@pytest.fixture(scope="module")
def echoing() -> Iterator[tuple[Proxy, Upstream]]:
    upstream = Upstream(echo)
    proxy = Proxy(ToOne(Forward(upstream.address, route="lab")))
    yield proxy, upstream
    proxy.close()
    upstream.close()


Echoing = tuple[Proxy, Upstream]


def open_tunnel(proxy: Proxy, early: bytes = b"") -> socket.socket:
    client = proxy.connect()
    client.sendall(HANDSHAKE + early)
    head = b""
    while not head.endswith(b"\r\n\r\n"):
        head += client.recv(1)
    assert head.startswith(b"HTTP/1.1 101 ")
    assert b"Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=" in head
    return client


def round_trip(client: socket.socket, data: bytes) -> str:
    """The digest of what comes back."""
    sender = threading.Thread(target=client.sendall, args=(data,))
    sender.start()
    digest, left = hashlib.sha256(), len(data)
    while left:
        piece = client.recv(min(left, 1 << 20))
        assert piece
        digest.update(piece)
        left -= len(piece)
    sender.join()
    return digest.hexdigest()


MASK = b"\x12\x34\x56\x78"
FIRST = frame(1, b"a", mask=MASK, fin=False)
FRAMES = {
    **{f"opcode {n:x}": frame(n, b"payload", mask=MASK) for n in range(16)},
    **{f"{n} bytes": frame(2, b"\xa5" * n, mask=MASK) for n in (0, 1, 125, 126, 127, 65535, 65536, 1 << 20)},
    "a mask of zeros": frame(1, b"hello", mask=b"\0\0\0\0"),
    "no mask": frame(1, b"hello"),
    "fragments": FIRST + frame(0, b"b", mask=MASK, fin=False) + frame(0, b"c", mask=MASK),
    "a ping between fragments": FIRST + frame(9, b"?", mask=MASK) + frame(0, b"b", mask=MASK),
    "reserved bits": bytes([0x81 | 0x70, 0x85]) + MASK + b"hello",
    "not UTF-8": frame(1, b"\xff\xfe", mask=MASK),
    "a thousand small ones": frame(1, b"x", mask=MASK) * 1000,
    **{f"close {n}": frame(8, n.to_bytes(2, "big") + b"why", mask=MASK) for n in (1000, 1001, 1008, 1011, 4999)},
    "close without a code": frame(8, b"", mask=MASK),
}  # fmt: skip


@pytest.mark.parametrize("name", FRAMES)
def test_frames_pass_byte_for_byte(echoing: Echoing, name: str) -> None:
    data = FRAMES[name]
    with open_tunnel(echoing[0]) as client:
        assert round_trip(client, data) == hashlib.sha256(data).hexdigest()


def test_a_message_of_64_mb_passes_byte_for_byte(echoing: Echoing) -> None:
    data = frame(2, hashlib.shake_128(b"seed").digest(1 << 20) * 64, mask=b"\0\0\0\0")
    with open_tunnel(echoing[0]) as client:
        assert round_trip(client, data) == hashlib.sha256(data).hexdigest()


def test_frames_sent_before_the_answer_are_not_lost(echoing: Echoing) -> None:
    early = frame(1, b"early", mask=MASK)
    with open_tunnel(echoing[0], early) as client:
        assert client.recv(100) == early


def test_the_handshake_is_passed_on_with_its_own_headers() -> None:
    with proxied() as (proxy, upstream), proxy.connect() as client:
        client.sendall(HANDSHAKE)
        assert one_answer(read_until(client, b"\r\n\r\nok"), b"GET").status == 200
    (seen,) = upstream.seen
    assert (seen.header(b"connection"), seen.header(b"upgrade")) == (b"Upgrade", b"websocket")
    assert seen.header(b"sec-websocket-key") == b"dGhlIHNhbXBsZSBub25jZQ=="
    assert seen.header(b"sec-websocket-extensions") == b"permessage-deflate"


def test_a_refused_upgrade_leaves_an_ordinary_connection() -> None:
    refusal = b"HTTP/1.1 403 Forbidden\r\nContent-Length: 2\r\n\r\nno"
    with proxied(answer=refusal) as (proxy, upstream), proxy.connect() as client:
        for _ in range(2):
            client.sendall(HANDSHAKE)
            assert read_until(client, b"\r\n\r\nno").startswith(b"HTTP/1.1 403")
    assert len(upstream.seen) == 2


@pytest.mark.parametrize("change", [
    (b"GET", b"POST"), (b"HTTP/1.1", b"HTTP/1.0"), (b"WebSocket", b"h2c"), (b", Upgrade", b""),
    (b"Host: x", b"Host: x\r\nContent-Length: 1"),
], ids=["not GET", "HTTP/1.0", "another protocol", "not this hop's", "with a body"])  # fmt: skip
def test_only_a_proper_handshake_asks_for_an_upgrade(change: tuple[bytes, bytes]) -> None:
    with proxied() as (proxy, upstream), proxy.connect() as client:
        client.sendall(HANDSHAKE.replace(*change) + b"x")
        assert read_until(client, b"\r\n\r\nok").startswith(b"HTTP/1.1 200")
    assert upstream.seen[0].header(b"upgrade") is None


class Seeing:
    """An onlooker that keeps what it sees, and may fail after that."""

    def __init__(self, *, fails: bool) -> None:
        self.seen = b""
        self._fails = fails

    def follow(self, data: bytes) -> None:
        self.seen += data
        if self._fails:
            raise ZeroDivisionError


class Noting:
    """An observer that counts ends."""

    fails = False

    def __init__(self) -> None:
        self.from_client, self.from_upstream = Seeing(fails=self.fails), Seeing(fails=self.fails)
        self.ends = 0

    def closed(self) -> None:
        self.ends += 1


class Failing(Noting):
    """An observer with a mistake in every line."""

    fails = True

    def closed(self) -> None:
        super().closed()
        raise ZeroDivisionError


def test_an_observer_sees_everything_from_the_side_and_the_end() -> None:
    noting = Noting()

    def observe(head: RequestHead) -> TunnelObserver:
        assert head.path == b"/ws"
        return noting

    data = frame(1, b"x" * 300, mask=MASK)
    with proxied(echo, observe=observe) as (proxy, _):
        with open_tunnel(proxy) as client:
            round_trip(client, data)
            assert noting.ends == 0
        settled(proxy)
        assert noting.ends == 1
    assert (noting.from_client.seen, noting.from_upstream.seen) == (data, data)


def test_an_observer_that_fails_stops_nothing() -> None:
    data, failing = frame(1, b"hello", mask=MASK), Failing()
    with proxied(echo, observe=lambda _head: failing) as (proxy, _):
        with open_tunnel(proxy) as client:
            assert round_trip(client, data) == hashlib.sha256(data).hexdigest()
        settled(proxy)
    assert failing.ends == 1
    assert failing.from_client.seen
    assert failing.from_upstream.seen


def test_an_observer_learns_of_a_tunnel_that_we_close() -> None:
    noting = Noting()
    with proxied(echo, route="lab", observe=lambda _head: noting) as (proxy, _):
        with open_tunnel(proxy) as client:
            proxy.call(lambda: proxy.engine.close_tunnels("lab", 4403, "no"))
            read_all(client)
        settled(proxy)
    assert noting.ends == 1


def test_either_side_may_stop_sending_first(echoing: Echoing) -> None:
    with open_tunnel(echoing[0]) as client:
        client.sendall(b"last words")
        client.shutdown(socket.SHUT_WR)
        assert read_all(client) == b"last words"
    settled(echoing[0])


def settled(proxy: Proxy) -> None:
    """All tunnels are closed and none is counted."""
    while proxy.call(proxy.engine.open_tunnels):
        threading.Event().wait(0.01)
    assert proxy.call(lambda: sum(pool.busy for pool in proxy.engine._pools.values())) == 0


def test_tunnels_of_a_route_are_counted_and_closed_with_a_reason(echoing: Echoing) -> None:
    proxy, _ = echoing
    settled(proxy)
    with open_tunnel(proxy) as client, open_tunnel(proxy) as other:
        assert proxy.call(lambda: proxy.engine.open_tunnels("lab")) == 2
        assert proxy.call(lambda: proxy.engine.open_tunnels("elsewhere")) == 0
        assert proxy.call(lambda: proxy.engine.close_tunnels("elsewhere", 4403, "no")) == 0
        assert proxy.call(lambda: proxy.engine.close_tunnels("lab", 4403, "Your access has ended.")) == 2
        for one in (client, other):
            assert read_all(one) == frame(8, (4403).to_bytes(2, "big") + b"Your access has ended.")
    settled(proxy)


def test_a_close_frame_waits_for_the_frame_under_way() -> None:
    go_on, half_sent = threading.Event(), threading.Event()
    message = frame(2, b"m" * 1000)

    def halting(peer: socket.socket, _upstream: Upstream) -> None:
        read_until(peer, b"\r\n\r\n")
        peer.sendall(SWITCH + message + message[:1])
        half_sent.set()
        assert go_on.wait(10)
        peer.sendall(message[1:400])
        peer.sendall(message[400:] + message)
        read_all(peer)

    with proxied(halting, route="lab") as (proxy, _), open_tunnel(proxy) as client:
        received = b""
        while len(received) < len(message) + 1:
            received += client.recv(65536)
        assert proxy.call(lambda: proxy.engine.close_tunnels("lab", 1001, "bye")) == 1
        go_on.set()
        assert received + read_all(client) == message + message + close_frame(1001, "bye")


def test_a_frame_that_never_ends_does_not_keep_a_tunnel_open() -> None:
    def halting(peer: socket.socket, _upstream: Upstream) -> None:
        read_until(peer, b"\r\n\r\n")
        peer.sendall(SWITCH + frame(2, b"m" * 1000)[:500])
        read_all(peer)

    limits = Limits(linger_seconds=0.1, head_seconds=0.2)
    with proxied(halting, route="lab", limits=limits) as (proxy, _), open_tunnel(proxy) as client:
        assert client.recv(10)
        proxy.call(lambda: proxy.engine.close_tunnels("lab", 1001, "bye"))
        assert b"bye" not in read_all(client)


def test_an_upstream_that_dies_ends_the_tunnel() -> None:
    def dying(peer: socket.socket, _upstream: Upstream) -> None:
        read_until(peer, b"\r\n\r\n")
        peer.sendall(SWITCH)

    with proxied(dying) as (proxy, _), open_tunnel(proxy) as client:
        client.shutdown(socket.SHUT_WR)
        assert read_all(client) == b""
        settled(proxy)


@given(st.lists(st.tuples(st.sampled_from([0, 1, 2, 8, 9, 10]), st.integers(0, 70_000), st.booleans()), max_size=6),
       st.lists(st.integers(1, 5000), min_size=1, max_size=20))  # fmt: skip
@settings(deadline=None, max_examples=200, derandomize=True)
def test_the_boundary_of_frames_is_found_however_they_are_cut(
    frames: list[tuple[int, int, bool]], cuts: list[int]
) -> None:
    parts = [frame(opcode, b"p" * size, mask=MASK if masked else b"") for opcode, size, masked in frames]
    assert [frame_size(part, 0) for part in parts] == [len(part) for part in parts]
    ends, boundary = {0}, Boundary()
    for part in parts:
        ends.add(max(ends) + len(part))
        boundary.follow(part)  # as they mostly come: one by one
        assert boundary.reached
    boundary, at, data, n = Boundary(), 0, b"".join(parts), 0
    while at < len(data):
        piece = data[at : at + cuts[n % len(cuts)]]
        boundary.follow(piece)
        at, n = at + len(piece), n + 1
        assert boundary.reached == (at in ends)


def test_a_reason_is_cut_where_a_character_ends() -> None:
    made = close_frame(1000, "한" * 60)
    assert len(made) <= 127
    assert made[4:].decode() == "한" * 41
