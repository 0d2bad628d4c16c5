"""Those who are not logged in cannot use up what others need: connections to us, and places at the upstreams."""

import contextlib
import socket
import threading
from collections.abc import Iterator
from ipaddress import ip_network

import pytest

from codehub.proxy import admission
from codehub.proxy.admission import Capacity
from codehub.proxy.metrics import Refusal
from codehub.proxy.model import Decision, Forward, Limits, RequestHead
from tests.proxy.harness import (
    OK,
    HandClock,
    Proxy,
    Recorder,
    ToOne,
    Upstream,
    answers_in,
    exchange,
    one_answer,
    proxied,
    read_all,
    read_until,
    refusals,
    wait_until,
)

STRANGER = b"X-Who: stranger\r\n"
POST = b"POST / HTTP/1.1\r\nHost: x\r\n" + STRANGER
GET = b"GET / HTTP/1.1\r\nHost: x\r\n%b\r\n"
LAST = b"GET /last HTTP/1.1\r\nHost: x\r\nConnection: close\r\n%b\r\n"
FIRST = Limits().first_bytes


def who(name: str) -> bytes:
    return f"X-Who: {name}\r\n".encode()


@contextlib.contextmanager
def connected(proxy: Proxy, count: int, said: bytes = b"") -> Iterator[list[socket.socket]]:
    with contextlib.ExitStack() as stack:
        clients = [stack.enter_context(proxy.connect()) for _ in range(count)]
        for client in clients:
            client.sendall(said)
        yield clients


# Their bodies.


def test_slow_bodies_of_strangers_take_no_place_at_the_upstream() -> None:
    with proxied(at_most=32) as (proxy, upstream), connected(proxy, 100, POST + b"Content-Length: 1000\r\n\r\nabc"):
        wait_until("all are read", lambda: proxy.call(lambda: len(proxy.engine.watched)) == 100)
        assert one_answer(exchange(proxy, LAST % who("mina"))).status == 200
        assert one_answer(exchange(proxy, LAST % STRANGER)).status == 200
        assert proxy.call(lambda: proxy.engine.places) == 0
        assert upstream.connections <= 2


@pytest.mark.parametrize(("framing", "body", "arrives"), [
    (b"Content-Length: 5\r\n\r\n", b"hello", b"hello"),
    (b"Transfer-Encoding: chunked\r\n\r\n", b"2\r\nhe\r\n3;x=y\r\nllo\r\n0\r\nX-Sum: 1\r\n\r\n", b"hello"),
    (b"Content-Length: %d\r\n\r\n" % (5 * FIRST), b"z" * 5 * FIRST, b"z" * 5 * FIRST),
    (b"Transfer-Encoding: chunked\r\n\r\n", (b"400\r\n" + b"z" * 1024 + b"\r\n") * 64 + b"0\r\n\r\n", b"z" * 65536),
    (b"Content-Length: 5\r\nExpect: 100-continue\r\n\r\n", b"hello", b"hello"),
], ids=["short", "in chunks", "long", "long, in chunks", "waiting for 100"])  # fmt: skip
def test_bodies_of_strangers_arrive(framing: bytes, body: bytes, arrives: bytes) -> None:
    with proxied() as (proxy, upstream), proxy.connect() as client:
        for _ in range(2):
            client.sendall(POST + framing)
            if b"Expect" in framing:
                assert read_until(client, b"\r\n\r\n") == b"HTTP/1.1 100 Continue\r\n\r\n"
            for at in range(0, len(body), max(1, len(body) // 7)):
                client.sendall(body[at : at + max(1, len(body) // 7)])
            assert read_until(client, b"\r\n\r\nok").startswith(b"HTTP/1.1 200")
    assert [seen.body for seen in upstream.seen] == [arrives] * 2
    assert upstream.seen[0].header(b"expect") is None


def test_requests_after_a_strangers_body_are_answered_in_order() -> None:
    post = POST + b"Content-Length: 2\r\n\r\n%d" % 10
    with proxied() as (proxy, upstream):
        received = exchange(proxy, post + GET % STRANGER + post + LAST % b"")
    assert [got.status for got in answers_in(received, *[b"GET"] * 4)] == [200] * 4
    assert [seen.body for seen in upstream.seen] == [b"10", b"", b"10", b""]


def test_a_bad_body_of_a_stranger_reaches_nobody() -> None:
    with proxied() as (proxy, upstream):
        assert one_answer(exchange(proxy, POST + b"Transfer-Encoding: chunked\r\n\r\nX\r\n")).status == 400
        assert exchange(proxy, POST + b"Content-Length: 9\r\n\r\nabc", half_close=True) == b""
    assert upstream.connections == 0


@pytest.mark.parametrize("asker", [b"stranger", b"mina"])
def test_a_body_that_trickles_is_ended_and_a_slow_one_is_not(asker: bytes) -> None:
    """One byte a second is too little, a kilobyte a second is a bad day on the train."""
    clock, head = HandClock(), b"POST / HTTP/1.1\r\nHost: x\r\nX-Who: " + asker + b"\r\n"

    with proxied(clock=clock) as (proxy, upstream), proxy.connect() as trickling, proxy.connect() as slow:
        counted = refusals(Refusal.BODY_RATE)
        trickling.sendall(head + b"Content-Length: 1000\r\n\r\n")
        slow.sendall(head + b"Content-Length: %d\r\n\r\n" % (300 << 10))
        for _ in range(300):
            with contextlib.suppress(OSError):
                trickling.sendall(b"x")
            slow.sendall(b"y" * 1024)
            proxy.call(lambda: None)  # a round of the loop, which reads it
            clock.seconds += 1
            proxy.call(proxy.engine.sweep)
        assert read_until(slow, b"\r\n\r\nok").startswith(b"HTTP/1.1 200")
        assert one_answer(read_all(trickling)).status == 408
        assert refusals(Refusal.BODY_RATE) == counted + 1
    assert [len(seen.body) for seen in upstream.seen] == [300 << 10]


# Places at an upstream.


class Slowly:
    """Answers when it is told to."""

    def __init__(self) -> None:
        self.release = threading.Event()

    def __call__(self, peer: socket.socket, upstream: Upstream) -> None:
        recorder = Recorder()
        while data := peer.recv(65536):
            for _ in range(recorder.feed(data)):
                if recorder.requests[-1].target != b"/last":
                    self.release.wait(20)
                peer.sendall(OK)


@contextlib.contextmanager
def crowded(at_most: int, *askers: tuple[bytes, int]) -> Iterator[tuple[Proxy, list[list[socket.socket]]]]:
    """So many of each ask, and what should answer takes its time."""
    script = Slowly()
    with proxied(script, at_most=at_most) as (proxy, _), contextlib.ExitStack() as stack:
        groups = []
        for asker, count in askers:
            groups.append(stack.enter_context(connected(proxy, count, GET % asker)))
            answered_or_held(proxy, sum(len(group) for group in groups))
        try:
            yield proxy, groups
        finally:
            script.release.set()


def answered_or_held(proxy: Proxy, count: int) -> None:
    wait_until("all have come", lambda: proxy.call(lambda: len(proxy.engine.watched)) >= count)
    wait_until("all are decided", lambda: proxy.call(lambda: undecided(proxy)) == 0)


def undecided(proxy: Proxy) -> int:
    """Connections whose request has not been read, or which wait for a connection to the upstream."""
    return sum(thing.state.name == "HELD" or not hasattr(thing, "head") for thing in proxy.engine.watched)  # type: ignore[attr-defined]


def statuses(clients: list[socket.socket]) -> list[int]:
    """Of those that were answered already."""
    found = []
    for client in clients:
        client.setblocking(False)
        with contextlib.suppress(BlockingIOError):
            found.append(one_answer(client.recv(65536)).status)
    return found


def test_one_person_does_not_get_all_places() -> None:
    with crowded(64, (who("mina"), 64)) as (proxy, (clients,)):
        refused = statuses(clients)
        assert set(refused) == {429}
        assert len(refused) == 64 - 32
        assert one_answer(exchange(proxy, LAST % who("jun"))).status == 200
        assert one_answer(exchange(proxy, LAST % STRANGER)).status == 200


def test_there_is_room_for_those_who_come_later() -> None:
    askers = [who(name) for name in ("mina", "jun", "sora")]
    with crowded(64, *((one, 64) for one in askers)) as (proxy, groups):
        assert [64 - len(statuses(group)) for group in groups] == [32, 16, 8]
        assert one_answer(exchange(proxy, LAST % who("yuna"))).status == 200


def test_strangers_get_half_of_the_places_at_most_and_one_address_half_of_that() -> None:
    with crowded(64, (STRANGER, 64)) as (proxy, (clients,)):
        assert len(statuses(clients)) == 64 - 16
        assert one_answer(exchange(proxy, LAST % STRANGER)).status == 429
        assert one_answer(exchange(proxy, LAST % who("mina"))).status == 200


def test_behind_a_trusted_proxy_strangers_are_told_apart() -> None:
    script = Slowly()
    upstream = Upstream(script)
    proxy = Proxy(ToOne(Forward(upstream.address, at_most=64)), trusted=(ip_network("127.0.0.0/8"),))
    one, other = (STRANGER + b"X-Forwarded-For: 203.0.113.%d\r\n" % n for n in (1, 2))
    with connected(proxy, 40, GET % one) as clients:
        answered_or_held(proxy, 40)
        assert len(statuses(clients)) == 40 - 16
        assert one_answer(exchange(proxy, LAST % other)).status == 200
        script.release.set()
    proxy.close()
    upstream.close()


def test_health_checks_have_places_of_their_own() -> None:
    script = Slowly()
    upstream = Upstream(script)
    usual, reserved = (Forward(upstream.address, at_most=64, beyond=beyond) for beyond in (0, 4))
    director = ToOne(usual)

    def decide(head: RequestHead) -> Decision:
        return reserved if head.target == b"/last" else usual

    director.decide_by = decide
    proxy = Proxy(director)
    names = [who(f"p{n}") for n in range(72)]
    with contextlib.ExitStack() as stack:
        clients = [stack.enter_context(connected(proxy, 1, GET % name))[0] for name in names]
        answered_or_held(proxy, len(clients))
        assert len(statuses(clients)) == 8  # the others fill it, each with one
        assert one_answer(exchange(proxy, LAST % STRANGER)).status == 200
        script.release.set()
    proxy.close()
    upstream.close()


# Connections.

SMALL = Capacity(clients=64, upstreams=64, backlog=256)


def test_strangers_who_only_keep_connections_make_room() -> None:
    with proxied(capacity=SMALL) as (proxy, _), proxy.connect() as mina:
        mina.sendall(GET % who("mina"))
        read_until(mina, b"\r\n\r\nok")
        counted = refusals(Refusal.CONNECTIONS) + refusals(Refusal.CROWDED)
        with connected(proxy, 300, b"GET / HTTP/1.1\r\nX: "):
            wait_until("they are shed", lambda: proxy.call(lambda: proxy.engine.crowd.count) <= SMALL.clients)
            assert one_answer(exchange(proxy, LAST % who("jun"))).status == 200
            assert one_answer(exchange(proxy, LAST % STRANGER)).status == 200
            mina.sendall(LAST % who("mina"))
            assert read_all(mina).endswith(b"\r\n\r\nok")
        proxy.call(proxy.engine.sweep)
        assert refusals(Refusal.CONNECTIONS) + refusals(Refusal.CROWDED) >= counted + 200


def test_one_person_with_too_many_connections_loses_the_idle_ones_first() -> None:
    with proxied(capacity=SMALL) as (proxy, _), contextlib.ExitStack() as stack:
        for _ in range(200):
            client = stack.enter_context(proxy.connect())
            client.sendall(GET % who("mina"))
            assert read_until(client, b"\r\n\r\nok").startswith(b"HTTP/1.1 200")
        assert proxy.call(lambda: proxy.engine.crowd.count) <= 33
        assert one_answer(exchange(proxy, LAST % who("jun"))).status == 200


def test_a_person_whose_connections_are_all_in_use_is_told_so() -> None:
    script = Slowly()
    upstream = Upstream(script)
    proxy = Proxy(ToOne(Forward(upstream.address)), capacity=Capacity(clients=16, upstreams=512, backlog=64))
    with connected(proxy, 8, GET % who("mina")):
        answered_or_held(proxy, 8)
        assert b"429" in exchange(proxy, LAST % who("mina"))[:16]
        assert one_answer(exchange(proxy, LAST % who("jun"))).status == 200
        script.release.set()
    proxy.close()
    upstream.close()


def test_what_strangers_leave_unfinished_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("codehub.proxy.crowd.KEPT_BYTES", 100_000)
    with proxied() as (proxy, _), connected(proxy, 30, POST + b"Content-Length: 99999\r\n\r\n" + b"x" * 9000):
        wait_until("enough were shed", lambda: proxy.call(lambda: proxy.engine.crowd.count) <= 11)
        assert one_answer(exchange(proxy, LAST % STRANGER)).status == 200


def test_nothing_of_those_who_left_is_remembered() -> None:
    with proxied() as (proxy, _):
        for asker in (STRANGER, who("mina")):
            exchange(proxy, LAST % asker)
            exchange(proxy, POST + b"Content-Length: 3\r\n\r\nab", half_close=True)
        wait_until("all have left", lambda: proxy.call(lambda: proxy.engine.crowd.count) == 0)
        crowd, engine = proxy.engine.crowd, proxy.engine
        assert (crowd._groups, crowd._kept, crowd._kept_bytes, engine.places) == ({}, {}, 0, 0)


# The rules.


def test_whoever_has_most_loses_the_slowest_first() -> None:
    waiting = [("@a", 5.0), ("@a", 1.0), ("@b", 0.0), ("@a", 3.0)]
    assert admission.slowest(waiting, 3) == [1, 3, 2]


@pytest.mark.parametrize("files", [64, 256, 1024, 4096, 20_000, 1_048_576])
def test_there_is_a_file_for_every_connection(files: int) -> None:
    found = admission.capacity(files)
    assert found.clients >= 32
    if files >= 1024:
        assert found.clients + found.upstreams + found.backlog + admission.OURS <= files


@pytest.mark.parametrize(("address", "holder"), [
    ("192.0.2.1", "@192.0.2.1"), ("2001:db8:1:2:3:4:5:6", "@2001:db8:1:2::"), ("fe80::1%eth0", "@fe80::"), ("", "@"),
])  # fmt: skip
def test_an_ipv6_customer_has_one_address_for_us(address: str, holder: str) -> None:
    assert admission.holder(address) == holder
