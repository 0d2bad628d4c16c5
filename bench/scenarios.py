"""The scenarios of the specification through the API, timed: new → RUNNING, auto-wake, archive by hand, restore.

A real platform on this machine, a small IDE and the built-in JupyterLab; seconds from the request to the state.

    python bench/scenarios.py [--rounds 5] [--template tiny|jupyterlab|…] [--megabytes 20]
"""

import argparse
import asyncio
import contextlib
import os
import pathlib
import re
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import AsyncIterator

import aiohttp

sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))

from tests.gate.lab import ToThisMachine
from tests.platform import Platform, codehub
from tests.workspaces.ides import write_templates

from bench._platform import Api
from codehub.runtimes.layout import Layout

BROWSER = {"Accept": "text/html", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}
PAUSE = 0.02  # seconds between two looks at whether it is so
SCENARIOS = (
    "new workspace → RUNNING",
    "RUNNING → STANDBY",
    "auto-wake: opening a sleeping one → its IDE answers",
    "manual archive: RUNNING → ARCHIVED",
    "restore: ARCHIVED → STANDBY",
    "start: ARCHIVED → RUNNING",
)


class Round(Api):
    def __init__(
        self,
        platform: Platform,
        client: aiohttp.ClientSession,
        browser: aiohttp.ClientSession,
        seconds: dict[str, list[float]],
    ) -> None:
        super().__init__(client)
        self._platform = platform
        self._browser = browser
        self._seconds = seconds

    async def _timed(self, scenario: str, id_: str, desired: str, phase: str) -> None:
        begun = time.perf_counter()
        await self.ask("PATCH", f"/workspaces/{id_}", desired_state=desired)
        await self.until(id_, phase, PAUSE)
        self._seconds[scenario].append(time.perf_counter() - begun)

    async def _wake(self, id_: str) -> None:
        """A person opens it in a browser, which comes again until the IDE itself answers."""
        begun = time.perf_counter()
        async with asyncio.timeout(180):
            while True:
                async with self._browser.get(f"{self._platform.url}/w/{id_}/", headers=BROWSER) as answer:
                    await answer.read()
                if answer.status < 500:
                    break
                await asyncio.sleep(0.05)
        self._seconds[SCENARIOS[2]].append(time.perf_counter() - begun)

    async def run(self, template: str, megabytes: int) -> None:
        begun = time.perf_counter()
        made = await self.ask("POST", "/workspaces", name="bench", template=template)
        id_ = str(made["id"])
        await self.until(id_, "RUNNING", PAUSE)
        self._seconds[SCENARIOS[0]].append(time.perf_counter() - begun)
        (Layout(self._platform.data_dir).of(id_).home / "data").write_bytes(os.urandom(megabytes * 1_000_000))
        await self._timed(SCENARIOS[1], id_, "STANDBY", "STANDBY")
        await self._wake(id_)
        await self._timed(SCENARIOS[3], id_, "ARCHIVED", "ARCHIVED")
        await self._timed(SCENARIOS[4], id_, "STANDBY", "STANDBY")
        await self.ask("PATCH", f"/workspaces/{id_}", desired_state="ARCHIVED")
        await self.until(id_, "ARCHIVED", PAUSE)
        await self._timed(SCENARIOS[5], id_, "RUNNING", "RUNNING")
        await self.ask("DELETE", f"/workspaces/{id_}?purge=true")
        await self.until(id_, "DELETED", PAUSE)


async def race(platform: Platform, template: str, rounds: int, megabytes: int) -> dict[str, list[float]]:
    seconds: dict[str, list[float]] = {name: [] for name in SCENARIOS}
    async with platform.client() as client, browser_of(platform) as browser:
        for _ in range(rounds):
            await Round(platform, client, browser, seconds).run(template, megabytes)
    return seconds


@contextlib.asynccontextmanager
async def browser_of(platform: Platform) -> AsyncIterator[aiohttp.ClientSession]:
    """Logged in by a link of its own, and it finds names below `localhost` as browsers do."""
    made = await asyncio.to_thread(codehub, "user", "login-link", "admin", CODEHUB_DATA_DIR=str(platform.data_dir))
    link = re.search(r"http\S+", made.stdout)
    assert link, made.stderr
    connector, jar = aiohttp.TCPConnector(resolver=ToThisMachine()), aiohttp.CookieJar(unsafe=True)
    async with aiohttp.ClientSession(connector=connector, cookie_jar=jar) as session:
        await (await session.get(link[0], headers=BROWSER)).read()
        yield session


def main() -> int:
    parser = argparse.ArgumentParser(description="The specification's scenarios, timed.")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--template", action="append", help="default: tiny and jupyterlab")
    parser.add_argument("--megabytes", type=int, default=20, help="of noise in the home")
    given = parser.parse_args()
    folder = pathlib.Path(tempfile.mkdtemp(prefix="codehub-"))
    folder.chmod(0o755)
    platform = Platform(folder / "data", CODEHUB_TEMPLATES_DIR=str(write_templates(folder / "templates")))
    try:
        platform.start()
        for template in given.template or ["tiny", "jupyterlab"]:
            seconds = asyncio.run(race(platform, template, given.rounds, given.megabytes))
            print(f"\n{template}, a home of {given.megabytes} MB, {given.rounds} rounds")
            for name, values in seconds.items():
                print(f"  {name:52} {statistics.median(values):7.2f} s   ({min(values):.2f}–{max(values):.2f})")
    finally:
        platform.stop()
        shutil.rmtree(folder, ignore_errors=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
