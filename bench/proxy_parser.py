"""What does reading a request's head cost: our strict parser, llhttp by httptools, and h11?

A developer runs it. The head is a browser's. Ours remembers header blocks, because a browser repeats its own again and
again; it is also measured with blocks that it never saw. What is counted is processor time, the best of many rounds.

    python bench/proxy_parser.py
"""

import itertools
import pathlib
import sys
import time
from collections.abc import Callable

import h11
import httptools

sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))

from bench._proxies import HEAD
from codehub.proxy import framing

ROUNDS, CALLS = 40, 2000
PASS = "bench.mina.session.1763000000.c2lnbmF0dXJlLW9mLXRoaXMtcGFzcw"  # noqa: S105
FIELDS = {"method": "GET", "path": "/w/bench/api/contents", "id": "bench", "mode": "cors", "dest": "empty", "more": ""}


def head(number: int = 0) -> bytes:
    return HEAD.format(**FIELDS, pass_=f"{PASS}{number}").replace("\n", "\r\n").encode()


class Collected:
    """What a program behind httptools needs at least."""

    def __init__(self) -> None:
        self.target = b""
        self.headers: list[tuple[bytes, bytes]] = []

    def on_url(self, url: bytes) -> None:
        self.target += url

    def on_header(self, name: bytes, value: bytes) -> None:
        self.headers.append((name.lower(), value))


def ours(data: bytes) -> None:
    framing.request(data[:-4], 100)


def llhttp(data: bytes) -> None:
    into = Collected()
    parser = httptools.HttpRequestParser(into)
    parser.feed_data(data)
    parser.get_method()


def by_h11(data: bytes) -> None:
    connection = h11.Connection(h11.SERVER)
    connection.receive_data(data)
    connection.next_event()


def best(read: Callable[[bytes], None], heads: list[bytes]) -> float:
    """Microseconds of one call."""
    found = []
    for _ in range(ROUNDS):
        batch = list(itertools.islice(itertools.cycle(heads), CALLS))
        begun = time.thread_time()
        for data in batch:
            read(data)
        found.append((time.thread_time() - begun) / CALLS * 1e6)
    return min(found)


def main() -> None:
    same, new = [head()], [head(number) for number in range(CALLS)]
    print(f"a browser's head of {len(same[0])} bytes, microseconds to read it")
    for name, read, heads in (
        ("ours, a block seen before", ours, same),
        ("ours, a new block every time", ours, new),
        ("llhttp (httptools), nothing checked after it", llhttp, same),
        ("h11", by_h11, same),
    ):
        print(f"{name:<46}{best(read, heads):>8.1f}", flush=True)


if __name__ == "__main__":
    main()
