"""A control plane with simulated nodes: the API server, etcd, the scheduler and the controllers of `cluster`, alone on
one machine of it, with KWOK in place of the kubelets and one relay in place of all pods' (`pods`).

What is not simulated, storage, is left out: claims stay unbound, and the scheduler does not wait for them.
"""

import contextlib
import json
import pathlib
from collections.abc import Iterator
from dataclasses import replace

import yaml

from cluster import binaries, certificates, layout, lifecycle, machines, network, programs
from cluster.layout import CONTROL, Place
from cluster.programs import Machine, Software

COMPONENTS = ("kube-apiserver", "kube-controller-manager", "kube-scheduler")
CONTROLLERS = (
    "garbage-collector-controller",
    "namespace-controller",
    "persistentvolumeclaim-protection-controller",
    "pod-garbage-collector-controller",
    "serviceaccount-controller",
)
STORAGE_PLUGINS = ("NodeVolumeLimits", "VolumeBinding", "VolumeZone")  # of the scheduler
COORDINATOR = "codehub-coordinator"  # as the API server knows it, and as its audit log calls it
RELAYS = "pods"
LEASE_SECONDS = 3600  # of simulated nodes: nobody looks


def place() -> Place:
    """Beside the cluster of `make cluster`, unless the environment names another."""
    chosen = layout.place()
    other = Place()
    return replace(
        chosen,
        name=f"{chosen.name}-scale" if chosen.name == other.name else chosen.name,
        network="10.215" if chosen.network == other.network else chosen.network,
    )


def kubeconfig(where: Place, client: str) -> pathlib.Path:
    return where.machine(CONTROL) / f"{client}.kubeconfig"


def audit_log(where: Place) -> pathlib.Path:
    return where.machine(CONTROL) / "log" / "audit.log"


def pods_network(where: Place) -> str:
    """The half of its addresses that the cluster does not use otherwise."""
    return f"{where.network}.128.0/17"


@contextlib.contextmanager
def running(where: Place, namespace: str, secret_key: str) -> Iterator[None]:
    """From nothing; nothing is left of it."""
    binaries.host_tools()
    software = Software(binaries.kubernetes(COMPONENTS), binaries.debian(), machines.this_python())
    kwok = binaries.kwok()
    lifecycle.down(where)  # of a run that was killed
    try:
        where.folder.mkdir(parents=True, exist_ok=True)
        certificates.make(where)
        for client, user, group in (("kwok", "kwok", "system:masters"), (COORDINATOR, COORDINATOR, None)):
            certificates.add_client(where, client, user, group)
            machines.write(kubeconfig(where, client), certificates.kubeconfig(where, client))
        lifecycle.up_control(where, software, machine(where, software, kwok, namespace, secret_key))
        network.own(machines.pids(where)[CONTROL], pods_network(where))
        yield
    finally:
        lifecycle.down(where)


def machine(where: Place, software: Software, kwok: pathlib.Path, namespace: str, secret_key: str) -> Machine:
    whole = programs.without(programs.control(where, software), "kube-proxy", "provisioner")
    folder = where.machine(CONTROL)
    server = [
        f"--audit-policy-file={folder}/audit.yaml",
        f"--audit-log-path={audit_log(where)}",
        # KWOK would ask for lists as watches, which an etcd of 3.4 cannot end, and look again only after half a minute.
        "--feature-gates=WatchList=false",
        "--disable-admission-plugins=TaintNodesByCondition",  # there is no controller that would take the taint away
    ]
    manager = [f"--controllers={','.join(CONTROLLERS)}", "--kube-api-qps=500", "--kube-api-burst=1000"]
    added = {
        "kube-apiserver": [*whole.programs["kube-apiserver"], *server],
        "kube-controller-manager": [*whole.programs["kube-controller-manager"], *manager],
        "kube-scheduler": [str(software.kubernetes / "kube-scheduler"), f"--config={folder}/scheduler.json"],
        "kwok": [
            str(kwok),
            f"--kubeconfig={kubeconfig(where, 'kwok')}",
            "--manage-all-nodes=true",
            f"--cidr={pods_network(where)}",
            f"--node-ip={where.address(CONTROL)}",
            f"--node-lease-duration-seconds={LEASE_SECONDS}",
            "--server-address=127.0.0.1:10247",
        ],
        RELAYS: [software.python, "-m", "cluster.scale.pods", str(kubeconfig(where, "kwok")), namespace, secret_key],
    }
    files = {"audit.yaml": _audit_policy(), "scheduler.json": _scheduler(folder)}
    return replace(whole, programs={**whole.programs, **added}, files={**whole.files, **files})


def _audit_policy() -> str:
    """Who asked for what; of the coordinator alone."""
    rules = [{"level": "Metadata", "users": [COORDINATOR]}, {"level": "None"}]
    policy = {"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "omitStages": ["RequestReceived"], "rules": rules}
    return json.dumps(policy)  # which is YAML, too


def _scheduler(folder: pathlib.Path) -> str:
    disabled = {"multiPoint": {"disabled": [{"name": name} for name in STORAGE_PLUGINS]}}
    return json.dumps(
        {
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            "clientConnection": {"kubeconfig": f"{folder}/kube-scheduler.kubeconfig", "qps": 1000, "burst": 2000},
            "leaderElection": {"leaderElect": False},
            "profiles": [{"schedulerName": "default-scheduler", "plugins": disabled}],
        }
    )


def allow_coordinator(manifest: pathlib.Path) -> list[tuple[str, dict[str, object]]]:
    """The rights that the platform ships with, given to the user that the coordinator is here."""
    found = []
    for one in yaml.safe_load_all(manifest.read_text()):
        if one["kind"] == "RoleBinding":
            one["subjects"] = [{"kind": "User", "name": COORDINATOR, "apiGroup": "rbac.authorization.k8s.io"}]
        if one["kind"] != "ServiceAccount":
            found.append((f"{one['kind'].lower()}s", one))
    return found


def pids(where: Place) -> dict[str, int]:
    """Of the programs, by name, as this host sees them."""
    first = machines.pids(where)[CONTROL]
    listed = pathlib.Path(f"/proc/{first}/task/{first}/children").read_text().split()
    found = {}
    for pid in map(int, listed):
        words = pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
        program = pathlib.Path(words[0].decode()).name
        found[RELAYS if b"cluster.scale.pods" in words else program] = pid
    return found
