"""The cluster that the tests share, by its own `kubectl`."""

import json
import subprocess
import time
from collections.abc import Callable
from typing import Any

from cluster import layout, lifecycle

PATIENCE = 300.0  # a machine that is busy with other things is no failure


class Kubectl:
    def __init__(self, place: layout.Place, namespace: str | None = None) -> None:
        self.place, self.namespace = place, namespace

    def try_(self, *words: str, given: str = "") -> subprocess.CompletedProcess[str]:
        command = [str(lifecycle.kubectl()), f"--kubeconfig={self.place.kubeconfig}"]
        if self.namespace:
            command.append(f"--namespace={self.namespace}")
        return subprocess.run([*command, *words], check=False, capture_output=True, text=True, input=given)

    def __call__(self, *words: str, given: str = "") -> str:
        done = self.try_(*words, given=given)
        assert done.returncode == 0, f"kubectl {' '.join(words)}: {done.stderr}"
        return done.stdout

    def apply(self, *things: dict[str, Any]) -> None:
        self("apply", "-f", "-", given=json.dumps({"apiVersion": "v1", "kind": "List", "items": things}))

    def get(self, kind: str, name: str) -> dict[str, Any] | None:
        done = self.try_("get", kind, name, "-o", "json")
        return dict(json.loads(done.stdout)) if done.returncode == 0 else None

    def phase(self, name: str) -> str:
        seen = self.get("pod", name)
        return str(seen["status"].get("phase")) if seen else "gone"

    def wait_for_pod(self, name: str) -> str:
        """Its address, once it is ready."""
        self("wait", "--for=condition=Ready", f"pod/{name}", f"--timeout={PATIENCE:.0f}s")
        seen = self.get("pod", name)
        assert seen
        return str(seen["status"]["podIP"])


def until(condition: Callable[[], bool], told: Callable[[], object] = lambda: "") -> None:
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline, told()
        time.sleep(0.2)


def pod(name: str, script: str, node: str | None = None, claim: str | None = None, **more: Any) -> dict[str, Any]:
    """As the restricted policy wants it."""
    container: dict[str, Any] = {
        "name": "main",
        "image": layout.BUSYBOX,
        "imagePullPolicy": "Never",
        "command": ["sh", "-c", script],
        "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
    }
    spec: dict[str, Any] = {
        "terminationGracePeriodSeconds": 1,
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": 1000,
            "fsGroup": 1000,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "containers": [container],
    }
    if node:
        spec["nodeSelector"] = {"kubernetes.io/hostname": node}
    if claim:
        spec["volumes"] = [{"name": "home", "persistentVolumeClaim": {"claimName": claim}}]
        container["volumeMounts"] = [{"name": "home", "mountPath": "/home"}]
    metadata = {"name": name, "labels": {"app": name}}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {**spec, **more}}
