"""The engine with the simplest director, and what it counts."""

import json
import socket

from prometheus_client import REGISTRY

from codehub.proxy.model import Address
from codehub.proxy.single_upstream import SingleUpstream
from tests.proxy.harness import Proxy, Upstream, exchange, one_answer, proxied, read_until

ASK = b"GET %b HTTP/1.1\r\nHost: x\r\nConnection: close\r\nAuthorization: Bearer t\r\nCookie: codehub=s\r\n\r\n"
HANDSHAKE = b"GET / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"
SWITCH = b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n"


def test_everything_goes_to_the_one_upstream(socket_path: str) -> None:
    upstream = Upstream(path=socket_path)
    proxy = Proxy(SingleUpstream(upstream.address))
    targets = (b"/", b"/api/v1/users?limit=5", b"/w", b"/w/x/", b"/static/w/x", b"//w/x")
    for target in targets:
        assert one_answer(exchange(proxy, ASK % target)).status == 200, target
    assert len(upstream.seen) == len(targets)
    assert upstream.seen[0].header(b"authorization") == b"Bearer t"
    assert upstream.seen[0].header(b"cookie") == b"codehub=s"
    proxy.close()
    upstream.close()


def test_an_upstream_that_is_away_is_a_problem_502() -> None:
    proxy = Proxy(SingleUpstream(Address(path="/nonexistent/api")))
    got = one_answer(exchange(proxy, ASK % b"/"))
    problem = json.loads(got.body)
    assert (got.status, problem["status"], problem["code"]) == (502, 502, "UPSTREAM_UNREACHABLE")
    assert set(problem) == {"type", "title", "status", "detail", "code"}
    proxy.close()


def counted(name: str, **labels: str) -> float:
    return REGISTRY.get_sample_value(f"codehub_proxy_{name}", labels) or 0.0


def test_requests_bytes_failures_and_websockets_are_counted() -> None:
    def once_then_tunnel(peer: socket.socket, _upstream: Upstream) -> None:
        head = read_until(peer, b"\r\n\r\n")
        if b"Upgrade" in head:
            peer.sendall(SWITCH + b"12345")
            peer.recv(1)
        elif head.startswith(b"GET /ok"):
            peer.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n0123456789")

    with proxied(once_then_tunnel) as (proxy, _):
        proxy.call(proxy.engine.flush_metrics)
        names = [
            ("requests_total", {"status": "2xx"}),
            ("requests_total", {"status": "5xx"}),
            ("upstream_failures_total", {"reason": "broke_off"}),
            ("bytes_total", {"direction": "out"}),
        ]
        before = [counted(name, **labels) for name, labels in names]
        exchange(proxy, ASK % b"/ok")
        exchange(proxy, ASK % b"/breaks")
        with proxy.connect() as client:
            client.sendall(HANDSHAKE)
            read_until(client, b"12345")
            proxy.call(proxy.engine.flush_metrics)
            assert counted("open_websockets") == 1
        after = [counted(name, **labels) for name, labels in names]
    grown = [b - a for a, b in zip(before, after, strict=True)]
    assert grown[:3] == [1, 1, 1]
    assert grown[3] >= 15
