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

ARCHITECTURE = "x86_64-linux-gnu"
LOADER = "ld-linux-x86-64.so.2"


@dataclass(frozen=True)
class Image:
    """One layer of programs and libraries, and names by which the first of them is also called."""

    name: str
    files: dict[str, pathlib.Path]
    links: tuple[str, ...] = ()
    user: str = ""

    @property
    def program(self) -> str:
        return next(iter(self.files))


def own(software: Software, pause: pathlib.Path, coredns: pathlib.Path) -> list[Image]:
    tree = software.debian
    applets = subprocess.run([str(tree / "bin/busybox"), "--list"], check=True, capture_output=True, text=True).stdout
    # Not the static one: that cannot look up names without these libraries.
    libraries = {f"lib/{name}": tree / "lib" / ARCHITECTURE / name for name in ("libc.so.6", "libresolv.so.2")}
    loader = {f"lib64/{LOADER}": tree / "lib" / ARCHITECTURE / LOADER}
    return [
        Image(PAUSE, {"pause": pause}, user="65535:65535"),
        Image(DNS_IMAGE, {"coredns": coredns}),
        Image(
            BUSYBOX,
            {"bin/busybox": tree / "bin/busybox", **libraries, **loader},
            tuple(f"bin/{name}" for name in applets.split() if name != "busybox"),
        ),
    ]


def packed(image: Image) -> bytes:
    """As `docker save` writes it."""
    layer = io.BytesIO()
    with tarfile.open(fileobj=layer, mode="w") as tar:
        for folder in ("bin", "etc", "lib", "lib64", "tmp"):
            _add(tar, folder, tarfile.DIRTYPE, mode=0o1777 if folder == "tmp" else 0o755)
        for path, file in image.files.items():
            _add(tar, path, content=file.read_bytes(), mode=0o755)
        for link in image.links:
            _add(tar, link, tarfile.SYMTYPE, target=f"/{image.program}")
    content = layer.getvalue()
    config = {
        "architecture": "amd64",
        "os": "linux",
        "config": {"Entrypoint": [f"/{image.program}"] if not image.links else None, "User": image.user}
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


def answers(place: Place, software: Software, node: str) -> bool:
    return (
        subprocess.run([*_command(place, software, node), "version"], check=False, capture_output=True).returncode == 0
    )


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
