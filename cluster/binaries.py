"""What the cluster is made of, in the user's cache: Kubernetes and CoreDNS built from the Go module proxy, the rest
unpacked from Debian's packages. Nothing is installed on this host, and what is built once is not built again.
"""

import os
import pathlib
import shutil
import subprocess
import tempfile
from collections.abc import Iterable

from cluster.layout import COREDNS, KUBERNETES, KWOK, SOURCE, cache

# In the order in which a first start can use them.
COMPONENTS = ("kube-apiserver", "kubelet", "kube-controller-manager", "kube-scheduler", "kubectl", "kube-proxy")
PACKAGES = ("etcd-server", "containerd", "runc", "containernetworking-plugins", "busybox", "libc6")
NEEDED = {"ip": "iproute2", "nft": "nftables", "sysctl": "procps", "nsenter": "util-linux", "hostname": "hostname"}
LIBRARIES = ("libseccomp2",)
MODULES = ("br_netfilter", "overlay", "veth")


def kubernetes(components: Iterable[str] = COMPONENTS) -> pathlib.Path:
    folder = cache() / f"kubernetes-{KUBERNETES}"
    flags = f"-s -w {' '.join(_version())}"
    for name in components:
        if not (folder / name).exists():
            _go_build(SOURCE / "go", f"k8s.io/kubernetes/cmd/{name}", folder / name, flags)
    return folder


def coredns() -> pathlib.Path:
    program = cache() / f"coredns-{COREDNS}" / "coredns"
    if not program.exists():
        _go_build(SOURCE / "go" / "dns", ".", program, "-s -w")
    return program


def kwok() -> pathlib.Path:
    """Simulated nodes and pods (`cluster.scale`)."""
    program = cache() / f"kwok-{KWOK}" / "kwok"
    if not program.exists():
        _go_build(SOURCE / "go" / "kwok", "sigs.k8s.io/kwok/cmd/kwok", program, "-s -w")
    return program


def pause() -> pathlib.Path:
    program = cache() / "pause-1" / "pause"
    if not program.exists():
        _go_build(SOURCE / "go", "./pause", program, "-s -w")
    return program


def debian() -> pathlib.Path:
    """A tree with the packages' files: installed, etcd and containerd would be started by this host."""
    folder, wanted = cache() / "debian", " ".join(PACKAGES)
    mark = folder / "complete"
    if mark.exists() and mark.read_text() == wanted:
        return folder
    print("Unpacking Debian's etcd, containerd and runc …", flush=True)
    with tempfile.TemporaryDirectory(dir=_made(cache())) as place:
        tree = pathlib.Path(place, "tree")
        _apt("download", *PACKAGES, cwd=place)
        for package in pathlib.Path(place).glob("*.deb"):
            subprocess.run(["dpkg-deb", "-x", str(package), str(tree)], check=True)
        (tree / mark.name).write_text(wanted)
        shutil.rmtree(folder, ignore_errors=True)
        tree.rename(folder)
    return folder


def host_tools() -> None:
    """Small programs of Debian that need libraries, and start nothing when they are installed."""
    missing = [package for program, package in NEEDED.items() if shutil.which(program) is None]
    known = subprocess.run(["dpkg-query", "-W", *LIBRARIES], check=False, capture_output=True)
    if missing or known.returncode:
        print(f"Installing {' '.join([*missing, *LIBRARIES])} …", flush=True)
        _apt("install", "-y", "--no-install-recommends", *missing, *LIBRARIES)
    if shutil.which("modprobe"):
        # Where they are built in, or there already, that is no news.
        subprocess.run(["modprobe", "-a", *MODULES], check=False, capture_output=True)


def _apt(*words: str, cwd: str = "/") -> None:
    def attempt() -> int:
        return subprocess.run(["apt-get", "-q", *words], check=False, cwd=cwd, capture_output=True).returncode

    if attempt():
        subprocess.run(["apt-get", "-q", "update"], check=True, capture_output=True)
        if attempt():
            raise RuntimeError(f"apt-get {' '.join(words)} fails")


def _go_build(module: pathlib.Path, package: str, program: pathlib.Path, flags: str) -> None:
    """Static, and with the versions that `go.sum` vouches for."""
    go = shutil.which("go") or "/usr/local/go/bin/go"
    if not pathlib.Path(go).exists():
        raise RuntimeError("Kubernetes is built from source: install Go 1.25 or newer (https://go.dev/dl)")
    print(f"Building {program.name} (once; the first one takes minutes) …", flush=True)
    fresh = _made(program.parent) / f"{program.name}.{os.getpid()}"
    subprocess.run(
        [go, "build", "-trimpath", "-buildvcs=false", "-mod=readonly", "-ldflags", flags, "-o", str(fresh), package],
        check=True,
        cwd=module,
        env={**os.environ, "CGO_ENABLED": "0", "GOTOOLCHAIN": "local"},
    )
    fresh.replace(program)


def _version() -> Iterable[str]:
    major, minor, _ = KUBERNETES.split(".")
    said = {"gitVersion": f"v{KUBERNETES}", "gitMajor": major, "gitMinor": minor, "gitTreeState": "clean"}
    for package in ("k8s.io/component-base/version", "k8s.io/client-go/pkg/version"):
        for name, value in {**said, "buildDate": "2026-01-01T00:00:00Z"}.items():
            yield f"-X {package}.{name}={value}"


def _made(folder: pathlib.Path) -> pathlib.Path:
    folder.mkdir(parents=True, exist_ok=True)
    return folder
