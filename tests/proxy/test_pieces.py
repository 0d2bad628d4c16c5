"""Heads, chunk sizes and trailers that come byte by byte: every byte is looked at once, not once for each after it.

What is measured is processor time, with many times the room it needs: to look again and again took half a minute.
"""

import socket
import time
from collections.abc import Callable

import pytest

from codehub.proxy import chunked, framing
from codehub.proxy.framing import Partial, RefusalError
from codehub.proxy.model import Limits
from tests.proxy.harness import OK, Upstream, one_answer, proxied, read_until

SECONDS = 10.0
LONG = b"X: " + b"a" * 120_000


def test_a_long_head_in_bytes_costs_no_more_than_its_length() -> None:
    partial, began = Partial(), time.thread_time()
    for byte in (bytes([byte]) for byte in b"HTTP/1.1 200 OK\r\n" + LONG + b"\r\n"):
        assert not partial.complete(byte)
    assert partial.complete(b"\r\n")
    assert time.thread_time() - began < SECONDS


def test_trailers_in_bytes_cost_no_more_than_their_length() -> None:
    began = time.thread_time()
    for _ in range(40):
        reader = chunked.Reader()
        trailer = b"X: " + b"a" * (chunked.TRAILER_BYTES - 100) + b"\r\n"
        for byte in b"1\r\nx\r\n0\r\n" + trailer + b"\r\n":
            reader.feed(bytes([byte]))
        assert reader.done
        assert len(reader.trailers) == 1
    assert time.thread_time() - began < SECONDS


def test_a_head_in_bytes_passes_the_proxy_both_ways() -> None:
    answer = OK.replace(b"\r\n\r\n", b"\r\n" + LONG[:20_000] + b"\r\n\r\n")

    def in_bytes(data: bytes, send: Callable[[bytes], object]) -> None:
        for at in range(len(data)):
            send(data[at : at + 1])

    def script(peer: socket.socket, _upstream: Upstream) -> None:
        read_until(peer, b"\r\n\r\n")
        in_bytes(answer, peer.sendall)

    with proxied(script) as (proxy, _), proxy.connect() as client:
        in_bytes(b"GET / HTTP/1.1\r\nHost: x\r\n" + LONG[:20_000] + b"\r\n\r\n", client.sendall)
        assert one_answer(read_until(client, b"\r\n\r\nok")).header(b"x") == LONG[3:20_000]


@pytest.mark.parametrize("bad", [b"a\nb", b"a\rb", b"\0", b"a\r\n\nb"])
def test_what_is_unreadable_is_seen_wherever_the_pieces_begin(bad: bytes) -> None:
    data = b"GET / HTTP/1.1\r\nX: " + bad + b"c"
    for cut in range(1, len(data)):
        partial = Partial()
        with pytest.raises(RefusalError):
            assert not partial.complete(data[:cut])
            partial.complete(data[cut:])


def test_the_end_is_seen_wherever_the_pieces_begin() -> None:
    data = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"
    for cut in range(1, len(data)):
        partial = Partial()
        assert not partial.complete(data[:cut])
        assert partial.complete(data[cut:])


def test_what_strangers_make_us_remember_is_a_few_megabytes() -> None:
    """Blocks of headers, single headers, lists of options: bounded in number and size."""
    limits = Limits()
    for number in range(300):
        long = b"Connection: " + b",".join(b"%d" % n for n in range(number, number + 4000))
        many = b"\r\n".join(b"X-%d: %d" % (n, number) for n in range(90))
        for block in (b"Host: x\r\n" + long, b"Host: x\r\n" + many):
            framing.request(b"GET / HTTP/1.1\r\n" + block, limits.head_fields)
    blocks = framing._blocks
    assert len(blocks) <= framing.REMEMBERED_BLOCKS
    assert all(len(block.fields) <= framing.REMEMBERED_FIELDS for block in blocks.values())
    assert all(len(text) <= framing.REMEMBERED_BYTES for text, _ in blocks)
    assert framing._options_again.cache_info().currsize < 50  # those lists are too long for it
