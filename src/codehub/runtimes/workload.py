"""From a workload to what a shepherd is told: command, environment, sandbox. No effects; called by `process.start`."""

import pathlib
import socket
from dataclasses import dataclass

from codehub.runtimes import launch, limits, sandbox
from codehub.runtimes.base import ImageNotFoundError, Workload
from codehub.runtimes.config import RuntimeConfig
from codehub.runtimes.isolation import Isolation
from codehub.runtimes.layout import DOOR, SOCKET, Layout, Place
from codehub.runtimes.network import ways
from codehub.runtimes.sandbox import Machine, Room
from codehub.runtimes.shepherd.spec import BUBBLEWRAP, HOST_NETWORK, NO_NETWORK, PLAIN, NetworkSpec, Spec
from codehub.system.privileges import Account
from codehub.templates import programs
from codehub.templates.expand import expand, uses_port
from codehub.templates.model import ProcessSpec

INSIDE_PORT = 8080  # always free: the network namespace is the workspace's own


@dataclass(frozen=True)
class Setting:
    """What is the same for all workspaces of this machine."""

    data_dir: pathlib.Path
    config: RuntimeConfig
    account: Account | None
    isolation: Isolation
    machine: Machine
    way: ways.Way  # out of a network of one's own


def room_of(workload: Workload, process: ProcessSpec, place: Place, uid: int | None, setting: Setting) -> Room:
    network = network_of(process, setting)
    ide, door = setting.data_dir / "ide", Layout(setting.data_dir).door.parent
    return Room(
        workspace_id=workload.workspace_id,
        user=sandbox.user_name(workload.owner),
        uid=uid,
        home=str(place.home),
        socket_dir=str(place.socket_dir),
        etc=str(place.etc),
        network=network,
        resolv_conf=ways.resolv_conf(network.kind, setting.way),
        door_dir=str(door) if door.is_dir() else "",
        tmp_bytes=limits.resolve(workload.template.limits, setting.config).tmp_bytes,
        paths=(*process.paths, *([str(ide)] if ide.is_dir() else [])),
    )


def network_of(process: ProcessSpec, setting: Setting) -> NetworkSpec:
    if setting.isolation.kind == PLAIN:
        return NetworkSpec(HOST_NETWORK)
    network = ways.of(process, setting.config, setting.way)
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


def home_of(room: Room, setting: Setting) -> str:
    """The home's path as the workspace knows it."""
    return room.home if setting.isolation.kind == PLAIN else room.inside_home


def spec_of(workload: Workload, place: Place, room: Room, setting: Setting) -> Spec:
    process = process_of(workload)
    plain = setting.isolation.kind == PLAIN
    home = home_of(room, setting)
    values = {
        "socket": str(place.socket) if plain else f"{sandbox.SOCKET_DIR}/{SOCKET}",
        "port": str(_free_port() if plain else INSIDE_PORT),
        "home": home,
        "base_path": workload.base_path,
        "workspace_id": workload.workspace_id,
    }
    steps = [] if plain else sandbox.mounts(setting.machine, room)
    return Spec(
        workspace_id=workload.workspace_id,
        isolation=setting.isolation.kind or "",
        command=_command(process, values, room, setting),
        environment={
            **basic_environment(room.workspace_id, room.user, home, setting.data_dir, room.network.kind),
            **{name: expand(value, values) for name, value in process.env.items()},
            **_door(room, plain=plain),
            **workload.environment,
        },
        user=room.user,
        directory=home,
        uid=room.uid,
        gid=room.uid,
        network=room.network,
        mounts=steps,
        bubblewrap=sandbox.bubblewrap(setting.isolation.program, steps, room),
        home=str(place.home),
        lock=str(place.lock),
        record=str(place.record),
        exit_file=str(place.exit_file),
        socket_dir=str(place.socket_dir),
        socket_gid=setting.account.gid if setting.account else None,
        log_dir=str(place.log),
        log_max_bytes=setting.config.log_max_bytes,
        address={"socket": str(place.socket)},
        ready=("" if workload.template.strip_prefix else f"/w/{workload.workspace_id}") + workload.template.ready,
    )


def _door(room: Room, *, plain: bool) -> dict[str, str]:
    """Where the platform listens for what comes from inside."""
    folder = room.door_dir if plain else sandbox.DOOR_DIR
    return {"CODEHUB_HOLD_SOCKET": f"{folder}/{DOOR}"} if room.door_dir else {}


def process_of(workload: Workload) -> ProcessSpec:
    if workload.template.process is None:
        raise ImageNotFoundError(f"the template {workload.template.name} has no [process] section")
    return workload.template.process


def _command(process: ProcessSpec, values: dict[str, str], room: Room, setting: Setting) -> list[str]:
    words = [expand(word, values) for word in process.command]
    command = programs.command(words, setting.data_dir)
    if command is None:
        raise ImageNotFoundError(f"{words[0]} is not installed on this machine")
    if uses_port(process.command):
        command = [*launch.helper("relay", values["socket"], values["port"]), *command]
    if setting.isolation.kind == BUBBLEWRAP:
        setpriv = programs.find("setpriv", setting.data_dir) or "/usr/bin/setpriv"
        command = [*sandbox.drop_rights(setpriv, room.uid), *command]
    return command


def _free_port() -> int:
    """Without a network namespace ports are shared, and this one is only likely to be free in a moment."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
