"""People for weeks, in minutes: the real recorders, runner, recheck, SQL and Redis; time and people are made up.

Everything breaks now and then: proxies and coordinators are killed, Redis forgets or is away, the wall's clock is set.
Measured is what people would notice, by a clock that nobody can set: was anybody stopped who had been at work within
their time, and how much longer than that did anybody idle stay awake?
"""

import heapq
import itertools
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from redis.asyncio import Redis
from redis.exceptions import RedisError

from codehub.activity.model import Watched
from codehub.activity.reader import ActivityReader
from codehub.activity.recorder import Recorder
from codehub.db import Database
from codehub.reconciler.idle_recheck import ByActivity
from codehub.reconciler.ttl import TtlRunner
from codehub.settings import ActivityConfig, TtlConfig
from codehub.templates.model import ActivityProfile
from codehub.workspaces import idle_store, store
from codehub.workspaces.model import Work
from codehub.workspaces.ttl_policy import TtlPolicies
from tests.leading import lead
from tests.reconciler.ttl_house import SomeTemplates, head

TTL, FLUSH, TICK = 600, 30.0, 60.0
DAY = 86400.0
PROXIES = 2
ABOUT_TO_SLEEP = """
SELECT *, codehub_user_name(owner_id) AS owner
FROM workspaces
WHERE phase = 'RUNNING' AND desired_by = 'ttl' AND desired_state = 'STANDBY'
"""
STOP = "UPDATE workspaces SET observed_status = 'STANDBY', updated_at = $2 WHERE id = ANY ($1::text[])"
WAKE = """
UPDATE workspaces
SET observed_status = 'RUNNING', desired_state = 'RUNNING', desired_by = 'wake', desired_at = $2, updated_at = $2,
    last_access_at = greatest(last_access_at, $2)
WHERE id = $1
"""
FILL = """
INSERT INTO workspaces (id, name, template, owner_id,
                        created_at, updated_at, phase_changed_at, last_access_at, desired_at,
                        desired_state, desired_by, observed_status)
SELECT 'w' || n, 'lab', 't', codehub_user_id('mina'),
       $2, $2, $2, $2, $2, 'STANDBY', 'user', 'STANDBY' FROM generate_series(1, $1) n
"""


class KilledError(BaseException):
    """The coordinator, in the middle of a tick."""


class World:
    """Time, and what is due in it. Whoever sleeps lets the rest of the world go on."""

    def __init__(self) -> None:
        self.ran = 0.0
        self.set_by = 0.0  # what was done to the clock on the wall
        self._due: list[tuple[float, int, Callable[[], Awaitable[None]]]] = []
        self._order = itertools.count()

    def now(self) -> datetime:
        return datetime(2026, 3, 2, tzinfo=UTC) + timedelta(seconds=self.ran + self.set_by)

    def timestamp(self) -> float:
        return self.now().timestamp()

    def monotonic(self) -> float:
        return self.ran

    def at(self, seconds: float, what: Callable[[], Awaitable[None]]) -> None:
        heapq.heappush(self._due, (max(seconds, self.ran), next(self._order), what))

    async def sleep(self, seconds: float) -> None:
        await self.until(self.ran + seconds)

    async def until(self, end: float) -> None:
        while self._due and self._due[0][0] <= end:
            at, _, what = heapq.heappop(self._due)
            self.ran = max(self.ran, at)
            await what()
        self.ran = max(self.ran, end)


@dataclass
class Person:
    id: str
    watched: Watched
    proxy: int
    awake: bool = False
    last: float = 0.0  # they did something
    kept: float = 0.0  # the same, as far as no killed proxy took it with it
    until: float = 0.0  # at work


@dataclass
class Result:
    sleeps: int = 0
    early: list[tuple[str, float]] = field(default_factory=list)
    early_by_a_killed_proxy: int = 0
    over: list[float] = field(default_factory=list)
    broke: dict[str, int] = field(default_factory=dict)

    def over_time(self, part: float) -> float:
        return sorted(self.over)[min(len(self.over) - 1, int(part * len(self.over)))] if self.over else 0.0

    def __str__(self) -> str:
        return (
            f"{self.sleeps} sleeps; too early: {len(self.early)}, and {self.early_by_a_killed_proxy} for what a killed "
            f"proxy had not flushed; awake over time: median {self.over_time(0.5):.1f} s, "
            f"99.9 % {self.over_time(0.999):.1f} s, longest {self.over_time(1):.1f} s; broke: {self.broke}"
        )


class Simulation:
    def __init__(self, database: Database, redis: Redis, away: Redis, people: int, days: float, seed: int) -> None:
        self.world, self.dice, self.result = World(), random.Random(seed), Result()
        self.database, self.redis, self.away, self.days = database, redis, away, days
        self.people = [self._person(n) for n in range(1, people + 1)]
        self.by_id = {person.id: person for person in self.people}
        self.proxies: list[Recorder] = []
        self.unflushed: list[dict[str, float]] = []  # by proxy: when people did what it has not flushed yet
        self.instances = itertools.count()
        self.client = redis  # or the one that does not answer

    def _person(self, number: int) -> Person:
        id_ = f"w{number}"
        return Person(id_, Watched(id_, ActivityProfile.PLAIN), self.dice.randrange(PROXIES))

    async def run(self) -> Result:
        async with self.database.connection() as c:
            await c.execute("INSERT INTO users (name, role, created_at) VALUES ('mina', 'learner', now())")
            await c.execute(FILL, len(self.people), self.world.now())
        for number in range(PROXIES):
            self.proxies.append(self._recorder())
            self.unflushed.append({})
            self._later(self.dice.uniform(0, FLUSH), self._flush, number)
        for person in self.people:
            self._later(self.dice.uniform(0, 3600), self._begin_work, person)
        await self._lead()
        self._later(1, self._tick)
        self._plan_trouble()
        await self.world.until(self.days * DAY)
        return self.result

    def _later(self, seconds: float, what: Callable[..., Awaitable[None]], *given: Any) -> None:
        self.world.at(self.world.ran + seconds, lambda: what(*given))

    # --- people

    async def _begin_work(self, person: Person) -> None:
        person.until = self.world.ran + self.dice.choice([1, 10, 30, 90]) * 60 * self.dice.random()
        await self._work(person)

    async def _work(self, person: Person) -> None:
        if not person.awake:
            async with self.database.connection() as c:
                await c.execute(WAKE, person.id, self.world.now())
            person.awake = True
            person.last = person.kept = self.world.ran
        self.proxies[person.proxy].request(person.watched, head())
        self.unflushed[person.proxy][person.id] = person.last = person.kept = self.world.ran
        bell = self.proxies[person.proxy]._buffer.flush_requested
        if bell.is_set():
            bell.clear()
            await self._flush_now(person.proxy)
        if self.world.ran < person.until:
            self._later(min(self.dice.expovariate(1 / 60), 550), self._work, person)
        else:
            # Often back just when it would sleep: that is where mistakes would be.
            pause = self.dice.choice([self.dice.uniform(TTL - 5, TTL + 100), self.dice.uniform(700, 5 * 3600)])
            self._later(pause, self._begin_work, person)

    # --- proxies

    def _recorder(self) -> Recorder:
        return Recorder(self.redis, self.world, f"proxy-{next(self.instances)}", ActivityConfig())

    async def _flush(self, number: int) -> None:
        await self._flush_now(number)
        self._later(FLUSH, self._flush, number)

    async def _flush_now(self, number: int) -> None:
        told, self.unflushed[number] = self.unflushed[number], {}
        recorder = self.proxies[number]
        recorder._client = recorder._leases._client = self.client
        try:
            await recorder.flush()
        except RedisError:
            self.unflushed[number] = told | self.unflushed[number]

    async def _flush_if_asked(self) -> None:
        for number, recorder in enumerate(self.proxies):
            recorder._leases._client = self.client
            if self.client is self.redis and await recorder.is_asked():
                await self._flush_now(number)

    async def _kill_proxy(self) -> None:
        number = self.dice.randrange(PROXIES)
        for id_ in self.unflushed[number]:
            self.by_id[id_].kept = 0.0  # what it was before is not known to us
        self.unflushed[number] = {}
        self.proxies[number] = self._recorder()
        self._broke("proxy")

    # --- the coordinator

    async def _lead(self) -> None:
        ttl_policies = TtlPolicies(TtlConfig(TTL, 0), ActivityConfig(), SomeTemplates())  # type: ignore[arg-type]
        self.reader = ActivityReader(self.redis, self.world, FLUSH, "this boot")
        self.lease = await lead(self.database)
        self.look = ByActivity(self.reader, self.world, ttl_policies)
        self.runner = TtlRunner(self.lease, self.reader, self.world, ttl_policies, _nobody_is_busy, lambda: None)

    async def _tick(self) -> None:
        self.reader._client = self.client
        self._later(self.dice.choice([0.05, 0.05, 0.05, 0.7]), self._flush_if_asked)
        try:
            await self.runner.tick()
            self._later(0.2, self._stop_those_who_should)
        except RedisError:
            pass
        except KilledError:
            self._broke("coordinator")
            await self._lead()
        self._later(TICK * (1 - 0.1 * self.dice.random()), self._tick)

    async def _stop_those_who_should(self) -> None:
        async with self.database.connection() as c:
            found = await store.query(c, ABOUT_TO_SLEEP)
        if not found:
            return
        self.reader._client = self.client
        returned = await self.look.recheck(found)
        async with self.lease.transaction() as c:
            for id_, at in returned.at.items():
                await idle_store.withdraw(c, id_, at, self.world.now())
            stopped = [w.id for w in found if w.id not in returned.at and w.id not in returned.unsure]
            await c.execute(STOP, stopped, self.world.now())
        for id_ in stopped:
            self._note_sleep(self.by_id[id_])
        if returned.unsure:
            self._later(0.7, self._flush_if_asked)
            self._later(1.0, self._stop_those_who_should)

    def _note_sleep(self, person: Person) -> None:
        person.awake = False
        self.result.sleeps += 1
        idle = self.world.ran - person.last
        if idle >= TTL:
            self.result.over.append(idle - TTL)
        elif person.kept == 0.0:
            self.result.early_by_a_killed_proxy += 1
        else:
            self.result.early.append((person.id, idle))

    # --- trouble

    def _plan_trouble(self) -> None:
        """A handful of each a month, and of each at least once however short the run."""
        for count, what in (
            (10, self._kill_proxy),
            (60, self._kill_coordinator),
            (2, self._redis_forgets),
            (2, self._redis_goes_away),
            (1, self._clock_jumps_ahead),
            (2, self._clock_is_set_back),
        ):
            for _ in range(max(1, round(count * self.days / 30))):
                self.world.at(self.dice.uniform(0.02, 0.98) * self.days * DAY, what)

    async def _kill_coordinator(self) -> None:
        """In the next tick, after a step of it."""
        steps = ["take", "read", "finish", "look", "watermark"]
        step, reader = self.dice.choice(steps), self.reader
        real = getattr(reader, step)

        def dying(*given: Any) -> Any:
            async def run() -> None:
                if step != "read":
                    await real(*given)
                raise KilledError

            async def generate() -> Any:
                async for item in real(*given):
                    yield item
                    raise KilledError

            return generate() if step == "read" else run()

        if self.runner._reader is reader:
            setattr(reader, step, dying)
            self.look._reader = ActivityReader(self.redis, self.world, FLUSH, "this boot")  # only the tick dies of it

    async def _redis_forgets(self) -> None:
        await self.redis.flushdb()
        self._broke("redis forgot")

    async def _redis_goes_away(self) -> None:
        self.client = self.away
        self._broke("redis away")
        self._later(self.dice.uniform(5, 120), self._redis_comes_back)

    async def _redis_comes_back(self) -> None:
        self.client = self.redis

    async def _clock_jumps_ahead(self) -> None:
        self.world.set_by += self.dice.uniform(10, 7200)
        self._broke("clock ahead")

    async def _clock_is_set_back(self) -> None:
        self.world.set_by -= self.dice.uniform(1, 60)
        self._broke("clock back")

    def _broke(self, what: str) -> None:
        self.result.broke[what] = self.result.broke.get(what, 0) + 1


async def _nobody_is_busy(_found: Any) -> tuple[dict[str, Work], set[str]]:
    return {}, set()
