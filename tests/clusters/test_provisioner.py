"""What the cluster's provisioner decides, without a cluster."""

import pathlib
from typing import Any

from cluster import provisioner

FOLDERS = pathlib.Path("/volumes")
OURS = {"metadata": {"name": "standard"}, "provisioner": provisioner.DRIVER, "reclaimPolicy": "Delete"}
OTHERS = {"metadata": {"name": "other"}, "provisioner": "somebody/else"}


def claim(uid: str, storage_class: str = "standard", volume: str = "", **metadata: str) -> dict[str, Any]:
    resources = {"requests": {"storage": "1Gi"}}
    spec = {"storageClassName": storage_class, "accessModes": ["ReadWriteOnce"], "resources": resources}
    named = {"namespace": "here", "name": f"claim-{uid}", "uid": uid, **metadata}
    return {"metadata": named, "spec": {**spec, "volumeName": volume}}


def volume(name: str, phase: str, policy: str = "Delete", driver: str = provisioner.DRIVER) -> dict[str, Any]:
    metadata = {"name": name, "annotations": {provisioner.MARK: driver}}
    return {"metadata": metadata, "spec": {"persistentVolumeReclaimPolicy": policy}, "status": {"phase": phase}}


def test_a_claim_that_waits_gets_a_volume_for_it_alone_on_any_node() -> None:
    (made,) = provisioner.to_create([claim("1")], [], [OTHERS, OURS], FOLDERS)
    assert made["metadata"]["name"] == "pvc-1"
    assert made["spec"]["local"] == {"path": "/volumes/pvc-1"}
    assert made["spec"]["claimRef"]["uid"] == "1"
    assert made["spec"]["capacity"] == {"storage": "1Gi"}


def test_no_volume_is_made_for_a_claim_that_has_one_ends_or_is_anothers() -> None:
    claims = [
        claim("1"),
        claim("2", volume="pvc-2"),
        claim("3", "other"),
        claim("4", deletionTimestamp="2026-01-01T00:00:00Z"),
    ]
    assert provisioner.to_create(claims, [volume("pvc-1", "Available")], [OURS, OTHERS], FOLDERS) == []


def test_only_volumes_of_ours_whose_claim_is_gone_and_that_may_go_are_deleted() -> None:
    volumes = [
        volume("gone", "Released"),
        volume("used", "Bound"),
        volume("kept", "Released", policy="Retain"),
        volume("theirs", "Released", driver="somebody/else"),
    ]
    assert provisioner.to_delete(volumes) == ["gone"]
