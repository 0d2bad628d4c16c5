"""A machine with an internet of its own, of network namespaces, to test what workspaces reach. Needs root and `ip`.

    python -m tests.runtimes.small_internet root|ordinary COMMAND…

runs the command on "the machine": a network namespace with addresses of its own, a router, and behind it a world with
public servers, a private network, a metadata service, names, a package index and git by HTTPS. Nothing of it is
connected to the real network; everything ends with the command.
"""

import contextlib
import ctypes
import http.server
import io
import json
import os
import pathlib
import signal
import socket
import socketserver
import ssl
import stat
import struct
import subprocess
import sys
import tarfile
import tempfile
import threading
import zipfile
from collections.abc import Callable
from typing import Any

from codehub.system.privileges import enter, needed_trees, service_account, view_for

CLONE_NEWNS, CLONE_NEWNET, MS_BIND, MS_REC, MS_PRIVATE = 0x20000, 0x40000000, 4096, 16384, 1 << 18
MACHINE, ROUTER = "203.0.113.2", "203.0.113.1"
MACHINE_SECOND, MACHINE_NETWORK, MACHINE_ANY = "203.0.113.3", "198.51.100.128/25", "198.51.100.200"
MACHINE_LAN, LAN = "10.9.0.2", "10.9.0.1"
PUBLIC, SERVICES = "198.51.100.10", "198.51.100.20"
METADATA = "169.254.169.254"
OTHER_PRIVATE = ("172.16.5.5", "192.168.7.7", "100.64.3.3")
NAMES = {
    "public.test": [PUBLIC],
    "services.test": [SERVICES],
    "loopback.inward.test": ["127.0.0.1"],
    "metadata.inward.test": [METADATA],
    "lan.inward.test": [LAN],
    "machine.inward.test": [MACHINE],
}
ENVIRONMENT = "CODEHUB_TEST_INTERNET"
_libc = ctypes.CDLL(None, use_errno=True)


def unshare(flags: int) -> None:
    if _libc.unshare(flags):
        raise OSError(ctypes.get_errno(), "unshare")


def bind_mount(source: pathlib.Path, target: str) -> None:
    if _libc.mount(os.fsencode(source), target.encode(), None, MS_BIND, None):
        raise OSError(ctypes.get_errno(), f"mount {target}")


def main(who: str, command: list[str]) -> None:
    account = service_account(None) if who == "ordinary" else None
    view = view_for(account, [*needed_trees(), pathlib.Path.cwd()])
    with tempfile.TemporaryDirectory(prefix="codehub-internet-") as name:
        folder = pathlib.Path(name)
        folder.chmod(0o755)
        make_content(folder)
        parent = os.getpid()
        unshare(CLONE_NEWNET | CLONE_NEWNS)
        _libc.mount(None, b"/", None, MS_REC | MS_PRIVATE, None)
        world, built = start_world(folder)
        ip(f"link set lo up\nlink add eth0 type veth peer name eth0 netns {world}\n")
        ip(
            f"address add {MACHINE}/24 dev eth0\naddress add {MACHINE_LAN}/24 dev eth0\nlink set eth0 up\n"
            f"route add default via {ROUTER}\n"
        )
        # A second address, and a whole network of the machine's own: its services answer there, too.
        ip(f"address add {MACHINE_SECOND}/24 dev eth0\nroute add local {MACHINE_NETWORK} dev lo\n")
        pathlib.Path("/proc/sys/net/ipv4/ip_forward").write_text("1")
        (folder / "resolv.conf").write_text(f"nameserver {ROUTER}\n")
        bind_mount(folder / "resolv.conf", os.path.realpath("/etc/resolv.conf"))
        if pathlib.Path("/dev/net/tun").exists():  # as most machines have it: for everybody
            os.mknod(folder / "tun", 0o666 | stat.S_IFCHR, os.makedev(10, 200))
            (folder / "tun").chmod(0o666)
            bind_mount(folder / "tun", "/dev/net/tun")
        os.write(built, b"1")
        try:
            done = subprocess.run(
                command,
                env={**os.environ, ENVIRONMENT: str(folder)},
                preexec_fn=lambda: enter(account, view, parent, signal.SIGKILL) if account else None,
                check=False,
            )
        finally:
            os.kill(world, signal.SIGKILL)
            os.waitpid(world, 0)
        sys.exit(done.returncode)


def ip(lines: str) -> None:
    subprocess.run(["ip", "-batch", "-"], input=lines.encode(), check=True)


def start_world(folder: pathlib.Path) -> tuple[int, int]:
    """A process in a network namespace of its own, and where to tell it that it is connected."""
    connected, tell = os.pipe()
    made, told = os.pipe()
    pid = os.fork()
    if pid == 0:
        _libc.prctl(1, signal.SIGKILL)
        os.close(tell)
        unshare(CLONE_NEWNET)
        os.write(told, b"1")
        os.read(connected, 1)
        be_the_world(folder)
    os.read(made, 1)
    return pid, tell


def be_the_world(folder: pathlib.Path) -> None:
    addresses = [f"{address}/32" for address in (PUBLIC, SERVICES, METADATA, *OTHER_PRIVATE)]
    ip(
        f"link set lo up\naddress add {ROUTER}/24 dev eth0\naddress add {LAN}/24 dev eth0\nlink set eth0 up\n"
        + "".join(f"address add {address} dev lo\n" for address in addresses)
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "server.pem")
    web = http.server.ThreadingHTTPServer(("0.0.0.0", 80), handler(folder / "www"))
    secure = http.server.ThreadingHTTPServer(("0.0.0.0", 443), handler(folder / "www"))
    secure.socket = context.wrap_socket(secure.socket, server_side=True, do_handshake_on_connect=False)
    servers: list[socketserver.BaseServer] = [web, secure]
    servers += [udp(53, answer_name), udp(7, lambda data: data)]
    for server in servers:
        threading.Thread(target=server.serve_forever, daemon=True).start()
    while True:
        signal.pause()


def handler(folder: pathlib.Path) -> type[http.server.BaseHTTPRequestHandler]:
    class Handler(http.server.SimpleHTTPRequestHandler):
        def handle(self) -> None:
            with contextlib.suppress(OSError):  # who only looks whether we are there says nothing, or not in TLS
                super().handle()

        def __init__(self, *arguments: Any) -> None:
            super().__init__(*arguments, directory=str(folder))

        def log_message(self, *_: object) -> None:
            pass

    return Handler


def udp(port: int, answer: Callable[[bytes], bytes]) -> socketserver.BaseServer:
    class Handler(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            data, where = self.request
            where.sendto(answer(data), self.client_address)

    return socketserver.ThreadingUDPServer(("0.0.0.0", port), Handler)


def answer_name(query: bytes) -> bytes:
    """The least of a name server: A records of a fixed table."""
    labels, at = [], 12
    while query[at]:
        labels.append(query[at + 1 : at + 1 + query[at]].decode())
        at += 1 + query[at]
    kind = struct.unpack("!H", query[at + 1 : at + 3])[0]
    known = NAMES.get(".".join(labels).lower())
    found = known if known and kind == 1 else []
    code = 0 if known else 3
    head = query[:2] + struct.pack("!HHHHH", 0x8580 | code, 1, len(found), 0, 0)
    records = [b"\xc0\x0c" + struct.pack("!HHIH", 1, 1, 1, 4) + socket.inet_aton(address) for address in found]
    return head + query[12 : at + 5] + b"".join(records)


def make_content(folder: pathlib.Path) -> None:
    www = folder / "www"
    www.mkdir()
    (www / "hello").write_text("hello from outside")
    names = ",".join(f"DNS:{name}" for name in NAMES)
    certificate = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    certificate += ["-days", "2", "-subj", "/CN=services.test", "-addext", f"subjectAltName={names}"]
    files = ["-keyout", str(folder / "key.pem"), "-out", str(folder / "ca.pem")]
    subprocess.run([*certificate, *files], check=True, capture_output=True)
    (folder / "server.pem").write_text((folder / "key.pem").read_text() + (folder / "ca.pem").read_text())
    make_index(www)
    make_npm(www)
    make_repository(folder, www)


def make_index(www: pathlib.Path) -> None:
    project = www / "simple" / "greeting"
    project.mkdir(parents=True)
    wheel = "greeting-1.0-py3-none-any.whl"
    with zipfile.ZipFile(project / wheel, "w") as archive:
        archive.writestr("greeting.py", "print('installed from an index')\n")
        info = "greeting-1.0.dist-info"
        archive.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\nName: greeting\nVersion: 1.0\n")
        archive.writestr(
            f"{info}/WHEEL", "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        archive.writestr(f"{info}/RECORD", f"greeting.py,,\n{info}/METADATA,,\n{info}/WHEEL,,\n{info}/RECORD,,\n")
    (project / "index.html").write_text(f'<a href="{wheel}">{wheel}</a>')


def make_npm(www: pathlib.Path) -> None:
    folder = www / "npm"
    folder.mkdir()
    package = json.dumps({"name": "greeting", "version": "1.0.0", "main": "index.js"}).encode()
    with tarfile.open(folder / "greeting-1.0.0.tgz", "w:gz") as archive:
        for name, data in (("package.json", package), ("index.js", b"console.log('installed from a registry')")):
            entry = tarfile.TarInfo(f"package/{name}")
            entry.size = len(data)
            archive.addfile(entry, io.BytesIO(data))
    where = "https://services.test/npm/greeting-1.0.0.tgz"
    version = {"name": "greeting", "version": "1.0.0", "main": "index.js", "dist": {"tarball": where}}
    (folder / "greeting").write_text(
        json.dumps({"name": "greeting", "dist-tags": {"latest": "1.0.0"}, "versions": {"1.0.0": version}})
    )


def make_repository(folder: pathlib.Path, www: pathlib.Path) -> None:
    """Served as plain files, which git can clone too."""
    git = ["git", "-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "init.defaultBranch=main"]
    work = folder / "work"
    for command in (
        [*git, "init", "-q", str(work)],
        [*git, "-C", str(work), "commit", "-q", "--allow-empty", "-m", "from outside"],
        [*git, "clone", "-q", "--bare", str(work), str(www / "repository.git")],
        [*git, "-C", str(www / "repository.git"), "update-server-info"],
    ):
        subprocess.run(command, check=True, capture_output=True, env={**os.environ, "HOME": str(folder)})


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        main(sys.argv[1], sys.argv[2:])
