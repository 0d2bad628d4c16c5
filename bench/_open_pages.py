"""Open pages of many people in one process, for `bench/open_pages.py`: each holds its event stream, as a browser does.

Reads one line of JSON, `{"port": …, "peer": …, "pages": [[person, cookie], …]}`, answers with a line when all are open;
then each line `mark` is answered by what came since the last one, in seconds of the clock that all processes share.
"""

import asyncio
import contextlib
import json
import random
import sys
import time
from dataclasses import dataclass, field

import aiohttp
import uvloop

TOGETHER = 0.12  # seconds, as `static/codehub.js` waits before it asks for the page again
SPREAD = 3.0  # the same, for news of a whole class
NEWS = {b"event: workspace_updated", b"event: plan_updated"}
PAGE = "/learn"


@dataclass
class Seen:
    events: dict[str, list[float]] = field(default_factory=dict)  # person → when each was there
    pages: dict[str, list[float]] = field(default_factory=dict)
    peer: list[float] = field(default_factory=list)


class Page:
    def __init__(self, person: str, client: aiohttp.ClientSession, seen: list[Seen]) -> None:
        self._person, self._client, self._seen = person, client, seen
        self._planned: asyncio.Task[None] | None = None

    async def hold(self, opened: asyncio.Event) -> None:
        async with self._client.get("/api/v1/events") as answer:
            assert answer.status == 200, await answer.text()
            async for line in answer.content:
                opened.set()  # it begins by saying where it is
                if line.strip() in NEWS:
                    self._seen[0].events.setdefault(self._person, []).append(time.monotonic())
                    if self._planned is None or self._planned.done():
                        spread = random.uniform(0, SPREAD) if b"plan" in line else 0.0
                        self._planned = asyncio.create_task(self._look(TOGETHER + spread))

    async def _look(self, delay: float) -> None:
        await asyncio.sleep(delay)
        async with self._client.get(PAGE, headers={"Accept": "text/html"}) as answer:
            assert answer.status == 200, (answer.status, (await answer.text())[:400])
            await answer.read()
        self._seen[0].pages.setdefault(self._person, []).append(time.monotonic())


async def listen_to_peer(port: int, seen: list[Seen]) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(b"listen\n")
    while await reader.readline():
        seen[0].peer.append(time.monotonic())


async def main() -> None:
    loop = asyncio.get_running_loop()
    plan = json.loads(await loop.run_in_executor(None, sys.stdin.readline))
    seen, places = [Seen()], asyncio.Semaphore(20)
    timeout = aiohttp.ClientTimeout(total=None, sock_read=None)
    async with contextlib.AsyncExitStack() as stack, asyncio.TaskGroup() as group:

        async def open_one(person: str, cookie: str) -> None:
            """With a cookie, as a browser: the front door gives each login its share."""
            jar = aiohttp.CookieJar(unsafe=True)
            name, _, value = cookie.partition("=")
            jar.update_cookies({name: value})
            client = aiohttp.ClientSession(f"http://localhost:{plan['port']}", cookie_jar=jar, timeout=timeout)
            page, opened = Page(person, await stack.enter_async_context(client), seen), asyncio.Event()
            async with places:
                tasks.append(group.create_task(page.hold(opened)))
                await opened.wait()

        tasks: list[asyncio.Task[None]] = []
        await asyncio.gather(*(open_one(person, cookie) for person, cookie in plan["pages"]))
        tasks += [group.create_task(listen_to_peer(plan["peer"], seen)) for _ in plan["pages"]]
        print("open", flush=True)
        while (await loop.run_in_executor(None, sys.stdin.readline)).strip() == "mark":
            found, seen[0] = seen[0], Seen()
            print(json.dumps(vars(found)), flush=True)
        for task in tasks:
            task.cancel()


if __name__ == "__main__":
    uvloop.run(main())
