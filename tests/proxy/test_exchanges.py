"""Requests and answers in time: order, early answers, waiting bodies, half-closed and stale connections, time-outs."""

import asyncio
import select
import socket
import threading
import time
from collections.abc import Callable

import pytest

from codehub.proxy import answers
from codehub.proxy.model import Address, Answer, Decision, Forward, Hold, Later, Limits, RequestHead
from tests.proxy.harness import (
    OK,
    Proxy,
    Recorder,
    Script,
    ToOne,
    Upstream,
    answers_in,
    exchange,
    one_answer,
    proxied,
    read_all,
    read_until,
    record,
)

GET = b"GET /%d HTTP/1.1\r\nHost: x\r\n\r\n"
LAST = b"GET /last HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"


def read_head(peer: socket.socket) -> bytes:
    return read_until(peer, b"\r\n\r\n")


def closing_after(count: int) -> Script:
    """Answers so many requests of a connection, and closes it when the next one comes, without a word."""

    def script(peer: socket.socket, upstream: Upstream) -> None:
        recorder = Recorder()
        while data := peer.recv(65536):
            for _ in range(recorder.feed(data)):
                if len(recorder.requests) > count:
                    return
                upstream.seen.append(recorder.requests[-1])
                peer.sendall(OK)

    return script


def test_answers_to_pipelined_requests_come_in_order() -> None:
    def echo(peer: socket.socket, upstream: Upstream) -> None:
        recorder = Recorder()
        while data := peer.recv(65536):
            for _ in range(recorder.feed(data)):
                target = recorder.requests[-1].target
                peer.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(target), target))

    with proxied(echo) as (proxy, _):
        received = exchange(proxy, b"".join(GET % n for n in range(200)) + LAST)
    got = answers_in(received, *[b"GET"] * 201)
    assert [answer.body for answer in got] == [b"/%d" % n for n in range(200)] + [b"/last"]


def test_answers_wait_for_a_client_that_stopped_sending_and_does_not_read_yet() -> None:
    body = b"b" * 50_000
    answer = b"HTTP/1.1 200 OK\r\nContent-Length: 50000\r\n\r\n" + body
    with proxied(answer=answer) as (proxy, upstream), proxy.connect() as client:
        client.sendall(b"".join(GET % n for n in range(500)))
        client.shutdown(socket.SHUT_WR)

        def stuck() -> bool:
            return any(getattr(thing, "write_paused", False) for thing in proxy.engine.watched)

        while not proxy.call(stuck):
            threading.Event().wait(0.01)
        got = answers_in(read_all(client), *[b"GET"] * 500)
    assert len(got) == len(upstream.seen) == 500
    assert all(one.body == body for one in got)


def test_an_old_client_may_keep_its_connection() -> None:
    with proxied() as (proxy, upstream), proxy.connect() as client:
        for _ in range(2):
            client.sendall(b"GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n")
            assert b"Connection: keep-alive\r\n" in read_until(client, b"\r\n\r\nok")
        client.sendall(b"GET / HTTP/1.0\r\n\r\n")
        assert b"Connection: close\r\n" in read_all(client)
    assert len(upstream.seen) == 3


def test_one_upstream_connection_serves_one_request_after_the_other() -> None:
    with proxied() as (proxy, upstream):
        for _ in range(10):
            assert one_answer(exchange(proxy, LAST)).status == 200
    assert upstream.connections == 1


def test_upstreams_on_unix_sockets_are_reached_like_others(socket_path: str) -> None:
    upstream = Upstream(path=socket_path)
    proxy = Proxy(ToOne(Forward(upstream.address)))
    assert one_answer(exchange(proxy, LAST)).body == b"ok"
    proxy.close()
    upstream.close()


def test_a_request_on_a_connection_gone_stale_is_repeated_on_a_new_one() -> None:
    with proxied(closing_after(1)) as (proxy, upstream), proxy.connect() as client:
        for n in range(5):
            client.sendall(GET % n)
            assert read_until(client, b"\r\n\r\nok").startswith(b"HTTP/1.1 200")
    assert [seen.target for seen in upstream.seen] == [b"/%d" % n for n in range(5)]
    assert upstream.connections == 5


@pytest.mark.parametrize("request_", [
    b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\nhi",
    b"POST / HTTP/1.1\r\nHost: x\r\n\r\n",
    b"PUT / HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\nhi",
], ids=["not idempotent", "not idempotent, no body", "its body is spent"])  # fmt: skip
def test_what_cannot_be_repeated_is_not(request_: bytes) -> None:
    with proxied(closing_after(1)) as (proxy, upstream), proxy.connect() as client:
        client.sendall(GET % 1)
        read_until(client, b"\r\n\r\nok")
        client.sendall(request_)
        assert read_until(client, b"}").startswith(b"HTTP/1.1 502")
    assert upstream.connections == 1
    assert len(upstream.seen) == 1


def test_a_request_is_not_repeated_when_a_new_connection_breaks_too() -> None:
    with proxied(closing_after(0)) as (proxy, upstream):
        assert one_answer(exchange(proxy, LAST)).status == 502
    assert upstream.connections == 1


def test_an_upstream_that_is_not_there_is_502() -> None:
    proxy = Proxy(ToOne(Forward(Address(path="/nonexistent/socket"))))
    with proxy.connect() as client:
        for n in range(3):  # the connection to the client stays good
            client.sendall(GET % n)
            assert b"UPSTREAM_UNREACHABLE" in read_until(client, b"}")
    proxy.close()


def test_an_early_answer_reaches_the_client_while_it_still_sends() -> None:
    def hasty(peer: socket.socket, _upstream: Upstream) -> None:
        read_head(peer)
        peer.sendall(b"HTTP/1.1 413 Content Too Large\r\nContent-Length: 3\r\n\r\nno!")
        read_all(peer)

    with proxied(hasty) as (proxy, _), proxy.connect() as client:
        client.sendall(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\n" + b"x" * 1000)
        got = one_answer(read_until(client, b"no!"))
        assert (got.status, got.header(b"connection")) == (413, b"close")
        client.sendall(b"x" * 1000)  # nobody minds
        assert read_all(client) == b""


def test_a_body_flows_on_while_the_answer_flows_back() -> None:
    def echo(peer: socket.socket, _upstream: Upstream) -> None:
        read_head(peer)
        peer.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 30\r\n\r\n")
        for _ in range(30):
            peer.sendall(peer.recv(1))

    with proxied(echo) as (proxy, _), proxy.connect() as client:
        client.sendall(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 30\r\n\r\n")
        read_head(client)
        for n in range(30):
            client.sendall(b"%d" % (n % 10))
            assert client.recv(1) == b"%d" % (n % 10)


def test_a_waiting_body_is_sent_for() -> None:
    def asking(peer: socket.socket, upstream: Upstream) -> None:
        recorder = Recorder()
        head = read_head(peer)
        assert b"Expect: 100-continue\r\n" in head
        peer.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")
        recorder.feed(head)
        while not recorder.feed(peer.recv(65536)):
            pass
        upstream.seen += recorder.requests
        peer.sendall(OK)

    with proxied(asking) as (proxy, upstream), proxy.connect() as client:
        client.sendall(b"PUT / HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nExpect: 100-Continue\r\n\r\n")
        assert read_head(client) == b"HTTP/1.1 100 Continue\r\n\r\n"
        client.sendall(b"hello")
        assert read_until(client, b"\r\n\r\nok").startswith(b"HTTP/1.1 200")
    assert upstream.seen[0].body == b"hello"


def test_a_waiting_body_that_is_refused_is_not_read_as_a_request() -> None:
    def refusing(peer: socket.socket, _upstream: Upstream) -> None:
        read_head(peer)
        peer.sendall(b"HTTP/1.1 417 Expectation Failed\r\nContent-Length: 0\r\n\r\n")
        read_all(peer)

    with proxied(refusing) as (proxy, upstream), proxy.connect() as client:
        client.sendall(b"PUT / HTTP/1.1\r\nHost: x\r\nContent-Length: 50\r\nExpect: 100-continue\r\n\r\n")
        assert b"Connection: close" in read_head(client)
        client.sendall(GET % 1)
        assert read_all(client) == b""
    assert upstream.connections == 1


def test_whoever_has_stopped_sending_still_gets_the_answer() -> None:
    with proxied() as (proxy, _):
        received = exchange(proxy, GET % 1 + GET % 2, half_close=True)
    assert [got.body for got in answers_in(received, b"GET", b"GET")] == [b"ok", b"ok"]


def test_a_body_that_breaks_off_is_no_request_for_the_upstream() -> None:
    ended = threading.Event()

    def waiting(peer: socket.socket, upstream: Upstream) -> None:
        try:
            record(peer, upstream)
        finally:
            ended.set()

    with proxied(waiting) as (proxy, upstream):
        for body in (b"Content-Length: 10\r\n\r\nhello", b"Transfer-Encoding: chunked\r\n\r\n5\r\nhel"):
            ended.clear()
            assert exchange(proxy, b"POST / HTTP/1.1\r\nHost: x\r\n" + body, half_close=True) == b""
            assert ended.wait(10)
    assert upstream.seen == []


def test_a_client_that_goes_away_takes_its_request_along() -> None:
    gone = threading.Event()

    def waiting(peer: socket.socket, _upstream: Upstream) -> None:
        read_head(peer)
        peer.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
        try:
            while True:
                peer.sendall(b"x" * 65536)
        except OSError:
            gone.set()

    with proxied(waiting) as (proxy, _):
        client = proxy.connect()
        client.sendall(GET % 1)
        client.recv(1000)
        client.close()
        assert gone.wait(10)


TIMES = Limits(head_seconds=0.2, idle_seconds=0.2, stall_seconds=0.2, answer_seconds=0.2, linger_seconds=0.2)


@pytest.mark.parametrize(("sent", "status"), [
    (b"GET / HT", 408),
    (b"GET / HTTP/1.1\r\nHost: x\r\n", 408),
    (b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\nabc", 408),
    (b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n9\r\nabc", 408),
    (GET % 1, 504),
], ids=["a line", "a head", "a body", "a chunk", "an answer"])  # fmt: skip
def test_what_takes_too_long_is_ended(sent: bytes, status: int) -> None:
    with proxied(lambda peer, _: print(read_all(peer)), limits=TIMES) as (proxy, _):
        assert one_answer(exchange(proxy, sent)).status == status


def test_a_connection_nobody_uses_is_closed_without_a_word() -> None:
    times = Limits(head_seconds=2, idle_seconds=0.2)  # enough to ask in, on a busy machine
    with proxied(limits=times) as (proxy, _), proxy.connect() as silent, proxy.connect() as client:
        client.sendall(GET % 1)
        assert read_all(client).endswith(b"\r\n\r\nok")
        assert read_all(silent) == b""


def test_a_head_that_trickles_in_does_not_get_more_time() -> None:
    with proxied(limits=Limits(head_seconds=0.3)) as (proxy, _), proxy.connect() as client:
        client.settimeout(0.02)
        received = b""
        for byte in b"GET / HTTP/1.1\r\nHost: x\r\nX-Long: " + b"a" * 2000:
            try:
                client.sendall(bytes([byte]))
                received += client.recv(1000)
            except TimeoutError:
                continue
            except OSError:
                break
            if received:
                break
        assert received.startswith(b"HTTP/1.1 408")


def test_slow_heads_hold_up_nobody_else() -> None:
    with proxied() as (proxy, _):
        slow = [proxy.connect() for _ in range(300)]
        for client in slow:
            client.sendall(b"GET / HTTP/1.1\r\nHost: x\r\nX-A: ")
        assert one_answer(exchange(proxy, LAST)).status == 200
        for client in slow:
            client.sendall(b"1\r\n\r\n")
        assert all(read_until(client, b"\r\n\r\nok").startswith(b"HTTP/1.1 200") for client in slow)
        for client in slow:
            client.close()


def answering_after(release: threading.Event) -> Callable[[socket.socket, Upstream], None]:
    def waiting(peer: socket.socket, _upstream: Upstream) -> None:
        read_head(peer)
        release.wait(10)
        peer.sendall(OK)

    return waiting


def asked_by(number: int) -> bytes:
    """By different persons: of one, not all would be taken."""
    return b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\nX-Who: p%d\r\n\r\n" % number


def test_too_many_requests_for_one_upstream_do_not_pile_up() -> None:
    release = threading.Event()

    with proxied(answering_after(release), at_most=3) as (proxy, upstream):
        clients = [proxy.connect() for _ in range(3)]
        for n, client in enumerate(clients):
            client.sendall(asked_by(n))
        while upstream.connections < 3:
            threading.Event().wait(0.01)
        got = one_answer(exchange(proxy, LAST))
        assert (got.status, got.header(b"retry-after")) == (503, b"2")
        release.set()
        for client in clients:
            read_until(client, b"\r\n\r\nok")
            client.close()
        assert one_answer(exchange(proxy, LAST)).status == 200


def test_nor_do_those_that_come_at_the_same_moment() -> None:
    release, together = threading.Event(), threading.Event()

    with proxied(answering_after(release), at_most=3) as (proxy, upstream):
        clients = [proxy.connect() for _ in range(8)]
        while proxy.call(lambda: len(proxy.engine.watched)) < 8:
            threading.Event().wait(0.01)
        proxy.loop.call_soon_threadsafe(together.wait, 10)  # the loop stands still
        for n, client in enumerate(clients):
            client.sendall(asked_by(n))
        together.set()
        while len(select.select(clients, [], [], 10)[0]) < 5:  # are answered, and none of the others is
            threading.Event().wait(0.01)
        release.set()
        statuses = [one_answer(read_all(client)).status for client in clients]
        assert sorted(statuses) == [200] * 3 + [503] * 5
        assert upstream.connections == 3
        for client in clients:
            client.close()


def deciding(by: Callable[[Forward], Callable[[RequestHead], Decision]]) -> tuple[Proxy, Upstream]:
    upstream = Upstream()
    director = ToOne(Forward(upstream.address))
    director.decide_by = by(director.forward)
    return Proxy(director), upstream


def test_the_director_may_answer_by_itself() -> None:
    page = Answer(503, ((b"Content-Type", b"text/html"),), b"<p>asleep")
    proxy, upstream = deciding(lambda forward: lambda head: page if head.path == b"/page" else forward)
    ask = b"%b /page HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n"
    received = exchange(proxy, ask % (b"GET", 0) + ask % (b"HEAD", 0) + LAST)
    assert [got.status for got in answers_in(received, b"GET", b"HEAD", b"GET")] == [503, 503, 200]
    refused = one_answer(exchange(proxy, ask % (b"POST", 5) + b"hello" + LAST), b"POST")
    assert (refused.body, refused.header(b"connection")) == (b"<p>asleep", b"close")
    assert len(upstream.seen) == 1
    proxy.close()
    upstream.close()


def test_a_request_may_be_held_until_there_is_somewhere_to_go() -> None:
    async def later(decision: Forward | Answer) -> Forward | Answer:
        await asyncio.sleep(0.05)
        return decision

    late = answers.problem(503, "asleep")
    proxy, upstream = deciding(lambda forward: lambda _head: Hold(later(forward), 10, late))
    body = b"z" * 200_000
    received = exchange(proxy, b"PUT / HTTP/1.1\r\nHost: x\r\nContent-Length: 200000\r\n\r\n" + body, LAST)
    assert [got.status for got in answers_in(received, b"PUT", b"GET")] == [200, 200]
    assert upstream.seen[0].body == body
    proxy.close()
    upstream.close()


def test_a_request_is_not_held_for_ever() -> None:
    late = answers.problem(503, "still asleep")
    proxy, upstream = deciding(lambda _forward: lambda _head: Hold(asyncio.Future(), 0.05, late))
    assert [got.status for got in answers_in(exchange(proxy, GET % 1 + LAST), b"GET", b"GET")] == [503, 503]
    assert upstream.connections == 0
    proxy.close()
    upstream.close()


def test_a_held_request_ends_with_its_client() -> None:
    waiting: list[asyncio.Future[Forward | Answer]] = []

    def hold(_head: RequestHead) -> Decision:
        waiting.append(asyncio.get_running_loop().create_future())
        return Hold(waiting[0], 60, answers.problem(503, "asleep"))

    proxy, upstream = deciding(lambda _forward: hold)
    client = proxy.connect()
    client.sendall(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\n")
    while not waiting:
        threading.Event().wait(0.01)
    client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
    client.close()
    patience = time.monotonic() + 20
    while not waiting[0].cancelled() and time.monotonic() < patience:
        threading.Event().wait(0.01)
    assert waiting[0].cancelled()
    proxy.close()
    upstream.close()


def test_a_decision_may_be_handed_in_by_a_call() -> None:
    """Of either kind, with a body and with further requests behind it."""
    page = Answer(200, (), b"now")

    def later(decision: Forward | Answer) -> Later:
        def begin(decided: Callable[[Forward | Answer], None]) -> None:
            asyncio.get_running_loop().call_later(0.05, decided, decision)

        return Later(begin)

    proxy, upstream = deciding(lambda forward: lambda head: later(page if head.method == b"GET" else forward))
    put = b"PUT / HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhello"
    received = exchange(proxy, GET % 1 + put + GET % 2 + LAST)
    got = answers_in(received, b"GET", b"PUT", b"GET", b"GET")
    assert [(one.status, one.body == b"now") for one in got] == [(200, True), (200, False), (200, True), (200, True)]
    assert [seen.body for seen in upstream.seen] == [b"hello"]
    proxy.close()
    upstream.close()


def test_a_decision_handed_in_after_the_client_left_does_nothing() -> None:
    handed_in: list[Callable[[Forward | Answer], None]] = []
    page = Answer(200, (), b"now")
    first = Later(handed_in.append)
    proxy, upstream = deciding(lambda _forward: lambda head: page if head.path == b"/last" else first)
    client = proxy.connect()
    client.sendall(GET % 1)
    while not handed_in:
        threading.Event().wait(0.01)
    client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
    client.close()
    proxy.loop.call_soon_threadsafe(handed_in[0], page)
    proxy.loop.call_soon_threadsafe(handed_in[0], page)
    assert one_answer(exchange(proxy, b"GET /last HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")).body == b"now"
    proxy.close()
    upstream.close()


def test_a_mistake_in_the_director_is_500() -> None:
    def wrong(_head: RequestHead) -> Decision:
        raise ZeroDivisionError

    proxy, upstream = deciding(lambda _forward: wrong)
    assert one_answer(exchange(proxy, LAST)).status == 500
    proxy.close()
    upstream.close()
