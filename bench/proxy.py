"""How fast is the proxy, beside what people would use instead?

A developer runs it and reads the tables. Ours, JupyterHub's configurable-http-proxy and nginx stand in front of the
same backend; each has core 0 to itself, the backend and the load share core 1. Rounds are interleaved, so a slow
minute of the machine falls on all alike. Besides the rate, the processor time of one request is measured: on a noisy
machine, or where the load generator is the limit, it is the better figure.
"""

import argparse
import asyncio
import contextlib
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from typing import NamedTuple

PROXY_CORE, LOAD_CORE = (str(choose(os.sched_getaffinity(0))) for choose in (min, max))
CACHE = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "codehub-bench"
PEER = "configurable-http-proxy"
CONNECTIONS = (1, 32, 512)
SIZES = {"websocket 64 B": 64, "websocket 16 KB": 16 * 1024}
WORKLOADS = ("small GET", "64 KB GET", "1 MB upload", *SIZES)
HERE = pathlib.Path(__file__)
BACKEND = """
worker_processes 1; daemon off; pid {folder}/backend.pid; error_log stderr crit;
events {{ worker_connections 8192; }}
http {{
  access_log off; client_max_body_size 0; client_body_buffer_size 2m; keepalive_requests 1000000000; sendfile on;
  client_body_temp_path {folder}/b1; proxy_temp_path {folder}/b2; fastcgi_temp_path {folder}/b3;
  uwsgi_temp_path {folder}/b4; scgi_temp_path {folder}/b5;
  server {{ listen unix:{folder}/inner.sock; location / {{ return 200 "read"; }} }}
  server {{
    listen 127.0.0.1:{port} backlog=4096; root {folder};
    location = /small {{ default_type text/plain; return 200 "a small answer, as an IDE's status poll gets\\n"; }}
    location = /upload {{ # answers after the whole body was read
      proxy_pass http://unix:{folder}/inner.sock; proxy_pass_request_body off; proxy_method GET;
      proxy_set_header Content-Length ""; proxy_set_header Transfer-Encoding ""; }}
    location = /ws {{ proxy_pass http://127.0.0.1:{echo}; }}
  }}
}}
"""
NGINX = """
worker_processes 1; daemon off; pid {folder}/nginx.pid; error_log stderr crit;
events {{ worker_connections 8192; }}
http {{
  access_log off; client_max_body_size 0; keepalive_requests 1000000000;
  client_body_temp_path {folder}/n1; proxy_temp_path {folder}/n2; fastcgi_temp_path {folder}/n3;
  uwsgi_temp_path {folder}/n4; scgi_temp_path {folder}/n5;
  upstream backend {{ server 127.0.0.1:{backend}; keepalive 1024; keepalive_requests 1000000000; }}
  upstream echo {{ server 127.0.0.1:{echo}; }}
  server {{
    listen 127.0.0.1:{port} backlog=4096;
    proxy_http_version 1.1; proxy_set_header Host $http_host; proxy_set_header X-Forwarded-For $remote_addr;
    proxy_set_header X-Forwarded-Proto $scheme; proxy_set_header X-Forwarded-Host $http_host;
    location / {{ proxy_pass http://backend; proxy_set_header Connection ""; proxy_request_buffering off; }}
    location = /ws {{
      proxy_pass http://echo; proxy_set_header Connection Upgrade; proxy_set_header Upgrade websocket; }}
  }}
}}
"""
LUA = "wrk.method = 'POST'; wrk.body = string.rep('x', 1048576)"
HANDSHAKE = b"GET /ws HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
HANDSHAKE += b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n"
SWITCH = b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
SWITCH += b"Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n"


class Ports(NamedTuple):
    backend: int
    echo: int


class Sample(NamedTuple):
    rate: float  # requests or messages a second
    p99: float  # milliseconds
    cpu: float  # microseconds of the proxy's processor time per request or message


class Subject(NamedTuple):
    name: str
    port: int
    pid: int


def free_ports(count: int) -> list[int]:
    with contextlib.ExitStack() as held:
        probes = [held.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(count)]
        return [int(probe.getsockname()[1]) for probe in probes]


# Parts that run as processes of their own.


class Echo(asyncio.Protocol):
    """A backend that answers a handshake and then sends back what it gets, untouched."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport: asyncio.Transport = transport  # type: ignore[assignment]
        self._switched = False

    def data_received(self, data: bytes) -> None:
        if self._switched:
            self._transport.write(data)
        elif b"\r\n\r\n" in data:
            self._switched = True
            self._transport.write(SWITCH + data.partition(b"\r\n\r\n")[2])


async def echo_backend(port: int) -> None:
    server = await asyncio.get_running_loop().create_server(Echo, "127.0.0.1", port, backlog=4096)
    await server.serve_forever()


async def ours(port: int, backend: int, echo: int) -> None:
    """The engine with a director that knows two addresses; the hygiene is that of a workspace."""
    from codehub.clock import SystemClock
    from codehub.proxy import answers
    from codehub.proxy.headers import workspace_hygiene
    from codehub.proxy.model import Address, Answer, Decision, Failure, Forward, RequestHead
    from codehub.proxy.server import Engine

    hygiene = workspace_hygiene(frozenset({b"codehub", b"__host-codehub"}), b"codehub-w-")
    to_backend = Forward(Address(host="127.0.0.1", port=backend), "w", hygiene=hygiene)
    to_echo = Forward(Address(host="127.0.0.1", port=echo), "w", hygiene=hygiene)

    class Director:
        def decide(self, head: RequestHead) -> Decision:
            return to_echo if head.target == b"/ws" else to_backend

        def unreachable(self, _head: RequestHead, _forward: Forward, failure: Failure) -> Answer:
            return answers.of_failure(failure)

    listener = socket.create_server(("127.0.0.1", port), backlog=4096)
    listener.setblocking(False)
    await Engine(Director(), SystemClock()).start(listener)
    await asyncio.Event().wait()


class Talker(asyncio.Protocol):
    """Sends a message, waits until all of it is back, sends the next."""

    def __init__(self, message: bytes, delays: list[float]) -> None:
        self._message, self._delays = message, delays
        self._left, self._begun, self._now = 0, 0.0, time.perf_counter

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport: asyncio.Transport = transport  # type: ignore[assignment]
        self._transport.write(HANDSHAKE)

    def data_received(self, data: bytes) -> None:
        if self._begun:
            self._left -= len(data)
            if self._left:
                return
            self._delays.append(self._now() - self._begun)
        self._left = len(self._message)
        self._begun = self._now()
        self._transport.write(self._message)


async def talk(port: int, connections: int, size: int, seconds: float) -> None:
    message = bytes([0x82, 0xFE]) + size.to_bytes(2, "big") + b"\0\0\0\0" + b"m" * size
    delays: list[float] = []
    loop = asyncio.get_running_loop()
    for _ in range(connections):
        await loop.create_connection(lambda: Talker(message, delays), "127.0.0.1", port)
    while len(delays) < 2 * connections:  # noqa: ASYNC110 (all are at it; an event would cost every message)
        await asyncio.sleep(0.05)
    delays.clear()
    begun = loop.time()
    await asyncio.sleep(seconds)
    while len(delays) < 2:  # noqa: ASYNC110
        await asyncio.sleep(0.05)
    took = loop.time() - begun
    print(json.dumps({"rate": len(delays) / took, "p99": statistics.quantiles(delays, n=100)[98] * 1000}))


PARTS = {"echo": echo_backend, "ours": ours, "talk": talk}


# The bench itself.


@contextlib.contextmanager
def process(core: str, *command: str) -> Iterator[int]:
    child = subprocess.Popen(["taskset", "-c", core, *command], start_new_session=True, stdout=subprocess.DEVNULL)
    try:
        yield child.pid
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGKILL)
        child.wait()


def itself(part: str, *arguments: object) -> list[str]:
    return [sys.executable, str(HERE), "--part", part, *map(str, arguments)]


@contextlib.contextmanager
def nginx(core: str, folder: pathlib.Path, name: str, text: str) -> Iterator[int]:
    file = folder / f"{name}.conf"
    file.write_text(text)
    with process(core, "nginx", "-c", str(file)) as pid:
        yield pid


def wait_for(port: int) -> None:
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            return
        time.sleep(0.05)
    raise RuntimeError(f"nothing listens on port {port}")


def peer_command() -> list[str]:
    """configurable-http-proxy, from the user's cache; installed there when it is missing."""
    program = CACHE / "node_modules" / ".bin" / PEER
    if not program.exists():
        if shutil.which("npm") is None:
            raise SystemExit(f"{PEER} is not installed and there is no npm to install it with")
        CACHE.mkdir(parents=True, exist_ok=True)
        install = [
            "npm",
            "install",
            "--no-audit",
            "--no-fund",
            "--loglevel",
            "error",
            "--prefix",
            str(CACHE),
            f"{PEER}@5",
        ]
        if subprocess.run(install, check=False).returncode:
            raise SystemExit(f"npm could not install {PEER}: see above")
    return [str(program), "--log-level", "error"]


@contextlib.contextmanager
def subjects(folder: pathlib.Path, ports: Ports) -> Iterator[list[Subject]]:
    mine, peer, peers_api, limit = free_ports(4)
    config = NGINX.format(folder=folder, port=limit, backend=ports.backend, echo=ports.echo)
    target = f"http://127.0.0.1:{ports.backend}"
    listen = f"--ip 127.0.0.1 --port {peer} --api-ip 127.0.0.1 --api-port {peers_api} --default-target {target}".split()
    with contextlib.ExitStack() as running:
        pids = [
            running.enter_context(process(PROXY_CORE, *itself("ours", mine, *ports))),
            running.enter_context(process(PROXY_CORE, *peer_command(), *listen)),
            running.enter_context(nginx(PROXY_CORE, folder, "nginx", config)),
        ]
        found = [
            Subject(n, p, pid) for n, p, pid in zip(("ours", PEER, "nginx"), (mine, peer, limit), pids, strict=True)
        ]
        for subject in found:
            wait_for(subject.port)
        tell_peer(peers_api, ports)
        yield found


def tell_peer(api: int, ports: Ports) -> None:
    """The route for WebSockets: straight to the echo, as for the others."""
    wait_for(api)
    body = json.dumps({"target": f"http://127.0.0.1:{ports.echo}"})
    with socket.create_connection(("127.0.0.1", api)) as client:
        head = f"POST /api/routes/ws HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: {len(body)}\r\n\r\n"
        client.sendall((head + body).encode())
        assert b" 201 " in client.recv(1000), "the peer did not take the route"


def cpu_seconds(group: int) -> float:
    """Of all processes of one session."""
    total = 0
    for entry in pathlib.Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            fields = entry.read_text().rpartition(")")[2].split()
            if int(fields[3]) == group:
                total += int(fields[11]) + int(fields[12])
    return total / os.sysconf("SC_CLK_TCK")


def run_load(subject: Subject, workload: str, connections: int, seconds: int, lua: str) -> tuple[float, float]:
    if workload in SIZES:
        command = itself("talk", subject.port, connections, SIZES[workload], seconds)
        done = subprocess.run(["taskset", "-c", LOAD_CORE, *command], check=True, stdout=subprocess.PIPE, timeout=60)
        got = json.loads(done.stdout)
        return got["rate"], got["p99"]
    path = {"small GET": "/small", "64 KB GET": "/64k", "1 MB upload": "/upload"}[workload]
    command = [
        "taskset",
        "-c",
        LOAD_CORE,
        "wrk",
        "-t1",
        f"-c{connections}",
        f"-d{seconds}s",
        "--latency",
        "--timeout",
        "9s",
    ]
    command += ["-s", lua] if workload == "1 MB upload" else []
    report = subprocess.run(
        [*command, f"http://127.0.0.1:{subject.port}{path}"], check=True, capture_output=True, text=True
    )
    if "Non-2xx" in report.stdout:
        raise RuntimeError(f"{subject.name}: {report.stdout}")
    found = re.search(r"99%\s+([\d.]+)(us|ms|s)\b", report.stdout)
    assert found, report.stdout
    scale = {"us": 0.001, "ms": 1.0, "s": 1000.0}[found[2]]
    return float(report.stdout.partition("Requests/sec:")[2].split()[0]), float(found[1]) * scale


def sample(subject: Subject, workload: str, connections: int, seconds: int, lua: str) -> Sample:
    before = cpu_seconds(subject.pid)
    rate, p99 = run_load(subject, workload, connections, seconds, lua)
    spent = cpu_seconds(subject.pid) - before
    return Sample(rate, p99, spent / max(rate * seconds, 1) * 1e6)


def measure(found: list[Subject], workload: str, connections: int, options: argparse.Namespace, lua: str) -> None:
    samples: dict[str, list[Sample]] = {subject.name: [] for subject in found}
    for turn in range(options.rounds):
        for subject in found[turn % len(found) :] + found[: turn % len(found)]:
            samples[subject.name].append(sample(subject, workload, connections, options.seconds, lua))
    mine = [statistics.median(values) for values in zip(*samples["ours"], strict=True)]
    for name, runs in samples.items():
        rate, p99, cpu = (statistics.median(values) for values in zip(*runs, strict=True))
        spread = f"{min(r.rate for r in runs):.0f}–{max(r.rate for r in runs):.0f}"
        pairs = () if name == "ours" else ((mine[0], rate), (mine[1], p99), (cpu, mine[2]))
        ratios = "".join(f"{a / b:>8.2f}" if b else f"{'–':>8}" for a, b in pairs)
        line = f"{workload:<16}{connections:>5}  {name:<24}{rate:>8.0f}{spread:>16}{p99:>9.2f}{cpu:>9.1f}"
        print(line + ratios, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=int, default=2, help="length of one run; wrk counts whole seconds")
    parser.add_argument("--only", help="a part of the workloads' names")
    parser.add_argument("--connections", type=int, nargs="+", default=CONNECTIONS)
    options = parser.parse_args()
    if lack := [tool for tool in ("nginx", "wrk", "taskset", "node") if shutil.which(tool) is None]:
        parser.exit(
            2, f"install {', '.join(lack)} (from the system's packages: nginx-light, wrk, util-linux, nodejs)\n"
        )
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: sys.exit(130))  # unwinds, and so ends every process
    ports = Ports(*free_ports(2))
    with contextlib.ExitStack() as running:
        folder = pathlib.Path(running.enter_context(tempfile.TemporaryDirectory(prefix="codehub-bench-")))
        folder.chmod(0o755)
        (folder / "64k").write_bytes(b"k" * 65536)
        (folder / "upload.lua").write_text(LUA)
        config = BACKEND.format(folder=folder, port=ports.backend, echo=ports.echo)
        running.enter_context(nginx(LOAD_CORE, folder, "backend", config))
        running.enter_context(process(LOAD_CORE, *itself("echo", ports.echo)))
        for port in ports:
            wait_for(port)
        found = running.enter_context(subjects(folder, ports))
        head = f"{'workload':<16}{'conn':>5}  {'proxy':<24}{'rate/s':>8}{'min–max':>16}{'p99 ms':>9}{'cpu µs':>9}"
        print(f"{head}{'rate×':>8}{'p99×':>8}{'cpu×':>8}   (×: ours to theirs; cpu×: theirs to ours)", flush=True)
        for workload in WORKLOADS:
            for connections in options.connections if options.only is None or options.only in workload else ():
                measure(found, workload, connections, options, str(folder / "upload.lua"))


if __name__ == "__main__":
    if sys.argv[1:2] == ["--part"]:
        import uvloop

        uvloop.run(PARTS[sys.argv[2]](*map(int, sys.argv[3:])))  # type: ignore[operator]
    else:
        main()
