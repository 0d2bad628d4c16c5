"""From a workload to what the engine is told: the container of an IDE, and of the relay beside it. Pure."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from codehub.runtimes import limits
from codehub.runtimes.base import ImageNotFoundError, Workload
from codehub.runtimes.containers import relay
from codehub.runtimes.docker import names
from codehub.runtimes.docker.names import Names
from codehub.runtimes.limits import MIB, Limits
from codehub.runtimes.sandbox import DOOR_DIR, LEAST_TMP, SOCKET_DIR, user_name
from codehub.settings import ShareConfig
from codehub.templates.expand import expand, names_in
from codehub.templates.model import ContainerSpec

INSIDE_PORT = 8080  # always free: the network is the workspace's own
SOCKET = f"{SOCKET_DIR}/sock"  # of the IDE itself; only it and its relay see the folder
DOOR = "/run/door"  # of the relay: a folder of the machine
SHARES = 1024  # that the engine gives a container of ordinary weight
RELAY_MEMORY = 128 * MIB
LARGEST_OOM_SCORE = 500  # as for processes: the kernel is to look here first, not at the database
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


@dataclass(frozen=True)
class Place:
    """Where one workspace is, on the machine and on the engine."""

    home: str  # its volume
    link: str | None  # the volume with the IDE's socket; None: it listens on a port
    uid: int
    socket_dir: str  # on the machine: where the relay's door is
    etc: str  # on the machine: passwd and group
    door_dir: str  # on the machine: where the platform listens; empty: there is none
    network: str  # as the engine names it
    gid: int  # of those who may come in through the relay
    started_at: str
    path: str = PATH  # the image's
    full: tuple[int, int] = (0, 0)  # bytes and files of a home that is too large already


def spec_of(workload: Workload) -> ContainerSpec:
    if workload.template.container is None:
        raise ImageNotFoundError(f"the template {workload.template.name} has no [container] section")
    return workload.template.container


def uses_socket(spec: ContainerSpec) -> bool:
    return "socket" in names_in((*spec.command, *spec.env.values()))


def home_of(workload: Workload) -> str:
    return f"/home/{user_name(workload.owner)}"


def basic_environment(workspace_id: str, user: str, path: str) -> dict[str, str]:
    """All that a workspace gets to know, whatever is in ours."""
    home = f"/home/{user}"
    return {
        "PATH": f"{home}/.local/bin:{path}",
        "HOME": home,
        "USER": user,
        "LOGNAME": user,
        "SHELL": "/bin/bash",
        "LANG": "C.UTF-8",
        "TERM": "xterm-256color",
        "CODEHUB_WORKSPACE_ID": workspace_id,
    }


def ide(workload: Workload, place: Place, allowed: Limits, log_max_bytes: int, own: Names) -> dict[str, Any]:
    spec, user = spec_of(workload), user_name(workload.owner)
    values = {
        "socket": SOCKET,
        "port": str(spec.port or INSIDE_PORT),
        "home": home_of(workload),
        "base_path": workload.base_path,
        "workspace_id": workload.workspace_id,
    }
    environment = {
        **basic_environment(workload.workspace_id, user, place.path),
        **{name: expand(value, values) for name, value in spec.env.items()},
        **({"CODEHUB_HOLD_SOCKET": f"{DOOR_DIR}/hold.sock"} if place.door_dir else {}),
        **workload.environment,
    }
    about = {
        names.READY: _ready(workload),
        names.STARTED_AT: place.started_at,
        names.USER: user,
        **_disk(place, allowed),
    }
    return {
        "Image": spec.image,
        **({"Entrypoint": [], "Cmd": [expand(word, values) for word in spec.command]} if spec.command else {}),
        "Hostname": workload.workspace_id,
        "User": f"{place.uid}:{place.uid}",
        "WorkingDir": home_of(workload),
        "Env": [f"{name}={value}" for name, value in environment.items()],
        "Labels": own.labels(workload.workspace_id, names.IDE, **about, **{names.UID: str(place.uid)}),
        "HostConfig": {
            **_walls(),
            "Init": True,
            "ReadonlyRootfs": not spec.writable_root,
            "NetworkMode": place.network,
            "Tmpfs": _tmpfs(allowed),
            "ShmSize": max(LEAST_TMP, allowed.tmp_bytes) if allowed.tmp_bytes else LEAST_TMP,
            "LogConfig": _log(log_max_bytes),
            "OomScoreAdj": LARGEST_OOM_SCORE,
            "Mounts": _mounts(home_of(workload), place),
            **_shares(allowed, file_bytes=_file_bytes(place, allowed)),
        },
    }


def relay_beside(container: str, workload: Workload, place: Place, image: str, own: Names) -> dict[str, Any]:
    spec = spec_of(workload)
    target = f"unix:{SOCKET}" if place.link else f"tcp:{spec.port or INSIDE_PORT}"
    mounts = [{"Type": "bind", "Source": place.socket_dir, "Target": DOOR}]
    if place.link:
        mounts.append({"Type": "volume", "Source": place.link, "Target": SOCKET_DIR})
    return {
        "Image": image,
        "Entrypoint": ["python3", "-I", "-m", relay.__name__],
        "Cmd": [f"{DOOR}/sock", target],
        # Not another user than the IDE's, whose socket it opens; its own group is that of those who may come in.
        "User": f"{place.uid}:{place.gid}",
        "Labels": own.labels(workload.workspace_id, names.RELAY),
        "HostConfig": {
            **_walls(),
            "ReadonlyRootfs": True,
            "NetworkMode": f"container:{container}",
            "RestartPolicy": {"Name": "on-failure", "MaximumRetryCount": 20},
            "Memory": RELAY_MEMORY,
            "MemorySwap": RELAY_MEMORY,
            "PidsLimit": 16,
            "LogConfig": {"Type": "json-file", "Config": {"max-size": "64k", "max-file": "1"}},
            "Mounts": mounts,
        },
    }


def etc_files(user: str, uid: int) -> dict[str, str]:
    """`whoami` works."""
    return {
        "passwd": "root:x:0:0:root:/root:/usr/sbin/nologin\n"
        f"{user}:x:{uid}:{uid}::/home/{user}:/bin/bash\n"
        "nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n",
        "group": f"root:x:0:\n{user}:x:{uid}:\nnogroup:x:65534:\n",
    }


def _ready(workload: Workload) -> str:
    prefix = "" if workload.template.strip_prefix else f"/w/{workload.workspace_id}"
    return prefix + workload.template.ready


def _walls() -> dict[str, Any]:
    """Of everything that is not a job of ours. The engine adds its own filter of system calls."""
    return {
        "CapDrop": ["ALL"],
        "SecurityOpt": ["no-new-privileges"],
        "IpcMode": "private",
        "CgroupnsMode": "private",
        "Privileged": False,
    }


def _tmpfs(allowed: Limits) -> dict[str, str]:
    size = f",size={max(LEAST_TMP, allowed.tmp_bytes)}" if allowed.tmp_bytes else ""
    return {"/tmp": f"rw,nosuid,nodev,exec,mode=1777{size}", "/var/tmp": f"rw,nosuid,nodev,exec,mode=1777{size}"}  # noqa: S108


def _log(log_max_bytes: int) -> dict[str, Any]:
    """Two files; a line may go beyond the end of one, by 16 KB and what the engine adds to it."""
    size = max(32 << 10, log_max_bytes // 2 - (48 << 10))
    return {"Type": "json-file", "Config": {"max-size": str(size), "max-file": "2"}}


def _mounts(home: str, place: Place) -> list[dict[str, Any]]:
    mounts: list[dict[str, Any]] = [
        {"Type": "volume", "Source": place.home, "Target": home, "VolumeOptions": {"NoCopy": True}},
        *(_shown(f"{place.etc}/{name}", f"/etc/{name}") for name in ("passwd", "group")),
    ]
    if place.link:
        mounts.append({"Type": "volume", "Source": place.link, "Target": SOCKET_DIR})
    if place.door_dir:
        mounts.append(_shown(place.door_dir, DOOR_DIR))
    return mounts


def _shown(source: str, target: str) -> dict[str, Any]:
    return {"Type": "bind", "Source": source, "Target": target, "ReadOnly": True}


def _disk(place: Place, allowed: Limits) -> dict[str, str]:
    """For `disk_guard`."""
    most = {names.DISK_BYTES: str(allowed.disk_mb * MIB), names.DISK_FILES: str(allowed.files)}
    return {**most, **{label: str(number) for label, number in zip(names.AT_START, place.full, strict=True)}}


def _file_bytes(place: Place, allowed: Limits) -> int:
    """One file's size: in a home that is too large already, enough to save a text, and nothing large."""
    size = allowed.disk_mb * MIB
    return min(size, limits.FILE_WHEN_FULL) if any(place.full) and size else size


def _shares(allowed: Limits, file_bytes: int) -> dict[str, Any]:
    ulimits = {"nofile": allowed.open_files, "fsize": file_bytes}
    shares: Mapping[str, Any] = {
        "Memory": allowed.memory_mb * MIB,
        "MemorySwap": allowed.memory_mb * MIB,
        "PidsLimit": allowed.processes,
        "NanoCpus": math.ceil(allowed.cpus * 1e9),
        "CpuShares": max(2, allowed.cpu_weight * SHARES // 100) if allowed.cpu_weight else 0,
    }
    named = [{"Name": name, "Soft": value, "Hard": value} for name, value in ulimits.items() if value]
    return {**{name: value for name, value in shares.items() if value}, "Ulimits": named}


def limits_of(workload: Workload, config: ShareConfig) -> Limits:
    return limits.resolve(workload.template.limits, config)
