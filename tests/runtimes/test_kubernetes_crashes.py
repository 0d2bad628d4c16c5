"""Every verb of the Kubernetes runtime, ended by SIGKILL before and after every call that acts, then asked again.

What is seen in between is true, and afterwards nothing is left that nobody knows of.
"""

import signal
from collections.abc import Awaitable, Callable

import pytest

from codehub.runtimes.base import DiskItem
from codehub.runtimes.kubernetes.runtime import KubernetesRuntime
from tests import kubernetes_cluster
from tests.contracts.harness import answering
from tests.runtimes.kubernetes_crash_points import VERBS
from tests.runtimes.test_docker_crashes import CONTENT, VOLUMES, Runner

pytestmark = [pytest.mark.cluster, pytest.mark.usefixtures("kubernetes")]
Check = Callable[[KubernetesRuntime, str], Awaitable[None]]


async def each_point(verb: str, check: Check, *before: str) -> int:
    """Each in an installation of its own; returns how many calls there were."""
    runner = await Runner.open("tests.runtimes.kubernetes_crash_points")
    calls = await _at(runner, verb, "", check, before)  # a run to its end tells how many there are
    for number in range(1, calls + 1):
        for moment in ("before", "after"):
            await _at(runner, verb, f"{moment}-{number}", check, before)
    await runner.close()
    return calls


async def _at(runner: Runner, verb: str, point: str, check: Check, before: tuple[str, ...]) -> int:
    async with kubernetes_cluster.fresh_runtime() as (runtime, data_dir):
        for earlier in before:
            await VERBS[earlier](runtime)
        code, calls = await runner.run(data_dir, verb, point)
        assert code == -signal.SIGKILL if point else code == 0, point
        await check(runtime, point)
        return calls


@pytest.mark.parametrize("verb", VOLUMES)
async def test_a_volume_is_whole_after_a_crash_at_any_call(verb: str) -> None:
    earlier, before, after = VOLUMES[verb]

    async def check(runtime: KubernetesRuntime, point: str) -> None:
        await runtime.volumes_.refresh("w1")
        seen = (await runtime.volumes(["w1"])).get("w1")
        assert seen in {before, after}, point
        if seen and verb in CONTENT:
            home = await kubernetes_cluster.home(runtime, "w1")
            found = {str(path.relative_to(home)): path.read_bytes() for path in home.rglob("*") if path.is_file()}
            assert found == CONTENT[verb], point
        await VERBS[verb](runtime)
        assert (await runtime.volumes(["w1"])).get("w1") == after, point
        kinds = [DiskItem("w1", after.generation, "parked" if after.parked else "volume")] if after else []
        assert await runtime.disk_items() == kinds, point
        await runtime.delete_volume("w1", after.generation if after else "g1")
        assert await kubernetes_cluster.left(runtime) == [], point

    assert await each_point(verb, check, *earlier) >= 1


async def test_a_start_that_crashed_at_any_call_ends_in_exactly_one_pod() -> None:
    async def check(runtime: KubernetesRuntime, point: str) -> None:
        await VERBS["start"](runtime)
        found = await answering(runtime, "w1")
        assert await runtime.containers() == {"w1": found}, point
        assert len(await kubernetes_cluster.named(runtime.api, "pods", runtime.names.ours)) == 1, point
        await runtime.stop("w1", 5)
        assert await runtime.containers() == {}, point
        await runtime.delete_volume("w1", "g1")
        assert await kubernetes_cluster.left(runtime) == [], point

    assert await each_point("start", check, "create") >= 2


async def test_a_stop_that_crashed_at_any_call_leaves_nothing_running_when_asked_again() -> None:
    async def check(runtime: KubernetesRuntime, point: str) -> None:
        await VERBS["stop"](runtime)
        assert await runtime.containers() == {}, point
        assert await runtime.lifecycle.there("w1") is None, point

    assert await each_point("stop", check, "create", "start") >= 1
