"""Many readers of waiting people's streams in one process, for `_waiting_streams`: who is told what, and when.

Reads from its standard input one line of JSON, `{"port": port, "tokens": […]}`; answers `open` when all are open; then
a line `mark` is answered by what has come since the last one.
"""

import asyncio
import functools
import json
import sys
import time
from typing import Any

import uvloop

AT_ONCE = 10  # streams being opened


class Reader(asyncio.Protocol):
    """One stream. Every step ahead is one place."""

    def __init__(self, token: str, results: "Results") -> None:
        self._token = token
        self._results = results
        self._rest = b""
        self._position = 0
        self.opened: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def itself(self) -> "Reader":
        return self

    def connection_made(self, transport: Any) -> None:
        target = f"/api/v1/queue/stream?token={self._token}"
        transport.write(f"GET {target} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())

    def data_received(self, data: bytes) -> None:
        now = time.monotonic()
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            if line.startswith(b"HTTP/1.1 ") and b" 200 " not in line:
                self._fail(line.decode())
            elif line.startswith(b"data: "):
                self._take(json.loads(line[6:])["position"], now)

    def _take(self, position: int, now: float) -> None:
        if not self.opened.done():
            self.opened.set_result(None)
        elif position == self._position - 1:
            self._results.moved.append(now)
        elif position != self._position:  # the same again is a heartbeat
            self._results.wrong += 1
        self._position = position

    def connection_lost(self, _exc: Exception | None) -> None:
        self._fail("closed")

    def _fail(self, why: str) -> None:
        if self.opened.done():
            self._results.wrong += 1
        else:
            self.opened.set_exception(ConnectionError(why))


class Results:
    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        self.moved: list[float] = []
        self.wrong = 0


async def main() -> None:
    loop = asyncio.get_running_loop()
    plan = json.loads(await loop.run_in_executor(None, sys.stdin.readline))
    results, places = Results(), asyncio.Semaphore(AT_ONCE)

    async def open_one(token: str) -> Reader:
        async with places:
            reader = Reader(token, results)
            await loop.create_connection(functools.partial(Reader.itself, reader), "127.0.0.1", plan["port"])
            await asyncio.wait_for(reader.opened, 60)
            return reader

    await asyncio.gather(*(open_one(token) for token in plan["tokens"]))
    print("open", flush=True)
    while (await loop.run_in_executor(None, sys.stdin.readline)).strip() == "mark":
        print(json.dumps({"moved": results.moved, "wrong": results.wrong}), flush=True)
        results.clear()


if __name__ == "__main__":
    uvloop.run(main())
