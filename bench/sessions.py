"""How many sessions can be started and steps saved in a second, beside the limit: one insert with its commit?

One PostgreSQL as the product runs it, with fsync. A class of learners, of whom so many ask at once, each by a
connection of the product's pool; the insert goes the same way. In every round each kind has the same time, in a
changing order: creating a run, recovering it, replaying its key, saving a step, and, as the limit of this machine at
this time, inserting one row. Rates are compared round by round: with one client, where it is the time that a call
takes, and with many. Beside each, what a call takes of a processor, in this process and in the database, publishing its
events included. Then: does resuming a run take longer when it has a thousand snapshots?

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
from dataclasses import dataclass, field
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
from codehub.web.services import Services
from codehub.wiring.api import open_services

GOAL, RESUME_GOAL = 0.4, 1.2
LEARNERS = 200
LIMIT = "one insert"
TABLE = "CREATE TABLE bench_limit (id bigserial PRIMARY KEY, at timestamptz NOT NULL, body text NOT NULL)"
INSERT = "INSERT INTO bench_limit (at, body) VALUES ($1, $2)"
BODY = "x" * 400  # about as long as a run in JSON
STEPS = ["LEARN"] * 1998
LESSON = {"steps": [*STEPS, "COMPLETE"], "learningContent": ["# Hello"], "encouragement": "Well done"}
STATE = {"answers": {"loop-count": "b"}, "seconds": 41}
Work = Callable[[int], Awaitable[None]]
Owned = tuple[Principal, str]  # the id of a session or run, and whose it is


def percentile(values: list[float], share: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))]


def processor_seconds(pid: int) -> float:
    """That a process and what it started took so far."""
    ticks: defaultdict[int, int] = defaultdict(int)
    parents: dict[int, int] = {}
    for path in pathlib.Path("/proc").glob("[0-9]*/stat"):
        try:
            words = path.read_text().rsplit(")", 1)[1].split()
        except OSError:  # it has ended
            continue
        parents[int(path.parent.name)] = int(words[1])
        ticks[int(path.parent.name)] = sum(map(int, words[11:15]))  # with what ended children took
    family = {pid}
    while more := {child for child, parent in parents.items() if parent in family} - family:
        family |= more
    return sum(ticks[member] for member in family) / os.sysconf("SC_CLK_TCK")


@dataclass
class Learning:
    """Learners with as many new sessions as are wanted, and the product's engine."""

    database: Database
    runs: Runs
    sessions: Sessions
    learners: list[Principal]
    clock: SystemClock
    _new: NewSession = field(default_factory=lambda: NewSession("One", date(2026, 3, 2), blueprint.parse(LESSON)))

    async def new_sessions(self, learner: Principal, count: int) -> list[str]:
        found: list[str] = []
        while len(found) < count:
            new = [self._new] * min(MOST_SESSIONS, count - len(found))
            plan = await self.sessions.create_plan(learner, NewPlan("Plan", new))
            found += [session.id for session in plan.sessions]
        return found

    async def started(self, learner: Principal, session_id: str) -> str:
        await self.runs.start(learner, session_id)
        (run,) = await self.runs.trail(learner, session_id, after=(self.clock.now().replace(year=2000), ""), limit=2)
        return run.id

    async def forget_keys(self) -> None:
        """As if their time were over: each learner has a bound of them."""
        async with self.database.connection() as c:
            await c.execute("DELETE FROM idempotency_keys WHERE key NOT LIKE 'replay%'")


class Kinds:
    """What is measured, each a call for one client, which has a share of the learners and takes them in turn."""

    def __init__(self, learning: Learning, clients: int) -> None:
        self._learning = learning
        self._clients = clients
        self._new: list[list[Owned]] = [[] for _ in range(clients)]
        self._own: list[Iterator[Owned]] = []  # running sessions of a client's learners
        self._runs: list[Iterator[tuple[Principal, str, Iterator[int]]]] = []  # with the steps to come
        self._numbers = itertools.count()

    def _share(self, client: int) -> list[Principal]:
        return self._learning.learners[client :: self._clients]

    async def prepare(self) -> None:
        for client in range(self._clients):
            own, runs = [], []
            for learner in self._share(client):
                session, other = await self._learning.new_sessions(learner, 2)
                await self._learning.runs.start(learner, session, key=f"replay-{self._clients}")
                own.append((learner, session))
                runs.append((learner, await self._learning.started(learner, other), itertools.count()))
            self._own.append(itertools.cycle(own))
            self._runs.append(itertools.cycle(runs))

    async def fill(self, wanted: int) -> None:
        """New sessions, before they are needed, spread over the learners."""
        await self._learning.forget_keys()
        each = -(-wanted // self._clients)
        for client, new in enumerate(self._new):
            learners = self._share(client)
            count = -(-max(0, each - len(new)) // len(learners))
            ids = [await self._learning.new_sessions(learner, count) for learner in learners]
            new += [
                (learner, id_) for turn in zip(*ids, strict=True) for learner, id_ in zip(learners, turn, strict=True)
            ]

    async def insert(self, _client: int) -> None:
        async with self._learning.database.connection() as c:
            await c.execute(INSERT, self._learning.clock.now(), BODY)

    async def create(self, client: int) -> None:
        learner, session = self._new[client].pop()
        answer = await self._learning.runs.start(learner, session, key=f"create-{next(self._numbers)}")
        assert answer.status == 201

    async def recover(self, client: int) -> None:
        learner, session = next(self._own[client])
        answer = await self._learning.runs.start(learner, session, key=f"recover-{next(self._numbers)}")
        assert answer.status == 200

    async def replay(self, client: int) -> None:
        learner, session = next(self._own[client])
        answer = await self._learning.runs.start(learner, session, key=f"replay-{self._clients}")
        assert answer.replayed

    async def save(self, client: int) -> None:
        learner, run, steps = next(self._runs[client])
        await self._learning.runs.complete_step(learner, run, next(steps), 1, STATE)

    def all(self) -> dict[str, Work]:
        return {
            LIMIT: self.insert,
            "start: create": self.create,
            "start: recover": self.recover,
            "start: replay": self.replay,
            "complete a step": self.save,
        }


@dataclass
class Found:
    """Of one kind, over all rounds."""

    rates: list[float] = field(default_factory=list)
    ratios: list[float] = field(default_factory=list)
    took: list[float] = field(default_factory=list)  # seconds, each call
    here: float = 0.0  # seconds of a processor, in all
    there: float = 0.0  # and in the database

    def line(self) -> str:
        middle, tail = percentile(self.took, 0.5) * 1e3, percentile(self.took, 0.99) * 1e3
        ratio = f"{statistics.median(self.ratios):.2f} of the limit ({min(self.ratios):.2f} to {max(self.ratios):.2f})"
        processor = (
            f"{self.here / len(self.took) * 1e3:.2f} + {self.there / len(self.took) * 1e3:.2f} ms of a processor"
        )
        rate = f"{statistics.median(self.rates):6.0f} a second (p50 {middle:.2f} ms, p99 {tail:.1f} ms)"
        return f"{rate}: {ratio}; {processor}"


async def measure(work: Work, clients: int, seconds: float, postgres: int, found: Found) -> None:
    begun, here, there = time.perf_counter(), time.process_time(), processor_seconds(postgres)
    before, end = len(found.took), begun + seconds

    async def client(number: int) -> None:
        while (now := time.perf_counter()) < end:
            await work(number)
            found.took.append(time.perf_counter() - now)

    await asyncio.gather(*(client(number) for number in range(clients)))
    found.rates.append((len(found.took) - before) / (time.perf_counter() - begun))
    found.here += time.process_time() - here
    found.there += processor_seconds(postgres) - there


async def rates(learning: Learning, postgres: int, rounds: int, seconds: float, clients: int) -> bool:
    kinds = Kinds(learning, clients)
    await kinds.prepare()
    found = {name: Found() for name in kinds.all()}
    for number in range(rounds + 1):
        if number == 1:  # the first warms up
            found = {name: Found() for name in found}
        await kinds.fill(max(1000, int(2 * seconds * max(found["start: create"].rates, default=4000.0))))
        order = list(kinds.all().items())
        for name, work in order if number % 2 else order[::-1]:
            await measure(work, clients, seconds, postgres, found[name])
        for each in found.values():
            each.ratios.append(each.rates[-1] / found[LIMIT].rates[-1])
    print(f"{clients} at once:")
    for name, each in found.items():
        print(f"{name:<16} {each.line()}")
    return all(statistics.median(each.ratios) >= GOAL for each in found.values())


async def resume(learning: Learning, rounds: int, many: int) -> bool:
    """Taking up a run with many snapshots beside one with one, in turn."""
    mina = learning.learners[0]
    few_id, many_id = await learning.new_sessions(mina, 2)
    for id_, count in ((few_id, 1), (many_id, many)):
        run = await learning.started(mina, id_)
        for index in range(count):
            await learning.runs.complete_step(mina, run, index, 1, STATE)
    pairs: list[tuple[float, float]] = []
    for number in range(rounds * 40):
        took = {}
        for id_ in (few_id, many_id) if number % 2 else (many_id, few_id):
            begun = time.perf_counter()
            await learning.runs.start(mina, id_)
            took[id_] = time.perf_counter() - begun
        pairs.append((took[few_id], took[many_id]))
    few, lots = statistics.median(few for few, _ in pairs), statistics.median(lots for _, lots in pairs)
    ratio = lots / few
    print(f"resuming a run: 1 snapshot {few * 1e3:.2f} ms, {many} {lots * 1e3:.2f} ms, ", end="")
    print(f"ratio {ratio:.2f} (at most {RESUME_GOAL} wanted)")
    return ratio <= RESUME_GOAL


async def start_anew(learning: Learning, many: int) -> None:
    """A new run that goes on from an abandoned one has its snapshots, too."""
    mina = learning.learners[0]
    for count in (1, many):
        took = []
        for id_ in await learning.new_sessions(mina, 5):
            run = await learning.started(mina, id_)
            for index in range(count):
                await learning.runs.complete_step(mina, run, index, 1, STATE)
            await learning.runs.abandon(mina, run, 1, None)
            begun = time.perf_counter()
            await learning.runs.start(mina, id_, resume_from=run)
            took.append(time.perf_counter() - begun)
        print(f"a new run from an abandoned one with {count} snapshots: {statistics.median(took) * 1e3:.2f} ms")


async def a_class(services: Services) -> list[Principal]:
    learners = []
    for number in range(LEARNERS):
        person = await services.people.create_user(operator(), f"learner-{number}", Role.LEARNER)
        learners.append(Principal(person.name, Role.LEARNER, ALL_SCOPES, person.id))
    return learners


async def measure_all(services: Services, clock: SystemClock, postgres: int, options: argparse.Namespace) -> bool:
    database = services.database
    async with database.connection() as c:
        await c.execute(TABLE)
        durable = [await c.fetchval(f"SHOW {name}") for name in ("fsync", "synchronous_commit")]
    print(f"fsync {durable[0]}, synchronous_commit {durable[1]}; {LEARNERS} learners; ", end="")
    print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f} at the beginning")
    learning = Learning(database, services.runs, services.sessions, await a_class(services), clock)
    well = True
    for clients in (1, options.clients):
        well &= await rates(learning, postgres, options.rounds, options.seconds, clients)
    well &= await resume(learning, options.rounds, options.snapshots)
    await start_anew(learning, options.snapshots)
    print(f"load {os.getloadavg()[0]:.1f} at the end")
    return well


async def run(folder: pathlib.Path, options: argparse.Namespace) -> bool:
    # A connection more than there are clients: events are published beside them.
    environment = {"CODEHUB_MAX_PLANS_PER_USER": "0", "CODEHUB_DATABASE_POOL_SIZE": str(options.clients + 1)}
    config = settings.load({"CODEHUB_DATA_DIR": str(folder), **environment})
    data, clock = DataDir(config.storage.data_dir), SystemClock()
    data.lock()
    data.prepare(ensure_account(None))
    servers = Servers(config, data, Ledger(data.run / "children.json"), clock)
    urls = await servers.start()
    try:
        await migrate.migrate(urls.database)
        async with open_services(resolve(config, urls), clock) as services:
            postgres = servers.pids()["postgres"]
            assert postgres
            return await measure_all(services, clock, postgres, options)
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
