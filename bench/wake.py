"""A click, and it is there: from asking for a sleeping JupyterLab to its first byte, its launcher and a cell's output.

In Chromium, through the real front door: the page of all workspaces, one click, the IDE in its frame. Warm (a copy of a
process with the modules loaded) and cold alternate, beside JupyterHub's spawn of the same JupyterLab by its simplest
spawner, and beside the bare runtime: the same program in the same sandbox, asked on its own socket. Then fifteen at
once, and what fifteen idle ones take.

    python bench/wake.py [--rounds N] [--class-rounds N] [--only clicks|class|processor]

`--only processor`: warm clicks alone, and who uses the processor until the first byte.

Needs Chromium, and npm for JupyterHub's proxy; JupyterHub and its JupyterLab go into the user's cache on first use.
"""

import argparse
import asyncio
import contextlib
import importlib.metadata
import os
import pathlib
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import aiohttp
from playwright.async_api import Browser, FrameLocator, Locator, Page, Response, async_playwright

sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))

from tests.browser.conftest import FLAGS, SHELL, WHOLE, find_chromium
from tests.platform import ADMIN_TOKEN, Platform, descendants

from bench import _processor
from bench._platform import Api
from bench.starts import ensure_peer, free_port
from codehub.clock import SystemClock
from codehub.runtimes import connect, records
from codehub.runtimes.base import Workload
from codehub.runtimes.config import RuntimeConfig
from codehub.runtimes.layout import Layout
from codehub.runtimes.process import ProcessRuntime
from codehub.system.privileges import service_account
from codehub.templates import loader
from codehub.templates.loader import Templates

WARM, COLD = "jupyterlab", "jupyterlab-cold"
CLASS = 15
FIRST_BYTE, LAUNCHER, CELL = "first byte", "launcher", "first cell"
WAIT_MS = 60_000.0
SETTLE_SECONDS = 0.5  # until a page has asked for all it wants
TOLD = "toldOfTheClick"  # what a page calls
HUB = """
c.JupyterHub.bind_url = "http://127.0.0.1:{port}"
c.JupyterHub.hub_port = {hub}
c.ConfigurableHTTPProxy.command = ["{proxy}"]
c.ConfigurableHTTPProxy.api_url = "http://127.0.0.1:{proxy_api}"
c.JupyterHub.spawner_class = "simple"
c.JupyterHub.authenticator_class = "dummy"
c.Authenticator.allow_all = True
c.Spawner.cmd = ["{single}"]
c.Spawner.args = ["--allow-root"]
c.Spawner.default_url = "/lab"
c.Spawner.notebook_dir = "{folder}"
c.JupyterHub.log_level = "ERROR"
"""
Times = dict[str, float]


class Clicks:
    """Chromium's side: when a click was answered, and by what. Both by its own clock, in seconds since 1970."""

    def __init__(self, page: Page, is_ide: Callable[[Response], bool]) -> None:
        self.page = page
        self._is_ide = is_ide
        self._answered = asyncio.Event()
        self._clicked = 0.0
        self._at = 0.0
        page.on("response", self._note)

    @classmethod
    async def of(cls, page: Page, is_ide: Callable[[Response], bool]) -> "Clicks":
        clicks = cls(page, is_ide)
        await page.expose_function(TOLD, clicks._click)
        await page.add_init_script(
            f"addEventListener('click', (e) => {TOLD}(performance.timeOrigin + e.timeStamp), {{ capture: true }})"
        )
        return clicks

    def _click(self, at: float) -> None:
        self._clicked = self._clicked or at / 1000

    def _note(self, response: Response) -> None:
        if self._is_ide(response) and not self._answered.is_set():
            timing = response.request.timing
            self._at = (timing["startTime"] + timing["responseStart"]) / 1000
            self._answered.set()

    async def count(self, click: Callable[[], Awaitable[Any]]) -> tuple[float, dict[str, float]]:
        """Seconds until the first byte, and milliseconds of processor time by then."""
        self._answered.clear()
        self._clicked, before = 0.0, _processor.spent()
        await click()
        async with asyncio.timeout(WAIT_MS / 1000):
            await self._answered.wait()
        return self._at - self._clicked, _processor.by_kind(before, _processor.spent())

    async def run(self, click: Callable[[], Awaitable[Any]], ide: FrameLocator | Page) -> Times:
        self._answered.clear()
        self._clicked = 0.0
        await click()
        async with asyncio.timeout(WAIT_MS / 1000):
            await self._answered.wait()
        begun = self._clicked
        times = {FIRST_BYTE: self._at - begun}
        await ide.locator(".jp-Launcher").first.wait_for(timeout=WAIT_MS)
        times[LAUNCHER] = time.time() - begun
        await ide.locator(".jp-LauncherCard[title^=Python]").first.click(timeout=WAIT_MS)
        cell = ide.locator(".jp-CodeCell .cm-content").first
        await cell.click(timeout=WAIT_MS)
        await self.page.keyboard.type("6*7")
        # Before there is a kernel, what is run is forgotten: a person would press again.
        await ide.get_by_text("| Idle").first.wait_for(timeout=WAIT_MS)
        await self.page.keyboard.press("Shift+Enter")
        await ide.locator(".jp-OutputArea-output", has_text="42").first.wait_for(timeout=WAIT_MS)
        times[CELL] = time.time() - begun
        return times


def is_lab(response: Response) -> bool:
    return response.status == 200 and response.request.resource_type == "document" and "/lab" in response.url


def forget(home: pathlib.Path) -> None:
    """What the last round left open would be restored instead of the launcher."""
    for place in home.glob("**/lab/workspaces"):
        shutil.rmtree(place)
    for notebook in home.glob("Untitled*.ipynb"):
        notebook.unlink()


class Ours:
    def __init__(self, platform: Platform, browser: Browser, template: str) -> None:
        self._platform, self._browser, self._template = platform, browser, template
        self.name = f"ours, {'warm' if template == WARM else 'cold'}"

    async def prepare(self, api: Api) -> None:
        self._api = api
        made = await api.ask("POST", "/workspaces", name=self._template, template=self._template)
        self._id = str(made["id"])
        await api.until(self._id, "RUNNING", 0.05)
        context = await self._browser.new_context(viewport={"width": 1280, "height": 800})
        link = subprocess.run(  # noqa: ASYNC221 (once, before anything is measured)
            [sys.executable, "-m", "codehub", "user", "login-link", "admin"],
            env={**os.environ, "CODEHUB_DATA_DIR": str(self._platform.data_dir)},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        self._page = await context.new_page()
        await self._page.goto(next(word for word in link.split() if word.startswith("http")))
        await self._page.get_by_role("button", name="Log in as admin").click()
        self._clicks = await Clicks.of(self._page, lambda r: is_lab(r) and self._id in r.url)

    async def round(self) -> Times:
        return await self._clicks.run((await self.asleep()).click, self._page.frame_locator("#ide"))

    async def count(self) -> tuple[float, dict[str, float]]:
        button = await self.asleep()
        await asyncio.sleep(SETTLE_SECONDS)
        took, kinds = await self._clicks.count(button.click)
        kinds["the workspace"] = sum(map(_processor.of, processes_of(self._platform, self._id)))
        return took, kinds

    async def asleep(self) -> Locator:
        """The button that wakes it."""
        await self._api.ask("PATCH", f"/workspaces/{self._id}", desired_state="STANDBY")
        await self._api.until(self._id, "STANDBY", 0.05)
        await self._page.goto(self._platform.url)
        forget(Layout(self._platform.data_dir).of(self._id).home)
        card = self._page.locator(f"[data-id='{self._id}'], #w-{self._id}, article", has_text=self._template).last
        button = card.get_by_role("link", name="Wake").or_(card.get_by_role("button", name="Wake")).first
        await button.wait_for(timeout=WAIT_MS)
        return button


class Hub:
    name = "JupyterHub"

    def __init__(self, url: str, browser: Browser, home: pathlib.Path) -> None:
        self._url, self._browser, self._home = url, browser, home

    async def prepare(self, _api: Api) -> None:
        context = await self._browser.new_context(viewport={"width": 1280, "height": 800})
        self._page = await context.new_page()
        await self._page.goto(f"{self._url}/hub/login?next=/hub/home")
        await self._page.fill("#username_input", "mina")
        await self._page.fill("#password_input", "x")
        await self._page.click("#login_submit")
        await self._page.wait_for_url("**/hub/home")
        self._clicks = await Clicks.of(self._page, lambda r: is_lab(r) and "/user/mina/" in r.url)

    async def round(self) -> Times:
        await self._page.goto(f"{self._url}/hub/home")
        if await self._page.locator("#stop").is_visible():
            await self._page.click("#stop")
            await self._page.locator("#stop").wait_for(state="hidden", timeout=WAIT_MS)
            await self._page.goto(f"{self._url}/hub/home")
        forget(self._home)
        await self._page.locator("#start").wait_for(timeout=WAIT_MS)
        return await self._clicks.run(lambda: self._page.click("#start"), self._page)


@contextlib.contextmanager
def hub_running(folder: pathlib.Path) -> Iterator[str]:
    hub, proxy = ensure_peer()
    version = importlib.metadata.version("jupyterlab")
    subprocess.run([str(hub.parent / "pip"), "-q", "install", f"jupyterlab=={version}"], check=True)
    port = free_port()
    values = {"port": port, "hub": free_port(), "proxy_api": free_port(), "proxy": proxy}
    home = folder / "hub"
    home.mkdir()
    config = folder / "jupyterhub_config.py"
    config.write_text(HUB.format(folder=home, single=hub.parent / "jupyterhub-singleuser", **values))
    nowhere = subprocess.DEVNULL
    environment = {**os.environ, "HOME": str(home), "PATH": f"{hub.parent}:{os.environ['PATH']}"}
    process = subprocess.Popen(
        [str(hub), "-f", str(config)], cwd=folder, stdout=nowhere, stderr=nowhere, env=environment
    )
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait(30)


async def answers(url: str) -> None:
    async with asyncio.timeout(60), aiohttp.ClientSession() as client:
        while True:
            with contextlib.suppress(aiohttp.ClientError):
                async with client.get(f"{url}/hub/api/") as answer:
                    if answer.status == 200:
                        return
            await asyncio.sleep(0.1)


class Bare:
    """The runtime alone, on a data directory of its own: what a wake would be if nothing were around it."""

    name = "bare runtime, warm"

    def __init__(self, folder: pathlib.Path) -> None:
        config = RuntimeConfig(uid_base=300_000)
        self._runtime = ProcessRuntime(folder, config, service_account(None), SystemClock())
        self._template = Templates.load(None, folder).require(WARM)

    async def prepare(self, _api: Api) -> None:
        await self._runtime.create_volume("bare", "g1")
        await self._runtime.warm_up(self._template)
        while not self._runtime.warm_parents():  # noqa: ASYNC110 (another process's doing)
            await asyncio.sleep(0.1)
        await self.round()

    async def round(self) -> Times:
        await self._runtime.stop("bare", 5)
        begun = time.perf_counter()
        cold = await self._runtime.start(Workload("bare", "admin", self._template, {}, trusted=True))
        assert cold is None, cold
        found = await self._runtime.container("bare")
        assert found
        while True:
            with contextlib.suppress(OSError, ValueError):
                if await connect.status_of(found.address, "/w/bare/lab") == 200:
                    return {FIRST_BYTE: time.perf_counter() - begun}
            await asyncio.sleep(0.002)

    async def close(self) -> None:
        await self._runtime.stop("bare", 0)
        await self._runtime.close()


def shown(values: list[float]) -> str:
    ordered = sorted(values)
    return f"{statistics.median(ordered) * 1000:6.0f} ms ({ordered[0] * 1000:.0f}–{ordered[-1] * 1000:.0f})"


async def clicks(rounds: int, platform: Platform, hub_url: str, folder: pathlib.Path) -> bool:
    headers = {"Authorization": f"Bearer {ADMIN_TOKEN}"}
    bare = Bare(folder / "bare")
    async with async_playwright() as playwright, aiohttp.ClientSession(platform.url, headers=headers) as client:
        browser = await playwright.chromium.launch(executable_path=find_chromium(SHELL, *WHOLE), args=FLAGS)
        sides: list[Ours | Hub | Bare] = [
            Ours(platform, browser, WARM),
            Ours(platform, browser, COLD),
            Hub(hub_url, browser, folder / "hub"),
            bare,
        ]
        found: dict[str, list[Times]] = {side.name: [] for side in sides}
        for side in sides:
            await side.prepare(Api(client))
        for number in range(rounds + 1):
            for side in sides:
                times = await side.round()
                if number:  # the first of each fills the browser's cache
                    found[side.name].append(times)
        await browser.close()
        await bare.close()
    return judge(found)


async def processor(rounds: int, platform: Platform) -> None:
    headers = {"Authorization": f"Bearer {ADMIN_TOKEN}"}
    async with async_playwright() as playwright, aiohttp.ClientSession(platform.url, headers=headers) as client:
        browser = await playwright.chromium.launch(executable_path=find_chromium(SHELL, *WHOLE), args=FLAGS)
        ours = Ours(platform, browser, WARM)
        await ours.prepare(Api(client))
        counted = [await ours.count() for _ in range(rounds + 1)][1:]
        await browser.close()
    print(f"first byte {shown([took for took, _ in counted])}; processor time by then, medians of {rounds}:")
    for kind in sorted({kind for _, kinds in counted for kind in kinds}):
        print(f"{kind:>24}  {statistics.median(kinds.get(kind, 0.0) for _, kinds in counted):6.0f} ms")


def judge(found: dict[str, list[Times]]) -> bool:
    middle: dict[tuple[str, str], float] = {}
    for name, times in found.items():
        for step in times[0]:
            values = [one[step] for one in times]
            middle[name, step] = statistics.median(values)
            print(f"{name:>20}  {step:<10} {shown(values)}  n={len(values)}")
    first = middle["JupyterHub", FIRST_BYTE] / middle["ours, warm", FIRST_BYTE]
    launcher = middle["JupyterHub", LAUNCHER] / middle["ours, warm", LAUNCHER]
    over = 1000 * (middle["ours, warm", FIRST_BYTE] - middle["bare runtime, warm", FIRST_BYTE])
    print(f"JupyterHub to ours, warm: first byte {first:.1f} times (goal ≥ 5), launcher {launcher:.1f} (goal ≥ 2.5)")
    print(f"ours over the bare runtime: {over:.0f} ms (goal ≤ 100)")
    return first >= 5 and launcher >= 2.5 and over <= 100


async def class_at_once(rounds: int, platform: Platform) -> bool:
    headers = {"Authorization": f"Bearer {ADMIN_TOKEN}"}
    seconds: dict[str, list[float]] = {WARM: [], COLD: []}
    memory: dict[str, list[float]] = {WARM: [], COLD: []}
    async with aiohttp.ClientSession(platform.url, headers=headers) as client:
        api = Api(client)
        ids = {template: await made(api, template) for template in seconds}
        for number in range(rounds + 1):
            for template, names in ids.items():
                took = await together(client, api, names)
                await asyncio.sleep(3)  # until they are idle
                if number:  # before the first one nothing is loaded
                    seconds[template].append(took)
                    memory[template].append(proportional(platform, template, names))
                await asyncio.gather(*(asleep(api, id_) for id_ in names))
    for template, took_ in seconds.items():
        print(f"{CLASS} at once, {template}: last one's first byte {shown(took_)}", end="; ")
        print(f"{statistics.median(memory[template]) / 2**20:.0f} MB of memory in all, shared pages divided")
    faster = statistics.median(seconds[COLD]) / statistics.median(seconds[WARM])
    smaller = statistics.median(memory[WARM]) / statistics.median(memory[COLD])
    print(f"cold to warm: {faster:.1f} times (goal ≥ 3); memory warm to cold: {smaller:.2f} (goal ≤ 0.5)")
    return faster >= 3 and smaller <= 0.5


async def made(api: Api, template: str) -> list[str]:
    found = []
    for number in range(CLASS):
        w = await api.ask(
            "POST", "/workspaces", name=f"{template} {number}", template=template, desired_state="STANDBY"
        )
        found.append(str(w["id"]))
    for id_ in found:
        await api.until(id_, "STANDBY", 0.05)
    return found


async def asleep(api: Api, id_: str) -> None:
    await api.ask("PATCH", f"/workspaces/{id_}", desired_state="STANDBY")
    await api.until(id_, "STANDBY", 0.1)


async def together(client: aiohttp.ClientSession, api: Api, names: list[str]) -> float:
    """Seconds until the last one's page begins to come."""

    async def wake(id_: str) -> None:
        await api.ask("PATCH", f"/workspaces/{id_}", desired_state="RUNNING")
        async with asyncio.timeout(WAIT_MS / 100):
            while True:
                async with client.get(f"/w/{id_}/lab") as answer:
                    if answer.status == 200:
                        return
                await asyncio.sleep(0.02)

    begun = time.perf_counter()
    await asyncio.gather(*map(wake, names))
    return time.perf_counter() - begun


def proportional(platform: Platform, template: str, names: list[str]) -> float:
    """Bytes of all processes of these workspaces and, where they are copies, of what they are copies of."""
    pids = {pid for name in names for pid in processes_of(platform, name)}
    return float(sum(map(share_of, pids | (parents(platform) if template == WARM else set()))))


def processes_of(platform: Platform, id_: str) -> list[int]:
    running = records.read(Layout(platform.data_dir).of(id_))
    return [running.shepherd.pid, *descendants(running.shepherd.pid)] if running else []


def parents(platform: Platform) -> set[int]:
    assert platform.process
    return {pid for pid in descendants(platform.process.pid) if name_of(pid) == "codehub-warm"}


def name_of(pid: int) -> str:
    with contextlib.suppress(OSError):
        return pathlib.Path(f"/proc/{pid}/comm").read_text().strip()
    return ""


def share_of(pid: int) -> int:
    with contextlib.suppress(OSError):
        for line in pathlib.Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) * 1024
    return 0


def cold_template(folder: pathlib.Path) -> None:
    """The same JupyterLab, started anew each time."""
    text = (loader.BUILTIN / f"{WARM}.toml").read_text()
    text = re.sub(r"^(preload|kernels) = \[.*?^\]$", "", text, flags=re.MULTILINE | re.DOTALL)
    (folder / f"{COLD}.toml").write_text(text.replace("\nwarm = true\n", "\n"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--class-rounds", type=int, default=7)
    parser.add_argument("--only", choices=["clicks", "class", "processor"])
    given = parser.parse_args()
    folder = pathlib.Path(tempfile.mkdtemp(prefix="codehub-bench-"))
    folder.chmod(0o755)
    templates = folder / "templates"
    templates.mkdir()
    cold_template(templates)
    platform = Platform(
        folder / "data",
        CODEHUB_TEMPLATES_DIR=str(templates),
        CODEHUB_MAX_RUNNING_PER_USER="0",
        CODEHUB_MAX_RUNNING_GLOBAL="0",
        TTL_STANDBY_SECONDS="0",
    )
    print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f} at the beginning")
    well = True
    try:
        platform.start()
        if given.only == "processor":
            asyncio.run(processor(given.rounds, platform))
        if given.only in {None, "clicks"}:
            with hub_running(folder) as url:
                asyncio.run(answers(url))
                well &= asyncio.run(clicks(given.rounds, platform, url, folder))
        if given.only in {None, "class"}:
            well &= asyncio.run(class_at_once(given.class_rounds, platform))
    finally:
        platform.end_workspaces()
        platform.stop()
        shutil.rmtree(folder, ignore_errors=True)
    sys.exit(0 if well else 1)


if __name__ == "__main__":
    main()
