"""8,000 waiting people who listen to one API process: the memory of each stream, and how late a change reaches them.

They join one event and open a stream each, past the front door, so that what is measured is the API's process. Then
people at the front leave: those near it are told at once, those far back at the pace at which they would poll.

    python bench/waiting_streams.py [--streams 8000]
"""

import argparse
import asyncio
import os
import pathlib
import sys
import time
from collections.abc import Awaitable, Callable

import aiohttp

sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))

from tests.places import a_place
from tests.platform import ADMIN_TOKEN, Platform, running

TOGETHER = 50  # requests under way
IN_ORDER, NEAR = 100, 98  # whose places are known; who are told at once, after the first one has left
LEAVING, PAUSE = 50, 0.2  # seconds
TICKS = os.sysconf("SC_CLK_TCK")


def memory_kb(pid: int) -> int:
    lines = pathlib.Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("Pss:")).split()[1])


def processor_seconds(pid: int) -> float:
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


class Listeners:
    def __init__(self, socket_path: str, tokens: list[str]) -> None:
        self._path = socket_path
        self._tokens = tokens
        self.told = [0] * len(tokens)
        self._tasks: list[asyncio.Task[None]] = []

    async def open(self, start: int, end: int) -> None:
        loop = asyncio.get_running_loop()
        opened = [loop.create_future() for _ in range(start, end)]
        numbered = zip(range(start, end), opened, strict=True)
        self._tasks += [asyncio.create_task(self._listen(n, future)) for n, future in numbered]
        await asyncio.gather(*opened)

    async def _listen(self, n: int, opened: "asyncio.Future[None]") -> None:
        reader, writer = await asyncio.open_unix_connection(self._path)
        target = f"/api/v1/queue/stream?token={self._tokens[n]}"
        writer.write(f"GET {target} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode())
        while line := await reader.readline():
            if line.startswith(b"data:"):
                self.told[n] += 1
                if not opened.done():
                    opened.set_result(None)

    async def until_told(self, before: list[int], first: int, last: int) -> None:
        while any(self.told[n] == before[n] for n in range(first, last)):  # noqa: ASYNC110 (thousands of them)
            await asyncio.sleep(0.02)

    def close(self) -> None:
        for task in self._tasks:
            task.cancel()


async def measure(platform: Platform, count: int) -> None:
    path, pid = str(platform.data_dir / "run" / "api" / "api.sock"), platform.children()["api"]
    bearer = {"Authorization": f"Bearer {ADMIN_TOKEN}"}
    connector = aiohttp.UnixConnector(path, limit=TOGETHER)
    async with aiohttp.ClientSession("http://127.0.0.1", connector=connector, headers=bearer) as admin:
        async with admin.put("/api/v1/queue/events/big", json={"capacity": 0}) as answer:
            assert answer.status == 201

        async def join(n: int) -> str:
            async with admin.post("/api/v1/queue/join", json={"event_id": "big", "user_id": f"p{n}"}) as answer:
                return str((await answer.json())["waiting_token"])

        async def leave(n: int) -> None:
            async with admin.delete("/api/v1/queue/leave", params={"token": tokens[n]}) as answer:
                assert answer.status == 204

        tokens = [await join(n) for n in range(IN_ORDER)]
        for start in range(IN_ORDER, count, TOGETHER):
            tokens += await asyncio.gather(*(join(n) for n in range(start, min(count, start + TOGETHER))))
        listeners, before = Listeners(path, tokens), memory_kb(pid)
        for start in range(0, count, TOGETHER):
            await listeners.open(start, min(count, start + TOGETHER))
        await asyncio.sleep(3)
        each = (memory_kb(pid) - before) / count
        print(f"{count} streams: {before / 1024:.0f} MB before, {each:.1f} KB each")
        await report(pid, listeners, leave)
        listeners.close()


async def report(pid: int, listeners: Listeners, leave: Callable[[int], Awaitable[None]]) -> None:
    used = processor_seconds(pid)
    await asyncio.sleep(10)
    print(f"nothing happens: {10 * (processor_seconds(pid) - used):.0f} % of a core")
    before, begun = list(listeners.told), time.monotonic()
    await leave(0)
    await listeners.until_told(before, 1, NEAR)
    print(f"one left: those near the front were told within {time.monotonic() - begun:.2f} s", end="")
    await listeners.until_told(before, 1, len(before))
    print(f", all within {time.monotonic() - begun:.1f} s")
    used, begun = processor_seconds(pid), time.monotonic()
    for n in range(1, LEAVING + 1):
        await leave(n)
        await asyncio.sleep(PAUSE)
    took = time.monotonic() - begun
    print(f"{LEAVING / took:.1f} leave a second: {100 * (processor_seconds(pid) - used) / took:.0f} % of a core")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--streams", type=int, default=8000)
    count = parser.parse_args().streams
    with a_place() as folder, running(folder / "data", CODEHUB_DRAIN_SECONDS="1") as platform:
        asyncio.run(measure(platform, count))


main()
