"""The cluster loses a node, or its API: no workspace runs twice, none is forgotten, and nothing is left behind."""

import asyncio
import contextlib
import json
import os
import random
import secrets
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from functools import partial

import pytest
from cluster import layout, lifecycle, machines, programs
from cluster.layout import CONTROL

from codehub.runtimes import connect
from codehub.runtimes.base import RuntimeFailureError, Workload
from codehub.runtimes.kubernetes.api import Object, objects
from codehub.runtimes.kubernetes.runtime import KubernetesRuntime
from codehub.runtimes.kubernetes.volumes import CLAIMS, ENTRIES
from codehub.runtimes.kubernetes.watch import Table
from tests import kubernetes_cluster
from tests.clusters.kubectl import Kubectl, until
from tests.contracts.harness import answering, archive_of, ended, processes_of, running, source
from tests.contracts.workloads import server, workload

pytestmark = [pytest.mark.cluster, pytest.mark.usefixtures("kubernetes")]
OUT_OF_SERVICE = "node.kubernetes.io/out-of-service=nodeshutdown:NoExecute"
AWAY_SECONDS = 60
LIVES = 100
PATIENCE = 300.0
COMPACT = """
import base64, http.client, json, ssl, sys
pki = sys.argv[1]
tls = ssl.create_default_context(cafile=f"{pki}/ca.crt")
tls.load_cert_chain(f"{pki}/etcd.crt", f"{pki}/etcd.key")
def ask(verb, body):
    etcd = http.client.HTTPSConnection("127.0.0.1", 2379, context=tls)
    etcd.request("POST", f"/v3/kv/{verb}", json.dumps(body))
    answer = etcd.getresponse()
    said = json.loads(answer.read())
    assert answer.status == 200, said
    return said
known = ask("range", {"key": base64.b64encode(b"/").decode()})["header"]["revision"]
ask("compaction", {"revision": known, "physical": True})
"""


@pytest.fixture
def place() -> Iterator[layout.Place]:
    """The cluster is whole again afterwards."""
    chosen = layout.place()
    yield chosen
    for node in layout.NODES:
        Kubectl(chosen).try_("taint", "nodes", node, "node.kubernetes.io/out-of-service-")
    lifecycle.up(chosen)
    until(lambda: all(_is_ready(chosen, node) for node in layout.NODES))


@pytest.fixture
async def runtime() -> AsyncIterator[KubernetesRuntime]:
    async with kubernetes_cluster.fresh_runtime(kubernetes_node_lost_seconds=5) as (opened, _):
        yield opened


def _is_ready(place: layout.Place, node: str) -> bool:
    seen = Kubectl(place).get("node", node)
    assert seen
    return any(one["type"] == "Ready" and one["status"] == "True" for one in seen["status"]["conditions"])


async def node_of(runtime: KubernetesRuntime, id_: str) -> str:
    pod = await runtime.api.call("GET", objects("pods", runtime.names.of(id_)))
    return str(pod["spec"]["nodeName"])


async def at_work(runtime: KubernetesRuntime) -> tuple[Workload, str]:
    """A workspace with a note in its home, and what its processes are known by."""
    mark = f"work-{secrets.token_hex(8)}"
    workload_ = workload(server(), "w1", marker=mark)
    await running(runtime, workload_)
    await runtime.put("w1", {"note": b"mine"})
    return workload_, mark


async def until_told_to_go(runtime: KubernetesRuntime) -> None:
    async with asyncio.timeout(PATIENCE):
        while True:
            pod = await runtime.api.call("GET", objects("pods", runtime.names.of("w1")))
            if pod["metadata"].get("deletionTimestamp"):
                return
            await asyncio.sleep(0.5)


async def until_gone(runtime: KubernetesRuntime) -> None:
    async with asyncio.timeout(PATIENCE):
        while await runtime.api.call("GET", objects("pods", runtime.names.of("w1")), missing=True):
            await asyncio.sleep(0.5)


async def test_a_lost_nodes_workspace_starts_nowhere_until_its_old_pod_has_ended(
    runtime: KubernetesRuntime, place: layout.Place
) -> None:
    workload_, mark = await at_work(runtime)
    node = await node_of(runtime, "w1")
    await asyncio.to_thread(lifecycle.lose, place, node, power=False)
    await until_told_to_go(runtime)
    with pytest.raises(RuntimeFailureError, match=f"earlier pod of this workspace on {node}"):
        await runtime.start(workload_)
    assert await asyncio.to_thread(processes_of, mark), "it goes on, unseen"
    assert (await runtime.containers()).keys() == {"w1"}
    await asyncio.to_thread(lifecycle.bring_back, place, node)
    await until_gone(runtime)
    assert await asyncio.to_thread(processes_of, mark) == [], "the node came late, and ended it"
    await runtime.start(workload_)
    await answering(runtime, "w1")
    assert (await runtime.exec("w1", ["cat", "note"])).output == b"mine"


async def test_a_node_that_its_operator_calls_dead_gives_its_workspaces_up_and_they_run_elsewhere(
    runtime: KubernetesRuntime, place: layout.Place
) -> None:
    workload_, mark = await at_work(runtime)
    node = await node_of(runtime, "w1")
    await asyncio.to_thread(lifecycle.lose, place, node, power=True)
    await until_told_to_go(runtime)
    assert await asyncio.to_thread(processes_of, mark) == []
    await asyncio.to_thread(Kubectl(place), "taint", "nodes", node, OUT_OF_SERVICE)
    await until_gone(runtime)
    await runtime.start(workload_)
    await answering(runtime, "w1")
    assert await node_of(runtime, "w1") != node
    assert (await runtime.exec("w1", ["cat", "note"])).output == b"mine"
    there = await asyncio.to_thread(processes_of, mark)
    await asyncio.to_thread(Kubectl(place), "taint", "nodes", node, f"{OUT_OF_SERVICE}-")
    await asyncio.to_thread(lifecycle.bring_back, place, node)
    await asyncio.to_thread(until, lambda: _is_ready(place, node))
    assert await asyncio.to_thread(processes_of, mark) == there, "nothing of it has come back"
    assert len(await kubernetes_cluster.named(runtime.api, "pods", runtime.names.ours)) == 1


async def test_while_the_api_is_away_what_runs_can_be_used_and_afterwards_nothing_is_forgotten(
    runtime: KubernetesRuntime, place: layout.Place
) -> None:
    """For a minute, in which one IDE ends, and etcd forgets all that was before."""
    mark = f"work-{secrets.token_hex(8)}"
    stays = await running(runtime, workload(server(), "w1"))
    await running(runtime, workload(server(), "w2", marker=mark))
    lists = _lists_of(runtime.lifecycle.pods)
    software = lifecycle._software()
    control = programs.control(place, software)
    await asyncio.to_thread(machines.assign, place, programs.without(control, "kube-apiserver"))
    with contextlib.suppress(RuntimeFailureError):
        async with asyncio.timeout(PATIENCE):
            while await runtime.containers():
                await asyncio.sleep(0.5)
    with pytest.raises(RuntimeFailureError):
        await runtime.containers()
    os.kill(max(await asyncio.to_thread(processes_of, mark)), signal.SIGKILL)
    for _ in range(AWAY_SECONDS):
        assert await connect.status_of(stays.address, "/", runtime._asking.doors) == 200
        await asyncio.sleep(1)
    compact = ["nsenter", "-t", str(machines.pids(place)[CONTROL]), "-n", sys.executable, "-c", COMPACT, str(place.pki)]
    await asyncio.to_thread(subprocess.run, compact, check=True)
    await asyncio.to_thread(machines.assign, place, control)
    async with asyncio.timeout(PATIENCE):
        while not await _answers(runtime):
            await asyncio.sleep(0.5)
    await ended(runtime, "w2")
    found = await runtime.containers()
    assert {id_: one.identity for id_, one in found.items()} == {"w1": stays.identity}
    assert lists, "the API had forgotten where we watched"
    assert set(await runtime.volumes(["w1", "w2"])) == {"w1", "w2"}


def _lists_of(table: Table) -> list[str]:
    """One entry for each time it is listed from here on."""
    lists, list_ = [], table._list

    async def counted() -> tuple[list[Object], str]:
        lists.append(table.plural)
        return await list_()

    table._list = counted  # type: ignore[method-assign]
    return lists


async def _answers(runtime: KubernetesRuntime) -> bool:
    try:
        await runtime.containers()
    except RuntimeFailureError:
        return False
    return True


# --- many lives


class Life:
    """One workspace, from its first volume to its end, with whatever comes in between; some steps are given up."""

    def __init__(self, runtime: KubernetesRuntime, number: int, chance: random.Random) -> None:
        self._runtime, self._id, self._chance = runtime, f"w{number}", chance
        self._generation = "g1"

    async def live(self) -> None:
        await self._runtime.create_volume(self._id, self._generation)
        for _ in range(self._chance.randint(1, 4)):
            await self._chance.choice([self._runs, self._gives_up_a_start, self._is_archived, self._is_parked])()
        await self._runtime.stop(self._id, 1)
        await self._runtime.delete_volume(self._id, self._generation)

    async def _runs(self) -> None:
        await self._runtime.start(self._workload)
        if self._chance.random() < 0.5:
            await self._runtime.put(self._id, {"note": self._id.encode()})
        await self._runtime.stop(self._id, self._chance.choice([0, 1]))

    async def _gives_up_a_start(self) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self._chance.uniform(0.05, 3)):
                await self._runtime.start(self._workload)
        await self._runtime.stop(self._id, 0)

    async def _is_archived(self) -> None:
        async with self._runtime.pack(self._id, self._generation) as packing:
            async for _ in packing.output():
                pass
        await self._runtime.delete_volume(self._id, self._generation)
        self._generation += "r"
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self._chance.choice([1.5, PATIENCE])):
                await self._runtime.unpack(self._id, self._generation, archive_of({"note": "mine"}), source())
        if self._id not in await self._runtime.volumes([self._id]):
            await self._runtime.create_volume(self._id, self._generation)

    async def _is_parked(self) -> None:
        await self._runtime.park_volume(self._id, self._generation)
        made = f"{self._generation}p"
        await self._runtime.unpark_volume(self._id, self._generation, made)
        self._generation = made

    @property
    def _workload(self) -> Workload:
        return workload(server(), self._id)


async def _everything(place: layout.Place) -> dict[str, int]:
    """In the namespace, whoever's it is."""
    kubectl = Kubectl(place, kubernetes_cluster.NAMESPACE)
    kinds = ("pods", CLAIMS, ENTRIES, "secrets")
    listed = [
        json.loads(await asyncio.to_thread(partial(kubectl, "get", kind, "-o", "json")))["items"] for kind in kinds
    ]
    return dict(zip(kinds, map(len, listed), strict=True))


async def test_nothing_is_left_of_a_hundred_random_lives(runtime: KubernetesRuntime, place: layout.Place) -> None:
    seed = secrets.randbits(32)
    print(f"\n{LIVES} lives of seed {seed}")
    before, at_once = await _everything(place), asyncio.Semaphore(4)

    async def one(number: int) -> None:
        async with at_once:
            await Life(runtime, number, random.Random(f"{seed}-{number}")).live()

    async with asyncio.TaskGroup() as tasks:
        for number in range(LIVES):
            tasks.create_task(one(number))
    assert await kubernetes_cluster.left(runtime) == []
    assert await runtime.disk_items() == []
    assert await _everything(place) == before
