"""`up`, `down` and what lies between: each looks at what is there and makes of it what should be."""

import contextlib
import datetime as dt
import fcntl
import json
import os
import pathlib
import resource
import subprocess
import time
from collections.abc import Callable, Iterator
from functools import partial

from cluster import binaries, certificates, cgroups, images, layout, machines, network, programs
from cluster.layout import CONTROL, NODES, SOURCE, Place
from cluster.programs import Software

PARTS_OF_A_NODE = ("kubelet", "containerd", "kube-proxy")
PATIENCE = 600.0  # seconds for what takes two on a machine that does nothing else


def up(place: Place) -> None:
    if os.geteuid() != 0:
        raise RuntimeError("a cluster in network namespaces needs root")
    if not cgroups.hierarchies():
        raise RuntimeError(
            "this host has control groups of version 2 alone: start it with systemd.unified_cgroup_hierarchy=0"
        )
    binaries.host_tools()
    software = _software()
    with _alone(place):
        if other := network.taken_by_others(place):
            raise RuntimeError(
                f"this host has a route to {other}: choose CODEHUB_CLUSTER_NETWORK, two numbers as 10.99"
            )
        began = dt.datetime.now(dt.UTC)
        certificates.make(place)
        place.volumes.mkdir(exist_ok=True)
        machines.write(place.kubeconfig, certificates.kubeconfig(place, "admin"))
        _start(
            place, software, [programs.control(place, software), *(programs.node(place, software, n) for n in NODES)]
        )
        _wait_for("the API server", lambda: _asked(place, "get", "--raw=/readyz"))
        _furnish(place, software)
        _wait_for("nodes and DNS", lambda: _ready(place, began))


def up_control(place: Place, software: Software, control: programs.Machine) -> None:
    """The control plane alone, without nodes: as the caller wants it, which also waits until it answers."""
    with _alone(place):
        if other := network.taken_by_others(place):
            raise RuntimeError(
                f"this host has a route to {other}: choose CODEHUB_CLUSTER_NETWORK, two numbers as 10.99"
            )
        machines.write(place.kubeconfig, certificates.kubeconfig(place, "admin"))
        _start(place, software, [control])


def down(place: Place) -> None:
    """Nothing is left but the cache: no process, no mount, no interface, no folder."""
    with _alone(place):
        for machine in (*NODES, CONTROL):
            machines.stop(place, machine)
        network.down(place)
        cgroups.remove(place)
        machines.forget(place)


def lose(place: Place, node: str, *, power: bool) -> None:
    """Cut off, with kubelet and containerd killed: its pods go on. With `power`, the whole machine is off."""
    network.cut(machines.pids(place), node, off=True)
    if power:
        machines.stop(place, node)
    else:
        machines.assign(place, programs.without(programs.node(place, _software(), node), *PARTS_OF_A_NODE))


def bring_back(place: Place, node: str) -> None:
    software = _software()
    _start(place, software, [programs.node(place, software, node)])


def _start(place: Place, software: Software, wanted: list[programs.Machine]) -> None:
    for machine in wanted:
        machines.launch(place, machine, software)
    pids = machines.pids(place)
    network.up(place, pids)
    for machine in wanted:
        if machine.name != CONTROL:
            network.cut(pids, machine.name, off=False)
        machines.assign(place, machine)


def load(place: Place, source: str) -> None:
    images.load(place, _software(), source)


def status(place: Place) -> str:
    lines, pids = [], machines.pids(place)
    for machine in (CONTROL, *NODES):
        known = machines.identity(place, machine)
        runs = f"runs, pid {known.pid}" if known else "does not run"
        cut = ", cut off" if machine in NODES and machine in pids and network.is_cut(pids, machine) else ""
        lines.append(f"{machine}: {runs}{cut}")
    if kubectl().exists():
        lines.append(_kubectl(place, "get", "nodes", "-o", "wide").stdout)
    return "\n".join(lines)


def kubectl() -> pathlib.Path:
    return layout.cache() / f"kubernetes-{layout.KUBERNETES}" / "kubectl"


def _software() -> Software:
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    return Software(binaries.kubernetes(), binaries.debian(), machines.this_python(), min(hard, 1_000_000))


def _furnish(place: Place, software: Software) -> None:
    own = images.own(software, binaries.pause(), binaries.coredns())
    for node in NODES:
        _wait_for(f"containerd of {node}", partial(images.answers, place, software, node))
        images.ensure(place, software, node, own)
    known = {"@IMAGE@": layout.DNS_IMAGE, "@ADDRESS@": place.dns_service, "@DOMAIN@": layout.DNS_DOMAIN}
    for manifest in sorted((SOURCE / "manifests").glob("*.yaml")):
        text = manifest.read_text()
        for word, value in known.items():
            text = text.replace(word, value)
        applied = _kubectl(place, "apply", "-f", "-", given=text)
        if applied.returncode:
            raise RuntimeError(f"{manifest.name}: {applied.stderr}")


def _ready(place: Place, since: dt.datetime) -> bool:
    """Each node has said so since then: for a while after a crash the API server knows only how it was before."""
    leases = json.loads(_kubectl(place, "-n", "kube-node-lease", "get", "leases", "-o", "json").stdout or "{}")
    renewed = {one["metadata"]["name"]: one["spec"].get("renewTime") for one in leases.get("items", [])}
    if not all(renewed.get(node) and dt.datetime.fromisoformat(renewed[node]) > since for node in NODES):
        return False
    nodes = _asked(place, "wait", "--for=condition=Ready", "--timeout=5s", *(f"node/{one}" for one in NODES))
    return nodes and _asked(place, "-n", "kube-system", "rollout", "status", "deployment/coredns", "--timeout=5s")


def _wait_for(what: str, condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not condition():
        if time.monotonic() > deadline:
            raise RuntimeError(f"{what}: not there after {PATIENCE:.0f} s")
        time.sleep(0.2)


def _asked(place: Place, *words: str) -> bool:
    return _kubectl(place, *words).returncode == 0


def _kubectl(place: Place, *words: str, given: str = "") -> subprocess.CompletedProcess[str]:
    command = [str(kubectl()), f"--kubeconfig={place.kubeconfig}", *words]
    return subprocess.run(command, check=False, capture_output=True, text=True, input=given)


@contextlib.contextmanager
def _alone(place: Place) -> Iterator[None]:
    """One `up` or `down` at a time, of all clusters here."""
    place.root.mkdir(parents=True, exist_ok=True)
    with (place.root / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        place.folder.mkdir(exist_ok=True, mode=0o755)
        yield
