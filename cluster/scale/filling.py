"""Thousands of workspaces at once: their rows, and what the cluster has of them, as the platform itself would have made
it. What it would take hours to ask for one after the other.
"""

import asyncio
import json
from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime
from typing import Any

import asyncpg

from cluster.scale import pods as relays
from codehub.runtimes.base import Workload
from codehub.runtimes.config import RuntimeConfig
from codehub.runtimes.containers.door import IDE_PORT
from codehub.runtimes.containers.homes import VOLUME, Entry, Home
from codehub.runtimes.kubernetes import bodies, judging, names
from codehub.runtimes.kubernetes.api import Object
from codehub.runtimes.kubernetes.bodies import Start
from codehub.runtimes.kubernetes.names import Names
from codehub.runtimes.kubernetes.runtime import KubernetesRuntime
from codehub.runtimes.limits import Limits
from codehub.system.doors import Doors
from codehub.templates.model import ContainerSpec, Template

OWNER = "mina"
TEMPLATE = "simulated"
TEMPLATE_FILE = """\
title = "Simulated"
activity_profile = "plain"
ready = "/"
[process]
command = ["true"]
[container]
image = "simulated"
command = ["ide", "--port={port}"]
port = 8888
[limits]
memory_mb = 256
"""
NODE = {"cpu": "64", "memory": "256Gi", "pods": "250", "ephemeral-storage": "4Ti"}
AT_ONCE = 24
PATIENCE = 300.0
INSERT = """
INSERT INTO workspaces (id, name, template, owner_id, created_at, updated_at, phase_changed_at, last_access_at,
                        desired_state, desired_by, desired_at, observed_status, volume_generation, node, address,
                        disk_bytes, disk_measured_at)
SELECT id, id, $1, codehub_user_id($2), now(), now(), now(), now(), status, 'user', now(), status, 'g1', $3,
       address::jsonb, 4096, now() + interval '1 second'
FROM unnest($4::text[], $5::text[], $6::text[]) AS made(id, status, address)
"""


class Filling:
    def __init__(self, runtime: KubernetesRuntime, config: RuntimeConfig, doors: Doors, database_url: str) -> None:
        self._runtime = runtime
        self._config = config
        self._doors = doors
        self._names = Names(config.kubernetes_installation)
        self._database_url = database_url
        spec = ContainerSpec("simulated", ("ide", "--port={port}"), port=8888)
        self._template = Template(TEMPLATE, "Simulated", ready="/", container=spec)
        self.known: list[str] = []
        self.running: list[str] = []
        self.ended: list[str] = []

    async def nodes(self, count: int) -> None:
        async def add(number: int) -> None:
            labels = {"type": "simulated", "kubernetes.io/hostname": f"simulated-{number}"}
            body = {
                "metadata": {"name": f"simulated-{number}", "labels": labels},
                "status": {"allocatable": NODE, "capacity": NODE},
            }
            await self._runtime.api.call("POST", "/api/v1/nodes", body)

        await each(range(count), add)

    async def grow(self, known: int, running: int, ended: int) -> None:
        """To so many, of which so many run; so many of the new ones have run, and their pods are there still."""
        new = [f"w{number:05}" for number in range(len(self.known), known)]
        more = max(0, running - len(self.running))
        to_run, to_end = set(new[:more]), set(new[more : more + ended])
        pods: dict[str, Object] = {}

        async def make(id_: str) -> None:
            home = await self._runtime.volumes_.make_home(id_, "g1")
            await self._runtime.volumes_.change(id_, {VOLUME: Entry("g1", home)})
            if id_ in to_run:
                await self._run(id_, home)
            elif id_ in to_end:
                await self._run(id_, home, schedulerName="nobody")
                await relays.end(self._runtime.api, self._names.of(id_), "0\n")

        await each(new, make)
        await self._until_run(to_run)
        for id_ in to_run:
            pods[id_] = await self._runtime.lifecycle.running(id_)
        await self._insert(new, pods)
        self.known += new
        self.running += sorted(to_run)
        self.ended = sorted(to_end)

    async def _run(self, id_: str, home: Home, **more: str) -> None:
        """A start, but for the looks before it and the wait after it."""
        start = Start(home, home.uid, self._doors.new(), Limits(memory_mb=256, processes=100, cpus=1.0))
        body = bodies.pod(Workload(id_, OWNER, self._template), start, self._config, self._names)
        body["spec"] |= more
        made: Object = await self._runtime.api.call("POST", "pods", body)
        labels = self._names.labels(id_, names.IDE)
        pair = self._doors.pair(start.door)
        name, uid = made["metadata"]["name"], made["metadata"]["uid"]
        await self._runtime.api.call("POST", "secrets", bodies.secret(name, uid, labels, pair))

    async def _until_run(self, wanted: set[str]) -> None:
        async with asyncio.timeout(PATIENCE):
            while not wanted <= (await self._runtime.containers()).keys():
                await asyncio.sleep(0.5)

    async def _insert(self, ids: Sequence[str], pods: dict[str, Object]) -> None:
        addresses = [json.dumps({"socket": None, **_address(pods[id_])}) if id_ in pods else None for id_ in ids]
        status = ["RUNNING" if id_ in pods else "STANDBY" for id_ in ids]
        connection = await asyncpg.connect(self._database_url)
        try:
            await connection.execute(
                "INSERT INTO users (name, role, created_at) VALUES ($1, 'learner', $2) ON CONFLICT DO NOTHING",
                OWNER,
                datetime.now(UTC),
            )
            await connection.execute(INSERT, TEMPLATE, OWNER, self._runtime.node, list(ids), status, addresses)
            await connection.execute("VACUUM ANALYZE workspaces")
        finally:
            await connection.close()


def _address(pod: Object) -> dict[str, Any]:
    assert judging.runs(pod)  # noqa: S101
    return {"host": pod["status"]["podIP"], "port": IDE_PORT, "key": pod["metadata"]["annotations"][names.DOOR]}


async def each(items: Sequence[Any], do: Callable[[Any], Awaitable[None]], at_once: int = AT_ONCE) -> None:
    waiting = iter(items)

    async def work() -> None:
        for item in waiting:
            await do(item)

    async with asyncio.TaskGroup() as group:
        for _ in range(at_once):
            group.create_task(work())
