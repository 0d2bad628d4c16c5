"""Images for the nodes: three small ones made here, and whatever a Docker engine or a file has. Nothing is pulled."""

import hashlib
import io
import json
import pathlib
import subprocess
import tarfile
from dataclasses import dataclass

from cluster.layout import BUSYBOX, DNS_IMAGE, NODES, PAUSE, Place
from cluster.programs import Software


@dataclass(frozen=True)
class Image:
    """One layer: a program, and names by which it is also called."""

    name: str
    program: pathlib.Path
    path: str
    links: tuple[str, ...] = ()
    user: str = ""


def own(software: Software, pause: pathlib.Path, coredns: pathlib.Path) -> list[Image]:
    busybox = software.debian / "bin/busybox"
    applets = subprocess.run([str(busybox), "--list"], check=True, capture_output=True, text=True).stdout.split()
    return [
        Image(PAUSE, pause, "pause", user="65535:65535"),
        Image(DNS_IMAGE, coredns, "coredns"),
        Image(BUSYBOX, busybox, "bin/busybox", tuple(f"bin/{name}" for name in applets if name != "busybox")),
    ]


def packed(image: Image) -> bytes:
    """As `docker save` writes it."""
    layer = io.BytesIO()
    with tarfile.open(fileobj=layer, mode="w") as tar:
        for folder in ("bin", "etc", "tmp"):
            _add(tar, folder, tarfile.DIRTYPE, mode=0o1777 if folder == "tmp" else 0o755)
        _add(tar, image.path, content=image.program.read_bytes(), mode=0o755)
        for link in image.links:
            _add(tar, link, tarfile.SYMTYPE, target=f"/{image.path}")
    content = layer.getvalue()
    config = {
        "architecture": "amd64",
        "os": "linux",
        "config": {"Entrypoint": [f"/{image.path}"] if not image.links else None, "User": image.user}
        | {"Env": ["PATH=/bin"]},
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{hashlib.sha256(content).hexdigest()}"]},
    }
    described = json.dumps(config).encode()
    name = f"{hashlib.sha256(described).hexdigest()}.json"
    manifest = [{"Config": name, "RepoTags": [f"docker.io/{image.name}"], "Layers": ["layer.tar"]}]
    whole = io.BytesIO()
    with tarfile.open(fileobj=whole, mode="w") as tar:
        for path, data in {
            "manifest.json": json.dumps(manifest).encode(),
            name: described,
            "layer.tar": content,
        }.items():
            _add(tar, path, content=data)
    return whole.getvalue()


def ensure(place: Place, software: Software, node: str, images: list[Image]) -> None:
    there = listed(place, software, node)
    for image in images:
        if f"docker.io/{image.name}" not in there:
            _ctr(place, software, node, "images", "import", "-", given=packed(image))


def listed(place: Place, software: Software, node: str) -> list[str]:
    return _ctr(place, software, node, "images", "list", "-q").decode().split()


def load(place: Place, software: Software, source: str) -> None:
    """Into every node: a file that `docker save` wrote, or an image of the Docker engine (DOCKER_HOST says which)."""
    for node in NODES:
        if pathlib.Path(source).is_file():
            _ctr(place, software, node, "images", "import", source)
            continue
        with subprocess.Popen(["docker", "save", source], stdout=subprocess.PIPE) as saved:
            command = [*_command(place, software, node), "images", "import", "-"]
            subprocess.run(command, check=True, stdin=saved.stdout, stdout=subprocess.DEVNULL)
        if saved.returncode:
            raise RuntimeError(f"docker save {source} fails")


def _command(place: Place, software: Software, node: str) -> list[str]:
    return [str(software.debian / "usr/bin/ctr"), "-a", str(place.socket(node)), "-n", "k8s.io"]


def _ctr(place: Place, software: Software, node: str, *words: str, given: bytes = b"") -> bytes:
    done = subprocess.run([*_command(place, software, node), *words], check=False, capture_output=True, input=given)
    if done.returncode:
        raise RuntimeError(f"ctr {' '.join(words)} on {node}: {done.stderr.decode()[-500:]}")
    return done.stdout


def _add(
    tar: tarfile.TarFile,
    path: str,
    kind: bytes = tarfile.REGTYPE,
    *,
    content: bytes = b"",
    mode: int = 0o644,
    target: str = "",
) -> None:
    entry = tarfile.TarInfo(path)
    entry.type, entry.mode, entry.linkname, entry.size = kind, mode, target, len(content)
    tar.addfile(entry, io.BytesIO(content))
