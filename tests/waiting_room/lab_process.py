"""A process of `test_exactness`: some people who join, poll, enter, start and sleep as fast as they can, and a pump.

Prints a line of JSON for each call that was answered: begin, end, who, what, and the answer.
"""

import asyncio
import json
import random
import sys
import time
from typing import Any

from codehub import logs
from codehub.clock import SystemClock
from codehub.db import Database
from codehub.db.redis import open_redis
from codehub.errors import CodeHubError
from codehub.policy.model import ALL_SCOPES, Principal, Role
from codehub.settings import LimitsConfig, LogConfig, QueueConfig
from codehub.waiting_room.model import LAB
from codehub.workspaces.admission import Refused
from codehub.workspaces.model import Desired
from codehub.workspaces.service import NewWorkspace
from tests.waiting_room.hall import Hall

STARTS = 15  # of a process, in all
LONGEST = 60.0  # seconds, on a machine that is busy
LIMITS = LimitsConfig(max_running_global=3, max_running_per_user=1)


class Worker:
    def __init__(self, hall: Hall, seed: int) -> None:
        self.until = time.time() + LONGEST
        self.hall = hall
        self.dice = random.Random(seed)
        self.starts = 0

    @property
    def goes_on(self) -> bool:
        return self.starts < STARTS and time.time() < self.until

    async def call(self, who: str, what: str, awaited: Any) -> Any:
        begin, answer, shown = time.time(), None, "refused"
        try:
            answer = await awaited
            shown = "refused" if isinstance(answer, Refused) else "ok"
        except CodeHubError as e:
            shown = e.code
        self.say(begin, who, what, shown)
        return answer if shown == "ok" else None

    @staticmethod
    def say(begin: float, who: str, what: str, answer: object) -> None:
        sys.stdout.write(json.dumps([begin, time.time(), who, what, answer]) + "\n")

    async def live(self, name: str) -> None:
        person = await self.person(name)
        made = await self.hall.workspaces.create(person, NewWorkspace("w", "t", Desired.STANDBY))
        assert not isinstance(made, Refused)
        while self.goes_on:
            if self.dice.random() < 0.5 and await self.start(person, made.id, "start"):
                continue
            await self.wait(person, made.id)

    async def start(self, person: Principal, id_: str, what: str) -> bool:
        started = await self.call(person.name, what, self.hall.workspaces.request(person, id_, Desired.RUNNING))
        if started:
            self.starts += 1
            await asyncio.sleep(self.dice.random() * 0.05)
            begin = time.time()
            await self.hall.workspaces.request(person, id_, Desired.STANDBY)
            self.say(begin, person.name, "sleep", "ok")
        return bool(started)

    async def wait(self, person: Principal, id_: str) -> None:
        ticket = await self.call(person.name, "join", self.hall.room.join(person, LAB))
        if ticket is None:
            await self.start(person, id_, "start with reservation")
            return
        read = self.hall.tokens.read_waiting(ticket.token)
        assert read
        self.say(time.time(), person.name, "seq", read.seq)
        while self.goes_on:
            polled = await self.call(person.name, "poll", self.hall.room.status(ticket.token))
            if (
                polled
                and polled.ready_for_entry
                and await self.call(person.name, "enter", self.hall.room.enter(ticket.token))
            ):
                await self.start(person, id_, "start with reservation")
                return
            if self.dice.random() < 0.02:
                await self.call(person.name, "leave", self.hall.room.leave(ticket.token))
                return
            await asyncio.sleep(0.01)
        await self.call(person.name, "leave", self.hall.room.leave(ticket.token))

    async def person(self, name: str) -> Principal:
        async with self.hall.database.connection() as c:
            id_ = await c.fetchval("SELECT id FROM users WHERE name = $1", name)
        return Principal(name, Role.LEARNER, ALL_SCOPES, id=id_)

    async def pump(self) -> None:
        while self.goes_on:
            await self.hall.pump.tick()
            await asyncio.sleep(0.02)


async def main(database_url: str, redis_url: str, seed: str, *names: str) -> None:
    database, client = await Database.open(database_url, size=6), open_redis(redis_url)
    clock: Any = SystemClock()
    hall = Hall(database, client, clock, QueueConfig(), LIMITS)
    worker = Worker(hall, int(seed))
    await asyncio.gather(worker.pump(), *(worker.live(name) for name in names))
    await hall.aclose()
    await client.aclose()
    await database.close()


if __name__ == "__main__":
    logs.configure(LogConfig(level="warning", format="text"), "test")
    asyncio.run(main(*sys.argv[1:]))
