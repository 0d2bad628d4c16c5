"""A class whose workspaces attack from inside, strangers who attack from outside, and one person who works.

`Attack` starts all of it against a real platform for a bounded time and tells how it was for that person and for the
platform. Everything goes to this machine, is bounded in count and time, and ends with its process.
"""

import asyncio
import contextlib
import json
import os
import pathlib
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass, field

import aiohttp

from tests.gate.lab import ToThisMachine
from tests.platform import Platform
from tests.workspaces.ides import SERVER
from tests.workspaces.test_lifecycle import api, until

# Each runs in children of the IDE, begun again whenever it was ended.
ATTACKS = {
    "fork": """
import os, time
while True:
    try:
        if os.fork() == 0: time.sleep(60)
    except OSError: time.sleep(0.01)
""",
    "memory": "kept = []\nwhile True: kept.append(bytearray(32 << 20))",
    "disk": """
import os, time
while True:
    try:
        with open("large", "ab") as file:
            while True: file.write(bytes(1 << 20))
    except OSError:
        time.sleep(0.05)
        if os.path.getsize("large") % 7 == 0: os.unlink("large")
""",
    "inodes": """
import os, time
number = 0
while True:
    folder = f"many/{number // 1000}"
    try:
        os.makedirs(folder, exist_ok=True)
        open(f"{folder}/{number}", "w").close()
        number += 1
    except OSError: time.sleep(0.05)
""",
    "log": "import os\nline = b'x' * 65535 + b'\\n'\nwhile True: os.write(1, line)",
    "sockets": """
import os, socket, time
kept = []
while True:
    hold = os.environ.get("CODEHUB_HOLD_SOCKET", "")
    for kind, where in ((socket.AF_UNIX, hold), (socket.AF_INET, ("127.0.0.1", 3128))):
        try:
            s = socket.socket(kind); s.settimeout(1); s.connect(where); s.send(b"x"); kept.append(s)
        except OSError: time.sleep(0.002)
    if len(kept) > 2000: kept.clear()
""",
    "cpu": "while True: pass",
    "temporary": """
import os, time
while True:
    for folder in ("/tmp", "/dev/shm", "/run/ide"):
        try:
            with open(f"{folder}/large", "ab") as file: file.write(bytes(4 << 20))
        except OSError: time.sleep(0.01)
""",
}
HOSTILE = """
import subprocess, threading, time, sys
def attack(script):
    while True:
        try: subprocess.Popen([sys.executable, "-c", script], stdin=subprocess.DEVNULL).wait()
        except OSError: pass
        time.sleep(0.1)
for _ in range(4 if sys.argv[3] == "cpu" else 1):
    threading.Thread(target=attack, args=[sys.argv[4]], daemon=True).start()
del sys.argv[3:]
"""
# Strangers: connections that say nothing, bodies that trickle, answers that nobody reads. As many as it is told.
STRANGERS = """
import selectors, socket, sys, time
port, silent, posting, reading, seconds = int(sys.argv[1]), *map(int, sys.argv[2:5]), float(sys.argv[5])
begun, kept = time.monotonic(), []
def dial():
    s = socket.socket(); s.settimeout(2)
    try: s.connect(("127.0.0.1", port))
    except OSError: s.close(); return None
    s.setblocking(False); return s
HOST = b"Host: 127.0.0.1:%d\\r\\n" % port
LONG = b"Content-Length: 900000\\r\\nContent-Type: application/json\\r\\n\\r\\n"
POST = b"POST /api/v1/workspaces HTTP/1.1\\r\\n" + HOST + LONG
GET = b"GET /login HTTP/1.1\\r\\n" + HOST + b"\\r\\n"
wanted = {"silent": silent, "posting": posting, "reading": reading}
held = {name: [] for name in wanted}
opened = 0
while time.monotonic() - begun < seconds:
    for name, count in wanted.items():
        for _ in range(min(100, count - len(held[name]))):
            s = dial()
            if s is None: continue
            opened += 1
            try: s.send({"silent": b"GET / HT", "posting": POST, "reading": GET * 50}[name])
            except OSError: s.close(); continue
            held[name].append(s)
        for s in list(held[name]):
            try:
                if name == "posting": s.send(b"x")
                elif name == "silent" and s.recv(1, socket.MSG_PEEK) == b"": raise OSError
            except BlockingIOError: pass
            except OSError: held[name].remove(s); s.close()
    time.sleep(0.5)
print(opened, {name: len(s) for name, s in held.items()})
"""


def write_templates(folder: pathlib.Path) -> pathlib.Path:
    folder.mkdir(parents=True, exist_ok=True)
    folder.chmod(0o755)
    commands = {
        f"hostile-{name}": ["python3", "-u", "-c", HOSTILE + SERVER, "{socket}", "{base_path}", name, script]
        for name, script in ATTACKS.items()
    }
    commands["tiny"] = ["python3", "-c", SERVER, "{socket}", "{base_path}"]
    for name, command in commands.items():
        text = f'title = "{name}"\nstart_seconds = 60\n[process]\ncommand = {json.dumps(command)}\n'
        (folder / f"{name}.toml").write_text(text)
        (folder / f"{name}.toml").chmod(0o644)
    return folder


@dataclass
class Timed:
    """Requests of one kind: how long each took, and what went wrong."""

    milliseconds: list[float] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)

    @property
    def p99(self) -> float:
        return statistics.quantiles(self.milliseconds, n=100)[98]

    def __str__(self) -> str:
        found = self.milliseconds
        return (
            f"{len(found)} requests, median {statistics.median(found):.0f} ms, p99 {self.p99:.0f} ms, "
            f"longest {max(found):.0f} ms, {len(self.failed)} failed {self.failed[:3]}"
        )


@dataclass
class Report:
    visits: Timed = field(default_factory=Timed)  # of the sixteenth person, through the proxy to their workspace
    health: Timed = field(default_factory=Timed)
    least_free: int = 1 << 62  # bytes of the platform's disk
    attackers: list[str] = field(default_factory=list)  # how they stand at the end
    strangers: str = ""

    def __str__(self) -> str:
        return (
            f"\nvisits: {self.visits}\n/healthz: {self.health}\nleast free on the platform's disk: "
            f"{self.least_free >> 20} MB\nattackers: {', '.join(self.attackers)}\nstrangers: {self.strangers}"
        )


class Attack:
    def __init__(self, platform: Platform, count: int, seconds: float) -> None:
        self._platform = platform
        self._count = count
        self._seconds = seconds
        self.report = Report()

    async def run(self) -> Report:
        async with self._platform.client() as client:
            mine, person = await self._create(client, "sixteenth", "tiny")
            kinds = [f"hostile-{name}" for name in ATTACKS]
            theirs = [
                (await self._create(client, f"attacker-{number}", kinds[number % len(kinds)]))[0]
                for number in range(self._count)
            ]
            await until(client, mine, "RUNNING", 120)
            async with self._strangers():
                await self._work(mine, person)
            self.report.attackers = sorted([await self._stands(client, id_) for id_ in theirs])
        return self.report

    async def _create(self, client: aiohttp.ClientSession, name: str, template: str) -> tuple[str, dict[str, str]]:
        await api(client, "POST", "/api/v1/users", status=201, name=name, role="learner")
        token = (await api(client, "POST", f"/api/v1/users/{name}/tokens", status=201))["token"]
        person = {"Authorization": f"Bearer {token}"}
        async with client.post(
            "/api/v1/workspaces", json={"name": name, "template": template}, headers=person
        ) as answer:
            made = await answer.json()
            assert answer.status == 201, made
        id_: str = made["id"]
        return id_, person

    async def _stands(self, client: aiohttp.ClientSession, id_: str) -> str:
        w = await api(client, "GET", f"/api/v1/workspaces/{id_}")
        return f"{w['template'].removeprefix('hostile-')} {w['phase']}"

    async def _work(self, mine: str, person: dict[str, str]) -> None:
        port = self._platform.url.rpartition(":")[2]
        page = f"http://{mine}.localhost:{port}/w/{mine}/"
        connector = aiohttp.TCPConnector(resolver=ToThisMachine())
        async with aiohttp.ClientSession(connector=connector, headers=person) as session:
            deadline = time.monotonic() + self._seconds
            await asyncio.gather(
                self._repeat(session, page, self.report.visits, deadline),
                self._repeat(None, f"{self._platform.url}/healthz", self.report.health, deadline),
                self._watch_disk(deadline),
            )

    async def _repeat(self, session: aiohttp.ClientSession | None, url: str, timed: Timed, deadline: float) -> None:
        """With a session, as a browser's tab; without one, every time as a new client."""
        while time.monotonic() < deadline:
            begun = time.perf_counter()
            try:
                async with contextlib.AsyncExitStack() as stack:
                    client = session
                    if client is None:
                        client = await stack.enter_async_context(aiohttp.ClientSession())
                    answer = await stack.enter_async_context(client.get(url, allow_redirects=False))
                    body = await answer.read()
                    if answer.status != 200:
                        timed.failed.append(f"{answer.status} {body[:200]!r}")
            except (aiohttp.ClientError, TimeoutError, OSError) as e:
                timed.failed.append(repr(e))
            timed.milliseconds.append((time.perf_counter() - begun) * 1000)
            await asyncio.sleep(0.03)

    async def _watch_disk(self, deadline: float) -> None:
        while time.monotonic() < deadline:
            found = os.statvfs(self._platform.data_dir)
            self.report.least_free = min(self.report.least_free, found.f_bavail * found.f_frsize)
            await asyncio.sleep(0.02)

    @contextlib.asynccontextmanager
    async def _strangers(self) -> AsyncIterator[None]:
        port = self._platform.url.rpartition(":")[2]
        share = max(1, self._count // 3)
        numbers = (str(1000 * share), str(80 * share), str(20 * share), str(self._seconds))
        process = subprocess.Popen([sys.executable, "-c", STRANGERS, port, *numbers], stdout=subprocess.PIPE, text=True)
        try:
            yield
        finally:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.report.strangers = process.communicate(timeout=30)[0].strip()
            process.send_signal(signal.SIGKILL)
            process.wait()
