"""What runs on each machine: command lines and configuration files, as data. Pure; `machines` starts them."""

import json
import pathlib
from dataclasses import dataclass, field, replace

from cluster import layout, network
from cluster.layout import API_PORT, CONTROL, DNS_DOMAIN, NODES, Place

LEASES = "/var/lib/cni"  # where containerd insists to keep the addresses that it gave out
GRACE = "20s"  # without news from a kubelet for so long, its node is not ready
TOLERATION = 30  # seconds; so long do pods stay on a node that is not ready, unless they say otherwise
Files = dict[str, str]


@dataclass(frozen=True)
class Software:
    """Where the programs are, on this host."""

    kubernetes: pathlib.Path
    debian: pathlib.Path
    python: str
    open_files: int = 20_000

    @property
    def cni(self) -> pathlib.Path:
        return self.debian / "usr/lib/cni"


@dataclass(frozen=True)
class Machine:
    name: str
    programs: dict[str, list[str]]
    files: Files = field(default_factory=dict)  # below its folder
    own: dict[str, str] = field(default_factory=dict)  # folders of its own: where it sees them, where they are


def control(place: Place, software: Software) -> Machine:
    folder = place.machine(CONTROL)
    programs = {
        "etcd": _etcd(place, software),
        "kube-apiserver": _api_server(place, software),
        "kube-controller-manager": _controller_manager(place, software),
        "kube-scheduler": [
            str(software.kubernetes / "kube-scheduler"),
            f"--kubeconfig={folder}/kube-scheduler.kubeconfig",
            "--leader-elect=false",
            "--bind-address=127.0.0.1",
        ],
        "kube-proxy": [str(software.kubernetes / "kube-proxy"), f"--config={folder}/kube-proxy.json"],
        "provisioner": [software.python, "-m", "cluster.provisioner", str(place.volumes), str(place.pki), place.server],
    }
    # It forwards what this host sends to services, for which any node's rules do.
    return Machine(CONTROL, programs, {"kube-proxy.json": _kube_proxy(place, CONTROL, NODES[0])})


def node(place: Place, software: Software, name: str) -> Machine:
    folder = place.machine(name)
    programs = {
        "containerd": [str(software.debian / "usr/bin/containerd"), "--config", f"{folder}/containerd.toml"],
        "kubelet": [
            str(software.kubernetes / "kubelet"),
            f"--config={folder}/kubelet.json",
            f"--root-dir={folder}/kubelet",
            f"--kubeconfig={folder}/{name}.kubeconfig",
            f"--hostname-override={name}",
            f"--node-ip={place.address(name)}",
        ],
        "kube-proxy": [str(software.kubernetes / "kube-proxy"), f"--config={folder}/kube-proxy.json"],
    }
    files = {
        "containerd.toml": _containerd(place, software, name),
        "kubelet.json": _kubelet(place, software, name),
        "kube-proxy.json": _kube_proxy(place, name, name),
        "cni/net.d/10-bridge.conflist": _cni(place, name),
        "resolv.conf": "",
    }
    own = {"/run": "run", "/var/log": "log", LEASES: "leases"}
    return Machine(name, programs, files, own)


def without(machine: Machine, *names: str) -> Machine:
    """The same machine on which these do not run."""
    return replace(machine, programs={name: how for name, how in machine.programs.items() if name not in names})


def _etcd(place: Place, software: Software) -> list[str]:
    tls = [f"--cert-file={place.pki}/etcd.crt", f"--key-file={place.pki}/etcd.key"]
    here = "https://127.0.0.1:2379"
    peers = ["--listen-peer-urls=http://127.0.0.1:2380", "--initial-advertise-peer-urls=http://127.0.0.1:2380"]
    return [
        str(software.debian / "usr/bin/etcd"),
        f"--data-dir={place.machine(CONTROL)}/etcd",
        f"--listen-client-urls={here}",
        f"--advertise-client-urls={here}",
        *peers,
        "--initial-cluster=default=http://127.0.0.1:2380",
        *tls,
        "--client-cert-auth",
        f"--trusted-ca-file={place.pki}/ca.crt",
        "--snapshot-count=10000",
    ]


def _api_server(place: Place, software: Software) -> list[str]:
    pki = place.pki
    etcd = [f"--etcd-cafile={pki}/ca.crt", f"--etcd-certfile={pki}/etcd.crt", f"--etcd-keyfile={pki}/etcd.key"]
    kubelets = [
        f"--kubelet-certificate-authority={pki}/ca.crt",
        f"--kubelet-client-certificate={pki}/apiserver-client.crt",
        f"--kubelet-client-key={pki}/apiserver-client.key",
        "--kubelet-preferred-address-types=InternalIP",
    ]
    accounts = [
        f"--service-account-issuer=https://kubernetes.default.svc.{DNS_DOMAIN}",
        f"--service-account-key-file={pki}/service-accounts.key",
        f"--service-account-signing-key-file={pki}/service-accounts.key",
    ]
    return [
        str(software.kubernetes / "kube-apiserver"),
        f"--advertise-address={place.address(CONTROL)}",
        f"--secure-port={API_PORT}",
        f"--tls-cert-file={pki}/kube-apiserver.crt",
        f"--tls-private-key-file={pki}/kube-apiserver.key",
        f"--client-ca-file={pki}/ca.crt",
        "--etcd-servers=https://127.0.0.1:2379",
        *etcd,
        *kubelets,
        *accounts,
        f"--service-cluster-ip-range={place.services}",
        "--authorization-mode=Node,RBAC",
        "--enable-admission-plugins=NodeRestriction",
        "--allow-privileged=true",
        f"--default-not-ready-toleration-seconds={TOLERATION}",
        f"--default-unreachable-toleration-seconds={TOLERATION}",
        "--profiling=false",
    ]


def _controller_manager(place: Place, software: Software) -> list[str]:
    return [
        str(software.kubernetes / "kube-controller-manager"),
        f"--kubeconfig={place.machine(CONTROL)}/kube-controller-manager.kubeconfig",
        "--leader-elect=false",
        "--bind-address=127.0.0.1",
        f"--root-ca-file={place.pki}/ca.crt",
        f"--service-account-private-key-file={place.pki}/service-accounts.key",
        "--use-service-account-credentials=true",
        f"--node-monitor-grace-period={GRACE}",
        "--node-monitor-period=2s",
        "--profiling=false",
    ]


def _kubelet(place: Place, software: Software, name: str) -> str:
    """It does without rights that a machine in namespaces has not. Images stay: none can be pulled again."""
    return json.dumps(
        {
            "apiVersion": "kubelet.config.k8s.io/v1beta1",
            "kind": "KubeletConfiguration",
            "address": place.address(name),
            "authentication": {
                "anonymous": {"enabled": False},
                "webhook": {"enabled": True},
                "x509": {"clientCAFile": f"{place.pki}/ca.crt"},
            },
            "authorization": {"mode": "Webhook"},
            "tlsCertFile": f"{place.pki}/{name}-server.crt",
            "tlsPrivateKeyFile": f"{place.pki}/{name}-server.key",
            "containerRuntimeEndpoint": "unix:///run/containerd/containerd.sock",
            "cgroupDriver": "cgroupfs",
            "failCgroupV1": False,
            "failSwapOn": False,
            "featureGates": {"KubeletInUserNamespace": True},
            "clusterDNS": [place.dns_service],
            "clusterDomain": DNS_DOMAIN,
            "resolvConf": f"{place.machine(name)}/resolv.conf",
            "maxOpenFiles": software.open_files,
            "maxPods": 200,
            "nodeStatusUpdateFrequency": "4s",
            "serializeImagePulls": False,
            "imageGCHighThresholdPercent": 100,
            "imageGCLowThresholdPercent": 99,
            "evictionHard": {"memory.available": "200Mi", "nodefs.available": "1Gi", "imagefs.available": "1Gi"},
            "volumeStatsAggPeriod": "0s",
        },
        indent=1,
    )


def _kube_proxy(place: Place, machine: str, node_name: str) -> str:
    """What concerns the whole host's connection tracking stays as it is."""
    return json.dumps(
        {
            "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
            "kind": "KubeProxyConfiguration",
            "mode": "nftables",
            "bindAddress": "0.0.0.0",
            "healthzBindAddress": "127.0.0.1:10256",
            "metricsBindAddress": "127.0.0.1:10249",
            "hostnameOverride": node_name,
            "clusterCIDR": place.pods,
            "clientConnection": {"kubeconfig": f"{place.machine(machine)}/kube-proxy.kubeconfig"},
            "conntrack": {"maxPerCore": 0, "min": 0, "tcpEstablishedTimeout": "0s", "tcpCloseWaitTimeout": "0s"},
            "featureGates": {"KubeletInUserNamespace": True},
        },
        indent=1,
    )


def _containerd(place: Place, software: Software, name: str) -> str:
    folder = place.machine(name)
    return f"""version = 2
root = "{folder}/containerd"
state = "/run/containerd/state"
disabled_plugins = ["io.containerd.internal.v1.opt"]

[grpc]
  address = "/run/containerd/containerd.sock"

[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "docker.io/{layout.PAUSE}"
  restrict_oom_score_adj = true
  disable_apparmor = true

[plugins."io.containerd.grpc.v1.cri".cni]
  bin_dir = "{software.cni}"
  conf_dir = "{folder}/cni/net.d"

[plugins."io.containerd.grpc.v1.cri".containerd]
  snapshotter = "overlayfs"

[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
  runtime_type = "io.containerd.runc.v2"

[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
  BinaryName = "{software.debian}/usr/sbin/runc"
  SystemdCgroup = false
"""


def _cni(place: Place, name: str) -> str:
    ipam = {
        "type": "host-local",
        "dataDir": f"{LEASES}/networks",
        "ranges": [[{"subnet": place.pods_of(name)}]],
        "routes": [{"dst": "0.0.0.0/0"}],
    }
    bridge = {"type": "bridge", "bridge": network.PODS, "isGateway": True, "hairpinMode": True, "ipam": ipam}
    return json.dumps({"cniVersion": "0.4.0", "name": "pods", "plugins": [bridge]}, indent=1)
