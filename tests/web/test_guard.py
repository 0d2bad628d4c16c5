"""The server's own bounds on request heads, against the real process, byte by byte."""

import asyncio
import contextlib
import socket
import time
from collections.abc import Iterator

import pytest

from codehub.web import guard
from tests.places import a_place
from tests.platform import Platform, running

HEAD_SECONDS = 2.0


@pytest.fixture(scope="module")
def platform() -> Iterator[Platform]:
    """A server that waits less long than the default."""
    with a_place() as folder, running(folder / "data", CODEHUB_HEAD_SECONDS=str(HEAD_SECONDS)) as started:
        yield started


async def ask(platform: Platform, *pieces: bytes, pause: float = 0.0) -> bytes:
    """Send raw bytes, return whatever comes back before the connection ends, also while there is more to send."""
    return await asyncio.to_thread(_ask, platform, pieces, pause)


def _ask(platform: Platform, pieces: tuple[bytes, ...], pause: float) -> bytes:
    """With a plain socket: a stream that cannot be written any more would drop what has come in."""
    found = b""
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(20)
        # The API's own socket, behind the front door.
        connection.connect(str(platform.data_dir / "run" / "api" / "api.sock"))
        with contextlib.suppress(ConnectionError):
            for piece in pieces:
                connection.sendall(piece)
                time.sleep(pause)
        with contextlib.suppress(ConnectionError):
            while more := connection.recv(65536):
                found += more
    return found


HEAD = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"


async def test_an_ordinary_head_passes(platform: Platform) -> None:
    assert b" 200 OK" in await ask(platform, HEAD + b"\r\n")


@pytest.mark.parametrize(
    "more",
    [
        b"X-Big: " + b"a" * (guard.HEAD_BYTES + 1) + b"\r\n\r\n",
        b"".join(b"X-%d: 1\r\n" % n for n in range(guard.HEAD_FIELDS + 1)) + b"\r\n",
    ],
    ids=["one huge field", "too many fields"],
)
async def test_a_head_that_is_too_large_is_refused(platform: Platform, more: bytes) -> None:
    assert b" 400 " in await ask(platform, HEAD + more)


async def test_a_head_that_never_ends_is_refused_before_it_fills_the_memory(platform: Platform) -> None:
    # Many more than fit: what a busy server takes in one piece is looked at with the next one.
    pieces = [HEAD + b"X-Big: ", *[b"a" * 8192] * 100]
    assert b" 400 " in await ask(platform, *pieces, pause=0.02)


async def test_both_length_and_chunking_is_refused(platform: Platform) -> None:
    both = b"Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"
    assert b" 400 " in await ask(platform, HEAD.replace(b"GET", b"POST") + both)


async def test_a_silent_connection_and_half_a_head_are_closed_in_time(platform: Platform) -> None:
    begun = asyncio.get_running_loop().time()
    answers = await asyncio.gather(
        ask(platform), ask(platform, HEAD), ask(platform, b"GET /", b"heal", b"thz", pause=0.3)
    )
    assert set(answers) == {b""}
    assert asyncio.get_running_loop().time() - begun < HEAD_SECONDS + 5
