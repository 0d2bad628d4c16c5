"""The chart as somebody installs it, on the cluster of `make cluster`: three of each role, workspaces as pods.

PostgreSQL with a standby, a Valkey Cluster and an S3 server stand beside the cluster, on this host's end of the link to
it. What an ingress does, TLS and its names, is done here too (`front`).
"""

import contextlib
import json
import pathlib
import secrets
import subprocess
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import aiohttp

from tests.archives import s3
from tests.clusters.kubectl import Kubectl
from tests.deploy.helm import CHART, binary
from tests.failover.standby import Pair
from tests.platform import ADMIN_TOKEN, Platform
from tests.waiting_room.clusters import Cluster

NAMESPACE, LABS, RELEASE = "codehub-chart", "codehub-chart-labs", "codehub"
HOST, DOMAIN = "labs.example.org", "labs-ide.example.org"
ROLES = ("proxy", "api", "coordinator")
IMAGE, NEXT = "docker.io/codehub/platform", "next"  # the same image by another tag: what an upgrade goes to
PATIENCE = "15m"
PASSWORD = secrets.token_hex(16)
SMALL = {"resources": {"requests": {"cpu": "10m", "memory": "64Mi"}, "limits": {"memory": "1Gi"}}}
RUNNING_AT_ONCE = 2  # workspaces: who comes when they are taken waits in line


@dataclass
class Beside:
    """The servers: each can be lost."""

    postgres: Pair
    valkey: Cluster
    store: s3.Store


class Front(Platform):
    """The platform behind the chart's service, for those who visit it. Its processes are the cluster's."""

    def __init__(self, address: str) -> None:
        self.url = f"https://{HOST}"
        self.address = address  # of the service: without TLS, as an ingress reaches it

    @contextlib.asynccontextmanager
    async def client(
        self, token: str | None = ADMIN_TOKEN, *, seconds: float = 60
    ) -> AsyncIterator[aiohttp.ClientSession]:
        headers = {"Host": HOST, **({"Authorization": f"Bearer {token}"} if token else {})}
        timeout = aiohttp.ClientTimeout(total=seconds)
        async with aiohttp.ClientSession(f"http://{self.address}", headers=headers, timeout=timeout) as session:
            yield session


class Lab:
    """One installation of the chart."""

    def __init__(self, kubectl: Kubectl, beside: Beside, folder: pathlib.Path) -> None:
        self.kubectl, self.beside = kubectl, beside
        self.labs = Kubectl(kubectl.place, LABS)
        self._folder = folder

    def values(self, **changed: Any) -> dict[str, Any]:
        server = self.beside.store.server
        return {
            "publicUrl": f"https://{HOST}",
            "workspaceDomain": DOMAIN,
            "image": {"repository": IMAGE, "tag": "latest"},
            "archiveUrl": f"s3://{s3.BUCKET}/chart",
            "s3": {"endpoint": server.environment()["AWS_ENDPOINT_URL"], "region": "us-east-1"},
            "secrets": {"adminToken": {"name": "codehub"}},
            "workspaces": {"namespace": LABS, "createNamespace": True, "volumeSize": "1Gi"},
            "settings": {"CODEHUB_DATABASE_POOL_SIZE": 5, "CODEHUB_MAX_RUNNING_GLOBAL": RUNNING_AT_ONCE},
            "drainSeconds": 10,
            "proxy": {"workers": 1, **SMALL},
            "api": SMALL,
            "coordinator": SMALL,
            **changed,
        }

    def install(self) -> Front:
        self.remove()
        labels = {"pod-security.kubernetes.io/enforce": "restricted"}
        self.kubectl.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE, "labels": labels}})
        self.kubectl.apply(self._secret())
        self.helm("install")
        address = self.kubectl("get", "service", RELEASE, "-o", "jsonpath={.spec.clusterIP}")
        return Front(address)

    def upgrade(self, **changed: Any) -> None:
        self.helm("upgrade", **changed)

    def roll_back(self) -> None:
        self._run("rollback", RELEASE, "--wait", "--timeout", PATIENCE)

    def remove(self) -> None:
        for namespace in (NAMESPACE, LABS):
            self.kubectl("delete", "namespace", namespace, "--ignore-not-found", "--wait")

    def helm(self, verb: str, **changed: Any) -> None:
        file = self._folder / "values.json"
        file.write_text(json.dumps(self.values(**changed)))
        self._run(verb, RELEASE, str(CHART), "--values", str(file), "--wait", "--timeout", PATIENCE)

    def _run(self, *words: str) -> None:
        where = ["--kubeconfig", str(self.kubectl.place.kubeconfig), "--namespace", NAMESPACE]
        done = subprocess.run([binary(), *words, *where], capture_output=True, text=True, check=False)
        seen = "" if done.returncode == 0 else self.kubectl("get", "pods", "-o", "wide") + self._last_words()
        assert done.returncode == 0, done.stderr + seen

    def _last_words(self) -> str:
        return "\n".join(
            self.kubectl.try_("logs", f"deployment/{RELEASE}-{role}", "--tail=5", "--all-pods=true").stdout
            for role in ROLES
        )

    def _secret(self) -> dict[str, Any]:
        hosts = ",".join(f"{node.host}:{node.port}" for node in self.beside.valkey.nodes[:3])
        keys = self.beside.store.server.environment()
        text = {
            "database-url": self.beside.postgres.url,
            "redis-url": f"redis+cluster://:{self.beside.valkey.nodes[0].password}@{hosts}",
            "secret-key": "a-signing-key-for-tests-of-the-chart",
            "admin-token": ADMIN_TOKEN,
            "s3-access-key-id": keys["AWS_ACCESS_KEY_ID"],
            "s3-secret-access-key": keys["AWS_SECRET_ACCESS_KEY"],
        }
        metadata = {"name": "codehub", "namespace": NAMESPACE}
        return {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "stringData": text}

    # --- looking

    def ready(self, role: str) -> set[str]:
        """Names of this role's pods that are ready and stay."""
        listed = self.kubectl("get", "pods", "-l", f"app.kubernetes.io/component={role}", "-o", "json")
        return {
            pod["metadata"]["name"]
            for pod in json.loads(listed)["items"]
            if any(c["type"] == "Ready" and c["status"] == "True" for c in pod["status"].get("conditions", []))
            and "deletionTimestamp" not in pod["metadata"]
        }

    def pod_of(self, workspace_id: str) -> tuple[str, str, list[int]]:
        """Its identity, its node, and how often each of its containers was started again."""
        pod = self.labs.get("pod", f"codehub.main.{workspace_id}")
        assert pod, workspace_id
        restarts = [one["restartCount"] for one in pod["status"]["containerStatuses"]]
        return pod["metadata"]["uid"], pod["spec"]["nodeName"], restarts

    def home_of(self, workspace_id: str) -> pathlib.Path:
        """The folder of its claim, which the cluster keeps on this machine."""
        listed = json.loads(self.labs("get", "pvc", "-l", f"codehub.workspace={workspace_id}", "-o", "json"))["items"]
        (claim,) = listed
        return self.kubectl.place.volumes / str(claim["spec"]["volumeName"]) / "home"

    def left_of(self, workspace_id: str) -> list[str]:
        names = self.labs("get", "pods,pvc,cm,secrets", "-l", f"codehub.workspace={workspace_id}", "-o", "name")
        return names.split()
