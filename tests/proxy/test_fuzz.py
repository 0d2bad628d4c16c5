"""Mutated requests through the real proxy, side by side with h11: whatever passes means the same to both.

Deterministic: the same examples in every run.
"""

import contextlib
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from codehub.proxy import chunked, framing
from codehub.proxy.framing import RefusalError
from tests.proxy.harness import Proxy, Upstream, answers_in, exchange, meaning
from tests.proxy.request_cases import CLOSE, HOSTILE, SMUGGLED, VALID

SEEDS = sorted(
    [data for data in VALID.values() if len(data) < 3000] + [data for data, _ in HOSTILE.values() if len(data) < 3000]
)
# Bytes that mean something to some parser.
SPICES = [
    b"\r", b"\n", b"\r\n", b"\0", b" ", b"\t", b":", b",", b";", b"0", b"chunked", b"\r\n\r\n", b"\x0b", b"\xff", b"/",
    b"Transfer-Encoding: chunked\r\n", b"Content-Length: 3\r\n", b"HTTP/1.1", b"HTTP/1.0", b"\\", b"-",
    b"GET", b"%0d%0a",
]  # fmt: skip
Recording = tuple[Proxy, Upstream]


def examples(count: int) -> settings:
    return settings(max_examples=count, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))


@st.composite
def mutated(draw: st.DrawFn) -> bytes:
    data = bytearray(draw(st.sampled_from(SEEDS)))
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, len(data)))
        match draw(st.sampled_from(["insert", "delete", "flip", "repeat", "cross"])):
            case "insert":
                data[at:at] = draw(st.sampled_from(SPICES))
            case "delete":
                del data[at : at + draw(st.integers(1, 8))]
            case "flip" if at < len(data):
                data[at] = draw(st.integers(0, 255))
            case "repeat":
                data[at:at] = data[at : at + draw(st.integers(1, 40))]
            case _:
                other = draw(st.sampled_from(SEEDS))
                data[at:] = other[draw(st.integers(0, len(other))) :]
    return bytes(data)


def check(recording: Recording, data: bytes) -> None:
    """Everything complete that reached the upstream is what h11 reads at its place; nothing came after a refusal."""
    proxy, upstream = recording
    upstream.seen.clear()
    expected = meaning(data)
    received = exchange(proxy, data, half_close=True)
    assert upstream.broken == []
    seen = [request.end_to_end() for request in upstream.seen]
    assert seen == [request.end_to_end() for request in expected.requests[: len(seen)]]
    statuses = [got.status for got in answers_in(received, *[r.method for r in expected.requests[: len(seen)]], b"GET")]
    assert all(status in {200, 400, 417, 431, 501, 505} for status in statuses)


@examples(600)
@given(data=mutated())
def test_mutated_requests_mean_the_same_upstream_or_nothing(recording: Recording, data: bytes) -> None:
    check(recording, data)


@examples(150)
@given(data=mutated(), body=st.binary(max_size=50))
def test_whatever_follows_a_mutated_request_is_not_smuggled(recording: Recording, data: bytes, body: bytes) -> None:
    check(recording, data + body + SMUGGLED)


PLACES = {
    "method": b"G%bET / HTTP/1.1\r\nHost: x\r\n" + CLOSE + b"\r\n",
    "target": b"GET /a%bb HTTP/1.1\r\nHost: x\r\n" + CLOSE + b"\r\n",
    "version": b"GET / HTTP/1.1%b\r\nHost: x\r\n" + CLOSE + b"\r\n",
    "name": b"GET / HTTP/1.1\r\nHost: x\r\nX%bY: z\r\n" + CLOSE + b"\r\n",
    "value": b"GET / HTTP/1.1\r\nHost: x\r\nX: a%bb\r\n" + CLOSE + b"\r\n",
    "host": b"GET / HTTP/1.1\r\nHost: a%bb\r\n" + CLOSE + b"\r\n",
    "length": b"POST / HTTP/1.1\r\nHost: x\r\n" + CLOSE + b"Content-Length: %b3\r\n\r\nabc",
    "encoding": b"POST / HTTP/1.1\r\nHost: x\r\n" + CLOSE + b"Transfer-Encoding: chunked%b\r\n\r\n0\r\n\r\n",
    "size": b"POST / HTTP/1.1\r\nHost: x\r\n" + CLOSE + b"Transfer-Encoding: chunked\r\n\r\n3%b\r\nabc\r\n0\r\n\r\n",
    "trailer": b"POST / HTTP/1.1\r\nHost: x\r\n" + CLOSE + b"Transfer-Encoding: chunked\r\n\r\n0\r\nX%b: y\r\n\r\n",
}


@pytest.mark.parametrize("place", PLACES)
def test_every_byte_at_every_place_is_read_as_h11_reads_it_or_refused(recording: Recording, place: str) -> None:
    for byte in range(256):
        check(recording, PLACES[place] % bytes([byte]))


@examples(300)
@given(data=st.lists(st.binary(min_size=1, max_size=3000), max_size=10), cuts=st.lists(st.integers(1, 700), min_size=1))
def test_chunks_are_read_alike_however_they_are_cut(data: list[bytes], cuts: list[int]) -> None:
    end = chunked.end([framing.read_field(b"X:y")])
    whole = b"".join(b"".join(chunked.chunk(piece)) for piece in data) + end + b"rest"
    reader, found, at, n = chunked.Reader(), b"", 0, 0
    while not reader.done:
        found += reader.feed(whole[at : at + cuts[n % len(cuts)]])
        at, n = at + cuts[n % len(cuts)], n + 1
    assert found == b"".join(data)
    assert [field.line for field in reader.trailers] == [b"X: y"]
    assert reader.rest + whole[at:] == b"rest"


@examples(500)
@given(data=st.binary(max_size=300))
def test_the_parsers_know_only_one_kind_of_failure(data: bytes) -> None:
    readers: list[Any] = [lambda: framing.request(data, 100), lambda: framing.response(data, 100, b"GET")]
    readers.append(lambda: chunked.Reader().feed(data))
    for read in readers:
        with contextlib.suppress(RefusalError):
            read()
