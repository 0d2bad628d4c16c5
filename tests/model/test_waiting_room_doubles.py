"""The doubles that the waiting room's model runs on behave as the real servers do."""

import random
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import redis.asyncio
from model.waiting_room.lua import Engine
from model.waiting_room.machine import BEGAN, SECRET, Connection
from model.waiting_room.redis import Hash, Redis, Stream, ZSet
from model.waiting_room.rows import Rows

from codehub.db import Database
from codehub.settings import QueueConfig
from codehub.waiting_room import line, store
from codehub.waiting_room.model import LOSS, Activity, Place, State, Why
from codehub.waiting_room.scripts import Scripts
from codehub.waiting_room.store import sql
from tests.virtual_time import ManualClock

PIDS = ("ann", "bob", "cy")


def plain(reply: Any) -> Any:
    """A real server's reply as a script sees it, in text."""
    if isinstance(reply, list):
        return [plain(part) for part in reply]
    return reply.decode() if isinstance(reply, bytes) else reply


async def contents(redis_client: redis.asyncio.Redis) -> dict[str, Any]:
    """Everything that a real server has, as the double has it."""
    client: Any = redis_client
    found: dict[str, Any] = {}
    async for key in client.scan_iter():
        kind = (await client.type(key)).decode()
        if kind == "zset":
            value: Any = ZSet({m.decode(): score for m, score in await client.zrange(key, 0, -1, withscores=True)})
        elif kind == "hash":
            value = Hash({k.decode(): v.decode() for k, v in (await client.hgetall(key)).items()})
        elif kind == "stream":
            entries: Any = await client.xrange(key)
            value = Stream({id_.decode(): tuple(plain([*next(iter(f.items()))])) for id_, f in entries})
        else:
            value = (await client.get(key)).decode()
        found[key.decode()] = value
    return found


def random_command(chance: random.Random) -> tuple[str, ...]:
    member, other = chance.choice(PIDS), chance.choice(PIDS)
    key = chance.choice(("z1", "z2"))
    score, low = str(chance.randint(0, 5)), str(chance.randint(0, 5))
    last = str(chance.randint(-3, 3))
    return chance.choice(
        [
            ("ZADD", key, score, member),
            ("ZADD", key, "XX", score, member),
            ("ZADD", key, score, member, low, other),
            ("ZREM", key, member),
            ("ZSCORE", key, member),
            ("ZMSCORE", key, member, other),
            ("ZCARD", key),
            ("ZRANK", key, member),
            ("ZCOUNT", key, "-inf", f"({score}"),
            ("ZRANGE", key, low, last, "WITHSCORES"),
            ("ZRANGE", key, "0", "-1"),
            ("ZRANGEBYSCORE", key, "-inf", score, "LIMIT", "0", "2"),
            ("ZRANGEBYSCORE", key, f"({low}", "+inf", "WITHSCORES", "LIMIT", "0", "1"),
            ("HSET", "h", member, score, other, low),
            ("HGET", "h", member),
            ("HMGET", "h", member, other),
            ("HDEL", "h", member),
            ("HINCRBY", "h", member, score),
            ("SET", "s", member, "EX", "100"),
            ("GET", "s"),
            ("DEL", chance.choice(("z1", "h", "s")), "none"),
            ("EXPIRE", key, "100"),
        ]
    )


async def test_its_commands_answer_as_redis_does(redis_client: redis.asyncio.Redis) -> None:
    chance, double = random.Random(1), Redis()
    for _ in range(1500):
        command = random_command(chance)
        # By a script: replies are not made nicer by the client.
        asked: Any = await redis_client.eval("return redis.call(unpack(ARGV))", 0, *command)
        assert double.call(*command) == plain(asked), command
    assert double.data == await contents(redis_client)


class BothScripts:
    """Runs every script on the real server and on the double, and compares what both answer."""

    def __init__(self, config: QueueConfig, double: Redis) -> None:
        self._real = Scripts(config)
        self._engine = Engine(config)
        self._double = double
        self.ran: set[str] = set()

    async def run(self, client: Any, name: str, keys: Any, arguments: Any) -> Any:
        reply = await self._real.run(client, name, keys, arguments)
        assert self._engine.run(self._double, name, keys, arguments) == reply, (name, arguments)
        self.ran.add(name)
        return reply


async def random_step(  # noqa: C901 (a table of steps)
    chance: random.Random, asked: line.Line, clock: ManualClock, epoch: list[int]
) -> None:
    pid, number, seq = chance.choice(PIDS), chance.randint(1, 6), epoch[0] * 2**32 + chance.randint(1, 6)
    match chance.randrange(13):
        case 0 | 1:
            await asked.join("e", pid, pid, None)
        case 2 | 3:
            await asked.status("e", pid, seq)
        case 4:
            await asked.confirm("e", pid, seq, expected=seq, name=pid, joined_ms=1)
        case 5:
            await asked.drop("e", pid, seq, chance.choice(list(Why)))
        case 6:
            picks = await asked.first("e", 2)
            for pick in picks if picks is not LOSS else ():
                await asked.mark("e", pick.pid, pick.seq, number, epoch[0])
        case 7:
            await asked.sweep("e", 10)
        case 8:
            await asked.lapse("e", pid, number)
        case 9:
            await clock.advance(chance.choice((1, 9, 9, 9, 66)))
            await asked.sweep("e", 10)
        case 10:
            await asked.configure("e", paused=chance.random() < 0.3, lottery=False, eta="")
        case 11 if chance.random() < 0.3:
            epoch[0] += 1
            await asked.open("e", epoch[0], 5, 300, lottery=False)
        case _:
            await asked.counts("e")
            await asked.peek("e", pid, seq)
            await asked.page("e", 0, 5)
            await asked.log_since("e", epoch[0] * 2**32 + 1)


@pytest.mark.parametrize("seed", range(2))
async def test_the_scripts_do_the_same_on_it_as_in_redis(
    redis_client: redis.asyncio.Redis, clock: ManualClock, seed: int
) -> None:
    chance, config = random.Random(seed), QueueConfig()
    run = (await redis_client.info("server"))["run_id"]
    double = Redis(run=run)
    both = BothScripts(config, double)
    asked = line.Line(redis_client, clock, config)
    asked._scripts = both  # type: ignore[assignment]
    epoch = [1]
    await asked.open("e", 1, 0, 0, lottery=False)
    for _ in range(250):
        await random_step(chance, asked, clock, epoch)
    await asked.aclose()
    streams = [key for key in double.data if key.startswith("stream:")]  # their ids are times
    real = await contents(redis_client)
    assert {k: v for k, v in double.data.items() if k not in streams} == {
        k: v for k, v in real.items() if not k.startswith("stream:")
    }
    assert {"join", "status", "confirm", "drop", "first", "sweep", "lapse", "configure", "counts"} <= both.ran


# --- PostgreSQL


def random_place(chance: random.Random, before: Place | None, pid: str) -> Place:
    state = chance.choice(list(State))
    now = BEGAN + timedelta(seconds=chance.randint(0, 9))
    placed = state in {State.RESERVED, State.HELD}
    return Place(
        "e",
        pid,
        now,
        person=pid if placed else None,
        name=chance.choice((None, pid)),
        state=state,
        seq=chance.randint(1, 9),
        offer_id=chance.randint(1, 99),
        gone_seq=before.gone_seq + 1 if before else 0,
        noted=chance.random() < 0.5,
        offered_at=now,
        expires_at=now if placed else None,
    )


async def random_statement(chance: random.Random, c: Any) -> Any:
    """One call of the store; its answer."""
    pid, number = chance.choice(PIDS), chance.randint(1, 4)
    event = await store.find_event(c, "e")
    assert event
    match chance.randrange(12):
        case 0 | 1 | 2:
            return await store.save(c, random_place(chance, await store.find_place(c, "e", pid), pid))
        case 3:
            seen = await store.find_places(c, "e", PIDS)
            return await store.note(c, "e", number, list(seen.values())[:number])
        case 4:
            return sorted(p.pid for p in await store.query_places(c, sql.unnoted, "e", 10))
        case 5:
            later = BEGAN + timedelta(seconds=chance.randint(0, 9))
            changed = store.event_of({**vars(event), "epoch": number, "opened_at": later, "lost_line": number > 2})
            return await store.reopen(c, changed, later)
        case 6:
            return await store.watch(c, "e", BEGAN)
        case 7:
            after = chance.choice(list(Activity))
            return await c.fetchval(sql.rest, "e", event.activity, after, number)
        case 8:
            return await store.watched(c, "", 10)
        case 9:
            return await store.used(c, "e"), await store.place_of_person(c, "e", pid)
        case 10:
            return await store.find_place(c, "e", pid), await c.fetchval(sql.new_offer)
        case _:
            await c.execute(sql.draw, "e")
            return await store.lock_event(c, "e")


@pytest.mark.parametrize("seed", range(2))
async def test_its_rows_change_as_in_postgresql(database: Database, seed: int) -> None:
    chances = random.Random(seed), random.Random(seed)
    async with database.connection() as c:
        made = await c.fetchrow(
            sql.add_event,
            "e",
            None,
            2,
            None,
            None,
            "fifo",
            3600,
            False,
            False,
            SECRET,
            datetime(2026, 3, 2, tzinfo=UTC),
        )
        assert made
        double: Any = Connection(Rows({k: v for k, v in dict(made).items() if k != "owner_id"}), (), BEGAN)
        for _ in range(300):
            asked = [await random_statement(chances[0], c), await random_statement(chances[1], double)]
            assert asked[0] == asked[1]
