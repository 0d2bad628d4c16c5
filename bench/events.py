"""5,000 open event streams in one API process: does each get exactly its own, how late, and what does a change cost?

Two processes of `codehub api` serve the same database: one has 50 streams, the other 5,000, of which 50 are of the same
people. After a while 200 changes a second are spread over all 500 people: every stream has to get its person's changes,
all of them, in order, and no other's; how late is counted from before the change's statement until the client has the
bytes. The streams of the small process say how late that is on this machine, at this time, in any case. Then only the
50 people's workspaces change, so that every change reaches one stream in each process; what it costs is the processor
time of each API process beyond what it uses while nothing changes, in windows that alternate.

    python bench/events.py [--seconds 30] [--rounds 9]
"""

import argparse
import asyncio
import itertools
import json
import os
import pathlib
import resource
import secrets
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import aiohttp
import asyncpg

sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))

from tests.platform import CODEHUB, clean_environment
from tests.servers import TEMPLATE, Runner, TestServers

PEOPLE, FEW, MANY = 500, 50, 5_000
RATE = 200  # changes a second
CLIENTS = 4  # processes
WINDOW = 5.0  # seconds
TARGET_P99, TARGET_RATIO = 0.25, 1.3
ADMIN = "an-admin-token-of-the-bench"
WARM_UP = 20.0  # seconds
PATIENCE = 30.0  # seconds, for deliveries that are late
TICKS = os.sysconf("SC_CLK_TCK")
ADD_PEOPLE = """
INSERT INTO users (name, role, created_at) SELECT name, 'learner', now() FROM unnest($1::text[]) AS name
"""
ADD_WORKSPACES = """
INSERT INTO workspaces (id, name, template, owner_id,
                        created_at, updated_at, phase_changed_at, last_access_at,
                        desired_state, desired_by, desired_at, observed_status, volume_generation)
SELECT 'w' || name, 'lab', 'terminal', codehub_user_id(name),
       now(), now(), now(), now(), 'STANDBY', 'user', now(), 'STANDBY', 'g'
FROM unnest($1::text[]) AS name
"""
CHANGE = "UPDATE workspaces SET name = $2, updated_at = now() WHERE id = $1"


@dataclass
class Api:
    """One process of `codehub api`."""

    name: str
    port: int
    process: subprocess.Popen[bytes]
    costs: list[float] = field(default_factory=list)  # seconds of processor time a change, of each round
    idle: list[float] = field(default_factory=list)  # share of a core

    @classmethod
    async def start(cls, name: str, environment: dict[str, str]) -> "Api":
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        env = {**environment, "CODEHUB_PORT": str(port)}
        api = cls(name, port, subprocess.Popen([*CODEHUB, "api"], env=env))  # noqa: ASYNC220
        async with aiohttp.ClientSession() as session:
            for _ in range(300):
                try:
                    async with session.get(f"http://127.0.0.1:{port}/healthz") as answer:
                        if answer.status == 200:
                            return api
                except OSError:
                    await asyncio.sleep(0.1)
        raise SystemExit(f"{name} does not answer")

    def cpu(self) -> float:
        fields = pathlib.Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / TICKS

    def memory(self) -> float:
        status = pathlib.Path(f"/proc/{self.process.pid}/status").read_text()
        return int(status.partition("VmRSS:")[2].split()[0]) / 1024

    def stop(self) -> None:
        self.process.terminate()
        self.process.wait(30)


class Results:
    def __init__(self) -> None:
        self.late: defaultdict[str, list[float]] = defaultdict(list)  # seconds, by side
        self.wrong: Counter[str] = Counter()
        self.last: dict[str, int] = {}  # a person's newest change that all their streams have got

    def add(self, said: dict[str, Any]) -> None:
        self.wrong += Counter(said["wrong"])
        for person, number in said["last"].items():
            self.last[person] = min(self.last.get(person, number), number)
        for side, late in said["late"].items():
            self.late[side] += late


class Clients:
    """Reading processes."""

    def __init__(self, processes: Sequence[asyncio.subprocess.Process]) -> None:
        self._processes = processes

    @classmethod
    async def open(cls, ports: dict[str, int], streams: list[tuple[str, str, str]]) -> "Clients":
        script = str(pathlib.Path(__file__).with_name("_event_clients.py"))
        pipe = asyncio.subprocess.PIPE
        processes = [
            await asyncio.create_subprocess_exec(sys.executable, script, stdin=pipe, stdout=pipe, limit=2**27)
            for _ in range(CLIENTS)
        ]
        for number, process in enumerate(processes):
            plan = {"ports": ports, "streams": streams[number::CLIENTS]}
            cls._stdin(process).write(json.dumps(plan).encode() + b"\n")
        clients = cls(processes)
        answers = await asyncio.wait_for(clients._lines(), 240)
        if not all(line.startswith(b"open") for line in answers):
            raise SystemExit("not all streams could be opened")
        print(*(line.decode().strip() for line in answers), sep="; ")
        return clients

    @staticmethod
    def _stdin(process: asyncio.subprocess.Process) -> asyncio.StreamWriter:
        assert process.stdin
        return process.stdin

    async def _lines(self) -> list[bytes]:
        return await asyncio.gather(*(p.stdout.readline() for p in self._processes if p.stdout))

    async def results(self, wanted: Mapping[str, int] | None = None) -> "Results":
        """Of everything since the last time, once everybody has got the last change, or after a while."""
        found = Results()
        for _ in range(int(PATIENCE / 0.1)):
            found.last.clear()
            for process in self._processes:
                self._stdin(process).write(b"mark\n")
            for line in await self._lines():
                found.add(json.loads(line))
            behind = sum(found.last[person] < number for person, number in (wanted or {}).items())
            if not behind:
                return found
            await asyncio.sleep(0.1)
        found.wrong["behind"] += behind
        return found

    async def close(self) -> None:
        for process in self._processes:
            self._stdin(process).close()
            await process.wait()


class Changes:
    def __init__(self, pool: asyncpg.Pool) -> None:
        self._pool = pool
        self.numbers: Counter[str] = Counter()
        self.took: list[float] = []  # seconds of each statement, with its commit
        self._locks: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)

    async def make(self, people: Sequence[str], seconds: float) -> int:
        """At the rate, one person after the other; returns how many."""
        begun, count = time.monotonic(), int(RATE * seconds)
        turns = itertools.cycle(people)
        async with asyncio.TaskGroup() as group:
            for number in range(count):
                await asyncio.sleep(max(0.0, begun + number / RATE - time.monotonic()))
                group.create_task(self._change(next(turns)))
        return count

    async def _change(self, person: str) -> None:
        """One after the other for each person: their numbers are the order of commits."""
        async with self._locks[person], self._pool.acquire() as connection:
            self.numbers[person] += 1
            begun = time.monotonic()
            await connection.execute(CHANGE, f"w{person}", f"{person} {self.numbers[person]} {begun}")
            self.took.append(time.monotonic() - begun)


def percentile(values: Iterable[float], share: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))]


async def measure_lateness(api: Api, clients: Clients, changes: Changes, people: Sequence[str], seconds: float) -> bool:
    # Some time after thousands of streams have come, Python's collector goes through all of them once: about a second.
    await changes.make(people, WARM_UP)
    await clients.results(changes.numbers)
    changes.took.clear()
    used = api.cpu()
    made = await changes.make(people, seconds)
    results = await clients.results(changes.numbers)
    used = api.cpu() - used
    wanted = made // PEOPLE * MANY
    late, wrong = results.late[api.name], results.wrong
    p99 = percentile(late, 0.99)
    # Changes of one workspace that are read together are told as one, as it is then: not lost, and only after a stall.
    print(
        f"{made} changes in {seconds:g} s: {wanted} deliveries, {wanted - len(late)} of them with a later one, ", end=""
    )
    print(f"in {MANY} streams; wrong: {dict(wrong)}; {used / len(late) * 1e6:.0f} µs of a core a delivery")
    print(f"changes took: p99 {percentile(changes.took, 0.99) * 1e3:.0f} ms, worst {max(changes.took) * 1e3:.0f} ms")
    for name, found in results.late.items():
        middle, worst = percentile(found, 0.5), max(found)
        tail = percentile(found, 0.99)
        print(f"late, {name}: median {middle * 1e3:.0f} ms, p99 {tail * 1e3:.0f} ms, worst {worst * 1e3:.0f} ms")
    return not wrong and p99 <= TARGET_P99


async def measure_cost(
    apis: Sequence[Api], clients: Clients, changes: Changes, people: Sequence[str], rounds: int
) -> bool:
    wrong: Counter[str] = Counter()
    for number in range(rounds):
        await clients.results()
        before = [api.cpu() for api in apis]
        await asyncio.sleep(WINDOW)
        between = [api.cpu() for api in apis]
        made = await changes.make(people, WINDOW)
        results = await clients.results(changes.numbers)
        after = [api.cpu() for api in apis]
        wrong += results.wrong
        for api, idle, start, end in zip(apis, before, between, after, strict=True):
            api.idle.append((start - idle) / WINDOW)
            api.costs.append(((end - start) - (start - idle)) / made)
        print(f"round {number + 1}: " + ", ".join(f"{a.name} {a.costs[-1] * 1e6:.0f} µs" for a in apis), flush=True)
    few, many = apis
    ratio = statistics.mean(many.costs) / statistics.mean(few.costs)
    for api in apis:
        mean, median = statistics.mean(api.costs), statistics.median(api.costs)
        print(f"{api.name}: {mean * 1e6:.0f} µs a change (median of rounds {median * 1e6:.0f}), {api.memory():.0f} MB,")
        print(f"    {statistics.mean(api.idle):.1%} of a core while nothing changes")
    print(f"a change with {MANY} streams costs {ratio:.2f} of what it costs with {FEW}; wrong: {dict(+wrong)}")
    return ratio <= TARGET_RATIO and not +wrong


async def tokens_of(api: Api, people: Sequence[str]) -> dict[str, str]:
    made: dict[str, str] = {}
    headers = {"Authorization": f"Bearer {ADMIN}"}
    async with aiohttp.ClientSession(f"http://127.0.0.1:{api.port}", headers=headers) as session:
        for person in people:
            async with session.post(f"/api/v1/users/{person}/tokens", json={}) as answer:
                made[person] = (await answer.json())["token"]
    return made


async def run(servers: TestServers, folder: str, seconds: float, rounds: int) -> bool:
    admin = await asyncpg.connect(servers.database("postgres"))
    await admin.execute(f"CREATE DATABASE events TEMPLATE {TEMPLATE}")
    await admin.close()
    url = servers.database("events")
    people = [f"p{number}" for number in range(PEOPLE)]
    pool = await asyncpg.create_pool(url, min_size=8, max_size=8)
    await pool.execute(ADD_PEOPLE, people)
    await pool.execute(ADD_WORKSPACES, people)
    environment = clean_environment(
        CODEHUB_DATA_DIR=folder,
        CODEHUB_DATABASE_URL=url,
        CODEHUB_REDIS_URL=servers.redis(15),
        CODEHUB_SECRET_KEY=secrets.token_hex(32),
        CODEHUB_ADMIN_TOKEN=ADMIN,
        CODEHUB_MAX_STREAMS="0",
        CODEHUB_MAX_STREAMS_PER_USER="0",
        CODEHUB_LOG_LEVEL="warning",
    )
    apis = [await Api.start("few", environment), await Api.start("many", environment)]
    try:
        tokens = await tokens_of(apis[0], people)
        both, others = people[:FEW], people[FEW:]
        streams = [(api.name, person, tokens[person]) for api in apis for person in both]
        each = (MANY - FEW) // len(others)
        streams += [("many", person, tokens[person]) for person in others for _ in range(each)]
        begun, used = time.monotonic(), apis[1].cpu()
        clients = await Clients.open({api.name: api.port for api in apis}, streams)
        took, used = time.monotonic() - begun, apis[1].cpu() - used
        print(f"{len(streams)} streams opened in {took:.1f} s, {used:.1f} s of a core, {apis[1].memory():.0f} MB")
        changes = Changes(pool)
        prompt = await measure_lateness(apis[1], clients, changes, people, seconds)
        steady = await measure_cost(apis, clients, changes, both, rounds)
        await clients.close()
        return prompt and steady
    finally:
        for api in apis:
            api.stop()
        await pool.close()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--rounds", type=int, default=9)
    options = parser.parse_args()
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    runner = Runner()
    servers = runner.start()
    try:
        with tempfile.TemporaryDirectory() as folder:
            well = asyncio.run(run(servers, folder, options.seconds, options.rounds))
    finally:
        runner.stop()
    print("as it should be" if well else "NOT as it should be")
    return 0 if well else 1


if __name__ == "__main__":
    sys.exit(main())
