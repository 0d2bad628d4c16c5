"""Debian's Chromium, driven through its own debugging protocol: a tab that can be left alone, in front or behind.

Not Playwright: it makes every page believe that it is visible and focused, and what a hidden tab sends is half of the
question here.
"""

import asyncio
import contextlib
import itertools
import pathlib
import shutil
import tempfile
from collections.abc import AsyncIterator
from typing import Any
from urllib.parse import quote

import aiohttp

PROGRAM = "/usr/bin/chromium"
OPTIONS = [
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--window-size=1400,900",
    "--disable-dev-shm-usage",
]
PATIENCE_SECONDS = 120.0
CONTROL, SHIFT = 2, 8
KEYS = {
    "Enter": ("Enter", 13, "\r"),
    "Escape": ("Escape", 27, ""),
    "F1": ("F1", 112, ""),
    "`": ("Backquote", 192, ""),
    "s": ("KeyS", 83, ""),
}


class Tab:
    """One page. What it is asked to do is done as by a hand: real key and mouse events."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self._socket = socket
        self._numbers = itertools.count(1)

    async def ask(self, method: str, **parameters: Any) -> Any:
        number = next(self._numbers)
        await self._socket.send_json({"id": number, "method": method, "params": parameters})
        async with asyncio.timeout(PATIENCE_SECONDS):
            while True:
                answer = await self._socket.receive_json()
                if answer.get("id") == number:
                    return answer.get("result") or _refused(answer)

    async def evaluate(self, script: str) -> Any:
        result = (await self.ask("Runtime.evaluate", expression=script, returnByValue=True))["result"]
        return result.get("value")

    async def until(self, script: str, seconds: float = PATIENCE_SECONDS) -> None:
        """Until this is true in the page."""
        try:
            async with asyncio.timeout(seconds):
                while not await self.evaluate(f"Boolean({script})"):
                    await asyncio.sleep(0.2)
        except TimeoutError:
            shown = await self.evaluate("document.body.innerText.slice(0, 2000)")
            raise AssertionError(f"never came true: {script}\n{shown}") from None

    async def click(self, selector: str, *, times: int = 1) -> None:
        shown = "e => e.getBoundingClientRect().width > 0"
        found = f"[...document.querySelectorAll({selector!r})].find({shown})"
        await self.until(f"document.readyState === 'complete' && {found}")  # before, things still move
        x, y = await self.evaluate(
            f"(() => {{ const r = {found}.getBoundingClientRect(); return [r.x + r.width / 2, r.y + r.height / 2] }})()"
        )
        await self.ask("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)
        for count in range(1, times + 1):
            for kind in ("mousePressed", "mouseReleased"):
                await self.ask("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=count)

    async def press(self, key: str, modifiers: int = 0) -> None:
        code, number, text = KEYS[key]
        what = {"key": key, "code": code, "windowsVirtualKeyCode": number, "modifiers": modifiers}
        await self.ask("Input.dispatchKeyEvent", type="keyDown" if text else "rawKeyDown", text=text, **what)
        await self.ask("Input.dispatchKeyEvent", type="keyUp", **what)

    async def write(self, text: str) -> None:
        for letter in text:
            await self.ask("Input.dispatchKeyEvent", type="keyDown", text=letter, key=letter)
            await self.ask("Input.dispatchKeyEvent", type="keyUp", key=letter)


def _refused(answer: Any) -> Any:
    """A page on its way to another has no context for a moment: whoever asked asks again."""
    assert "execution context" in answer.get("error", {"message": "execution context"})["message"], answer
    return {"result": {}}


class Browser:
    def __init__(self, session: aiohttp.ClientSession, stack: contextlib.AsyncExitStack) -> None:
        self._session = session
        self._stack = stack

    async def open(self, url: str) -> Tab:
        """A new tab, in front of all others."""
        answer = await self._session.put(f"/json/new?{quote(url, safe=':/?&=')}")
        target = await answer.json(content_type=None)
        where = target["webSocketDebuggerUrl"]
        socket = await self._stack.enter_async_context(self._session.ws_connect(where, max_msg_size=0))
        return Tab(socket)

    async def hide(self, tab: Tab) -> None:
        """Another tab comes in front of it."""
        await self.open("about:blank")
        await tab.until("document.visibilityState == 'hidden'")


@contextlib.asynccontextmanager
async def browser(*cookies: str) -> AsyncIterator[Browser]:
    folder = pathlib.Path(tempfile.mkdtemp(prefix="codehub-browser-"))
    process = await asyncio.create_subprocess_exec(
        *(PROGRAM, *OPTIONS, f"--user-data-dir={folder}", "--remote-debugging-port=0", "about:blank"),
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.DEVNULL,
    )
    try:
        port = await _port(folder / "DevToolsActivePort")
        async with aiohttp.ClientSession(f"http://127.0.0.1:{port}") as session, contextlib.AsyncExitStack() as stack:
            yield Browser(session, stack)
    finally:
        process.terminate()
        await process.wait()
        shutil.rmtree(folder, ignore_errors=True)


async def _port(file: pathlib.Path) -> int:
    async with asyncio.timeout(PATIENCE_SECONDS):
        while not (file.exists() and file.read_text().count("\n")):
            await asyncio.sleep(0.1)
    return int(file.read_text().split()[0])
