"""What a pod's status means. Pure; `lifecycle` asks."""

import re
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from codehub.runtimes.base import Exit
from codehub.runtimes.kubernetes import names
from codehub.runtimes.kubernetes.api import Object

ENDED = {"Succeeded", "Failed"}
EXIT_CODE = re.compile("[0-9]{1,3}")
# Why a container waits: for an image that may yet come, and for what nobody will change.
PULLING = {"ErrImagePull", "ImagePullBackOff", "RegistryUnavailable", "ImageInspectError"}
NO_IMAGE = {"InvalidImageName", "ErrImageNeverPull"}
REFUSED = {"CreateContainerConfigError", "CreateContainerError", "RunContainerError", "CrashLoopBackOff"}


@dataclass(frozen=True)
class Begun:
    """What became of a start. `refused` by the cluster, in its own words; empty: it has begun."""

    refused: str = ""
    image: bool = False  # because of one
    final: bool = False  # waiting longer will not help


def has_ended(pod: Object) -> bool:
    """All of its containers: nothing of it runs any more, and nothing has its volume."""
    return _phase(pod) in ENDED


def ide_has_ended(pod: Object) -> bool:
    return has_ended(pod) or "terminated" in _state(pod, names.IDE)


def is_leaving(pod: Object) -> bool:
    return "deletionTimestamp" in pod["metadata"]


def runs(pod: Object) -> bool:
    """Does the IDE? Also on a node that does not answer: then nobody knows better."""
    return not has_ended(pod) and "running" in _state(pod, names.IDE) and bool(pod["status"].get("podIP"))


def begun(pod: Object | None, pull_policy: str = "") -> Begun | None:
    """None: it may yet."""
    if pod is None:
        return Begun("its pod was removed while it started", final=True)
    main = names.IDE if pod["metadata"]["labels"].get(names.ROLE) == names.IDE else names.RELAY
    if has_ended(pod) and not _state(pod, main):
        return Begun(described(pod), final=True)
    state = _state(pod, main)
    if "terminated" in state or ("running" in state and pod["status"].get("podIP")):
        return Begun()
    for one in _statuses(pod):
        waiting = (one.get("state") or {}).get("waiting") or {}
        said = f"{waiting.get('message') or waiting.get('reason')} (image {one.get('image')})"
        if waiting.get("reason") in NO_IMAGE:
            return Begun(said, image=True, final=True)
        if waiting.get("reason") in PULLING:
            return Begun(said, image=True, final=pull_policy == "Never")
        if waiting.get("reason") in REFUSED:
            return Begun(said)
    for condition in (pod.get("status") or {}).get("conditions") or []:
        if condition["type"] == "PodScheduled" and condition["status"] == "False":
            return Begun(f"{condition.get('reason')}: {condition.get('message')}")
    return None


def described(pod: Object | None) -> str:
    """For somebody who looks for a reason."""
    if pod is None:
        return "there is none"
    status = pod.get("status") or {}
    said = [str(status[name]) for name in ("phase", "reason", "message") if status.get(name)]
    for one in _statuses(pod):
        for kind, state in (one.get("state") or {}).items():
            if kind != "running":
                said.append(f"{one['name']}: {state.get('reason') or kind} {state.get('message') or ''}".strip())
    return ", ".join(said)


def what_is_awaited(pod: Object) -> str:
    node = pod["spec"]["nodeName"] or "no node"
    return (
        f"waiting for the cluster to confirm that the earlier pod of this workspace on {node} has ended "
        f"({described(pod)}). Should that node be lost for good, its operator has to remove it from the cluster, or to "
        "mark it out of service: before, nobody knows whether something still writes to the home"
    )


def exit_of(pod: Object) -> Exit | None:
    """How the IDE ended: what its first process wrote down, else what the cluster saw."""
    terminated = _state(pod, names.IDE).get("terminated")
    if terminated is None:
        status = pod.get("status") or {}
        if not has_ended(pod) or not status.get("reason"):
            return None
        return Exit(None, f"{status['reason']}: {status.get('message', '')}")  # evicted before it began, for example
    first, _, tail = (terminated.get("message") or "").partition("\n")
    at = _time(terminated.get("finishedAt") or "")
    if EXIT_CODE.fullmatch(first):  # what runs in the container can write there, too
        return Exit(int(first), tail, at)
    why = f"[codehub] {terminated.get('reason', '')} {terminated.get('message') or ''}".strip()
    return Exit(terminated.get("exitCode"), why, at)


def _phase(pod: Object) -> str:
    return str((pod.get("status") or {}).get("phase", ""))


def _statuses(pod: Object) -> list[dict[str, Any]]:
    status = pod.get("status") or {}
    return [*(status.get("initContainerStatuses") or []), *(status.get("containerStatuses") or [])]


def _state(pod: Object, container: str) -> dict[str, Any]:
    for one in (pod.get("status") or {}).get("containerStatuses") or []:
        if one["name"] == container:
            state: dict[str, Any] = one.get("state") or {}
            return state
    return {}


def _time(text: str) -> datetime | None:
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        return None
