"""Lines of very many people, for `waiting_room`: filled by the product's own script, polled by tokens that it reads.

The people's ids are twelve digits, as long as real ones: redis-benchmark can make those up.
"""

import pathlib
import random
import time
from collections.abc import AsyncIterator, Collection, Sequence
from contextlib import asynccontextmanager
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import redis

from bench._proxies import LOAD_CORE, SECRET, Lab, go_first, pin, process_cpu_seconds
from codehub.clock import SystemClock
from codehub.db import Connection, Database
from codehub.db.redis import open_redis
from codehub.policy.model import ALL_SCOPES, Principal, Role
from codehub.settings import LimitsConfig, QueueConfig
from codehub.waiting_room import keys
from codehub.waiting_room.ending import Endings
from codehub.waiting_room.epochs import Epochs
from codehub.waiting_room.events import EventChange, Events
from codehub.waiting_room.line import Line
from codehub.waiting_room.model import EPOCH
from codehub.waiting_room.pump import Pump
from codehub.waiting_room.scripts import Scripts
from codehub.waiting_room.service import WaitingRoom
from codehub.waiting_room.tokens import Tokens, Waiting

TOKENS = 20_000  # different ones that are polled with, of random people
PIPELINED = 500  # joins on their way at once
# Nobody's heartbeat ends while it is measured, although only some of them poll.
TIMES = {"QUEUE_HEARTBEAT_SECONDS": "7200", "QUEUE_WAITING_SECONDS": "7300", "QUEUE_EVENT_SECONDS": "7300"}
CONFIG = QueueConfig(heartbeat_seconds=7200, waiting_seconds=7300, event_seconds=7300)
MINA = Principal("mina", Role.ADMIN, ALL_SCOPES, id="mina")
POLL = """GET /api/v1/queue/status?token={token} HTTP/1.1
Host: localhost
User-Agent: Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/142.0.0.0 Safari/537.36
Accept: application/json
Accept-Language: en-US,en;q=0.9,ko;q=0.8
Accept-Encoding: gzip, deflate, br, zstd
Sec-Fetch-Site: same-origin
Sec-Fetch-Mode: cors
Sec-Fetch-Dest: empty
Cookie: codehub=0123456789abcdef0123456789abcdef

"""


def pid(number: int) -> str:
    return f"{number:012d}"


class Filled(NamedTuple):
    seconds: float
    bytes_each: float


class Polled(NamedTuple):
    """Of one run."""

    rate: float  # polls a second
    p50: float  # milliseconds
    p99: float
    worker: float  # microseconds of processor time per poll
    redis: float
    together: float  # polls in a call of the script


class Redis:
    """The lab's, from outside: its process, on the core of the load, and what its lines are filled with."""

    def __init__(self, lab: Lab) -> None:
        self.client: Any = redis.Redis.from_url(lab.servers.redis_url)
        found = urlsplit(lab.servers.redis_url)
        self.socket, self.password = found.path, found.password or ""
        self.pid = int(self._info("server")["process_id"])
        self.scripts = Scripts(CONFIG)
        pin(self.pid, LOAD_CORE)
        go_first(self.pid)

    def cpu(self) -> float:
        return process_cpu_seconds(self.pid)

    def calls(self) -> int:
        """Of scripts, so far."""
        return int(self._info("commandstats").get("cmdstat_evalsha", {"calls": 0})["calls"])

    def _info(self, section: str) -> dict[str, Any]:
        found: Any = self.client.info(section)
        return dict(found)

    def load_script(self, name: str) -> str:
        return str(self.client.script_load(self.scripts.text(name)))

    def fill(self, event: str, people: int) -> Filled:
        """Joins so many people, by the script, with hundreds on their way at once."""
        digest = self.load_script("join")
        before, begun = self._info("memory")["used_memory"], time.monotonic()
        connection: Any = self.client.connection_pool.get_connection()
        for start in range(0, people, PIPELINED):
            some = range(start, min(start + PIPELINED, people))
            now = int(time.time() * 1000)
            connection.send_packed_command([b"".join(_join(digest, event, number, now) for number in some)])
            for number in some:
                answer: Any = connection.read_response()
                assert answer[0] == EPOCH + number + 1, f"an empty line was expected: {answer}"
        self.client.connection_pool.release(connection)
        seconds = time.monotonic() - begun
        return Filled(seconds, (self._info("memory")["used_memory"] - before) / people)


def _join(digest: str, event: str, number: int, now: int) -> bytes:
    own = keys.heartbeat(event, pid(number)), keys.waiting(event, pid(number))
    names = (*keys.of_event(event), *own)
    return packed("EVALSHA", digest, len(names), *names, now, pid(number), f'"learner{number}"', "")


def packed(*words: str | int) -> bytes:
    """As it goes over the wire."""
    texts = [str(word) for word in words]
    return (f"*{len(texts)}\r\n" + "".join([f"${len(text)}\r\n{text}\r\n" for text in texts])).encode()


def tokens(event: str, numbers: Collection[int]) -> list[str]:
    """Of these people of a line that was filled."""
    signed, joined = Tokens(SECRET), int(time.time() * 1000)
    return [signed.waiting(Waiting(event, pid(n), EPOCH + n + 1, joined, f"u{n:011d}", f"learner{n}")) for n in numbers]


def polls(lab: Lab, event: str, people: int) -> pathlib.Path:
    """The heads of polls, as a browser sends them."""
    chance = random.Random(1)
    heads = [POLL.format(token=text) for text in tokens(event, [chance.randrange(people) for _ in range(TOKENS)])]
    file = lab.folder / f"polls-{event}"
    file.write_bytes("".join(heads).replace("\n", "\r\n").encode())
    return file


async def _no_runs(_c: Connection, _ids: Collection[str]) -> set[str]:
    return set()


class Room:
    """What a process of the product has."""

    def __init__(self, database: Database, line: Line) -> None:
        clock, limits = SystemClock(), LimitsConfig()
        self.database = database
        self.line = line
        epochs = Epochs(database, line, clock, CONFIG)
        self._epochs = epochs
        self.waiting = WaitingRoom(database, clock, CONFIG, line, Tokens(SECRET), epochs)
        self.events = Events(database, clock, CONFIG, limits, line, epochs)
        self.pump = Pump(database, clock, CONFIG, limits, line, Endings(database, clock, _no_runs))

    async def make(self, event: str, forecast: str) -> None:
        """An event with an open, empty line, and no places yet."""
        await self.events.put(MINA, event, EventChange(capacity=0))
        await self._epochs.guarded(event, lambda: self.line.counts(event))
        await self.line.configure(event, paused=False, lottery=False, eta=forecast)

    async def only(self, event: str) -> None:
        """The pump looks at this one, as if all the others were empty."""
        async with self.database.connection() as c:
            await c.execute("UPDATE waiting_events SET activity = CASE WHEN id = $1 THEN 'busy' ELSE 'idle' END", event)

    async def add_place(self, event: str, count: int = 1) -> None:
        async with self.database.connection() as c:
            await c.execute("UPDATE waiting_events SET capacity = capacity + $2 WHERE id = $1", event, count)

    async def hear(self, event: str, numbers: Sequence[int]) -> None:
        for number in numbers:
            await self.line.status(event, pid(number), EPOCH + number + 1)


@asynccontextmanager
async def room(lab: Lab) -> AsyncIterator[Room]:
    database = await Database.open(lab.servers.database_url)
    client = open_redis(lab.servers.redis_url)
    line = Line(client, SystemClock(), CONFIG)
    try:
        yield Room(database, line)
    finally:
        await line.aclose()
        await client.aclose()
        await database.close()
