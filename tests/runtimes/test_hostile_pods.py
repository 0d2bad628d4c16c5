"""A pod has code in it that nobody knows, and may come to stand where its relay stood. What it can do to the platform:
nothing but fail itself.
"""

import asyncio
import json
import os
import pathlib
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest

from codehub.clock import SystemClock
from codehub.runtimes import connect, logs
from codehub.runtimes.base import Address, RuntimeFailureError
from codehub.runtimes.containers.framing import END, LONGEST, STDERR, STDOUT, frame
from codehub.runtimes.kubernetes.asking import Asking
from codehub.runtimes.shepherd.log_files import CURRENT, PREVIOUS
from codehub.system import doors

SECRET = b"of the relay alone"
Answer = Callable[[asyncio.StreamWriter], Awaitable[None]]
Impostor = Callable[[Answer], Awaitable[tuple[Asking, Address]]]


@pytest.mark.parametrize("name", [CURRENT, PREVIOUS])
async def test_a_log_that_is_a_link_to_the_relays_files_shows_nothing_of_them(
    name: str, tmp_path: pathlib.Path
) -> None:
    folder = tmp_path / "ide"
    folder.mkdir()
    (tmp_path / "tls.key").write_bytes(SECRET)
    if name == PREVIOUS:
        (folder / CURRENT).write_bytes(b"said ")
    (folder / name).symlink_to(tmp_path / "tls.key")
    assert SECRET not in logs.tail(folder, 1000)
    following = logs.follow(folder, SystemClock(), 1000)
    first = asyncio.ensure_future(anext(following))
    await asyncio.wait({first}, timeout=1)
    if first.done():
        assert SECRET not in first.result()
    first.cancel()
    (folder / name).unlink()
    (folder / name).symlink_to(tmp_path)
    assert SECRET not in logs.tail(folder, 1000)


@pytest.mark.parametrize("name", [CURRENT, PREVIOUS])
async def test_a_log_that_is_a_pipe_keeps_the_relay_from_nothing(name: str, tmp_path: pathlib.Path) -> None:
    os.mkfifo(tmp_path / name)
    reading = asyncio.create_task(asyncio.to_thread(logs.tail, tmp_path, 1000))
    done, _ = await asyncio.wait({reading}, timeout=30)
    if not done:  # let the thread go
        os.close(os.open(tmp_path / name, os.O_WRONLY | os.O_NONBLOCK))
    assert done
    assert reading.result() == b""


@pytest.fixture
async def impostor(tmp_path: pathlib.Path) -> AsyncIterator[Impostor]:
    """Has the key of its pod's relay, and answers what it likes."""
    keys = doors.Doors("a key of the tests' own")
    name = keys.new()
    for file, content in zip((doors.CERTIFICATE, doors.KEY), keys.pair(name), strict=True):
        (tmp_path / file).write_bytes(content)
    servers = []

    async def stand(answer: Answer) -> tuple[Asking, Address]:
        async def serve(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            try:
                await answer(writer)
            except OSError:
                pass
            finally:
                writer.close()

        servers.append(await asyncio.start_server(serve, "127.0.0.1", 0, ssl=doors.serving(tmp_path)))
        port = servers[-1].sockets[0].getsockname()[1]
        return Asking(keys, SystemClock()), Address(host="127.0.0.1", port=port, key=name)

    yield stand
    for server in servers:
        server.close()


PIECE = bytes(1 << 20)


@pytest.mark.parametrize(
    ("first", "again"),
    [(bytes([STDOUT, 0, 0, 0]) + b"\xff" * 4, PIECE), (b"", frame(STDOUT, PIECE)), (b"", frame(STDERR, PIECE))],
    ids=["a frame of 4 GiB", "output without end", "reports without end"],
)
async def test_a_relay_that_says_too_much_is_not_listened_to(
    first: bytes, again: bytes, impostor: Impostor, monkeypatch: pytest.MonkeyPatch
) -> None:
    heard = 0
    really = connect.opened

    async def opened(*arguments: Any) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        reader, writer = await really(*arguments)
        feed = reader.feed_data

        def counted(content: bytes) -> None:
            nonlocal heard
            heard += len(content)
            feed(content)

        monkeypatch.setattr(reader, "feed_data", counted)
        return reader, writer

    async def answer(writer: asyncio.StreamWriter) -> None:
        writer.write(first)
        for _ in range(8 * LONGEST // len(again)):
            if writer.is_closing():
                break
            writer.write(again)
            await writer.drain()

    monkeypatch.setattr(connect, "opened", opened)
    asking, address = await impostor(answer)
    with pytest.raises(RuntimeFailureError):
        await asking.ask(address, {"do": "exec"}, seconds=60)
    assert 0 < heard <= 3 * LONGEST  # with what waits to be read


@pytest.mark.parametrize("outcome", [[], 1, {"code": []}, {"code": "many"}, "[" * 100_000])
async def test_an_outcome_that_makes_no_sense_is_a_failure_of_its_workspace(
    outcome: object, impostor: Impostor
) -> None:
    said = outcome.encode() if isinstance(outcome, str) else json.dumps(outcome).encode()

    async def answer(writer: asyncio.StreamWriter) -> None:
        writer.write(frame(END, said))
        await writer.drain()

    asking, address = await impostor(answer)
    with pytest.raises(RuntimeFailureError):
        await asking.ask(address, {"do": "exec"}, seconds=60)
