"""Every request of the table through the real proxy: what reaches the upstream is what h11 reads, or nothing at all."""

import time
from email.utils import parsedate_to_datetime

import pytest

from tests.proxy.harness import Proxy, Upstream, answers_in, exchange, meaning, one_answer
from tests.proxy.request_cases import CHUNKED, HOSTILE, SMUGGLED, VALID, chunks

Recording = tuple[Proxy, Upstream]
# Trailers that must not pass are tested by name below; h11 keeps all of them.


def in_pieces(data: bytes) -> list[bytes]:
    """Byte by byte where it matters: in everything but long runs of the same."""
    return [data[n : n + 1] for n in range(len(data))] if len(data) < 2000 else [data[:-7], data[-7:-1], data[-1:]]


@pytest.mark.parametrize("split", [False, True], ids=["at once", "in pieces"])
@pytest.mark.parametrize("name", VALID)
def test_a_valid_request_arrives_as_a_strict_parser_reads_it(recording: Recording, name: str, split: bool) -> None:
    proxy, upstream = recording
    upstream.seen.clear()
    data = VALID[name]
    expected = meaning(data)
    assert expected.requests
    assert not expected.broken
    received = exchange(proxy, *(in_pieces(data) if split else [data]))
    got = answers_in(received, *(request.method for request in expected.requests))
    assert [answer.status for answer in got] == [200] * len(expected.requests)
    assert upstream.broken == []
    assert [seen.end_to_end() for seen in upstream.seen] == [seen.end_to_end() for seen in expected.requests]


@pytest.mark.parametrize("split", [False, True], ids=["at once", "in pieces"])
@pytest.mark.parametrize("name", HOSTILE)
def test_an_ambiguous_request_is_refused_and_the_connection_ends(recording: Recording, name: str, split: bool) -> None:
    proxy, upstream = recording
    upstream.seen.clear()
    data, status = HOSTILE[name]
    received = exchange(proxy, *(in_pieces(data) if split else [data]), SMUGGLED)
    answer = one_answer(received)
    assert answer.status == status, received
    assert answer.header(b"connection") == b"close"
    assert answer.header(b"content-type") == b"application/problem+json"
    assert len(answers_in(received, b"GET", b"GET")) == 1
    assert upstream.seen == []
    assert upstream.broken == []


def test_the_table_has_enough_cases() -> None:
    assert len(VALID) + len(HOSTILE) >= 150


def test_what_h11_refuses_is_refused_here_too() -> None:
    """Stricter than h11 is fine; the other way round would be a hole."""
    for name, data in VALID.items():
        assert not meaning(data).broken, name


def test_framing_is_written_anew_for_the_upstream(recording: Recording) -> None:
    proxy, upstream = recording
    upstream.seen.clear()
    exchange(proxy, chunks(CHUNKED["an extension with a value"], b"X-Keep: 1"))
    (seen,) = upstream.seen
    assert seen.header(b"transfer-encoding") == b"chunked"
    assert seen.header(b"content-length") is None
    assert seen.body == b"hello"


@pytest.mark.parametrize("name", [b"Host", b"Content-Length", b"Authorization", b"X-Forwarded-For", b"Set-Cookie"])
def test_trailers_cannot_say_what_belongs_into_the_head(recording: Recording, name: bytes) -> None:
    proxy, upstream = recording
    upstream.seen.clear()
    exchange(proxy, chunks(b"1\r\nx\r\n0\r\n" + name + b": 9\r\nX-Sum: 1\r\n\r\n"))
    (seen,) = upstream.seen
    assert seen.trailers == ((b"x-sum", b"1"),)


def test_empty_lines_before_a_request_have_an_end(recording: Recording) -> None:
    proxy, upstream = recording
    upstream.seen.clear()
    assert one_answer(exchange(proxy, b"\r\n" * 5 + VALID["method GET"])).status == 400
    assert upstream.seen == []


@pytest.mark.parametrize("data", [
    b"HEAD /a#b HTTP/1.1\r\nHost: x\r\n\r\n",
    b"HEAD / HTTP/1.1\r\nHost: x\r\nX: " + b"a" * 40_000,
    b"HEAD / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nX\r\n",
], ids=["a bad line", "a large head", "a bad body"])  # fmt: skip
def test_a_refusal_of_head_has_no_body(recording: Recording, data: bytes) -> None:
    received = exchange(recording[0], data)
    assert received.startswith(b"HTTP/1.1 4")
    assert received.endswith(b"\r\n\r\n")
    assert one_answer(received, b"HEAD").complete


def test_our_own_answers_say_when_they_were_given(recording: Recording) -> None:
    date = one_answer(exchange(recording[0], b"nonsense\r\n\r\n")).header(b"date") or b""
    assert abs(parsedate_to_datetime(date.decode()).timestamp() - time.time()) < 60


def test_a_request_without_a_host_gets_one(recording: Recording) -> None:
    proxy, upstream = recording
    upstream.seen.clear()
    exchange(proxy, VALID["HTTP/1.0 without a host"])
    assert upstream.seen[0].header(b"host") == b"localhost"
