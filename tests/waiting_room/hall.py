"""A whole waiting room for tests, on real PostgreSQL and Redis, in virtual time: what one process has, and its people.

`Hall.another()` is a second process over the same servers. `FaultySteps` ends a process between any two of its steps.
"""

from collections.abc import AsyncIterator, Collection, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

from codehub import ids
from codehub.db import Connection, Database
from codehub.db.redis import Client
from codehub.policy.model import ALL_SCOPES, Principal, Role
from codehub.settings import LimitsConfig, QueueConfig
from codehub.templates.model import Template
from codehub.waiting_room import keys, store, tokens
from codehub.waiting_room.ending import Endings
from codehub.waiting_room.epochs import Epochs
from codehub.waiting_room.events import EventChange, Events
from codehub.waiting_room.lab import Lab
from codehub.waiting_room.line import Line
from codehub.waiting_room.model import LAB, Event, Place, State
from codehub.waiting_room.pump import Pump
from codehub.waiting_room.service import Reservation, Ticket, WaitingRoom
from codehub.waiting_room.status import Status
from codehub.waiting_room.tokens import Tokens
from codehub.workspaces.service import Workspaces
from tests.virtual_time import ManualClock

KEY = "a-signing-key-for-tests"
EXAM = "exam"


class CrashError(Exception):
    """The process ends here."""


class FaultySteps:
    """Counts the steps over both servers, and ends the process after the one asked for."""

    def __init__(self, crash_after: int | None = None) -> None:
        self.taken: list[str] = []
        self.crash_after = crash_after

    @property
    def crashed(self) -> bool:
        return self.crash_after is not None and len(self.taken) >= self.crash_after

    def begin(self, what: str) -> None:
        """After its end a process does nothing more, whatever it would have caught."""
        if self.crashed:
            raise CrashError(what)

    def done(self, what: str) -> None:
        self.taken.append(what)
        if self.crashed:
            raise CrashError(what)


class FaultyLine:
    def __init__(self, line: Line, steps: FaultySteps) -> None:
        self._line = line
        self._steps = steps

    def __getattr__(self, name: str) -> Any:
        step = getattr(self._line, name)

        async def taken(*args: Any, **named: Any) -> Any:
            self._steps.begin(name)
            answer = await step(*args, **named)
            self._steps.done(name)
            return answer

        return taken


class FaultyDatabase:
    """A transaction is one step, at its commit; so is a statement alone."""

    def __init__(self, database: Database, steps: FaultySteps) -> None:
        self._database = database
        self._steps = steps

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[Connection]:
        self._steps.begin("transaction")
        async with self._database.transaction() as c:
            yield c
        self._steps.done("commit")

    @asynccontextmanager
    async def connection(self) -> AsyncIterator[Connection]:
        self._steps.begin("statement")
        async with self._database.connection() as c:
            yield c
        self._steps.done("statement")

    @asynccontextmanager
    async def exclusive(self, kind: int, name: str) -> AsyncIterator[None]:
        """Not counted: what is done meanwhile is. A crash gives it back."""
        async with self._database.exclusive(kind, name):
            yield


class AnyTemplate:
    def find(self, name: str) -> Template:
        return Template(name, name)

    require = find


async def no_runs(_c: Connection, _ids: Collection[str]) -> set[str]:
    return set()


class Hall:
    def __init__(
        self,
        database: Database,
        client: Client,
        clock: ManualClock,
        config: QueueConfig | None = None,
        limits: LimitsConfig | None = None,
        steps: FaultySteps | None = None,
    ) -> None:
        self.database, self.client, self.clock = database, client, clock
        self.config, self.limits = config or QueueConfig(), limits or LimitsConfig()
        self.steps = steps
        self.line = Line(client, clock, self.config)
        line: Any = FaultyLine(self.line, steps) if steps else self.line
        db: Any = FaultyDatabase(database, steps) if steps else database
        self.tokens = Tokens(KEY)
        epochs = Epochs(db, line, clock, self.config)
        self.room = WaitingRoom(db, clock, self.config, line, self.tokens, epochs)
        self.events = Events(db, clock, self.config, self.limits, line, epochs)
        self.pump = Pump(db, clock, self.config, self.limits, line, Endings(db, clock, no_runs))
        lab = Lab(clock, self.tokens)
        self.workspaces = Workspaces(db, clock, self.limits, AnyTemplate(), lab)  # type: ignore[arg-type]
        self._people: dict[str, Principal] = {}

    def another(self, steps: FaultySteps | None = None, limits: LimitsConfig | None = None) -> "Hall":
        made = Hall(self.database, self.client, self.clock, self.config, limits or self.limits, steps)
        made._people = self._people
        return made

    async def aclose(self) -> None:
        await self.line.aclose()

    # --- people and events

    async def person(self, name: str, role: Role = Role.LEARNER) -> Principal:
        if name not in self._people:
            id_ = f"u{ids.new(10)}"
            async with self.database.connection() as c:
                await c.execute(
                    "INSERT INTO users (id, name, role, created_at) VALUES ($1, $2, $3, $4)",
                    *(id_, name, role, self.clock.now()),
                )
            self._people[name] = Principal(name, role, ALL_SCOPES, id=id_)
        return self._people[name]

    async def event(self, capacity: int = 1, id_: str = EXAM, **change: Any) -> None:
        teacher = await self.person("kim", Role.TEACHER)
        await self.events.put(teacher, id_, EventChange(capacity=capacity, **change))

    async def change(self, id_: str = EXAM, **change: Any) -> None:
        await self.events.put(await self.person("boss", Role.ADMIN), id_, EventChange(**change))

    async def find(self, id_: str = EXAM) -> Event:
        async with self.database.connection() as c:
            found = await store.find_event(c, id_)
        assert found
        return found

    # --- what they do

    async def join(self, name: str, event: str = EXAM) -> str:
        return (await self.ticket(name, event)).token

    async def ticket(self, name: str, event: str = EXAM) -> Ticket:
        return await self.room.join(await self.person(name), event, name)

    async def join_all(self, *names: str, event: str = EXAM) -> list[str]:
        return [await self.join(name, event) for name in names]

    async def ready(self, token: str) -> bool:
        return (await self.room.status(token)).ready_for_entry

    async def positions(self, *held: str) -> list[int | None]:
        return [(await self.room.status(token)).position for token in held]

    async def tick(self, times: int = 1) -> dict[str, Any]:
        for _ in range(times):
            done = await self.pump.tick()
        return dict(done.stats)

    async def pass_time(self, seconds: float, *polling: str, step: float = 5) -> None:
        """The pump ticks, and these people poll, every few seconds."""
        while seconds > 0:
            await self.clock.advance(min(step, seconds))
            seconds -= step
            for token in polling:
                await self.room.status(token)
            await self.pump.tick()

    async def enter_when_ready(self, token: str) -> Reservation:
        await self.tick()
        assert await self.ready(token)
        return await self.room.enter(token)

    async def status(self, token: str) -> Status:
        return await self.room.status(token)

    # --- what is seen from outside

    async def places(self, *states: State, event: str = EXAM) -> list[Place]:
        async with self.database.connection() as c:
            found = await store.query_places(
                c, "SELECT * FROM waiting_places WHERE event_id = $1 ORDER BY offer_id", event
            )
        return [place for place in found if place.state in (states or set(State) - {State.NONE})]

    async def place(self, token: str) -> Place | None:
        read = self.tokens.read_waiting(token)
        assert read
        async with self.database.connection() as c:
            return await store.find_place(c, read.event, read.pid)

    def pid(self, token: str) -> str:
        read = self.tokens.read_waiting(token)
        assert read
        return read.pid

    async def in_line(self, event: str = EXAM) -> list[str]:
        """By pid."""
        found: Any = await self.client.zrange(keys.event(event), 0, -1)
        return [pid.decode() for pid in found]

    async def unnoted(self, event: str = EXAM) -> Sequence[Place]:
        async with self.database.connection() as c:
            return await store.query_places(c, store.sql.unnoted, event, 100)

    # --- what happens to Redis

    async def lose_line(self) -> None:
        """All of it: a restart without its files."""
        await self.client.flushdb()

    async def fail_over(self, event: str = EXAM) -> None:
        """To a Redis that has kept the line: another run."""
        await self.client.hset(keys.meta(event), "run", "another")


def token_with(hall: Hall, token: str, **fields: Any) -> str:
    """The same person's token with another sequence, say."""
    read = hall.tokens.read_waiting(token)
    assert read
    return hall.tokens.waiting(tokens.Waiting(**{**read._asdict(), **fields}))


__all__ = ["EXAM", "KEY", "LAB", "CrashError", "FaultySteps", "Hall", "replace", "token_with"]
