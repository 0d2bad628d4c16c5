"""Many readers of event streams in one process, for `bench/events.py`: checks what each gets, and how late.

Reads from its standard input one line of JSON, `{"ports": {name: port}, "streams": [[name, person, token], …]}`;
answers with a line when all are open; then a line `mark` begins a new measurement and is answered by the results of
the last.
"""

import asyncio
import json
import sys
import time
from collections import Counter
from typing import Any

import uvloop

AT_ONCE = 20  # streams being opened


class Reader(asyncio.Protocol):
    """One stream. A change is a workspace's name: `PERSON NUMBER SECONDS`."""

    def __init__(self, side: str, person: str, token: str, results: "Results") -> None:
        self._side = side
        self._person = person
        self._token = token
        self._results = results
        self._rest = b""
        self._last = 0
        self.opened = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: Any) -> None:
        head = f"GET /api/v1/events HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {self._token}\r\n\r\n"
        transport.write(head.encode())

    def data_received(self, data: bytes) -> None:
        now = time.monotonic()
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            if line.startswith(b'data: {"id"'):
                self._take(json.loads(line[6:])["name"], now)
            elif line.startswith(b"event: "):
                self._results.kinds[line[7:].decode().strip()] += 1
                if not self.opened.done():
                    self.opened.set_result(None)

    def _take(self, name: str, now: float) -> None:
        person, number, moment = name.split()
        if person != self._person:
            self._results.wrong["of another person"] += 1
        elif int(number) != self._last + 1:
            self._results.wrong["out of order or lost"] += 1
        self._last = int(number)
        self._results.late.setdefault(self._side, []).append(now - float(moment))

    def connection_lost(self, _exc: Exception | None) -> None:
        self._results.wrong["closed"] += 1


class Results:
    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        self.late: dict[str, list[float]] = {}
        self.wrong: Counter[str] = Counter()
        self.kinds: Counter[str] = Counter()

    def as_json(self) -> str:
        return json.dumps({"late": self.late, "wrong": self.wrong, "kinds": self.kinds})


async def main() -> None:
    loop = asyncio.get_running_loop()
    plan = json.loads(await loop.run_in_executor(None, sys.stdin.readline))
    results, places = Results(), asyncio.Semaphore(AT_ONCE)

    async def open_one(side: str, person: str, token: str) -> None:
        async with places:
            reader = Reader(side, person, token, results)
            await loop.create_connection(lambda: reader, "127.0.0.1", plan["ports"][side])
            async with asyncio.timeout(60):
                await reader.opened

    await asyncio.gather(*(open_one(*stream) for stream in plan["streams"]))
    print("open", flush=True)
    while (await loop.run_in_executor(None, sys.stdin.readline)).strip() == "mark":
        print(results.as_json(), flush=True)
        results.clear()


if __name__ == "__main__":
    uvloop.run(main())
