"""A container that runs, as `inside` wants to enter it: as root of this machine, not by the engine's own `exec`.

The engine can start a command in a container and cannot end it, nor what it leaves behind. Entering the container's
namespaces ourselves, a command can be contained, bounded and ended as in any other workspace, in a tenth of the time.
"""

import pathlib
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from codehub.runtimes.base import Address, RuntimeFailureError
from codehub.runtimes.docker import bodies, names
from codehub.runtimes.records import Running
from codehub.runtimes.shepherd import seccomp
from codehub.runtimes.shepherd.shares import FILTER, NO_FILTER
from codehub.system.processes import Identity

CGROUPS = pathlib.Path("/sys/fs/cgroup")


def running_of(workspace_id: str, info: Mapping[str, Any]) -> Running:
    labels, pid = info["Config"]["Labels"], int(info["State"]["Pid"])
    first = Identity.of(pid) if pid else None
    if first is None or not is_of(pid, info["Id"]):
        raise RuntimeFailureError("the workspace is not running")
    uid, user = int(labels[names.UID]), labels[names.USER]
    limits = {limit["Name"]: limit["Hard"] for limit in info["HostConfig"].get("Ulimits") or []}
    return Running(
        workspace_id=workspace_id,
        shepherd=first,
        first=first,
        isolation="docker",
        address=Address(),
        started_at=datetime.fromisoformat(labels[names.STARTED_AT]),
        uid=uid,
        gid=uid,
        user=user,
        directory=f"/home/{user}",
        groups=[str(group) for group in _groups(pid)],
        rlimits=limits,
        filter=FILTER if seccomp.available() else NO_FILTER,
    )


def environment_of(workspace_id: str, info: Mapping[str, Any]) -> dict[str, str]:
    given = dict(text.partition("=")[::2] for text in info["Config"]["Env"])
    basic = bodies.basic_environment(workspace_id, info["Config"]["Labels"][names.USER], bodies.PATH)
    return {**basic, "PATH": given.get("PATH", basic["PATH"])}


def is_of(pid: int, container: str) -> bool:
    """Its number may be another's by now; the engine names control groups by the container."""
    return container in _groups_text(pid)


def _groups_text(pid: int) -> str:
    try:
        return pathlib.Path(f"/proc/{pid}/cgroup").read_text(encoding="utf-8")
    except OSError:
        return ""


def _groups(pid: int) -> list[pathlib.Path]:
    """The control groups of the container: what is run inside counts there as well."""
    found = []
    for line in _groups_text(pid).splitlines():
        _, controllers, group = line.split(":", 2)
        base = CGROUPS / controllers.removeprefix("name=") if controllers else CGROUPS
        if group != "/" and (place := base / group.lstrip("/")).is_dir():
            found.append(place)
    return found
