"""Binds claims of the class `standard` to folders that all nodes see: what a file server and its driver do elsewhere.

A program of `control`: `python -m cluster.provisioner VOLUMES PKI SERVER`. It reads what there is once a second and
decides by it alone, so it may die at any line.
"""

import json
import pathlib
import shutil
import ssl
import sys
import time
import urllib.error
import urllib.request
from typing import Any

from cluster.layout import STORAGE_CLASS

DRIVER = "codehub-cluster/folders"
MARK = "pv.kubernetes.io/provisioned-by"
Thing = dict[str, Any]


def to_create(claims: list[Thing], volumes: list[Thing], classes: list[Thing], folders: pathlib.Path) -> list[Thing]:
    """A volume for each claim that waits for one. Its name is the claim's uid: made twice it is the same."""
    ours = {one["metadata"]["name"]: one for one in classes if one["provisioner"] == DRIVER}
    there = {one["metadata"]["name"] for one in volumes}
    waiting = [
        claim
        for claim in claims
        if claim["spec"].get("storageClassName") in ours
        and not claim["spec"].get("volumeName")
        and not claim["metadata"].get("deletionTimestamp")
        and f"pvc-{claim['metadata']['uid']}" not in there
        and _may_begin(claim, ours[claim["spec"]["storageClassName"]])
    ]
    return [_volume(claim, ours[claim["spec"]["storageClassName"]], folders) for claim in waiting]


def to_delete(volumes: list[Thing]) -> list[str]:
    """Whose claim is gone, when the class says that its content goes with it."""
    return [
        one["metadata"]["name"]
        for one in volumes
        if one["metadata"].get("annotations", {}).get(MARK) == DRIVER
        and one["spec"].get("persistentVolumeReclaimPolicy") == "Delete"
        and one.get("status", {}).get("phase") == "Released"
    ]


def _may_begin(claim: Thing, of_class: Thing) -> bool:
    if of_class.get("volumeBindingMode") != "WaitForFirstConsumer":
        return True
    return "volume.kubernetes.io/selected-node" in claim["metadata"].get("annotations", {})


def _volume(claim: Thing, of_class: Thing, folders: pathlib.Path) -> Thing:
    """`local`, because a kubelet then sets its group (fsGroup) as it would on a disk; on any node, as all have it."""
    metadata, name = claim["metadata"], f"pvc-{claim['metadata']['uid']}"
    anywhere = {"matchExpressions": [{"key": "kubernetes.io/os", "operator": "In", "values": ["linux"]}]}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": name, "annotations": {MARK: DRIVER}},
        "spec": {
            "accessModes": claim["spec"]["accessModes"],
            "capacity": {"storage": claim["spec"]["resources"]["requests"]["storage"]},
            "storageClassName": of_class["metadata"]["name"],
            "persistentVolumeReclaimPolicy": of_class.get("reclaimPolicy", "Delete"),
            "local": {"path": str(folders / name)},
            "nodeAffinity": {"required": {"nodeSelectorTerms": [anywhere]}},
            "claimRef": {
                "apiVersion": "v1",
                "kind": "PersistentVolumeClaim",
                "namespace": metadata["namespace"],
                "name": metadata["name"],
                "uid": metadata["uid"],
            },
        },
    }


class Api:
    def __init__(self, pki: pathlib.Path, server: str) -> None:
        self._server = server
        self._context = ssl.create_default_context(cafile=str(pki / "ca.crt"))
        self._context.load_cert_chain(pki / "provisioner.crt", pki / "provisioner.key")

    def listed(self, path: str) -> list[Thing]:
        return list(self.call("GET", path)["items"])

    def call(self, method: str, path: str, body: Thing | None = None) -> Thing:
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(  # noqa: S310 (our own server)
            f"{self._server}{path}", data, {"Content-Type": "application/json"}, method=method
        )
        with urllib.request.urlopen(request, context=self._context, timeout=10) as answer:  # noqa: S310
            return dict(json.loads(answer.read()))


def once(api: Api, folders: pathlib.Path) -> None:
    classes = api.listed("/apis/storage.k8s.io/v1/storageclasses")
    claims = api.listed("/api/v1/persistentvolumeclaims")
    volumes = api.listed("/api/v1/persistentvolumes")
    for volume in to_create(claims, volumes, classes, folders):
        folder = folders / volume["metadata"]["name"]
        folder.mkdir(parents=True, exist_ok=True)
        folder.chmod(0o777)
        api.call("POST", "/api/v1/persistentvolumes", volume)
    for name in to_delete(volumes):
        shutil.rmtree(folders / name, ignore_errors=True)
        api.call("DELETE", f"/api/v1/persistentvolumes/{name}")


def main() -> None:
    folders, pki, server = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]), sys.argv[3]
    api = Api(pki, server)
    print(f"Volumes of class {STORAGE_CLASS} are in {folders}.", flush=True)
    while True:
        try:
            once(api, folders)
        except (OSError, urllib.error.HTTPError) as problem:
            print(problem, flush=True)
        time.sleep(0.5)


if __name__ == "__main__":
    main()
