"""Machines of the cluster: their files written, their first process started, found again and ended.

A machine is its first process (`init`): what is known of it is its pid with its start time, in `machine.pid`.
"""

import contextlib
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import asdict, replace

from cluster import certificates, cgroups
from cluster.layout import CONTROL, NODES, Place
from cluster.programs import LEASES, Machine, Software
from codehub.system.processes import Identity

ROOT = pathlib.Path(__file__).parents[1]
CLIENTS = {CONTROL: ("kube-controller-manager", "kube-scheduler", "kube-proxy")}


def launch(place: Place, machine: Machine, software: Software) -> None:
    """Its first process, if it does not run: for the moment with nothing to do, as it has no network yet."""
    place.machine(machine.name).mkdir(parents=True, exist_ok=True)
    if identity(place, machine.name) is None:
        stop(place, machine.name)  # what a start left that died before it could note what it started
        assign(place, replace(machine, programs={}))
        _launch(place, machine, software)


def assign(place: Place, machine: Machine) -> None:
    """What it should run from now on; its first process sees to that."""
    said = {
        "hostname": machine.name,
        "programs": machine.programs,
        "hierarchies": cgroups.hierarchies() if machine.own else {},
        "own": machine.own,
    }
    files = {**machine.files, "machine.json": json.dumps(said, indent=1)}
    for client in CLIENTS.get(machine.name, (machine.name, "kube-proxy")):
        write(place.machine(machine.name) / f"{client}.kubeconfig", certificates.kubeconfig(place, client))
    for name, content in files.items():
        write(place.machine(machine.name) / name, content)


def pids(place: Place) -> dict[str, int]:
    """Of the first processes of those that run. `unshare` stands before each, and both live and die together."""
    known = {name: identity(place, name) for name in (CONTROL, *NODES)}
    return {name: first for name, one in known.items() if one and (first := _child(one.pid))}


def _child(pid: int) -> int | None:
    try:
        return int(pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()[0])
    except (OSError, IndexError):
        return None


def stop(place: Place, name: str) -> None:
    """As a power cut: the kernel ends all its processes with the first one."""
    if running := identity(place, name):
        running.signal(signal.SIGKILL)
    while left := cgroups.processes(place, name):
        for pid in left:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.05)


def identity(place: Place, name: str) -> Identity | None:
    try:
        noted = Identity(**json.loads((place.machine(name) / "machine.pid").read_text()))
    except (OSError, ValueError, TypeError):
        return None
    return noted if noted.alive() else None


def write(path: pathlib.Path, content: str) -> None:
    """Whole or not at all, and only for root: keys are in some."""
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_name(f"{path.name}.new")
    fresh.touch(mode=0o600)
    fresh.write_text(content)
    fresh.replace(path)


def _launch(place: Place, machine: Machine, software: Software) -> None:
    folder = place.machine(machine.name)
    kinds = ["--mount", "--pid", "--net", "--uts", "--ipc", "--cgroup", "--fork", "--kill-child", "--mount-proc"]
    inside = ["unshare", *kinds, "--", software.python, "-m", "cluster.init", str(folder)]
    # Into its control groups first: what it sees as the root of them is where it is when it is made.
    joined = "".join(f"echo $$ > {group}/cgroup.procs && " for group in cgroups.make(place, machine.name))
    command = ["sh", "-c", f'{joined}exec "$@"', "sh", *inside]
    path = f"{software.debian}/usr/bin:{software.debian}/usr/sbin:{os.environ['PATH']}"
    with (folder / "init.log").open("ab") as log:
        # Its output goes to a file: nothing of it depends on who started it.
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
            env={"PATH": path, "PYTHONPATH": str(ROOT), "LANG": "C.UTF-8", "HOME": "/root"},
            cwd="/",
        )
    if known := Identity.of(process.pid):
        write(folder / "machine.pid", json.dumps(asdict(known)))
    while _child(process.pid) is None:
        if process.poll() is not None:
            raise RuntimeError(f"{machine.name} ended at once: see {folder}/init.log")
        time.sleep(0.01)


def forget(place: Place) -> None:
    shutil.rmtree(place.folder, ignore_errors=True)
    if not any(one.is_dir() for one in place.root.iterdir()):
        # Nodes see a folder of their own there. Removed while others do, theirs would be gone, too.
        with contextlib.suppress(OSError):
            pathlib.Path(LEASES).rmdir()


def this_python() -> str:
    return sys.executable
