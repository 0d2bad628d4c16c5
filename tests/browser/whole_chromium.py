"""A whole Chromium that treats hidden tabs as everybody's does, driven over its own protocol.

Playwright tells each of its pages that it is seen, and the headless shell hides none: neither throttles anything.
"""

import asyncio
import contextlib
import itertools
import pathlib
import re
import tempfile
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import aiohttp

from tests.browser.conftest import FLAGS, WAIT_MS, WHOLE, find_chromium

START_SECONDS = 60.0
# Chromium lets a timer that was set by a timer that was set by a timer … (five deep) run once a minute in a page that
# has been hidden for long, and others once a second. This makes every timer of a page one of the first kind.
DEEP_TIMERS = """{
  const plain = window.setTimeout, ids = new Map(); let last = 1e9;
  window.setTimeout = (work, delay, ...rest) => {
    const id = ++last;
    const done = () => { ids.delete(id); work(...rest); };
    const dive = (deep) => ids.set(id, deep ? plain(dive, 0, deep - 1) : plain(done, delay));
    dive(6);
    return id;
  };
  const end = window.clearTimeout;
  window.clearTimeout = (id) => { end(ids.get(id) ?? id); ids.delete(id); };
}"""


@dataclass
class Tab:
    browser: "WholeChromium"
    target: str
    session: str
    window: str  # the browser context in which it is

    async def send(self, method: str, **params: Any) -> Any:
        return await self.browser.send(method, self.session, **params)

    async def read(self, expression: str) -> Any:
        said = await self.send("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        return said["result"].get("value")

    async def wait_for(self, expression: str, seconds: float = WAIT_MS / 1000) -> Any:
        """Until it is true; a page that is being loaded has no answer yet."""
        async with asyncio.timeout(seconds):
            while True:
                with contextlib.suppress(RuntimeError):
                    if found := await self.read(expression):
                        return found
                await asyncio.sleep(0.2)

    async def go(self, address: str) -> None:
        await self.send("Page.navigate", url=address)
        await self.wait_for(f"location.href === {address!r} && document.readyState === 'complete'")

    async def click(self, selector: str) -> None:
        await self.wait_for(f"Boolean(document.querySelector({selector!r}))")
        await self.read(f"document.querySelector({selector!r}).click()")

    async def hide(self) -> None:
        """By another tab of the same window, as people do."""
        other = await self.browser.open(self.window)
        await other.show()
        await self.wait_for("document.hidden")

    async def show(self) -> None:
        await self.browser.send("Target.activateTarget", targetId=self.target)


class WholeChromium:
    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self._socket = socket
        self._ids = itertools.count(1)
        self._answers: dict[int, asyncio.Future[Any]] = {}

    async def send(self, method: str, session: str = "", **params: Any) -> Any:
        id_ = next(self._ids)
        answer = self._answers[id_] = asyncio.get_running_loop().create_future()
        message = {"id": id_, "method": method, "params": params}
        await self._socket.send_json({**message, "sessionId": session} if session else message)
        async with asyncio.timeout(WAIT_MS / 1000):
            said = await answer
        if "error" in said:
            raise RuntimeError(f"{method}: {said['error']}")
        return said["result"]

    async def listen(self) -> None:
        async for message in self._socket:
            said = message.json()
            if (waiting := self._answers.pop(said.get("id", 0), None)) and not waiting.done():
                waiting.set_result(said)

    async def open(self, window: str = "") -> Tab:
        """A tab in front of its window; without one, in a window with cookies of its own."""
        window = window or (await self.send("Target.createBrowserContext"))["browserContextId"]
        made = await self.send("Target.createTarget", url="about:blank", browserContextId=window)
        session = await self.send("Target.attachToTarget", targetId=made["targetId"], flatten=True)
        return Tab(self, made["targetId"], session["sessionId"], window)


@contextlib.asynccontextmanager
async def whole_chromium() -> AsyncIterator[WholeChromium]:
    found = find_chromium(*WHOLE)
    assert found
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        flags = [
            "--headless=new",
            *FLAGS,
            "--remote-debugging-port=0",
            f"--user-data-dir={pathlib.Path(folder) / 'profile'}",
        ]
        process = await asyncio.create_subprocess_exec(found, *flags, stderr=asyncio.subprocess.PIPE)
        try:
            async with (
                aiohttp.ClientSession() as client,
                client.ws_connect(await _address(process), max_msg_size=0) as ws,
            ):
                browser = WholeChromium(ws)
                listening = asyncio.create_task(browser.listen())
                yield browser
                with contextlib.suppress(TimeoutError, ConnectionError):
                    await browser.send("Browser.close")
                listening.cancel()
        finally:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await process.wait()


async def _address(process: asyncio.subprocess.Process) -> str:
    assert process.stderr
    async with asyncio.timeout(START_SECONDS):
        while line := (await process.stderr.readline()).decode(errors="replace"):
            if found := re.search(r"ws://\S+", line):
                return found[0]
    raise RuntimeError("Chromium ended before it was ready")
