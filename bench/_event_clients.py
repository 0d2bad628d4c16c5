"""Many readers of event streams in one process, for `bench/events.py`: checks what each gets, and how late.

Reads from its standard input one line of JSON, `{"ports": {name: port}, "streams": [[name, person, token], …]}`;
answers with a line when all are open; then a line `mark` begins a new measurement and is answered by the results of
the last.
"""

import asyncio
import functools
import json
import sys
import time
from collections import Counter
from typing import Any

import uvloop

AT_ONCE = 10  # streams being opened


class Reader(asyncio.Protocol):
    """One stream. A change is a workspace's name: `PERSON NUMBER SECONDS`."""

    def __init__(self, side: str, person: str, token: str, results: "Results") -> None:
        self._side = side
        self.person = person
        self._token = token
        self._results = results
        self._rest = b""
        self.last = 0
        results.readers.append(self)
        self._transport: Any = None
        self.opened: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def itself(self) -> "Reader":
        return self

    def connection_made(self, transport: Any) -> None:
        head = f"GET /api/v1/events HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {self._token}\r\n\r\n"
        self._transport = transport
        transport.write(head.encode())

    def data_received(self, data: bytes) -> None:
        now = time.monotonic()
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            if line == b"0\r" or (line.startswith(b"HTTP/1.1 ") and b" 200 " not in line):
                self._transport.close()  # the end of the answer, or a refusal
            elif line.startswith(b'data: {"id"'):
                self._take(json.loads(line[6:])["name"], now)
            elif line.startswith(b"event: "):
                if line == b"event: reset":
                    self._results.wrong["reset"] += 1
                if not self.opened.done():
                    self.opened.set_result(None)

    def _take(self, name: str, now: float) -> None:
        person, number, moment = name.split()
        if person != self.person:
            self._results.wrong["of another person"] += 1
        elif int(number) < self.last:  # the same again is one that was told with the one before it
            self._results.wrong["out of order"] += 1
        self.last = int(number)
        self._results.late.setdefault(self._side, []).append(now - float(moment))

    def connection_lost(self, _exc: Exception | None) -> None:
        if self.opened.done():
            self._results.wrong["closed"] += 1
        else:
            self.opened.set_exception(ConnectionError("refused"))


class Results:
    def __init__(self) -> None:
        self.refused = 0
        self.readers: list[Reader] = []
        self.clear()

    def clear(self) -> None:
        self.late: dict[str, list[float]] = {}
        self.wrong: Counter[str] = Counter()

    def as_json(self) -> str:
        last: dict[str, int] = {}  # that all streams of a person have got
        for reader in self.readers:
            last[reader.person] = min(last.get(reader.person, reader.last), reader.last)
        return json.dumps({"late": self.late, "wrong": self.wrong, "last": last})


async def main() -> None:
    loop = asyncio.get_running_loop()
    plan = json.loads(await loop.run_in_executor(None, sys.stdin.readline))
    results, places = Results(), asyncio.Semaphore(AT_ONCE)

    async def open_one(side: str, person: str, token: str) -> None:
        async with places:
            while True:
                reader = Reader(side, person, token, results)
                await loop.create_connection(functools.partial(Reader.itself, reader), "127.0.0.1", plan["ports"][side])
                try:
                    async with asyncio.timeout(60):
                        await reader.opened
                except ConnectionError:
                    results.readers.remove(reader)
                    results.refused += 1
                    await asyncio.sleep(1)
                else:
                    return

    await asyncio.gather(*(open_one(*stream) for stream in plan["streams"]))
    print(f"open, {results.refused} attempts in vain", flush=True)
    while (await loop.run_in_executor(None, sys.stdin.readline)).strip() == "mark":
        print(results.as_json(), flush=True)
        results.clear()


if __name__ == "__main__":
    uvloop.run(main())
