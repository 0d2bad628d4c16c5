"""From a workload to what a shepherd is told: command, environment, sandbox. No effects; called by `process.start`."""

import pathlib
import socket
from collections.abc import Sequence
from dataclasses import dataclass

from codehub.runtimes import launch, limits, sandbox, warm
from codehub.runtimes.base import ImageNotFoundError, Workload
from codehub.runtimes.config import RuntimeConfig
from codehub.runtimes.isolation import Isolation
from codehub.runtimes.layout import DOOR, SOCKET, Layout, WorkspacePaths
from codehub.runtimes.network import ways
from codehub.runtimes.sandbox import Machine, SandboxSpec
from codehub.runtimes.shepherd import python_program
from codehub.runtimes.shepherd.spec import BUBBLEWRAP, HOST_NETWORK, NO_NETWORK, PLAIN, NetworkSpec, Spec
from codehub.system.privileges import Account
from codehub.templates import programs
from codehub.templates.expand import expand, uses_port
from codehub.templates.model import ProcessSpec

INSIDE_PORT = 8080  # always free: the network namespace is the workspace's own


@dataclass(frozen=True)
class HostContext:
    """What is the same for all workspaces of this machine."""

    data_dir: pathlib.Path
    config: RuntimeConfig
    account: Account | None
    isolation: Isolation
    machine: Machine
    way: ways.Way  # out of a network of one's own


def sandbox_of(
    workload: Workload, process: ProcessSpec, paths: WorkspacePaths, uid: int | None, host: HostContext
) -> SandboxSpec:
    network = network_of(process, host)
    ide, door = host.data_dir / "ide", Layout(host.data_dir).door.parent
    return SandboxSpec(
        workspace_id=workload.workspace_id,
        user=sandbox.user_name(workload.owner),
        uid=uid,
        home=str(paths.home),
        socket_dir=str(paths.socket_dir),
        etc=str(paths.etc),
        network=network,
        resolv_conf=ways.resolv_conf(network.kind, host.way),
        door_dir=str(door) if door.is_dir() else "",
        tmp_bytes=limits.resolve(workload.template.limits, host.config).tmp_bytes,
        paths=(*process.paths, *([str(ide)] if ide.is_dir() else [])),
    )


def network_of(process: ProcessSpec, host: HostContext) -> NetworkSpec:
    if host.isolation.kind == PLAIN:
        return NetworkSpec(HOST_NETWORK)
    network = ways.of(process, host.config, host.way)
    if network.kind == HOST_NETWORK and uses_port(process.command):
        return NetworkSpec(NO_NETWORK)  # its port is reached by others on this machine otherwise
    return network


def basic_environment(workspace_id: str, user: str, home: str, data_dir: pathlib.Path, network: str) -> dict[str, str]:
    """All that a workspace gets to know, whatever is in ours."""
    return {
        "PATH": ":".join([f"{home}/.local/bin", *programs.folders(data_dir)]),
        "HOME": home,
        "USER": user,
        "LOGNAME": user,
        "SHELL": "/bin/bash" if pathlib.Path("/bin/bash").exists() else "/bin/sh",
        "LANG": "C.UTF-8",
        "TERM": "xterm-256color",
        "CODEHUB_WORKSPACE_ID": workspace_id,
        **ways.environment(network),
    }


def warm_kind(process: ProcessSpec, command: Sequence[str], network: str, host: HostContext) -> warm.Kind | None:
    """The parent of which such a program can be a copy; None: it is no Python program that is found by its path.

    One that needs a port is started by a relay, which does not need to be quick.
    """
    program = None if uses_port(process.command) else python_program.of(list(command))
    if program is None:
        return None
    id_, home = warm.NO_WORKSPACE, f"/home/{warm.NO_USER}"
    values = {"home": home, "workspace_id": id_, "base_path": f"/w/{id_}/", "socket": "", "port": ""}
    environment = basic_environment(id_, warm.NO_USER, home, host.data_dir, network)
    environment |= {key: expand(value, values) for key, value in process.env.items()}
    return warm.Kind.of(program, process.preload, process.kernels, environment)


def home_of(box: SandboxSpec, host: HostContext) -> str:
    """The home's path as the workspace knows it."""
    return box.home if host.isolation.kind == PLAIN else box.inside_home


def spec_of(workload: Workload, paths: WorkspacePaths, box: SandboxSpec, host: HostContext) -> Spec:
    process = process_of(workload)
    plain = host.isolation.kind == PLAIN
    home = home_of(box, host)
    values = {
        "socket": str(paths.socket) if plain else f"{sandbox.SOCKET_DIR}/{SOCKET}",
        "port": str(_free_port() if plain else INSIDE_PORT),
        "home": home,
        "base_path": workload.base_path,
        "workspace_id": workload.workspace_id,
    }
    steps = [] if plain else sandbox.mounts(host.machine, box)
    return Spec(
        workspace_id=workload.workspace_id,
        isolation=host.isolation.kind or "",
        command=_command(process, values, box, host),
        environment={
            **basic_environment(box.workspace_id, box.user, home, host.data_dir, box.network.kind),
            **{name: expand(value, values) for name, value in process.env.items()},
            **_door(box, plain=plain),
            **workload.environment,
        },
        user=box.user,
        directory=home,
        uid=box.uid,
        gid=box.uid,
        network=box.network,
        mounts=steps,
        bubblewrap=sandbox.bubblewrap(host.isolation.program, steps, box),
        home=str(paths.home),
        lock=str(paths.lock),
        record=str(paths.record),
        exit_file=str(paths.exit_file),
        socket_dir=str(paths.socket_dir),
        socket_gid=host.account.gid if host.account else None,
        log_dir=str(paths.log),
        log_max_bytes=host.config.log_max_bytes,
        address={"socket": str(paths.socket)},
        ready=("" if workload.template.strip_prefix else f"/w/{workload.workspace_id}") + workload.template.ready,
    )


def _door(box: SandboxSpec, *, plain: bool) -> dict[str, str]:
    """Where the platform listens for what comes from inside."""
    folder = box.door_dir if plain else sandbox.DOOR_DIR
    return {"CODEHUB_HOLD_SOCKET": f"{folder}/{DOOR}"} if box.door_dir else {}


def process_of(workload: Workload) -> ProcessSpec:
    if workload.template.process is None:
        raise ImageNotFoundError(f"the template {workload.template.name} has no [process] section")
    return workload.template.process


def _command(process: ProcessSpec, values: dict[str, str], box: SandboxSpec, host: HostContext) -> list[str]:
    words = [expand(word, values) for word in process.command]
    command = programs.command(words, host.data_dir)
    if command is None:
        raise ImageNotFoundError(f"{words[0]} is not installed on this machine")
    if uses_port(process.command):
        command = [*launch.helper("relay", values["socket"], values["port"]), *command]
    if host.isolation.kind == BUBBLEWRAP:
        setpriv = programs.find("setpriv", host.data_dir) or "/usr/bin/setpriv"
        command = [*sandbox.drop_rights(setpriv, box.uid), *command]
    return command


def _free_port() -> int:
    """Without a network namespace ports are shared, and this one is only likely to be free in a moment."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
