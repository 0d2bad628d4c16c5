"""Random histories of a waiting room on real PostgreSQL and Valkey, in virtual time; each is replayed by its seed.

Several processes' worth of services share the servers; their steps go one at a time, in an order that the seed decides
(`stage`). Called by `test_campaign.py`; judged by `verdicts`.
"""

import random
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any
from unittest import mock

import redis.asyncio

from codehub.db import Database
from codehub.errors import CodeHubError, UnavailableError
from codehub.policy.model import Principal
from codehub.waiting_room import granting, keys
from codehub.waiting_room.model import Activity
from tests.virtual_time import ManualClock
from tests.waiting_room.hall import Hall
from tests.waiting_room.histories import Answer, History, How, Kind, Violation
from tests.waiting_room.lines import check_line
from tests.waiting_room.recording import Recorder
from tests.waiting_room.stage import Gate, GatedDatabase, GatedLine
from tests.waiting_room.verdicts import judge

NAMES = ("ann", "bob", "cy", "dan", "eve", "fay")


@dataclass(frozen=True)
class Plan:
    """What may happen in a history, and how often: weights of the moves."""

    people: int = 4
    capacity: int = 1
    moves: int = 120
    crashes: float = 0.5
    losses: float = 0.3
    settings: float = 0.0
    time: float = 2.0


def plan_of(seed: int) -> Plan:
    chance = random.Random(seed)
    return Plan(
        people=chance.randint(2, 6),
        capacity=chance.randint(1, 3),
        moves=chance.choice((60, 120, 200)),
        crashes=chance.choice((0, 0.5, 1.0)),
        losses=chance.choice((0, 0.3, 0.8)),
        settings=chance.choice((0, 0, 0.5)),
        time=chance.choice((1.0, 3.0)),
    )


class Campaign:
    """One history of one event."""

    def __init__(
        self, database: Database, client: redis.asyncio.Redis, seed: int, people: dict[str, Principal] | None = None
    ) -> None:
        """`people`: the accounts that an earlier history has made in this database."""
        self.chance = random.Random(seed)
        self.plan = plan_of(seed)
        self.event = f"e{seed}"
        self.clock = ManualClock()
        self.client = client
        self.database = database
        self.gate = Gate(self.chance)
        self.hall = Hall(database, client, self.clock)  # ungated: sets the stage
        if people is not None:
            self.hall._people = people
        self.processes: list[Hall] = []
        self.recorder = Recorder(self.event, self.hall.tokens, self.clock.timestamp)
        watched: Any = GatedLine(self.hall.line, self.gate, self.recorder.opened)
        self.hall.events._epochs._line = watched
        outside: Any = GatedDatabase(database, self.gate)
        self.hall.events._epochs._database = outside
        self.tokens: dict[str, list[str]] = {name: [] for name in NAMES[: self.plan.people]}
        self._kept: dict[bytes, bytes] | None = None  # what a replica has that no longer follows

    def _somewhere(self) -> Hall:
        """Another process for each request: in one, those who meet a loss wait for each other, and not at the gate."""
        made = Hall(self.database, self.client, self.clock)
        self.processes.append(made)
        line: Any = GatedLine(made.line, self.gate, self.recorder.opened)
        database: Any = GatedDatabase(self.database, self.gate)
        for part in (made.room, made.pump, made.room._epochs, made.pump._epochs, made.pump._offers):
            part._line = line
            part._database = database
        return made

    # --- the history

    async def run(self) -> tuple[History, list[Violation]]:
        await self.hall.event(self.plan.capacity, self.event)
        for name in self.tokens:
            await self.hall.person(name)
        with mock.patch.object(granting, "AT_ONCE", 1):
            for _ in range(self.plan.moves):
                await self._move()
            await self.gate.finish()
            await self._end()
        history = await self.recorder.gather(self.database)
        await check_line(self.client, self.event)
        return history, judge(history)

    async def _move(self) -> None:
        moves: list[tuple[float, Callable[[], Awaitable[None]]]] = [
            (12.0 * bool(self.gate.under_way), self.gate.advance),
            (self.plan.crashes * bool(self.gate.under_way), self.gate.crash),
            (self.plan.time, self._pass_time),
            (self.plan.losses, self._lose),
            (self.plan.settings, self._change),
        ]
        if len(self.gate.under_way) < 4:
            moves += [(2.0, self._pump), (1.5, self._join), (4.0, self._poll), (2.0, self._enter), (0.4, self._leave)]
            moves += [(0.7, self._release)]
        weights = [weight for weight, _ in moves]
        await self.chance.choices([move for _, move in moves], weights)[0]()

    async def _begin(self, kind: Kind, person: str, token: str, work: Awaitable[Any]) -> None:
        async def recorded() -> None:
            answered = await self.recorder.call(kind, person, token, work)
            if answered is not None and kind in {Kind.JOIN, Kind.POLL}:
                given = answered.token
                if given not in self.tokens[person]:
                    self.tokens[person].append(given)

        await self.gate.begin(kind, recorded())

    # --- what people do

    async def _join(self) -> None:
        name = self.chance.choice(list(self.tokens))
        caller = await self.hall.person(name)
        await self._begin(Kind.JOIN, name, "", self._somewhere().room.join(caller, self.event, name))

    def _one_with_token(self) -> tuple[str, str] | None:
        held = [(name, token) for name, tokens in self.tokens.items() for token in tokens[-2:]]
        return self.chance.choice(held) if held else None

    async def _poll(self) -> None:
        if found := self._one_with_token():
            await self._begin(Kind.POLL, *found, self._somewhere().room.status(found[1]))

    async def _enter(self) -> None:
        """Mostly who was told that it is their turn."""
        found = self._one_with_token()
        told = [op for op in self.recorder.history.ops if op.ready and op.answer is Answer.OK][-3:]
        if told and self.chance.random() < 0.8:
            op = self.chance.choice(told)
            found = next(((op.person, t) for t in self.tokens[op.person] if self.recorder.seq(t) == op.counts), found)
        if found:
            await self._begin(Kind.ENTER, *found, self._somewhere().room.enter(found[1]))

    async def _leave(self) -> None:
        if found := self._one_with_token():
            await self._begin(Kind.LEAVE, *found, self._somewhere().room.leave(found[1]))

    async def _release(self) -> None:
        """Not under the recorder's eyes: its commit is enough."""
        name = self.chance.choice(list(self.tokens))
        caller = await self.hall.person(name)
        room = self._somewhere().room

        async def released() -> None:
            try:
                await room.give_back(caller, self.event)
            except CodeHubError:
                return

        await self.gate.begin("release", released())

    async def _pump(self) -> None:
        if sum(request.name == Kind.PUMP for request in self.gate.under_way) < 2:
            await self._begin(Kind.PUMP, "", "", self._tick(self._somewhere()))

    async def _tick(self, process: Hall) -> None:
        """What was not done is not a pump that left a place free."""
        done = (await process.pump.tick()).stats
        if done["failed"]:
            raise UndoneError("a part of a tick failed")

    # --- time and trouble

    async def _pass_time(self) -> None:
        if any(request.name == Kind.PUMP for request in self.gate.under_way):
            await self.clock.advance(self.chance.choice((0.2, 0.5)))
        elif self.gate.under_way:
            await self.clock.advance(self.chance.choice((0.5, 3.0, 11.0)))
        elif self.chance.random() < 0.15:
            await self.clock.advance(self.chance.choice((12.0, 100.0)))  # an outage: nothing is swept
        else:
            await self._go_on(self.chance.choice((2.0, 12.0, 70.0, 95.0)), self.chance.sample(list(self.tokens), 2))

    async def _go_on(self, seconds: float, polling: list[str], step: float = 9.0) -> None:
        """The pump pumps, and these people poll."""
        while seconds > 0:
            await self.clock.advance(min(step, seconds))
            seconds -= step
            for name in polling:
                for token in self.tokens[name][-1:]:
                    await self._begin(Kind.POLL, name, token, self._somewhere().room.status(token))
            await self.gate.finish()
            await self._pump()
            await self.gate.finish()

    async def _lose(self) -> None:
        begin, at = time.time(), self.clock.timestamp()
        idle = (await self.hall.find(self.event)).activity is Activity.IDLE  # then hardly anything can be lost
        had = await self.client.exists(keys.meta(self.event))
        how = self.chance.choice((How.EMPTIED, How.RESTARTED, How.FAILED_OVER))
        if how is How.FAILED_OVER and self._kept is None:
            self._kept = await self._dump()  # it happens the next time
            return
        if how is not How.RESTARTED:
            found = [key async for key in self.client.scan_iter(match=f"*{{{self.event}}}*")]
            if found:
                await self.client.delete(*found)
        if how is How.FAILED_OVER:
            for key, value in (self._kept or {}).items():
                await self.client.restore(key, 0, value)
            self._kept = None
        if how is not How.EMPTIED and await self.client.exists(keys.meta(self.event)):
            await self.client.hset(keys.meta(self.event), "run", "another")
        if not await self.client.exists(keys.meta(self.event)):
            how = How.EMPTIED
        if had or not idle:
            self.recorder.lost(how, begin, at, idle=idle)

    async def _dump(self) -> dict[bytes, bytes]:
        found = [key async for key in self.client.scan_iter(match=f"*{{{self.event}}}*")]
        return {key: kept for key in found if (kept := await self.client.dump(key))}

    async def _change(self) -> None:
        changes: list[dict[str, Any]] = [{"capacity": 1}, {"capacity": 3}, {"paused": True}, {"paused": False}]
        await self.hall.change(self.event, **self.chance.choice(changes))

    async def _end(self) -> None:
        """All who are alive go on, until nothing of a loss is left; then each is asked once more."""
        await self.hall.change(self.event, paused=False)
        people = list(self.tokens)
        await self._go_on(310.0 if self.recorder.history.losses else 12.0, people)
        for name in people:
            for token in self.tokens[name][-1:]:
                await self._begin(Kind.POLL, name, token, self._somewhere().room.status(token))
                await self.gate.finish()

    async def clean(self) -> None:
        for process in (*self.processes, self.hall):
            await process.aclose()
        async with self.database.transaction() as c:
            await c.execute("DELETE FROM waiting_events WHERE id = $1", self.event)


class UndoneError(UnavailableError):
    """In place of a tick that could not do all."""
