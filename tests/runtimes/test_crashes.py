"""Every verb, ended by SIGKILL at every line it executes, then asked again: what is seen in between is true.

The lines are enumerated from the code as it runs (`crash_points`), not sampled.
"""

import asyncio
import os
import pathlib
import signal
import sys
from collections.abc import Awaitable, Callable

import pytest

from codehub.runtimes.base import Volume
from codehub.runtimes.process import ProcessRuntime
from tests.contracts.harness import answering, fresh_runtime, processes_of
from tests.runtimes.crash_points import STARTER, VERBS

ROOT = pathlib.Path(__file__).parents[2]
PLAIN, RESTORED, PARKED = Volume("w1", "g1"), Volume("w1", "g1", "key"), Volume("w1", "g1", parked=True)
# verb: what must have been done before, what is there before, what is there after
VOLUMES: dict[str, tuple[tuple[str, ...], Volume | None, Volume | None]] = {
    "create": ((), None, PLAIN),
    "furnish": ((), None, PLAIN),
    "place": ((), None, RESTORED),
    "park": (("create",), PLAIN, PARKED),
    "unpark": (("create", "park"), PARKED, Volume("w1", "g2")),
    "delete": (("create",), PLAIN, None),
}
FURNISHED = {file.path: file.data for file in STARTER}
# Taken back, it gets its new name while it is still in the trash.
BETWEEN = {"unpark": {Volume("w1", "g2", parked=True)}}


class Runner:
    """One helper process, which forks for each request."""

    @classmethod
    async def open(cls) -> "Runner":
        runner = cls()
        runner._process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "tests.runtimes.crash_points"),
            cwd=ROOT,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
        )
        return runner

    _process: asyncio.subprocess.Process

    async def run(self, data_dir: pathlib.Path, verb: str, point: str = "") -> tuple[int, list[str]]:
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.write(f"{data_dir} namespaces {verb} {point}\n".encode())
        code, *lines = (await self._process.stdout.readline()).decode().split()
        return int(code), lines

    async def close(self) -> None:
        assert self._process.stdin
        self._process.stdin.close()
        await self._process.wait()


Check = Callable[[ProcessRuntime, pathlib.Path, str], Awaitable[None]]


# All of them in `make soak`; here every so many: those of starting and stopping are many and slow.
SLICES = [pytest.param(1, marks=pytest.mark.soak, id="every line"), pytest.param(48, id="every 48th line")]
OF_VOLUMES = [pytest.param(1, marks=pytest.mark.soak, id="every line"), pytest.param(3, id="every third line")]


async def each_point(verb: str, check: Check, *before: str, every: int = 1) -> int:
    """Each on a data directory of its own; returns how many there were."""
    runner = await Runner.open()
    points = await _at(runner, verb, "", check, before)  # a run to its end tells what the others are
    for point in points[::every]:
        await _at(runner, verb, point, check, before)
    await runner.close()
    return len(points)


async def _at(runner: Runner, verb: str, point: str, check: Check, before: tuple[str, ...]) -> list[str]:
    async with fresh_runtime("namespaces") as (runtime, data_dir):
        for earlier in before:
            await VERBS[earlier](runtime)
        code, lines = await runner.run(data_dir, verb, point)
        # A line that is only reached when something happens to be slow may not be reached this time.
        assert code in {0, -signal.SIGKILL} if point else code == 0, point
        await check(runtime, data_dir, point)
        return lines


@pytest.mark.parametrize("every", OF_VOLUMES)
@pytest.mark.parametrize("verb", VOLUMES)
async def test_a_volume_is_whole_after_a_crash_anywhere(verb: str, every: int) -> None:
    earlier, before, after = VOLUMES[verb]

    async def check(runtime: ProcessRuntime, data_dir: pathlib.Path, point: str) -> None:
        assert (await runtime.volumes(["w1"])).get("w1") in {before, after, *BETWEEN.get(verb, ())}, point
        await VERBS[verb](runtime)
        assert (await runtime.volumes(["w1"])).get("w1") == after, point
        left = [
            path.name for path in (data_dir / "workspaces" / "homes").rglob("*") if path.name[:4] in {"new-", "gone"}
        ]
        assert left == [], point

    assert await each_point(verb, check, *earlier, every=every) > 10


@pytest.mark.parametrize("every", OF_VOLUMES)
async def test_a_new_home_has_all_its_starter_files_or_is_not_there_after_a_crash_anywhere(every: int) -> None:
    async def check(runtime: ProcessRuntime, data_dir: pathlib.Path, point: str) -> None:
        home = data_dir / "workspaces" / "homes" / "w1" / "volume" / "home"
        expected = dict(FURNISHED)
        if home.exists():
            assert _content(home) == FURNISHED, point
            (home / "run").unlink()  # as its person may: it does not come again
            del expected["run"]
        await VERBS["furnish"](runtime)
        assert _content(home) == expected, point

    assert await each_point("furnish", check, every=every) > 20


def _content(home: pathlib.Path) -> dict[str, bytes]:
    return {str(path.relative_to(home)): path.read_bytes() for path in home.rglob("*") if path.is_file()}


@pytest.mark.parametrize("every", SLICES)
@pytest.mark.parametrize("verb", ["start", "start_warm"])
async def test_a_start_that_crashed_anywhere_ends_in_exactly_one_container(verb: str, every: int) -> None:
    async def check(runtime: ProcessRuntime, _: pathlib.Path, point: str) -> None:
        await VERBS[verb](runtime)
        await answering(runtime, "w1")
        shown = await runtime.exec("w1", ["sh", "-c", "ls -d /proc/[0-9]* | wc -l"])
        assert int(shown.output) <= 5, point
        home = os.fsencode(runtime._layout.of("w1").home).decode()
        assert len([pid for pid in processes_of("CODEHUB_WORKSPACE_ID=w1") if _root_has(pid, home)]) <= 2, point
        await runtime.stop("w1", 5)
        assert await runtime.containers() == {}, point

    assert await each_point(verb, check, "create", every=every) > 30


@pytest.mark.parametrize("every", SLICES)
async def test_a_stop_that_crashed_anywhere_leaves_nothing_when_asked_again(every: int) -> None:
    async def check(runtime: ProcessRuntime, data_dir: pathlib.Path, point: str) -> None:
        await VERBS["stop"](runtime)
        assert await runtime.containers() == {}, point
        assert list((data_dir / "workspaces" / "running").iterdir()) == [], point
        assert list((data_dir / "run" / "w").iterdir()) == [], point

    assert await each_point("stop", check, "create", "start", every=every) > 10


def _root_has(pid: int, home: str) -> bool:
    try:
        return home in pathlib.Path(f"/proc/{pid}/mountinfo").read_text()
    except OSError:
        return False
