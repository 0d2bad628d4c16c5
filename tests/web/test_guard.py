"""The server's own bounds on request heads, against the real process, byte by byte."""

import asyncio
import contextlib
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
    # The API's own socket, behind the front door.
    reader, writer = await asyncio.open_unix_connection(platform.data_dir / "run" / "api" / "api.sock")
    answer = asyncio.create_task(_all_of(reader))
    try:
        with contextlib.suppress(ConnectionError):
            for piece in pieces:
                writer.write(piece)
                await writer.drain()
                await asyncio.sleep(pause)
        return await asyncio.wait_for(answer, 20)
    finally:
        writer.close()


async def _all_of(reader: asyncio.StreamReader) -> bytes:
    found = b""
    with contextlib.suppress(ConnectionError):
        while more := await reader.read(65536):
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
    pieces = [HEAD + b"X-Big: ", *[b"a" * 8192] * 6]
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
