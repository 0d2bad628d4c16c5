"""The cluster of `make cluster` as the contract suite sees it: a namespace of the tests' own, with our images on it."""

import asyncio
import contextlib
import json
import os
import pathlib
import secrets
import subprocess
import sys
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from cluster import layout, lifecycle

from codehub.clock import SystemClock
from codehub.runtimes.base import RuntimeFailureError
from codehub.runtimes.config import RuntimeConfig
from codehub.runtimes.kubernetes.api import Api, ApiError, objects
from codehub.runtimes.kubernetes.bodies import HOME
from codehub.runtimes.kubernetes.runtime import KubernetesRuntime
from codehub.system.doors import Doors
from tests import docker_engine
from tests.places import a_place

__all__ = ["KubernetesRuntime"]
KIND = "kubernetes"
KUBECONFIG = "CODEHUB_TEST_KUBECONFIG"  # in the environment of processes that tests start
NAMESPACE = "codehub-contract"
IMAGES = ("codehub/platform", "codehub/terminal", "codehub/jupyterlab")
SECRET = "a key of the tests that is long enough"
INSTALLATION = "installation"  # a file in a test's data directory: another process finds the same workspaces
KINDS = ("pods", "persistentvolumeclaims", "configmaps", "secrets")


def open_runtime(data_dir: pathlib.Path, **changes: object) -> KubernetesRuntime:
    data_dir.mkdir(parents=True, exist_ok=True)
    file = data_dir / INSTALLATION
    if not file.exists():
        file.write_text(secrets.token_hex(4))
    chosen = {
        "runtime": KIND,
        "network": "none",
        "log_max_bytes": 1 << 20,
        "kubernetes_config": os.environ[KUBECONFIG],
        "kubernetes_namespace": NAMESPACE,
        "kubernetes_installation": file.read_text(),
        "kubernetes_volume_size": "1Gi",
        "disk_usage_seconds": 120.0,
    }
    config = RuntimeConfig(**{**chosen, **changes})  # type: ignore[arg-type]
    return KubernetesRuntime(config, Doors(SECRET), SystemClock())


@contextlib.asynccontextmanager
async def fresh_runtime(**changes: object) -> AsyncIterator[tuple[KubernetesRuntime, pathlib.Path]]:
    with a_place(on_disk=True) as folder:
        runtime = open_runtime(folder / "data", **changes)
        try:
            yield runtime, folder / "data"
        finally:
            await clear(runtime)
            await runtime.close()


def prepared() -> str:
    """A kubeconfig. `CODEHUB_TEST_IMAGES=there` says that the images of this checkout are on the nodes already."""
    place = layout.place()
    lifecycle.up(place)
    if os.environ.get("CODEHUB_TEST_IMAGES") != "there":
        with docker_engine.running() as socket:
            os.environ["DOCKER_HOST"] = f"unix://{socket}"
            try:
                for image in IMAGES:
                    subprocess.run([sys.executable, "-m", "cluster", "load", image], check=True)
            finally:
                del os.environ["DOCKER_HOST"]
    with ThreadPoolExecutor(1) as beside:  # whoever asks may be in a loop of events
        beside.submit(asyncio.run, make_namespace(str(place.kubeconfig))).result()
    return str(place.kubeconfig)


async def make_namespace(kubeconfig: str) -> None:
    """Restricted, as its pods have to be."""
    os.environ[KUBECONFIG] = kubeconfig
    runtime = KubernetesRuntime(
        RuntimeConfig(runtime=KIND, kubernetes_config=kubeconfig, kubernetes_namespace=NAMESPACE),
        Doors(SECRET),
        SystemClock(),
    )
    labels = {"pod-security.kubernetes.io/enforce": "restricted"}
    try:
        with contextlib.suppress(ApiError):  # there already
            await runtime.api.call("POST", "/api/v1/namespaces", {"metadata": {"name": NAMESPACE, "labels": labels}})
        while await runtime.api.call("GET", objects("serviceaccounts", "default"), missing=True) is None:
            await asyncio.sleep(0.2)
    finally:
        await runtime.close()


async def clear(runtime: KubernetesRuntime) -> None:
    """Take away all that a test left on the cluster."""
    for kind in KINDS:
        for name in await named(runtime.api, kind, runtime.names.ours):
            with contextlib.suppress(RuntimeFailureError):
                await runtime.api.call("DELETE", objects(kind, name), {"gracePeriodSeconds": 1}, missing=True)


async def named(api: Api, kind: str, label: str) -> list[str]:
    return [one["metadata"]["name"] for one in (await api.call("GET", kind, labelSelector=label))["items"]]


async def left(runtime: KubernetesRuntime) -> list[str]:
    """What the cluster collects by itself, a pod's secret, may take a moment."""
    found = [f"{kind}/{name}" for kind in KINDS for name in await named(runtime.api, kind, runtime.names.ours)]
    for _ in range(100):
        if not found or not all(one.startswith("secrets/") for one in found):
            break
        await asyncio.sleep(0.2)
        found = [f"secrets/{name}" for name in await named(runtime.api, "secrets", runtime.names.ours)]
    return found


async def home(runtime: KubernetesRuntime, workspace_id: str) -> pathlib.Path:
    """The folder of its claim, which the cluster keeps on this machine."""
    seen = await runtime.volumes_.of(workspace_id)
    entry = seen.volume or seen.parked
    assert entry
    claim = await runtime.api.call("GET", objects("persistentvolumeclaims", entry.home.name))
    return layout.place().volumes / str(claim["spec"]["volumeName"]) / HOME


async def log_files(runtime: KubernetesRuntime, workspace_id: str) -> list[pathlib.Path]:
    pod = await runtime.api.call("GET", objects("pods", runtime.names.of(workspace_id)))
    inside = f"pods/{pod['metadata']['uid']}/volumes/kubernetes.io~empty-dir/ide"
    return await asyncio.to_thread(
        lambda: [
            file
            for folder in layout.place().folder.glob(f"*/*/{inside}")
            for file in folder.iterdir()
            if file.name in {"current", "previous"}
        ]
    )


async def described(runtime: KubernetesRuntime, workspace_id: str) -> str:
    """For a test that fails: what the cluster knows of the pod, and what its containers say."""
    name = runtime.names.of(workspace_id)
    pod: dict[str, Any] = await runtime.api.call("GET", objects("pods", name), missing=True) or {}
    said = [
        json.dumps(pod.get("status", {}).get(key))
        for key in ("conditions", "initContainerStatuses", "containerStatuses")
    ]
    return "\n".join(said)
