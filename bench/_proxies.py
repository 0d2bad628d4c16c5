"""What the benchmarks of the proxy stand on: the load, workspaces in a real database, our worker and its peers.

`proxy`, `proxy_versions`, `proxy_limits` and `waiting_room` use it. Whatever is measured has one core to itself, the
load and its backend (`load.c`) the other.
"""

import asyncio
import contextlib
import hashlib
import json
import os
import pathlib
import resource
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from tests.servers import Runner, TestServers

from codehub import logs
from codehub.db import Database
from codehub.gate.passes import Pass, Passes
from codehub.policy.model import Role
from codehub.settings import LogConfig

HERE = pathlib.Path(__file__).parent
PROXY_CORE, LOAD_CORE = (str(choose(os.sched_getaffinity(0))) for choose in (min, max))
CACHE = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "codehub-bench"
PEER = "configurable-http-proxy"
SECRET = "a-signing-key-for-benchmarks"  # noqa: S105 (it signs nothing outside)
PATIENCE = 60.0
ADD_WORKSPACE = """
INSERT INTO workspaces (id, name, template, owner_id,
                        created_at, updated_at, phase_changed_at, last_access_at,
                        desired_state, desired_by, desired_at, observed_status, address)
VALUES ($1, 'lab', 'jupyterlab', codehub_user_id('mina'),
       now(), now(), now(), now(), 'RUNNING', 'user', now(), 'RUNNING', $2)
"""
# As a browser sends it from inside an IDE. The query changes, as those of polls do.
HEAD = """{method} {path} HTTP/1.1
Host: {id}.localhost
User-Agent: Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/142.0.0.0 Safari/537.36
Accept: */*
Accept-Language: en-US,en;q=0.9,ko;q=0.8
Accept-Encoding: gzip, deflate, br, zstd
Origin: http://{id}.localhost
Sec-Fetch-Site: same-origin
Sec-Fetch-Mode: {mode}
Sec-Fetch-Dest: {dest}
Cookie: _xsrf=2|fd55cfc1|59281b1c98dcebbbe74a09ba84d26dd9|1763000000; codehub-pass={pass_}
{more}
"""
UPGRADE = (
    "Connection: Upgrade\nUpgrade: websocket\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\nSec-WebSocket-Version: 13\n"
)
NGINX = """
worker_processes 1; daemon off; pid {folder}/nginx.pid; error_log stderr crit;
events {{ worker_connections 8192; }}
http {{
  access_log off; client_max_body_size 0; keepalive_requests 1000000000;
  client_body_temp_path {folder}/n1; proxy_temp_path {folder}/n2; fastcgi_temp_path {folder}/n3;
  uwsgi_temp_path {folder}/n4; scgi_temp_path {folder}/n5;
  upstream bench {{ server 127.0.0.1:{backend}; keepalive 1024; keepalive_requests 1000000000; }}
  map $http_upgrade $connection_upgrade {{ "" ""; default upgrade; }}
  server {{
    listen 127.0.0.1:{port} backlog=4096;
    proxy_http_version 1.1; proxy_set_header Host $http_host; proxy_set_header X-Forwarded-For $remote_addr;
    proxy_set_header X-Forwarded-Proto $scheme; proxy_set_header X-Forwarded-Host $http_host;
    location /w/bench/ {{
      proxy_pass http://bench; proxy_request_buffering off;
      proxy_set_header Upgrade $http_upgrade; proxy_set_header Connection $connection_upgrade; }}
  }}
}}
"""


class Subject(NamedTuple):
    name: str
    port: int
    pid: int  # leads the session of all its processes; 0: there is no proxy


class Result(NamedTuple):
    rate: float  # requests or messages a second
    p50: float  # milliseconds
    p99: float
    longest: float
    cpu: float  # microseconds of the proxy's processor time per request or message


# Processes.


def require(*tools: str) -> None:
    if lack := [tool for tool in tools if shutil.which(tool) is None]:
        packages = {
            "nginx": "nginx-light",
            "taskset": "util-linux",
            "cc": "gcc",
            "node": "nodejs",
            "redis-benchmark": "redis-tools",
        }
        sys.exit(f"{', '.join(lack)}: not found. Packages: {', '.join(packages.get(tool, tool) for tool in lack)}")


def unwind_on_signals() -> None:
    """So that every process is ended."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: sys.exit(130))


def raise_open_files() -> int:
    """As far as it may be raised; for this process and what it starts."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return hard


@contextlib.contextmanager
def process(core: str, *command: str, env: Mapping[str, str] | None = None, fds: tuple[int, ...] = ()) -> Iterator[int]:
    child = subprocess.Popen(
        ["taskset", "-c", core, *command], start_new_session=True, stdout=subprocess.DEVNULL, env=env, pass_fds=fds
    )
    go_first(child.pid)
    try:
        yield child.pid
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGKILL)
        child.wait()


def go_first(pid: int, nice: int = -10) -> None:
    """Where every session gets the same share, whatever its processes' niceness, others' work would be measured.

    Linux calls that autogroups. Only root may ask for more than a share; without it, or without them, nothing happens.
    """
    with contextlib.suppress(OSError):
        pathlib.Path(f"/proc/{pid}/autogroup").write_text(str(nice))


@contextlib.contextmanager
def going_first() -> Iterator[None]:
    """Ourselves too, or what we read of the others' processor time would be late."""
    try:
        before = int(pathlib.Path("/proc/self/autogroup").read_text().rpartition(" ")[2])
    except (OSError, ValueError):
        before = 0
    go_first(os.getpid())
    try:
        yield
    finally:
        go_first(os.getpid(), before)


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return int(probe.getsockname()[1])


def wait_for(port: int) -> None:
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            return
        time.sleep(0.05)
    raise RuntimeError(f"nothing listens on port {port}")


def cpu_seconds(session: int) -> float:
    """Of all processes of one session, by the scheduler's own count: ticks of the clock would be too coarse."""
    total = 0
    for entry in pathlib.Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            if int(entry.read_text().rpartition(")")[2].split()[3]) == session:
                total += _cpu_nanoseconds(entry.parent)
    return total / 1e9


def process_cpu_seconds(pid: int) -> float:
    return _cpu_nanoseconds(pathlib.Path(f"/proc/{pid}")) / 1e9


def _cpu_nanoseconds(process: pathlib.Path) -> int:
    return sum(int(task.read_text().split()[0]) for task in process.glob("task/*/schedstat"))


def pin(pid: int, core: str) -> None:
    """A process that runs already, with all its threads."""
    for task in pathlib.Path(f"/proc/{pid}/task").iterdir():
        os.sched_setaffinity(int(task.name), {int(core)})


# The load.


def load_program() -> str:
    """`load.c`, compiled once for each of its versions."""
    require("cc")
    source = HERE / "load.c"
    program = CACHE / f"load-{hashlib.sha256(source.read_bytes()).hexdigest()[:12]}"
    if not program.exists():
        CACHE.mkdir(parents=True, exist_ok=True)
        fresh = program.with_suffix(f".{os.getpid()}")
        subprocess.run(["cc", "-std=gnu11", "-O2", "-o", str(fresh), str(source)], check=True)
        fresh.rename(program)
    return str(program)


class Load:
    """A process that is backend and load; `port` is the backend's."""

    def __init__(self, core: str = LOAD_CORE, *, shares: bool = False) -> None:
        self._process = subprocess.Popen(
            ["taskset", "-c", core, load_program(), *(["shares"] if shares else [])],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            bufsize=1,
            start_new_session=True,
        )
        go_first(self._process.pid)
        self.port = int(self._hear())

    def _hear(self) -> str:
        assert self._process.stdout
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError("the load gave up: see above")
        return line

    def _say(self, line: str) -> None:
        assert self._process.stdin
        self._process.stdin.write(f"{line}\n")

    def run(
        self,
        subject: Subject,
        head: pathlib.Path,
        *,
        connections: int,
        seconds: float,
        rate: int = 0,
        body: int = 0,
        message: int = 0,
    ) -> Result:
        milliseconds = int(seconds * 1000)
        self._say(f"run {subject.port} {connections} {milliseconds} {rate} {body} {message} {head}")
        self._hear()
        before = cpu_seconds(subject.pid) if subject.pid else 0.0
        found = json.loads(self._hear())
        spent = cpu_seconds(subject.pid) - before if subject.pid else 0.0
        count = max(found["count"], 1)
        return Result(count / found["seconds"], found["p50"], found["p99"], found["longest"], spent / count * 1e6)

    def hold(self, subject: Subject, head: pathlib.Path, connections: int, *, message: int = 0) -> None:
        """Open so many connections, each served once, and keep them."""
        self._say(f"hold {subject.port} {connections} 0 0 0 {message} {head}")
        self._hear()

    def drop(self) -> None:
        self._say("drop")

    def stop(self) -> None:
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            assert pipe
            with contextlib.suppress(BrokenPipeError):
                pipe.close()


@contextlib.contextmanager
def load(core: str = LOAD_CORE, *, shares: bool = False) -> Iterator[Load]:
    """`shares`: something that is measured is on its core too."""
    started = Load(core, shares=shares)
    try:
        yield started
    finally:
        started.stop()


# Workspaces, and the requests to them.


class Lab:
    """A database with workspaces that run at given ports, and the heads of requests to them."""

    def __init__(self, folder: pathlib.Path, servers: TestServers, ports: Mapping[str, int]) -> None:
        self.folder = folder
        self.servers = servers
        asyncio.run(self._fill(ports))

    async def _fill(self, ports: Mapping[str, int]) -> None:
        database = await Database.open(self.servers.database_url)
        async with database.connection() as c:
            await c.execute("INSERT INTO users (name, role, created_at) VALUES ('mina', 'learner', now())")
            for id_, port in ports.items():
                await c.execute(ADD_WORKSPACE, id_, {"socket": None, "host": "127.0.0.1", "port": port})
        await database.close()

    def _head(
        self, name: str, id_: str, path: str, *, method: str = "GET", more: str = "", websocket: bool = False
    ) -> pathlib.Path:
        pass_ = Passes(SECRET).write(Pass(id_, "mina", Role.LEARNER, "session", int(time.time()) + 86_400))
        mode, dest = ("websocket", "websocket") if websocket else ("cors", "empty")
        path = f"/w/{id_}/{path}"
        text = HEAD.format(method=method, path=path, id=id_, mode=mode, dest=dest, pass_=pass_, more=more)
        file = self.folder / f"{name}-{id_}"
        file.write_bytes(text.replace("\n", "\r\n").encode())
        return file

    def get(self, size: int, id_: str = "bench") -> pathlib.Path:
        return self._head(f"get{size}", id_, f"files/bytes/{size}?_=@@@@@@@@@@")

    def post(self, size: int, id_: str = "bench") -> pathlib.Path:
        more = f"Content-Type: application/octet-stream\nContent-Length: {size}\n"
        return self._head(f"post{size}", id_, "files/upload?_=@@@@@@@@@@", method="POST", more=more)

    def websocket(self, id_: str = "bench") -> pathlib.Path:
        return self._head("websocket", id_, "api/kernels/k/channels", more=UPGRADE, websocket=True)

    @contextlib.contextmanager
    def ours(
        self,
        name: str = "ours",
        *,
        watched: bool = True,
        core: str = PROXY_CORE,
        checkout: pathlib.Path = HERE.parent,
        polls: str = "ours",
        more: Mapping[str, str] | None = None,
    ) -> Iterator[Subject]:
        """One worker; activity is recorded, or nobody watches. `checkout`: the code it runs, with our packages.

        `polls`: how it answers those who wait (`_worker`); `more`: settings, by their names in the environment.
        """
        listener = socket.create_server(("127.0.0.1", 0), backlog=4096)
        port, fd = int(listener.getsockname()[1]), listener.fileno()
        env = {
            **os.environ,
            "CODEHUB_DATA_DIR": str(self.folder / "data"),
            "CODEHUB_DATABASE_URL": self.servers.database_url,
            "CODEHUB_REDIS_URL": self.servers.redis_url,
            "CODEHUB_SECRET_KEY": SECRET,
            "CODEHUB_LOG_LEVEL": "error",
            "PYTHONPATH": f"{checkout / 'src'}:{checkout}",
            **(more or {}),
        }
        worker = checkout / "bench" / "_worker.py"
        command = [sys.executable, str(worker), str(fd), "on" if watched else "off", polls]
        with process(core, *command, env=env, fds=(fd,)) as pid, listener:
            yield Subject(name, port, pid)


@contextlib.contextmanager
def lab(ports: Mapping[str, int]) -> Iterator[Lab]:
    logs.configure(LogConfig(level="error", format="text"), "bench")
    servers = Runner()
    with tempfile.TemporaryDirectory(prefix="codehub-bench-") as name:
        folder = pathlib.Path(name)
        folder.chmod(0o755)
        started = servers.start()
        try:
            yield Lab(folder, started, ports)
        finally:
            servers.stop()


# The peers.


def _peer_command() -> list[str]:
    """configurable-http-proxy, from the user's cache; installed there when it is missing."""
    program = CACHE / "node_modules" / ".bin" / PEER
    if not program.exists():
        require("npm")
        CACHE.mkdir(parents=True, exist_ok=True)
        options = ["--no-audit", "--no-fund", "--loglevel", "error", "--prefix", str(CACHE)]
        if subprocess.run(["npm", "install", *options, f"{PEER}@5"], check=False).returncode:
            sys.exit(f"npm could not install {PEER}: see above")
    return [str(program), "--log-level", "error"]


@contextlib.contextmanager
def peer(backend: int) -> Iterator[Subject]:
    port, api = free_port(), free_port()
    listen = f"--ip 127.0.0.1 --port {port} --api-ip 127.0.0.1 --api-port {api}".split()
    with process(PROXY_CORE, *_peer_command(), *listen) as pid:
        wait_for(port)
        wait_for(api)
        body = json.dumps({"target": f"http://127.0.0.1:{backend}"})
        with socket.create_connection(("127.0.0.1", api)) as client:
            head = f"POST /api/routes/w/bench HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: {len(body)}"
            client.sendall(f"{head}\r\n\r\n{body}".encode())
            assert b" 201 " in client.recv(1000), "the peer did not take the route"
        yield Subject(PEER, port, pid)


@contextlib.contextmanager
def nginx(backend: int, folder: pathlib.Path) -> Iterator[Subject]:
    port, file = free_port(), folder / "nginx.conf"
    file.write_text(NGINX.format(folder=folder, port=port, backend=backend))
    with process(PROXY_CORE, "nginx", "-c", str(file)) as pid:
        wait_for(port)
        yield Subject("nginx", port, pid)


@contextlib.contextmanager
def tunnel(backend: int) -> Iterator[Subject]:
    listener = socket.create_server(("127.0.0.1", 0), backlog=4096)
    port, fd = int(listener.getsockname()[1]), listener.fileno()
    command = [sys.executable, str(HERE / "_tunnel.py"), str(fd), str(backend)]
    with process(PROXY_CORE, *command, fds=(fd,)) as pid, listener:
        yield Subject("a bare tunnel on uvloop", port, pid)
