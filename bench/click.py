"""From the click on a sleeping workspace to the first byte of its IDE, and what of that is ours.

The real `codehub serve` wakes a small program that answers a little after its start, as an IDE does that is forked
from a warm parent. It is opened in the frame (`/open/ID`) and in a tab of its own (`/w/ID/`), by Chromium and by raw
HTTP. In turn with them runs the limit: the same program in the same sandbox, started by the runtime alone and asked
until it answers. The difference is what we add: requests, the database, the controller, the hand-over of the login.
On a busy machine the two differ by its moods, so the same is also read within each round: all but the time from the
operation's beginning until the program listens, which is the runtime's and the program's own.

    python bench/click.py [--rounds N] [--own SECONDS] [--steps]

`--steps` prints every request of the round in the middle.
"""

import argparse
import asyncio
import contextlib
import json
import os
import pathlib
import re
import statistics
import sys
import time
from collections.abc import AsyncIterator
from datetime import datetime

from playwright.async_api import BrowserContext, async_playwright

sys.path.pop(0)  # this folder, in which a library `click` would be this file
sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))

from tests.browser.conftest import FLAGS, SHELL, WHOLE, find_chromium
from tests.places import a_place
from tests.platform import Platform, running

from bench._click_browser import Chromium, Clicked, Program
from bench._platform import Api
from codehub.clock import SystemClock
from codehub.runtimes import connect
from codehub.runtimes.base import Workload
from codehub.runtimes.process import ProcessRuntime
from codehub.settings import RuntimeConfig
from codehub.templates.loader import Templates

# Small, so that little of what is measured is its own: no modules that a fresh interpreter has not loaded anyway.
IDE = """
import time; began = time.time()
import os, socket, sys
path, own = sys.argv[1], float(sys.argv[2])
time.sleep(own)
server = socket.socket(socket.AF_UNIX); server.bind(path); os.chmod(path, 0o660); server.listen(64)
listens, probed = time.time(), 0
while True:
    client, _ = server.accept()
    got = b""
    while b"\\r\\n\\r\\n" not in got:
        piece = client.recv(65536)
        if not piece: break
        got += piece
    asked = time.time(); probed = probed or asked
    said = f"began={began} listens={listens} probed={probed} asked={asked}"
    body = b"<!doctype html><title>IDE</title><p>ready"
    lines = ["HTTP/1.1 200 OK", "Content-Type: text/html", f"Content-Length: {len(body)}", f"X-Ide-Times: {said}"]
    client.sendall("\\r\\n".join([*lines, "Connection: close", "", ""]).encode() + body); client.close()
"""
STEPS = (
    "asked for",
    "operation begins",
    "program begins",
    "it listens",
    "first probe",
    "row says RUNNING",
    "first byte",
)
PAUSE_SECONDS = 0.3  # after it sleeps again: the ticks that follow a stop are not part of the next click


def write_templates(folder: pathlib.Path, own: float) -> pathlib.Path:
    folder.mkdir()
    command = json.dumps([sys.executable, "-I", "-S", "-c", IDE, "{socket}", str(own)])
    (folder / "click.toml").write_text(f'title = "click"\nactivity_profile = "plain"\n[process]\ncommand = {command}\n')
    return folder


class Bare:
    """The limit: the runtime's start, and nothing else of ours."""

    def __init__(self, folder: pathlib.Path, templates: pathlib.Path) -> None:
        config = RuntimeConfig(templates_dir=templates)
        self._runtime = ProcessRuntime(folder, config, None, SystemClock())
        self._workload = Workload("bare", "bench", Templates.load(templates, folder).require("click"), trusted=True)

    async def prepare(self) -> None:
        await self._runtime.create_volume("bare", "one")

    async def start(self) -> float:
        """Seconds from the call to the first answer."""
        begun = time.perf_counter()
        await self._runtime.start(self._workload)
        container = (await self._runtime.containers())["bare"]
        while True:
            with contextlib.suppress(OSError, ValueError):
                if await connect.status_of(container.address, "/") == 200:
                    return time.perf_counter() - begun
            await asyncio.sleep(0.001)

    async def stop(self) -> None:
        await self._runtime.stop("bare", 0.0)
        await self._runtime.close()


class Clicks:
    """One way to open it, and what came of it."""

    def __init__(self, by: Chromium | Program, where: str, path: str) -> None:
        self.name = f"{by.name}, {where}"
        self._by = by
        self._path = path
        self.seconds: list[float] = []
        self.rounds: list[tuple[float, dict[str, float], Clicked]] = []

    async def round(self, api: Api, id_: str, *, counts: bool) -> None:
        clicked = await self._by.click(self._path.format(id=id_))
        if counts:
            took = clicked.first_byte - clicked.at
            self.seconds.append(took)
            self.rounds.append((took, await moments(api, id_, clicked), clicked))


async def moments(api: Api, id_: str, clicked: Clicked) -> dict[str, float]:
    """Milliseconds after the click, by step."""
    told = await api.ask("GET", f"/workspaces/{id_}/history?limit=10")
    lines = told["items"]
    assert isinstance(lines, list)
    since = {line["code"]: datetime.fromisoformat(line["at"]).timestamp() for line in reversed(lines)}
    ide = clicked.ide
    at = (since["woken"], since["operation_begun"], ide["began"], ide["listens"], ide["probed"], since["started"])
    return {name: 1000 * (t - clicked.at) for name, t in zip(STEPS, (*at, clicked.first_byte), strict=True)}


async def sleep_again(api: Api, id_: str) -> None:
    await api.until(id_, "RUNNING", 0.02)
    await api.ask("PATCH", f"/workspaces/{id_}", desired_state="STANDBY")
    await api.until(id_, "STANDBY", 0.02)
    await asyncio.sleep(PAUSE_SECONDS)


@contextlib.asynccontextmanager
async def a_browser(platform: Platform, api: Api) -> AsyncIterator[BrowserContext]:
    link = (await api.ask("POST", "/users/admin/login-links"))["url"]
    async with async_playwright() as playwright:
        found = find_chromium(SHELL, *WHOLE)
        if found is None:
            raise SystemExit("install Chromium: Debian's chromium-headless-shell, for example")
        browser = await playwright.chromium.launch(executable_path=found, args=FLAGS)
        context = await browser.new_context()  # what moves is part of what a click costs
        page = await context.new_page()
        await page.goto(str(link))
        await page.get_by_role("button").click()
        await page.wait_for_url(re.compile(re.escape(platform.url) + r"/(account/way-in|welcome/way-in)?$"))
        await page.close()
        yield context
        await browser.close()


async def measure(platform: Platform, bare: Bare, rounds: int, *, steps: bool) -> None:
    async with platform.client() as client:
        api = Api(client)
        await api.ask("GET", "/workspaces")
        made = await api.ask("POST", "/workspaces", name="click", template="click", desired_state="STANDBY")
        id_ = str(made["id"])
        await api.until(id_, "STANDBY", 0.05)
        await bare.prepare()
        async with a_browser(platform, api) as context:
            cookies = {c["name"]: c["value"] for c in await context.cookies(platform.url)}
            by = (Chromium(context, platform.url), Program(cookies, platform.url))
            ways = [Clicks(b, *w) for b in by for w in (("frame", "/open/{id}"), ("own tab", "/w/{id}/"))]
            limit: list[float] = []
            for number in range(rounds + 1):
                took = await bare.start()
                await bare.stop()
                limit += [took] * bool(number)  # the first of each is for warming up
                for way in ways:
                    await way.round(api, id_, counts=bool(number))
                    await sleep_again(api, id_)
        report(limit, ways, steps=steps)


def spread(seconds: list[float]) -> str:
    ms = sorted(1000 * s for s in seconds)
    return f"{statistics.median(ms):6.0f} ms  ({ms[0]:.0f}–{ms[-1]:.0f}, n={len(ms)})"


def report(limit: list[float], ways: list[Clicks], *, steps: bool) -> None:
    bare = statistics.median(limit)
    print(f"{'the bare start':>20}: {spread(limit)}")
    for way in ways:
        middle = statistics.median(way.seconds)
        ours = [m["first byte"] - (m["it listens"] - m["operation begins"]) for _, m, _ in way.rounds]
        print(
            f"{way.name:>20}: {spread(way.seconds)}  ratio {middle / bare:.2f}, adds {1000 * (middle - bare):5.0f} ms;"
            f" within the rounds {statistics.median(ours):.0f} ms ({min(ours):.0f}–{max(ours):.0f})"
        )
    print("\nmilliseconds after the click (medians)")
    print(" " * 22 + "".join(f"{name:>18}" for name in STEPS))
    for way in ways:
        medians = [statistics.median(m[name] for _, m, _ in way.rounds) for name in STEPS]
        print(f"{way.name:>22}" + "".join(f"{ms:18.0f}" for ms in medians))
    for way in ways if steps else []:
        _, _, clicked = sorted(way.rounds, key=lambda one: one[0])[len(way.rounds) // 2]
        print(f"\n{way.name}, the round in the middle: asked → first byte, milliseconds after the click")
        for asked, answered, what in clicked.requests:
            print(f"  {1000 * (asked - clicked.at):7.0f} → {1000 * (answered - clicked.at):6.0f}  {what}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=11)
    parser.add_argument("--own", type=float, default=0.1, help="seconds that the program takes before it listens")
    parser.add_argument("--steps", action="store_true")
    options = parser.parse_args()
    if os.geteuid() != 0:
        print("not root: the sandbox is the one of an ordinary user", file=sys.stderr)
    with a_place(on_disk=True) as folder:
        templates = write_templates(folder / "templates", options.own)
        bare = Bare(folder / "bare", templates)
        (folder / "bare").mkdir()
        with running(folder / "data", CODEHUB_TEMPLATES_DIR=str(templates)) as platform:
            asyncio.run(measure(platform, bare, options.rounds, steps=options.steps))


if __name__ == "__main__":
    main()
