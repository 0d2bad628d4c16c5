"""The chart on the cluster of `make cluster`: three of each role, any of them killed, and an upgrade under load.

The image is the platform's, put onto the nodes before: CODEHUB_TEST_IMAGE, or docker.io/codehub/platform:latest.
"""

import asyncio
import contextlib
import json
import os
import pathlib
import subprocess
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from typing import Any

import aiohttp
import pytest

from tests.deploy import servers
from tests.deploy.helm import CHART, binary, render

pytestmark = pytest.mark.cluster
NAMESPACE, RELEASE = "codehub-chart", "codehub"
IMAGE = os.environ.get("CODEHUB_TEST_IMAGE", "docker.io/codehub/platform:latest")
KUBECONFIG = os.environ.get("KUBECONFIG", "/var/lib/codehub-cluster/codehub/admin.kubeconfig")
SLOW = "15m"
SMALL = {"resources": {"requests": {"cpu": "10m", "memory": "64Mi"}, "limits": {"memory": "1Gi"}}}
VALUES: dict[str, Any] = {
    "publicUrl": "http://labs.example.org",
    "workspaceDomain": "",
    "image": {"repository": IMAGE.rpartition(":")[0], "tag": IMAGE.rpartition(":")[2]},
    "archiveUrl": "file:///data/archives",
    "secrets": {"adminToken": {"name": "codehub"}, "s3": {"name": ""}},
    "workspaces": {"runtime": "process"},  # none runs here: these tests are about the platform's own pods
    "settings": {"CODEHUB_DATABASE_POOL_SIZE": 5},
    "drainSeconds": 10,
    "proxy": {"workers": 1, **SMALL},
    "api": SMALL,
    "coordinator": SMALL,
}


def kubectl(*words: str, given: object = None, check: bool = True) -> str:
    done = subprocess.run(
        ["kubectl", "--kubeconfig", KUBECONFIG, "--namespace", NAMESPACE, *words],
        input=None if given is None else json.dumps(given),
        capture_output=True,
        text=True,
        check=False,
    )
    assert not check or done.returncode == 0, done.stderr
    return done.stdout


def release(verb: str, tmp_path: pathlib.Path, **changed: Any) -> None:
    file = tmp_path / "values.json"
    file.write_text(json.dumps({**VALUES, **changed}))
    where = ["--kubeconfig", KUBECONFIG, "--namespace", NAMESPACE]
    how = ["--values", str(file), "--wait", "--timeout", SLOW]
    subprocess.run([binary(), verb, RELEASE, str(CHART), *where, *how], check=True)


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of the front door."""
    labels = {"pod-security.kubernetes.io/enforce": "restricted"}
    kubectl("delete", "namespace", NAMESPACE, "--ignore-not-found", "--wait")
    kubectl(
        "apply",
        "-f",
        "-",
        given={"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE, "labels": labels}},
    )
    for one in servers.manifests(NAMESPACE, IMAGE):
        kubectl("apply", "-f", "-", given=one)
    kubectl("wait", "--for=condition=ready", "pod/servers", "--timeout=600s")
    release("install", tmp_path_factory.mktemp("values"))
    yield f"http://{kubectl('get', 'service', RELEASE, '-o', 'jsonpath={.spec.clusterIP}')}"
    kubectl("delete", "namespace", NAMESPACE, "--wait=false")


def ready(role: str) -> set[str]:
    """Names of this role's pods that are ready."""
    found = json.loads(kubectl("get", "pods", "-l", f"app.kubernetes.io/component={role}", "-o", "json"))["items"]
    return {
        pod["metadata"]["name"]
        for pod in found
        if any(c["type"] == "Ready" and c["status"] == "True" for c in pod["status"].get("conditions", []))
        and "deletionTimestamp" not in pod["metadata"]
    }


class Load:
    """Reads and writes, one after the other, each on a connection of its own, and what became of them."""

    def __init__(self, url: str) -> None:
        self._url = url
        self.answers: Counter[str] = Counter()

    async def run(self) -> None:
        headers = {"Host": "labs.example.org", "Authorization": f"Bearer {servers.TOKEN}"}
        number = 0
        while True:
            number += 1
            with contextlib.suppress(asyncio.TimeoutError):
                self.answers[await self._ask(headers, number)] += 1
            await asyncio.sleep(0.05)

    async def _ask(self, headers: dict[str, str], number: int) -> str:
        timeout = aiohttp.ClientTimeout(total=30)
        try:
            async with aiohttp.ClientSession(self._url, headers=headers, timeout=timeout) as client:
                if number % 5:
                    async with client.get("/api/v1/workspaces") as answer:
                        return f"GET {answer.status}"
                body = {"name": f"person-{id(self)}-{number}", "role": "learner"}
                async with client.post("/api/v1/users", json=body) as answer:
                    return f"POST {answer.status}"
        except (aiohttp.ClientError, OSError) as e:
            return type(e).__name__


@contextlib.asynccontextmanager
async def under_load(url: str) -> AsyncIterator[Counter[str]]:
    loads = [Load(url) for _ in range(2)]
    tasks = [asyncio.create_task(load.run()) for load in loads]
    answers: Counter[str] = Counter()
    try:
        yield answers
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for load in loads:
            answers.update(load.answers)


def test_the_server_takes_what_the_chart_renders(installed: str) -> None:
    for one in render(namespace=NAMESPACE):
        kubectl("apply", "--dry-run=server", "-f", "-", given=one)


async def test_three_of_each_are_ready_and_one_coordinator_leads(installed: str) -> None:
    assert {role: len(ready(role)) for role in ("proxy", "api", "coordinator")} == dict.fromkeys(
        ("proxy", "api", "coordinator"), 3
    )
    headers = {"Host": "labs.example.org", "Authorization": f"Bearer {servers.TOKEN}"}
    async with aiohttp.ClientSession(installed, headers=headers) as client:
        async with client.get("/readyz") as answer:
            assert (await answer.json())["ready"]
        async with client.get("/api/v1/admin/loops") as answer:
            assert (await answer.json())["leader"].startswith("codehub-coordinator-")
    assert "/login/" in kubectl("exec", "deploy/codehub-api", "--", "codehub", "user", "login-link", "admin")


@pytest.mark.parametrize("role", ["proxy", "api", "coordinator"])
async def test_a_pod_of_each_role_is_killed_and_people_are_answered_again(installed: str, role: str) -> None:
    async with under_load(installed) as answers:
        victim = min(ready(role))
        await asyncio.to_thread(kubectl, "delete", "pod", victim, "--grace-period=0", "--force")
        async with asyncio.timeout(600):
            while len(ready(role) - {victim}) < 3:
                await asyncio.sleep(2)
        load = Load(installed)
        assert await load._ask({"Host": "labs.example.org", "Authorization": f"Bearer {servers.TOKEN}"}, 1) == "GET 200"
    assert answers["GET 200"] > 0


async def test_no_request_fails_while_every_pod_is_replaced(installed: str, tmp_path: pathlib.Path) -> None:
    before = {role: ready(role) for role in ("proxy", "api", "coordinator")}
    async with under_load(installed) as answers:
        changed = {role: {**VALUES[role], "annotations": {"upgraded": "yes"}} for role in before}
        await asyncio.to_thread(release, "upgrade", tmp_path, **changed)
    for role, pods in before.items():
        assert not ready(role) & pods
    assert set(answers) == {"GET 200", "POST 201"}, answers
