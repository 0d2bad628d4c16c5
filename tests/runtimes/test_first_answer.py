"""Who starts an IDE is told when it listens, and need not ask until then."""

import asyncio
import pathlib

import pytest

from codehub.clock import SystemClock
from codehub.runtimes.base import Announcing
from codehub.system import arrivals
from tests.contracts.harness import KINDS, fresh_runtime
from tests.contracts.workloads import HANGING, SERVER, python, workload

A_WHILE = 30.0
# Listens when a file in its home says so; meanwhile it makes files beside its socket.
WAITS = (
    """
import os, sys, time
number = 0
while not os.path.exists("listen"):
    number += 1
    open(f"{os.path.dirname(sys.argv[1])}/other{number % 50}", "w").close()
    time.sleep(0.001)
"""
    + SERVER
)


@pytest.fixture
def a_watch_is_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("codehub.runtimes.process.LISTEN_SECONDS", A_WHILE)


@pytest.mark.usefixtures("a_watch_is_long")
@pytest.mark.parametrize("kind", KINDS)
async def test_it_is_told_when_the_ide_listens_whatever_else_lies_there(kind: str) -> None:
    async with fresh_runtime(kind) as (runtime, _):
        assert isinstance(runtime, Announcing)
        await runtime.create_volume("w1", "g1")
        await runtime.start(workload(python(WAITS, "{socket}")))
        told = asyncio.ensure_future(runtime.begins_to_listen("w1", A_WHILE))
        done, _ = await asyncio.wait({told}, timeout=0.3)
        assert not done
        await runtime.put("w1", {"listen": b""})
        assert await told
        async with asyncio.timeout(A_WHILE):
            while not (found := await runtime.container("w1")) or not found.answers:
                assert not await runtime.begins_to_listen("w1", 0.005)  # it listens already


async def test_one_that_never_listens_is_looked_at_again() -> None:
    async with fresh_runtime("namespaces") as (runtime, _):
        await runtime.create_volume("w1", "g1")
        await runtime.start(workload(python(HANGING)))
        assert not await runtime.begins_to_listen("w1", A_WHILE)


async def test_without_a_folder_to_watch_it_is_asked_as_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    pauses: list[float] = []

    async def pause(seconds: float) -> None:
        pauses.append(seconds)

    async with fresh_runtime("namespaces") as (runtime, _):
        monkeypatch.setattr(runtime._clock, "sleep", pause, raising=False)
        assert not await runtime.begins_to_listen("w1", 0.25)
    assert pauses == [0.25]


def descriptors() -> int:
    return len(list(pathlib.Path("/proc/self/fd").iterdir()))


async def test_nothing_is_left_open_by_waiting(tmp_path: pathlib.Path) -> None:
    before = descriptors()
    assert not await arrivals.appears(tmp_path / "never", 0.01, SystemClock())
    waiting = asyncio.ensure_future(arrivals.appears(tmp_path / "later", A_WHILE, SystemClock()))
    await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    with pytest.raises(FileNotFoundError):
        await arrivals.appears(tmp_path / "no folder/never", A_WHILE, SystemClock())
    assert descriptors() == before
