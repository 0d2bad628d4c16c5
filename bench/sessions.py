"""How many sessions can be started and steps saved in a second, beside the limit: one insert with its commit?

One PostgreSQL as the product runs it, with fsync; so many clients at once in one process, each with its connection. In
every round each kind has the same time, in a changing order: creating a run, recovering it, replaying its key, saving a
step, and, as the limit of this machine at this time, inserting one row. Rates are compared round by round. Then: does
resuming a run take longer when it has a thousand snapshots?

    python bench/sessions.py [--rounds 7] [--seconds 2] [--clients 8] [--snapshots 1000]
"""

import argparse
import asyncio
import itertools
import os
import pathlib
import statistics
import sys
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from datetime import date

import uvloop

sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))

from tests.places import a_place

from codehub import settings
from codehub.clock import SystemClock
from codehub.command import operator
from codehub.db import Database, migrate
from codehub.embedded.datadir import DataDir
from codehub.embedded.servers import Servers, resolve
from codehub.policy.model import ALL_SCOPES, Principal, Role
from codehub.sessions import blueprint
from codehub.sessions.runs import Runs
from codehub.sessions.service import MOST_SESSIONS, NewPlan, NewSession, Sessions
from codehub.system.accounts import ensure_account
from codehub.system.processes import Ledger
from codehub.wiring.api import open_services

GOAL, RESUME_GOAL = 0.4, 1.2
LIMIT = "one insert"
TABLE = "CREATE TABLE bench_limit (id bigserial PRIMARY KEY, at timestamptz NOT NULL, body text NOT NULL)"
INSERT = "INSERT INTO bench_limit (at, body) VALUES ($1, $2)"
BODY = "x" * 400  # about as long as a run in JSON
STEPS = ["LEARN"] * 1998
LESSON = {"steps": [*STEPS, "COMPLETE"], "learningContent": ["# Hello"], "encouragement": "Well done"}
STATE = {"answers": {"loop-count": "b"}, "seconds": 41}
Work = Callable[[int], Awaitable[None]]


def percentile(values: list[float], share: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))]


@dataclass
class Learning:
    """A learner with as many new sessions as are wanted, and the product's engine."""

    database: Database
    runs: Runs
    sessions: Sessions
    mina: Principal
    clock: SystemClock

    async def new_sessions(self, count: int) -> list[str]:
        new = [NewSession("One", date(2026, 3, 2), blueprint.parse(LESSON))]
        found: list[str] = []
        while len(found) < count:
            more = min(MOST_SESSIONS, count - len(found))
            plan = await self.sessions.create_plan(self.mina, NewPlan("Plan", new * more))
            found += [session.id for session in plan.sessions]
        return found

    async def started(self, session_id: str) -> str:
        await self.runs.start(self.mina, session_id)
        (run,) = await self.runs.trail(self.mina, session_id, after=(self.clock.now().replace(year=2000), ""), limit=2)
        return run.id


class Kinds:
    """What is measured, each a call for one client."""

    def __init__(self, learning: Learning, clients: int) -> None:
        self._learning = learning
        self._clients = clients
        self._new: list[str] = []
        self._own: list[str] = []  # a session of each client
        self._runs: list[str] = []
        self._steps: list[Iterator[int]] = []
        self._numbers = itertools.count()

    async def prepare(self) -> None:
        self._own = await self._learning.new_sessions(2 * self._clients)
        writing = self._own[self._clients :]
        self._runs = [await self._learning.started(id_) for id_ in writing]
        self._steps = [itertools.count() for _ in self._runs]
        for client in range(self._clients):
            await self._learning.runs.start(self._learning.mina, self._own[client], key=f"replay-{client}")

    async def fill(self, wanted: int) -> None:
        """New sessions, before they are needed."""
        if len(self._new) < wanted:
            self._new += await self._learning.new_sessions(wanted - len(self._new))

    async def renew(self) -> None:
        """A run has 2,000 steps at most: begin others well before."""
        if any(next(steps) > 0 for steps in self._steps):
            sessions = await self._learning.new_sessions(self._clients)
            self._runs = [await self._learning.started(id_) for id_ in sessions]
        self._steps = [itertools.count() for _ in self._runs]

    async def insert(self, _client: int) -> None:
        async with self._learning.database.connection() as c:
            await c.execute(INSERT, self._learning.clock.now(), BODY)

    async def create(self, _client: int) -> None:
        key = f"create-{next(self._numbers)}"
        answer = await self._learning.runs.start(self._learning.mina, self._new.pop(), key=key)
        assert answer.status == 201

    async def recover(self, client: int) -> None:
        key = f"recover-{next(self._numbers)}"
        answer = await self._learning.runs.start(self._learning.mina, self._own[client], key=key)
        assert answer.status == 200

    async def replay(self, client: int) -> None:
        answer = await self._learning.runs.start(self._learning.mina, self._own[client], key=f"replay-{client}")
        assert answer.replayed

    async def save(self, client: int) -> None:
        index = next(self._steps[client])
        await self._learning.runs.complete_step(self._learning.mina, self._runs[client], index, 1, STATE)

    def all(self) -> dict[str, Work]:
        return {
            LIMIT: self.insert,
            "start: create": self.create,
            "start: recover": self.recover,
            "start: replay": self.replay,
            "complete a step": self.save,
        }


async def measure(work: Work, clients: int, seconds: float) -> tuple[float, list[float]]:
    """Calls a second, and how long each took."""
    took: list[float] = []
    begun = time.perf_counter()
    end = begun + seconds

    async def client(number: int) -> None:
        while (now := time.perf_counter()) < end:
            await work(number)
            took.append(time.perf_counter() - now)

    await asyncio.gather(*(client(number) for number in range(clients)))
    return len(took) / (time.perf_counter() - begun), took


async def rates(learning: Learning, rounds: int, seconds: float, clients: int) -> bool:
    kinds = Kinds(learning, clients)
    await kinds.prepare()
    ratios: defaultdict[str, list[float]] = defaultdict(list)
    found: defaultdict[str, list[float]] = defaultdict(list)
    took: defaultdict[str, list[float]] = defaultdict(list)
    for number in range(rounds + 1):
        await kinds.fill(max(1000, int(2 * seconds * max(found["start: create"], default=1000.0))))
        await kinds.renew()
        order = list(kinds.all().items())
        here = {}
        for name, work in order if number % 2 else order[::-1]:
            here[name], each = await measure(work, clients, seconds)
            if number:  # the first warms up
                took[name] += each
        for name, rate in here.items() if number else ():
            found[name].append(rate)
            ratios[name].append(rate / here[LIMIT])
    for name, each in found.items():
        middle, tail = percentile(took[name], 0.5) * 1e3, percentile(took[name], 0.99) * 1e3
        print(f"{name:<16} {statistics.median(each):6.0f} a second (p50 {middle:.1f} ms, p99 {tail:.1f} ms): ", end="")
        spread = f"{min(ratios[name]):.2f} to {max(ratios[name]):.2f}"
        print(f"{statistics.median(ratios[name]):.2f} of the limit ({spread})")
    return all(statistics.median(ratio) >= GOAL for ratio in ratios.values())


async def resume(learning: Learning, rounds: int, many: int) -> bool:
    """Taking up a run with many snapshots beside one with one, in turn."""
    few_id, many_id = await learning.new_sessions(2)
    for id_, count in ((few_id, 1), (many_id, many)):
        run = await learning.started(id_)
        for index in range(count):
            await learning.runs.complete_step(learning.mina, run, index, 1, STATE)
    medians: list[float] = []
    pairs: list[tuple[float, float]] = []
    for number in range(rounds * 40):
        took = {}
        for id_ in (few_id, many_id) if number % 2 else (many_id, few_id):
            begun = time.perf_counter()
            await learning.runs.start(learning.mina, id_)
            took[id_] = time.perf_counter() - begun
        pairs.append((took[few_id], took[many_id]))
    medians = [statistics.median(side) for side in zip(*pairs, strict=True)]
    ratio = medians[1] / medians[0]
    print(f"resuming a run: 1 snapshot {medians[0] * 1e3:.2f} ms, {many} {medians[1] * 1e3:.2f} ms, ", end="")
    print(f"ratio {ratio:.2f} (at most {RESUME_GOAL} wanted)")
    return ratio <= RESUME_GOAL


async def start_anew(learning: Learning, many: int) -> None:
    """A new run that goes on from an abandoned one has its snapshots, too."""
    for count in (1, many):
        took = []
        for id_ in await learning.new_sessions(5):
            run = await learning.started(id_)
            for index in range(count):
                await learning.runs.complete_step(learning.mina, run, index, 1, STATE)
            await learning.runs.abandon(learning.mina, run, 1, None)
            begun = time.perf_counter()
            await learning.runs.start(learning.mina, id_, resume_from=run)
            took.append(time.perf_counter() - begun)
        print(f"a new run from an abandoned one with {count} snapshots: {statistics.median(took) * 1e3:.2f} ms")


async def run(folder: pathlib.Path, options: argparse.Namespace) -> bool:
    # A connection more than there are clients: events are published beside them.
    unbounded = {"CODEHUB_MAX_PLANS_PER_USER": "0", "CODEHUB_MAX_IDEMPOTENCY_KEYS_PER_USER": "0"}
    environment = {**unbounded, "CODEHUB_DATABASE_POOL_SIZE": str(options.clients + 1)}
    config = settings.load({"CODEHUB_DATA_DIR": str(folder), **environment})
    data, clock = DataDir(config.storage.data_dir), SystemClock()
    data.lock()
    data.prepare(ensure_account(None))
    servers = Servers(config, data, Ledger(data.run / "children.json"), clock)
    urls = await servers.start()
    try:
        await migrate.migrate(urls.database)
        async with open_services(resolve(config, urls), clock) as services:
            person = await services.people.create_user(operator(), "mina", Role.LEARNER)
            mina = Principal("mina", Role.LEARNER, ALL_SCOPES, person.id)
            database = services.database
            async with database.connection() as c:
                await c.execute(TABLE)
                durable = [await c.fetchval(f"SHOW {name}") for name in ("fsync", "synchronous_commit")]
            print(f"fsync {durable[0]}, synchronous_commit {durable[1]}; {options.clients} clients at once; ", end="")
            print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f} at the beginning")
            learning = Learning(database, services.runs, services.sessions, mina, clock)
            well = await rates(learning, options.rounds, options.seconds, options.clients)
            well &= await resume(learning, options.rounds, options.snapshots)
            await start_anew(learning, options.snapshots)
            print(f"load {os.getloadavg()[0]:.1f} at the end")
            return well
    finally:
        await servers.stop()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=2.0)
    parser.add_argument("--clients", type=int, default=8)
    parser.add_argument("--snapshots", type=int, default=1000)
    options = parser.parse_args()
    with a_place(on_disk=True) as folder, asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        well = runner.run(run(folder / "data", options))
    print("as it should be" if well else "NOT as it should be")
    return 0 if well else 1


if __name__ == "__main__":
    sys.exit(main())
