"""Every verb of the Docker runtime, ended by SIGKILL before and after every call to the engine, then asked again.

What is seen in between is true, and afterwards nothing is left that nobody knows of.
"""

import asyncio
import pathlib
import signal
import sys
from collections.abc import Awaitable, Callable

import pytest

from codehub.runtimes.base import DiskItem, Volume
from codehub.runtimes.docker.engine import labelled
from codehub.runtimes.docker.runtime import DockerRuntime
from tests import docker_engine
from tests.contracts.harness import answering
from tests.runtimes.docker_crash_points import STARTER, VERBS

pytestmark = [pytest.mark.docker, pytest.mark.usefixtures("docker_engine")]
ROOT = pathlib.Path(__file__).parents[2]
PLAIN, RESTORED, PARKED = Volume("w1", "g1"), Volume("w1", "g1", "key"), Volume("w1", "g1", parked=True)
# verb: what must have been done before, what is there before, what is there after
VOLUMES: dict[str, tuple[tuple[str, ...], Volume | None, Volume | None]] = {
    "create": ((), None, PLAIN),
    "place": ((), None, RESTORED),
    "park": (("create",), PLAIN, PARKED),
    "unpark": (("create", "park"), PARKED, Volume("w1", "g2")),
    "delete": (("create",), PLAIN, None),
}
CONTENT = {"create": {file.path: file.data for file in STARTER}, "place": {"note": b"kept"}}
Check = Callable[[DockerRuntime, str], Awaitable[None]]


class Runner:
    """One helper process, which forks for each request."""

    _process: asyncio.subprocess.Process

    @classmethod
    async def open(cls, points: str = "tests.runtimes.docker_crash_points") -> "Runner":
        runner = cls()
        runner._process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", points),
            cwd=ROOT,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
        )
        return runner

    async def run(self, data_dir: pathlib.Path, verb: str, point: str = "") -> tuple[int, int]:
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.write(f"{data_dir} {verb} {point}\n".encode())
        code, calls = (await self._process.stdout.readline()).decode().split()
        return int(code), int(calls)

    async def close(self) -> None:
        assert self._process.stdin
        self._process.stdin.close()
        await self._process.wait()


async def each_point(verb: str, check: Check, *before: str) -> int:
    """Each on a data directory of its own; returns how many calls there were."""
    runner = await Runner.open()
    calls = await _at(runner, verb, "", check, before)  # a run to its end tells how many there are
    for number in range(1, calls + 1):
        for moment in ("before", "after"):
            await _at(runner, verb, f"{moment}-{number}", check, before)
    await runner.close()
    return calls


async def _at(runner: Runner, verb: str, point: str, check: Check, before: tuple[str, ...]) -> int:
    async with docker_engine.fresh_runtime() as (runtime, data_dir):
        for earlier in before:
            await VERBS[earlier](runtime)
        code, calls = await runner.run(data_dir, verb, point)
        assert code in {0, -signal.SIGKILL} if point else code == 0, point
        await check(runtime, point)
        return calls


@pytest.mark.parametrize("verb", VOLUMES)
async def test_a_volume_is_whole_after_a_crash_at_any_call(verb: str) -> None:
    earlier, before, after = VOLUMES[verb]

    async def check(runtime: DockerRuntime, point: str) -> None:
        seen = (await runtime.volumes(["w1"])).get("w1")
        assert seen in {before, after}, point
        if seen and verb in CONTENT:
            assert await _content(runtime) == CONTENT[verb], point
        await VERBS[verb](runtime)
        assert (await runtime.volumes(["w1"])).get("w1") == after, point
        kinds = [DiskItem("w1", after.generation, "parked" if after.parked else "volume")] if after else []
        assert await runtime.disk_items() == kinds, point
        await runtime.delete_volume("w1", after.generation if after else "g1")
        assert await docker_engine.left(runtime) == [], point

    assert await each_point(verb, check, *earlier) >= 3


async def test_a_start_that_crashed_at_any_call_ends_in_exactly_one_container() -> None:
    async def check(runtime: DockerRuntime, point: str) -> None:
        await VERBS["start"](runtime)
        found = await answering(runtime, "w1")
        assert await runtime.containers() == {"w1": found}, point
        assert len(await docker_engine.containers(runtime.engine, runtime.names.ours)) == 2, point  # and its relay
        await runtime.stop("w1", 5)
        assert await runtime.containers() == {}, point
        await runtime.delete_volume("w1", "g1")
        assert await docker_engine.left(runtime) == [], point

    assert await each_point("start", check, "create") > 10


async def test_a_stop_that_crashed_at_any_call_leaves_nothing_running_when_asked_again() -> None:
    async def check(runtime: DockerRuntime, point: str) -> None:
        await VERBS["stop"](runtime)
        assert await runtime.containers() == {}, point
        left = await runtime.engine.call("GET", "/containers/json", filters=labelled(runtime.names.ours))
        assert left == [], point

    assert await each_point("stop", check, "create", "start") >= 3


async def _content(runtime: DockerRuntime) -> dict[str, bytes]:
    home = await docker_engine.home(runtime, "w1")
    return {str(path.relative_to(home)): path.read_bytes() for path in home.rglob("*") if path.is_file()}
