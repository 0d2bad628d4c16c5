"""The whole waiting room in real time: people over HTTP, API processes killed with -9, Redis in trouble, two pumps."""

import asyncio
import contextlib
import pathlib
import random
import time
from collections.abc import AsyncIterator

import aiohttp
import pytest

from codehub.clock import SystemClock
from codehub.db import Database
from codehub.db.redis import open_redis
from codehub.settings import QueueConfig, Settings
from codehub.waiting_room.tokens import Tokens
from tests.platform import ADMIN_TOKEN
from tests.sessions.processes import Fleet, fleet
from tests.waiting_room import recording
from tests.waiting_room.campaign import UndoneError
from tests.waiting_room.crowd import Person
from tests.waiting_room.hall import Hall
from tests.waiting_room.histories import How, Kind, Times, timeline
from tests.waiting_room.recording import Recorder
from tests.waiting_room.valkeys import Valkeys
from tests.waiting_room.verdicts import judge

EVENT = "crowd"
SECONDS = 90.0
PEOPLE = 10
CONFIG = QueueConfig(offer_seconds=4.0, silent_seconds=6.0, heartbeat_seconds=20)
TIMES = Times(silent=6.0, heartbeat=20.0, offer=4.0, survived_hold=6.0, unseen=0.3)
SHORT = {"QUEUE_OFFER_SECONDS": "4", "QUEUE_SILENT_SECONDS": "6", "QUEUE_HEARTBEAT_SECONDS": "20"}


@pytest.fixture
async def valkeys(tmp_path: pathlib.Path) -> AsyncIterator[Valkeys]:
    started = Valkeys(tmp_path)
    yield started
    started.end()


async def people(all_: Fleet, recorder: Recorder, chance: random.Random) -> list[Person]:
    admin = {"Authorization": f"Bearer {ADMIN_TOKEN}"}
    url = f"{all_.processes[0].url}/api/v1/users"
    made = []
    for number in range(PEOPLE):
        name = f"person{number}"
        async with all_.client.post(url, json={"name": name, "role": "learner"}, headers=admin) as answer:
            assert answer.status == 201, await answer.text()
        async with all_.client.post(f"{url}/{name}/tokens", json={}, headers=admin) as answer:
            token = (await answer.json())["token"]
        urls = lambda: [p.url for p in all_.processes if p.process.poll() is None]  # noqa: E731
        made.append(Person(name, token, urls, recorder, chance))
    return made


async def pump(hall: Hall, recorder: Recorder, until: float) -> None:
    while time.time() < until:
        await recorder.call(Kind.PUMP, "", "", tick(hall))
        await asyncio.sleep(0.5)


async def tick(hall: Hall) -> None:
    if (await hall.pump.tick()).stats["failed"]:
        raise UndoneError("a part of a tick failed")


async def trouble(all_: Fleet, valkeys: Valkeys, recorder: Recorder, chance: random.Random, until: float) -> None:
    while time.time() < until:
        await asyncio.sleep(chance.uniform(4, 9))
        begin = time.time()
        match chance.choice(("api", "api", "emptied", "restarted", "failed over", "stopped")):
            case "api":
                victim = chance.choice([p for p in all_.processes if p.process.poll() is None])
                victim.process.kill()
                await all_.start(1)
            case "emptied":
                valkeys.ask("FLUSHALL")
                recorder.lost(How.EMPTIED, begin, begin)
            case "restarted":
                valkeys.restart()
                recorder.lost(How.RESTARTED, begin, begin)
            case "failed over":
                await valkeys.fail_over(0.3)
                recorder.lost(How.FAILED_OVER, begin, begin)
            case _:
                await valkeys.stop_for(2.0)
                recorder.lost(How.AWAY, begin, begin)


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(3))
async def test_a_crowd_is_served_fairly_whatever_is_killed(
    database_url: str, database: Database, settings: Settings, valkeys: Valkeys, tmp_path: pathlib.Path, seed: int
) -> None:
    await recording.install(database_url)
    chance, clock = random.Random(seed), SystemClock()
    recorder = Recorder(EVENT, Tokens(str(settings.auth.secret_key)), time.time)
    recorder.history.times = TIMES
    async with contextlib.AsyncExitStack() as stack:
        all_ = await stack.enter_async_context(fleet(settings, tmp_path, 0))
        all_.environment.update(SHORT, CODEHUB_REDIS_URL=valkeys.url)
        await all_.start(3)
        halls = []
        for _ in range(2):
            client = await stack.enter_async_context(open_redis(valkeys.url))
            halls.append(Hall(database, client, clock, CONFIG))  # type: ignore[arg-type]
        await halls[0].event(3, EVENT)
        crowd = await people(all_, recorder, chance)
        http = await stack.enter_async_context(aiohttp.ClientSession())
        end = time.time() + SECONDS
        await asyncio.gather(
            trouble(all_, valkeys, recorder, chance, end - 30),  # what comes back, comes back before the end
            *(pump(hall, recorder, end) for hall in halls),
            *(person.live(http, end - 1) for person in crowd),
        )
        for person in crowd:
            await person.finally_asked(http)
        for hall in halls:
            await hall.aclose()
    history = await recorder.gather(database)
    found = judge(history)
    if found:
        print(timeline(history))
    entered = sum(op.kind is Kind.ENTER and op.reservation != "" for op in history.ops)
    print(f"{len(history.ops)} calls, {entered} entered, {len(history.changes)} changes, {len(history.losses)} losses")
    assert [str(violation) for violation in found] == []
    assert entered > PEOPLE
