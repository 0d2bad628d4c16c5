"""From a workload to what the cluster is told: the pod of a workspace, and the pod that works on a home. Pure.

Every pod here is what Kubernetes calls restricted: no root, no capability, no way to more rights, the engine's filter
of system calls, no token of the cluster, no list of its services.
"""

import base64
import json
import math
from dataclasses import dataclass
from typing import Any

from codehub.runtimes.base import ImageNotFoundError, IsolationUnavailableError, Workload
from codehub.runtimes.config import RuntimeConfig
from codehub.runtimes.containers import door, job, setup
from codehub.runtimes.containers.homes import Home
from codehub.runtimes.kubernetes import names
from codehub.runtimes.kubernetes.names import Names
from codehub.runtimes.limits import MIB, Limits
from codehub.runtimes.sandbox import LEAST_TMP, SOCKET_DIR, user_name
from codehub.system import doors
from codehub.templates.expand import expand, names_in
from codehub.templates.model import ContainerSpec, Network

INSIDE_PORT = 8080  # always free: the network is the workspace's own
SOCKET = f"{SOCKET_DIR}/sock"  # of the IDE itself; only it and its relay see the folder
COMMANDS_DIR = "/run/commands"
HOME = "home"  # the folder of a claim that is the home: what a file system puts beside it is not the user's
FILES = f"{job.VOLUME}/{HOME}"
PYTHON = ["python3", "-I", "-m"]
RELAY_MEMORY = 512 * MIB  # it packs as well
LEAST_MEMORY = 32 * MIB
SMALL_CPU, SMALL_MEMORY = "10m", f"{32 * MIB}"
TMP_BYTES, TOOLS_BYTES = 1 << 30, 16 * MIB
SOCKETS_BYTES = 4 * MIB  # beside a log
ROOT_BYTES = 1 << 30  # of what a container may write to its own root and to such folders
GRACE_SECONDS = 30  # that a node which is emptied gives
Object = dict[str, Any]


@dataclass(frozen=True)
class Start:
    """One start of one workspace."""

    home: Home
    uid: int
    door: str  # the name of its key
    allowed: Limits


def spec_of(workload: Workload) -> ContainerSpec:
    spec = workload.template.container
    if spec is None:
        raise ImageNotFoundError(f"the template {workload.template.name} has no [container] section")
    if not spec.command:
        raise ImageNotFoundError(f"the template {workload.template.name} has no `command`, which Kubernetes needs")
    return spec


def network_of(workload: Workload, config: RuntimeConfig) -> Network:
    """What network policies go by. What they cannot keep is refused."""
    wanted = spec_of(workload).network or Network(config.network)
    if wanted in {Network.NONE, Network.INTERNET}:
        return wanted
    raise IsolationUnavailableError(
        f"a pod cannot have network = {wanted.value}: ask your admin to set CODEHUB_NETWORK, or `network` in the "
        "template's [container], to none or internet"
    )


def home_of(workload: Workload) -> str:
    return f"/home/{user_name(workload.owner)}"


def basic_environment(workspace_id: str, user: str) -> dict[str, str]:
    """All that a workspace gets to know, whatever is in ours. PATH is the image's, after the home's own programs."""
    home = f"/home/{user}"
    return {
        "HOME": home,
        "USER": user,
        "LOGNAME": user,
        "SHELL": "/bin/bash",
        "LANG": "C.UTF-8",
        "TERM": "xterm-256color",
        "CODEHUB_WORKSPACE_ID": workspace_id,
    }


def etc_files(user: str, uid: int) -> dict[str, str]:
    """`whoami` works."""
    return {
        "passwd": "root:x:0:0:root:/root:/usr/sbin/nologin\n"
        f"{user}:x:{uid}:{uid}::/home/{user}:/bin/bash\n"
        "nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n",
        "group": f"root:x:0:\n{user}:x:{uid}:\nnogroup:x:65534:\n",
    }


# --- a workspace


def pod(workload: Workload, start: Start, config: RuntimeConfig, own: Names) -> Object:
    spec, id_ = spec_of(workload), workload.workspace_id
    network = network_of(workload, config)
    about = {
        names.READY: _ready(workload),
        names.DOOR: start.door,
        names.USER: user_name(workload.owner),
        names.UID: str(start.uid),
        names.HOME_NAME: start.home.name,
    }
    labels = own.labels(id_, names.IDE, **{names.NETWORK: network.value})
    return {
        "metadata": {"name": own.of(id_), "labels": labels, "annotations": about},
        "spec": {
            **_alone(config, start.uid),
            "hostname": id_,
            # The IDE's first process ends with 0, whatever the IDE ended with, and is never started again; a relay is.
            "restartPolicy": "OnFailure",
            "terminationGracePeriodSeconds": GRACE_SECONDS,
            "initContainers": [_setup(workload, start, config)],
            "containers": [
                _inside(names.IDE, SOCKET_DIR, workload, start, config, _command(workload, spec)),
                _inside(names.COMMANDS, COMMANDS_DIR, workload, start, config, []),
                _relay(spec, config),
            ],
            "volumes": [
                _claimed(start.home.name),
                _empty("tools", TOOLS_BYTES),
                _empty("ide", config.log_max_bytes + SOCKETS_BYTES),
                _empty("commands", SOCKETS_BYTES),
                _empty("tmp", max(LEAST_TMP, start.allowed.tmp_bytes or TMP_BYTES), memory=True),
                _door_volume(own.of(id_)),
            ],
        },
    }


def secret(name: str, uid: str, labels: dict[str, str], pair: tuple[bytes, bytes]) -> Object:
    """What the pod's door is known by. The cluster removes it with the pod."""
    owner = {"apiVersion": "v1", "kind": "Pod", "name": name, "uid": uid}
    data = {
        key: base64.b64encode(value).decode() for key, value in zip((doors.CERTIFICATE, doors.KEY), pair, strict=True)
    }
    return {
        "metadata": {"name": name, "labels": labels, "ownerReferences": [owner]},
        "type": "kubernetes.io/tls",
        "data": data,
    }


def _ready(workload: Workload) -> str:
    prefix = "" if workload.template.strip_prefix else f"/w/{workload.workspace_id}"
    return prefix + workload.template.ready


def _values(workload: Workload, spec: ContainerSpec) -> dict[str, str]:
    return {
        "socket": SOCKET,
        "port": str(spec.port or INSIDE_PORT),
        "home": home_of(workload),
        "base_path": workload.base_path,
        "workspace_id": workload.workspace_id,
    }


def _command(workload: Workload, spec: ContainerSpec) -> list[str]:
    return [expand(word, _values(workload, spec)) for word in spec.command]


def _inside(
    name: str, folder: str, workload: Workload, start: Start, config: RuntimeConfig, command: list[str]
) -> Object:
    """A container of the template's image, below `init`: the IDE's, or the one for contained commands."""
    spec, allowed = spec_of(workload), start.allowed
    environment = basic_environment(workload.workspace_id, user_name(workload.owner))
    if command:  # what else there is, is the IDE's alone
        environment |= {key: expand(value, _values(workload, spec)) for key, value in spec.env.items()}
        environment |= workload.environment
    bounds = [config.log_max_bytes, allowed.processes, allowed.open_files, allowed.disk_mb * MIB]
    return {
        "name": name,
        "image": spec.image,
        "imagePullPolicy": config.kubernetes_pull_policy,
        "command": ["/tools/init", folder, *map(str, bounds), *map(_literal, command)],
        "workingDir": home_of(workload),
        "env": [{"name": key, "value": _literal(value)} for key, value in environment.items()],
        "securityContext": _walls(writable=spec.writable_root),
        "resources": _resources(allowed, small=not command),
        "volumeMounts": [
            {"name": "home", "mountPath": home_of(workload), "subPath": HOME},
            {"name": "tools", "mountPath": "/tools", "readOnly": True},
            *({"name": "tools", "mountPath": f"/etc/{file}", "subPath": file, "readOnly": True} for file in ETC),
            {"name": name, "mountPath": folder},
            {"name": "tmp", "mountPath": "/tmp"},  # noqa: S108
            {"name": "tmp", "mountPath": "/var/tmp"},  # noqa: S108
        ],
    }


ETC = ("passwd", "group")


def _literal(text: str) -> str:
    """The cluster would put variables in."""
    return text.replace("$(", "$$(")


def _setup(workload: Workload, start: Start, config: RuntimeConfig) -> Object:
    order = {"etc": etc_files(user_name(workload.owner), start.uid)}
    return _ours(
        names.SETUP,
        setup.__name__,
        json.dumps(order),
        config,
        [{"name": "tools", "mountPath": str(setup.TOOLS)}],
        memory=128 * MIB,
    )


def _relay(spec: ContainerSpec, config: RuntimeConfig) -> Object:
    uses_socket = "socket" in names_in((*spec.command, *spec.env.values()))
    target = f"unix:{SOCKET}" if uses_socket else f"tcp:{spec.port or INSIDE_PORT}"
    order = {"target": target, "ide": SOCKET_DIR, "commands": COMMANDS_DIR, "volume": FILES}
    mounts = [
        {"name": "home", "mountPath": FILES, "subPath": HOME},
        {"name": "ide", "mountPath": SOCKET_DIR},
        {"name": "commands", "mountPath": COMMANDS_DIR},
        _door_mount(),
    ]
    return _door(order, config, mounts)


# --- a home alone


def job_pod(home: Home, workspace_id: str, key: str, config: RuntimeConfig, own: Names) -> Object:
    """The group of its user is given to the volume, so that the home can be made there."""
    about = {names.DOOR: key, names.HOME_NAME: home.name}
    return {
        "metadata": {"name": home.name, "labels": own.labels(workspace_id, names.JOB), "annotations": about},
        "spec": {
            **_alone(config, home.uid, fsGroup=home.uid, fsGroupChangePolicy="OnRootMismatch"),
            "restartPolicy": "Never",
            "terminationGracePeriodSeconds": 1,
            "containers": [
                _door({"volume": FILES}, config, [{"name": "home", "mountPath": job.VOLUME}, _door_mount()])
            ],
            "volumes": [_claimed(home.name), _door_volume(home.name)],
        },
    }


# --- parts of both


def _alone(config: RuntimeConfig, uid: int, **more: object) -> Object:
    """What a pod has and has not, as a whole."""
    lost = config.kubernetes_node_lost_seconds
    away = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
    chosen = {
        **({"runtimeClassName": config.kubernetes_runtime_class} if config.kubernetes_runtime_class else {}),
        **({"hostUsers": False} if config.kubernetes_user_namespaces == "yes" else {}),
        **({"imagePullSecrets": [{"name": config.kubernetes_pull_secret}]} if config.kubernetes_pull_secret else {}),
    }
    return {
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": uid,
            "runAsGroup": uid,
            "seccompProfile": {"type": "RuntimeDefault"},
            **more,
        },
        "tolerations": [
            {"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": lost} for key in away
        ],
        **chosen,
    }


def _walls(*, writable: bool = False) -> Object:
    return {
        "allowPrivilegeEscalation": False,
        "privileged": False,
        "readOnlyRootFilesystem": not writable,
        "capabilities": {"drop": ["ALL"]},
    }


def _door(order: Object, config: RuntimeConfig, mounts: list[Object]) -> Object:
    return _ours(names.RELAY, door.__name__, json.dumps(order), config, mounts, memory=RELAY_MEMORY)


def _ours(name: str, program: str, order: str, config: RuntimeConfig, mounts: list[Object], *, memory: int) -> Object:
    """A container of the platform's own image."""
    most = {"memory": str(memory), "ephemeral-storage": str(64 * MIB)}
    least = {"memory": SMALL_MEMORY, "cpu": SMALL_CPU, "ephemeral-storage": "0"}
    return {
        "name": name,
        "image": config.platform_image,
        "imagePullPolicy": config.kubernetes_pull_policy,
        "command": [*PYTHON, program, _literal(order)],
        "securityContext": _walls(),
        "resources": {"limits": most, "requests": least},
        "volumeMounts": mounts,
    }


def _resources(allowed: Limits, *, small: bool) -> Object:
    """Both containers have the same limits. What is set aside is a part of them: people do not work all at once."""
    memory, cores = allowed.memory_mb * MIB, math.ceil(allowed.cpus * 1000)
    limits = {
        **({"memory": str(memory)} if memory else {}),
        **({"cpu": f"{cores}m"} if cores else {}),
        "ephemeral-storage": str(ROOT_BYTES),
    }
    if small:
        return {"limits": limits, "requests": {"memory": str(MIB), "cpu": "1m", "ephemeral-storage": "0"}}
    least = max(LEAST_MEMORY, memory // 4)
    set_aside = {"memory": str(min(least, memory or least)), "cpu": f"{max(1, cores // 10)}m"}
    return {"limits": limits, "requests": {**set_aside, "ephemeral-storage": "0"}}


def _claimed(claim: str) -> Object:
    return {"name": "home", "persistentVolumeClaim": {"claimName": claim}}


def _empty(name: str, size: int, *, memory: bool = False) -> Object:
    return {"name": name, "emptyDir": {**({"medium": "Memory"} if memory else {}), "sizeLimit": str(size)}}


def _door_volume(name: str) -> Object:
    """Readable for the pod's own group, which is its user's alone."""
    return {"name": "door", "secret": {"secretName": name, "defaultMode": 0o444}}


def _door_mount() -> Object:
    return {"name": "door", "mountPath": str(door.PAIR), "readOnly": True}
