"""What the cluster consists of: names, addresses, folders. Pure; everything else here asks this module.

Each machine of the cluster is a set of namespaces: `control` runs the control plane and is the router between the
nodes, their pods and this host, which gets one interface and one route.
"""

import os
import pathlib
from dataclasses import dataclass, field

SOURCE = pathlib.Path(__file__).parent
KUBERNETES = "1.34.4"
COREDNS = "1.14.7"
KWOK = "0.7.0"
CONTROL = "control"
NODES = ("node1", "node2", "node3")
API_PORT = 6443
DNS_DOMAIN = "cluster.local"
STORAGE_CLASS = "standard"
PAUSE = "codehub-cluster/pause:1"
DNS_IMAGE = f"codehub-cluster/coredns:{COREDNS}"
BUSYBOX = "codehub-cluster/busybox:2"


@dataclass(frozen=True)
class Place:
    """One cluster. Several can be on one machine when their names and networks differ."""

    name: str = "codehub"
    network: str = "10.213"  # the first half of a /16
    root: pathlib.Path = field(default=pathlib.Path("/var/lib/codehub-cluster"))

    @property
    def folder(self) -> pathlib.Path:
        return self.root / self.name

    @property
    def pki(self) -> pathlib.Path:
        return self.folder / "pki"

    @property
    def volumes(self) -> pathlib.Path:
        """What claims are bound to. All nodes see it, as they would a file server."""
        return self.folder / "volumes"

    @property
    def kubeconfig(self) -> pathlib.Path:
        return self.folder / "kubeconfig"

    def machine(self, name: str) -> pathlib.Path:
        return self.folder / name

    def socket(self, node: str) -> pathlib.Path:
        """Of the node's containerd, as this host sees it."""
        return self.machine(node) / "run" / "containerd" / "containerd.sock"

    @property
    def interface(self) -> str:
        """The host's end of the link to the cluster."""
        return f"{self.name[:11]}-up"

    @property
    def all_addresses(self) -> str:
        return f"{self.network}.0.0/16"

    def address(self, machine: str) -> str:
        """`control` is the gateway of the others."""
        return f"{self.network}.0.{1 if machine == CONTROL else 11 + NODES.index(machine)}"

    @property
    def host_address(self) -> str:
        return f"{self.network}.1.1"

    @property
    def uplink_address(self) -> str:
        return f"{self.network}.1.2"

    @property
    def pods(self) -> str:
        return f"{self.network}.16.0/20"

    def pods_of(self, node: str) -> str:
        return f"{self.network}.{17 + NODES.index(node)}.0/24"

    def pods_gateway(self, node: str) -> str:
        return f"{self.network}.{17 + NODES.index(node)}.1/24"

    @property
    def services(self) -> str:
        return f"{self.network}.32.0/24"

    @property
    def api_service(self) -> str:
        return f"{self.network}.32.1"

    @property
    def dns_service(self) -> str:
        return f"{self.network}.32.10"

    @property
    def server(self) -> str:
        """The API server, from this host, from nodes and from pods."""
        return f"https://{self.address(CONTROL)}:{API_PORT}"


def place() -> Place:
    """As the environment says."""
    chosen = os.environ.get
    return Place(
        name=chosen("CODEHUB_CLUSTER_NAME", "codehub"),
        network=chosen("CODEHUB_CLUSTER_NETWORK", "10.213"),
        root=pathlib.Path(chosen("CODEHUB_CLUSTER_DIR", "/var/lib/codehub-cluster")),
    )


def cache() -> pathlib.Path:
    """What was built stays here, by version."""
    return pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path("~/.cache").expanduser(), "codehub-cluster")
