"""Thousands of open streams of waiting people in one API process: what each takes, and how soon all know of a step.

A part of `waiting_room`. The API is `codehub api`, on one core; the readers (`_stream_clients`) are on the other, with
Redis. Those in front of all who listen enter one after the other, and each step moves everybody by one. How soon a
stream says so depends on how far it is from its turn, as with polls; here the forecast is short enough for all of them
to be told at once, which is the most that can be asked for.
"""

import asyncio
import json
import pathlib
import statistics
import sys
import time
from collections.abc import Sequence
from typing import Any

import aiohttp
from tests.platform import clean_environment

from bench import _waiting
from bench._proxies import LOAD_CORE, PROXY_CORE, SECRET, Lab, go_first, pin
from bench._waiting import TIMES, Room
from bench.events import Api
from codehub.waiting_room import eta

CLIENTS = 4  # processes
OPEN_SECONDS, REACH_SECONDS = 240, 60
SETTLE_SECONDS = 2.0


class Clients:
    def __init__(self, processes: Sequence[asyncio.subprocess.Process]) -> None:
        self._processes = processes

    @classmethod
    async def open(cls, port: int, tokens: Sequence[str]) -> "Clients":
        script = str(pathlib.Path(__file__).with_name("_stream_clients.py"))
        pipe = asyncio.subprocess.PIPE
        processes = []
        for number in range(CLIENTS):
            process = await asyncio.create_subprocess_exec(
                *("taskset", "-c", LOAD_CORE, sys.executable, script),
                stdin=pipe,
                stdout=pipe,
                limit=2**26,
                start_new_session=True,
            )
            go_first(process.pid)
            assert process.stdin
            process.stdin.write(json.dumps({"port": port, "tokens": tokens[number::CLIENTS]}).encode() + b"\n")
            processes.append(process)
        clients = cls(processes)
        answers = await asyncio.wait_for(clients._lines(), OPEN_SECONDS)
        if any(line != b"open\n" for line in answers):
            raise SystemExit("not all streams could be opened")
        return clients

    async def _lines(self) -> list[bytes]:
        return await asyncio.gather(*(p.stdout.readline() for p in self._processes if p.stdout))

    async def moved(self) -> tuple[list[float], int]:
        """When each stream said the new position first, since the last time it was asked; how many said a wrong one."""
        for process in self._processes:
            assert process.stdin
            process.stdin.write(b"mark\n")
        said: list[dict[str, Any]] = [json.loads(line) for line in await self._lines()]
        return [moment for one in said for moment in one["moved"]], sum(one["wrong"] for one in said)

    async def close(self) -> None:
        for process in self._processes:
            if process.stdin:
                process.stdin.close()
            try:
                await asyncio.wait_for(process.wait(), 10)
            except TimeoutError:
                process.kill()
                await process.wait()


async def prepare(room: Room, event: str, entering: int) -> None:
    """Offers for those in front; then a forecast of which nobody is told to ask later than at once."""
    await room.only(event)
    await room.add_place(event, entering)
    await room.pump.tick()
    knots = [eta.Knot(0, 0, 1, 5), eta.Knot(1_000_000, 5, 15, 60)]
    near = eta.written(eta.Table(time.time(), 0.0, False, 0, knots))
    await room.line.configure(event, paused=False, lottery=False, eta=near)


async def enter(api: Api, token: str) -> float:
    """When it was asked for."""
    async with aiohttp.ClientSession(f"http://127.0.0.1:{api.port}") as session:
        begun = time.monotonic()
        async with session.post("/api/v1/queue/enter", json={"waiting_token": token}) as answer:
            assert answer.status == 200, await answer.text()
        return begun


async def reach(clients: Clients, count: int) -> tuple[list[float], int]:
    """When each has heard of it."""
    moved: list[float] = []
    wrong, deadline = 0, time.monotonic() + REACH_SECONDS
    while len(moved) < count and time.monotonic() < deadline:
        await asyncio.sleep(0.25)
        more, bad = await clients.moved()
        moved += more
        wrong += bad
    return moved, wrong + count - len(moved)


async def measure(lab: Lab, event: str, streams: int, rounds: int) -> None:
    environment = clean_environment(
        CODEHUB_DATA_DIR=str(lab.folder / "api"),
        CODEHUB_DATABASE_URL=lab.servers.database_url,
        CODEHUB_REDIS_URL=lab.servers.redis_url,
        CODEHUB_SECRET_KEY=SECRET,
        CODEHUB_LOG_LEVEL="warning",
        QUEUE_STREAMS=str(streams),
        **TIMES,
    )
    tokens = _waiting.tokens(event, range(streams + rounds))
    api = await Api.start("api", environment)
    try:
        async with _waiting.room(lab) as room:
            await prepare(room, event, rounds)
        pin(api.process.pid, PROXY_CORE)
        go_first(api.process.pid)
        before, begun, used = api.memory(), time.monotonic(), api.cpu()
        clients = await Clients.open(api.port, tokens[rounds:])
        took, used = time.monotonic() - begun, api.cpu() - used
        try:
            await asyncio.sleep(SETTLE_SECONDS)
            each = (api.memory() - before) * 1024 / streams
            print(
                f"{streams:,} streams in one API process: opened in {took:.1f} s ({used / streams * 1e3:.2f} ms of its",
                end="",
            )
            print(f" core each), {each:.1f} KB of memory each ({before:.0f} to {api.memory():.0f} MB)", flush=True)
            await follow(api, clients, tokens[:rounds], streams)
        finally:
            await clients.close()
    finally:
        api.stop()


async def follow(api: Api, clients: Clients, entering: Sequence[str], streams: int) -> None:
    late: list[float] = []
    slowest, costs = [], []
    wrong = 0
    for token in entering:
        used = api.cpu()
        begun = await enter(api, token)
        moved, bad = await reach(clients, streams)
        costs.append((api.cpu() - used) / streams * 1e6)
        wrong += bad
        late += [moment - begun for moment in moved]
        slowest.append(max(moved, default=begun) - begun)
    late.sort()
    p50, p99 = (late[int(len(late) * share)] for share in (0.5, 0.99))
    print(f"an admission is known in all {streams:,} streams after {statistics.median(slowest):.2f} s", end=" ")
    print(
        f"({min(slowest):.2f}–{max(slowest):.2f}, {len(slowest)} rounds); in each: p50 {p50:.2f} s, p99 {p99:.2f} s;",
        end=" ",
    )
    print(f"{statistics.median(costs):.0f} µs of the API's core a stream; wrong or missing: {wrong}", flush=True)
