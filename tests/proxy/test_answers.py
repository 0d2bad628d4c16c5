"""Every kind of answer through the real proxy: the client gets what h11 reads from the upstream, or a 502."""

import socket
import threading
from collections.abc import Iterator

import pytest

from codehub.proxy.model import Forward, Limits
from tests.proxy.harness import HOPS, Got, Proxy, ToOne, Upstream, exchange, one_answer, proxied

GET = b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
HEAD = GET.replace(b"GET", b"HEAD", 1)
OLD = b"GET / HTTP/1.0\r\n\r\n"


def ok(*fields: bytes, body: bytes = b"", status: bytes = b"200 OK") -> bytes:
    return b"HTTP/1.1 " + status + b"\r\n" + b"".join(f + b"\r\n" for f in fields) + b"\r\n" + body


LARGE = b"10000\r\n" + b"y" * 65536 + b"\r\n"
HOP = (b"Connection: x-a, close", b"X-A: 1", b"Keep-Alive: 5")
VALID: dict[str, tuple[bytes, bytes]] = {
    "a length": (GET, ok(b"Content-Length: 5", body=b"hello")),
    "no body": (GET, ok(b"Content-Length: 0")),
    "a large body": (GET, ok(b"Content-Length: 500000", body=b"x" * 500_000)),
    "one chunk": (GET, ok(b"Transfer-Encoding: chunked", body=b"5\r\nhello\r\n0\r\n\r\n")),
    "chunks and extensions": (GET, ok(b"Transfer-Encoding: chunked", body=b"2;a=b\r\nhe\r\n3\r\nllo\r\n0\r\n\r\n")),
    "trailers": (GET, ok(b"Transfer-Encoding: Chunked", body=b"5\r\nhello\r\n0\r\nX-Sum: 1\r\n\r\n")),
    "large chunks": (GET, ok(b"Transfer-Encoding: chunked", body=LARGE * 5 + b"0\r\n\r\n")),
    "a body until the end": (GET, ok(body=b"hello")),
    "a large body until the end": (GET, ok(body=b"z" * 300_000)),
    "an empty body until the end": (GET, ok()),
    "HTTP/1.0": (GET, b"HTTP/1.0 200 OK\r\n\r\nhello"),
    "HTTP/1.0 with a length": (GET, b"HTTP/1.0 200 OK\r\nContent-Length: 5\r\n\r\nhello"),
    "no reason": (GET, b"HTTP/1.1 200 \r\nContent-Length: 2\r\n\r\nok"),
    "no reason and no blank": (GET, b"HTTP/1.1 200\r\nContent-Length: 2\r\n\r\nok"),
    "a reason beyond ASCII": (GET, ok(b"Content-Length: 0", status=b"200 \xec\x95\x88")),
    "204": (GET, ok(status=b"204 No Content")),
    "304 with a length": (GET, ok(b"Content-Length: 5", b'ETag: "x"', status=b"304 Not Modified")),
    "304": (GET, ok(status=b"304 Not Modified")),
    "205": (GET, ok(b"Content-Length: 0", status=b"205 Reset Content")),
    "HEAD with a length": (HEAD, ok(b"Content-Length: 5")),
    "HEAD with chunks": (HEAD, ok(b"Transfer-Encoding: chunked")),
    "HEAD with neither": (HEAD, ok()),
    "HEAD and 404": (HEAD, ok(b"Content-Length: 9", status=b"404 Not Found")),
    "an error": (GET, ok(b"Content-Length: 2", body=b"no", status=b"500 Internal Server Error")),
    "a status nobody knows": (GET, ok(b"Content-Length: 2", body=b"hm", status=b"599 Whatever")),
    "a redirect": (GET, ok(b"Location: /elsewhere?x#y", b"Content-Length: 0", status=b"302 Found")),
    "several cookies": (GET, ok(b"Set-Cookie: a=1; Path=/", b"Set-Cookie: b=2", b"Content-Length: 0")),
    "early hints": (GET, ok(b"Link: </a>", status=b"103 Early Hints") + ok(b"Content-Length: 2", body=b"ok")),
    "100 and the answer": (GET, ok(status=b"100 Continue") + ok(b"Content-Length: 2", body=b"ok")),
    "many hints": (GET, ok(status=b"103 Early Hints") * 20 + ok(b"Content-Length: 2", body=b"ok")),
    "hop-by-hop headers": (GET, ok(*HOP, b"Content-Length: 2", body=b"ok")),
    "a hundred headers": (GET, ok(*(b"X-%d: 1" % n for n in range(100)), b"Content-Length: 0")),
    "a large header": (GET, ok(b"X: " + b"a" * 60_000, b"Content-Length: 0")),
    "odd spacing": (GET, ok(b"X-A:1", b"X-B: \t 2 \t", b"Content-Length:\t2 ", body=b"ok")),
}  # fmt: skip
INVALID = {
    "length and chunks": ok(b"Content-Length: 5", b"Transfer-Encoding: chunked", body=b"0\r\n\r\n"),
    "two lengths": ok(b"Content-Length: 5", b"Content-Length: 6", body=b"hello!"),
    "a negative length": ok(b"Content-Length: -1"),
    "a list of lengths": ok(b"Content-Length: 5, 5", body=b"hello"),
    "an unknown encoding": ok(b"Transfer-Encoding: gzip, chunked", body=b"0\r\n\r\n"),
    "chunks with HTTP/1.0": b"HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "bare line feeds": b"HTTP/1.1 200 OK\nContent-Length: 0\n\n",
    "one bare line feed": b"HTTP/1.1 200 OK\r\nX: a\nY: b\r\nContent-Length: 0\r\n\r\n",
    "folding": b"HTTP/1.1 200 OK\r\nX: a\r\n b\r\nContent-Length: 0\r\n\r\n",
    "a return in a value": ok(b"X: a\rSet-Cookie: b", b"Content-Length: 0"),
    "a NUL": ok(b"X: \0", b"Content-Length: 0"),
    "a blank in a name": ok(b"X : a", b"Content-Length: 0"),
    "no colon": ok(b"X", b"Content-Length: 0"),
    "no status": b"HTTP/1.1 OK\r\n\r\n",
    "a status of two digits": b"HTTP/1.1 20 OK\r\n\r\n",
    "a status below 100": b"HTTP/1.1 099 OK\r\nContent-Length: 0\r\n\r\n",
    "HTTP/2": b"HTTP/2.0 200 OK\r\nContent-Length: 0\r\n\r\n",
    "HTTP/0.9": b"<html>hello</html>" + b" " * 100 + b"\r\n\r\n",
    "another protocol": b"SSH-2.0-OpenSSH_9.2\r\n",
    "an upgrade nobody asked for": ok(b"Connection: upgrade", b"Upgrade: websocket", status=b"101 Switching Protocols"),
    "a head without end": b"HTTP/1.1 200 OK\r\nX: " + b"a" * 200_000,
    "too many headers": ok(*(b"X: 1" for _ in range(300)), b"Content-Length: 0"),
    "nothing": b"",
    "half a status line": b"HTTP/1.1 20",
    "half a head": b"HTTP/1.1 200 OK\r\nContent-Le",
    "only hints": ok(status=b"103 Early Hints"),
}


def once(peer: socket.socket, upstream: Upstream) -> None:
    """Read one head, answer, close."""
    data = b""
    while b"\r\n\r\n" not in data:
        data += peer.recv(65536)
    peer.sendall(upstream.answer)


@pytest.fixture(scope="module")
def scripted() -> Iterator[tuple[Proxy, Upstream]]:
    upstream = Upstream(once)
    proxy = Proxy(ToOne(Forward(upstream.address)), Limits(answer_seconds=10))
    yield proxy, upstream
    proxy.close()
    upstream.close()


Scripted = tuple[Proxy, Upstream]


def end_to_end(got: Got) -> list[tuple[bytes, bytes]]:
    named = {w.strip().lower() for w in (got.header(b"connection") or b"").split(b",")}
    return [(k, v) for k, v in got.headers if k not in HOPS | named]


@pytest.mark.parametrize("name", VALID)
def test_an_answer_arrives_as_a_strict_parser_reads_it(scripted: Scripted, name: str) -> None:
    proxy, upstream = scripted
    asked, upstream.answer = VALID[name]
    method = asked.split()[0]
    expected, got = one_answer(upstream.answer, method), one_answer(exchange(proxy, asked), method)
    assert (got.status, got.body, got.complete) == (expected.status, expected.body, True)
    assert got.informational == expected.informational
    assert end_to_end(got) == end_to_end(expected)
    assert got.trailers == expected.trailers


@pytest.mark.parametrize("name", [name for name, (asked, _) in VALID.items() if asked == GET])
def test_an_old_client_gets_every_answer_without_chunks_or_hints(scripted: Scripted, name: str) -> None:
    proxy, upstream = scripted
    _, upstream.answer = VALID[name]
    expected, got = one_answer(upstream.answer), one_answer(exchange(proxy, OLD))
    assert (got.status, got.body, got.complete) == (expected.status, expected.body, True)
    assert got.informational == []
    assert got.header(b"transfer-encoding") is None


@pytest.mark.parametrize("name", INVALID)
def test_an_answer_that_is_not_http_becomes_502(scripted: Scripted, name: str) -> None:
    proxy, upstream = scripted
    upstream.answer = INVALID[name]
    got = one_answer(exchange(proxy, GET))
    assert got.status == 502
    assert b'"code": "UPSTREAM_' in got.body


@pytest.mark.parametrize("broken", [
    ok(b"Content-Length: 10", body=b"hello"),
    ok(b"Transfer-Encoding: chunked", body=b"5\r\nhel"),
    ok(b"Transfer-Encoding: chunked", body=b"5\r\nhello\r\n"),
    ok(b"Transfer-Encoding: chunked", body=b"5\r\nhello\r\nG\r\n"),
    ok(b"Transfer-Encoding: chunked", body=b"5\r\nhelloworld\r\n0\r\n\r\n"),
    ok(b"Transfer-Encoding: chunked", body=b"5\r\nhello\r\n0\r\nbad trailer\r\n\r\n"),
], ids=["a short body", "half a chunk", "no last chunk", "a bad size", "a long chunk", "a bad trailer"])  # fmt: skip
def test_a_client_can_tell_that_an_answer_broke_off(scripted: Scripted, broken: bytes) -> None:
    proxy, upstream = scripted
    upstream.answer = broken
    got = one_answer(exchange(proxy, GET))
    assert got.status == 200
    assert not got.complete


def test_an_old_client_is_told_by_a_reset_that_an_answer_broke_off(scripted: Scripted) -> None:
    proxy, upstream = scripted
    upstream.answer = ok(b"Transfer-Encoding: chunked", body=b"5\r\nhello\r\n")
    with proxy.connect() as client:
        client.sendall(OLD)
        with pytest.raises(ConnectionResetError):
            while client.recv(65536):
                pass


def test_bytes_after_an_answer_are_never_taken_for_the_next_one() -> None:
    extra = ok(b"Content-Length: 2", body=b"ok") + ok(b"Content-Length: 4", body=b"evil")
    with proxied(answer=extra) as (proxy, upstream), proxy.connect() as client:
        for _ in range(3):
            client.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
            data = b""
            while not data.endswith(b"ok"):
                data += client.recv(65536)
            assert b"evil" not in data
    assert upstream.connections == 3


def test_an_unasked_answer_on_an_idle_connection_reaches_nobody() -> None:
    dropped = threading.Semaphore(0)

    def chatty(peer: socket.socket, upstream: Upstream) -> None:
        once(peer, upstream)
        peer.sendall(ok(b"Content-Length: 4", body=b"evil"))
        assert peer.recv(1) == b""
        dropped.release()

    with proxied(chatty) as (proxy, upstream):
        for _ in range(5):
            assert one_answer(exchange(proxy, GET)).body == b"ok"
            assert dropped.acquire(timeout=30)  # what comes after the next question, nobody could tell from its answer
    assert upstream.connections == 5
