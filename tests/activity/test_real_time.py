"""The real programs, in a real browser, through the real platform, in real time: run by `make soak`.

`CODEHUB_SOAK_MINUTES` (20) is how long each is left alone; `CODEHUB_TEST_IDE_DIR` is where code-server was installed
(`codehub ide install code-server` into a data directory, its folder `ide`); without it only JupyterLab is tried.
"""

import asyncio
import json
import os
import shutil
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any

import aiohttp
import pytest

from codehub.clock import SystemClock
from codehub.runtimes.process import ProcessRuntime
from codehub.settings import RuntimeConfig
from tests.activity import ides
from tests.activity.chromium import Browser, Tab, browser
from tests.places import a_place
from tests.platform import Platform, running

pytestmark = pytest.mark.soak
IDE_DIR = os.environ.get("CODEHUB_TEST_IDE_DIR")
MINUTES = float(os.environ.get("CODEHUB_SOAK_MINUTES", "20"))
SETTLE_SECONDS, SLACK_SECONDS = 90.0, 15.0
TYPING_SECONDS = 20  # until what is typed into a cell counts: JupyterLab saves every 15
TEMPLATES = ["jupyterlab", *(["code-server"] if IDE_DIR else [])]
LOADED = {"jupyterlab": ides.jupyter_loaded, "code-server": ides.code_server_loaded}
ACTIONS = {"jupyterlab": ides.JUPYTER, "code-server": ides.CODE_SERVER}


@pytest.fixture(scope="module")
def platform() -> Iterator[Platform]:
    environment = {
        "CODEHUB_MAX_RUNNING_PER_USER": "0",
        "ACTIVITY_FLUSH_INTERVAL": "1",
        "COORDINATOR_TTL_INTERVAL": "1",
    }
    with a_place() as folder:
        if IDE_DIR:
            (folder / "data").mkdir(mode=0o755)
            shutil.copytree(IDE_DIR, folder / "data" / "ide", symlinks=True)
        with running(folder / "data", first_start=True, **environment) as started:
            yield started


class Desk:
    """One workspace, open in one tab."""

    def __init__(self, platform: Platform, client: aiohttp.ClientSession, id_: str, tab: Tab) -> None:
        self.platform, self.client, self.id, self.tab = platform, client, id_, tab

    async def get(self) -> dict[str, Any]:
        async with self.client.get(f"/api/v1/workspaces/{self.id}") as answer:
            w: dict[str, Any] = await answer.json()
        return w

    async def last(self) -> datetime:
        return datetime.fromisoformat((await self.get())["last_access_at"])

    async def why(self) -> dict[str, Any]:
        async with self.client.get(f"/api/v1/workspaces/{self.id}/activity") as answer:
            found: dict[str, Any] = await answer.json()
        return found

    async def history(self) -> list[dict[str, Any]]:
        async with self.client.get(f"/api/v1/workspaces/{self.id}/history") as answer:
            found: list[dict[str, Any]] = (await answer.json())["items"]
        return found

    async def set_time(self, seconds: int) -> None:
        change = {"standby_ttl_seconds": seconds}
        async with self.client.patch(f"/api/v1/workspaces/{self.id}", json=change) as answer:
            assert answer.status == 200, await answer.text()

    async def until(self, phase: str, seconds: float = 120) -> dict[str, Any]:
        async with asyncio.timeout(seconds):
            while (w := await self.get())["phase"] != phase or w["operation"] != "NONE":
                await asyncio.sleep(0.2)
        return w


@asynccontextmanager
async def a_desk(platform: Platform, template: str) -> AsyncIterator[tuple[Desk, Browser]]:
    async with platform.client() as client, browser() as chromium:
        new = {"name": template, "template": template, "standby_ttl_seconds": 0}
        async with client.post("/api/v1/workspaces", json=new) as answer:
            id_ = (await answer.json())["id"]
        async with client.post("/api/v1/users/admin/login-links") as answer:
            link = (await answer.json())["url"]
        desk = Desk(platform, client, id_, await chromium.open("about:blank"))
        await desk.until("RUNNING")
        home = {"notes/inner.txt": b"inside\n", "hello.py": b"print('hello')\n"}
        home["work.ipynb"] = json.dumps(ides.NOTEBOOK).encode()
        await ProcessRuntime(platform.data_dir, RuntimeConfig(), None, SystemClock()).put(id_, home)
        login = await chromium.open(link)
        await login.click("form button")  # opening the link alone logs no one in
        await login.until("['/', '/account/way-in', '/welcome/way-in'].includes(location.pathname)")
        desk.tab = await chromium.open(f"{platform.url}/w/{id_}/")
        await LOADED[template](desk.tab)
        try:
            yield desk, chromium
        finally:
            async with client.delete(f"/api/v1/workspaces/{id_}?purge=true") as answer:
                await answer.read()


@pytest.mark.parametrize("hidden", [False, True], ids=["visible", "hidden"])
@pytest.mark.parametrize("template", TEMPLATES)
async def test_a_tab_left_alone_is_idle_and_sleeps_on_time(platform: Platform, template: str, hidden: bool) -> None:
    async with a_desk(platform, template) as (desk, chromium):
        if hidden:
            await chromium.hide(desk.tab)
        await asyncio.sleep(SETTLE_SECONDS)
        begun, before = datetime.now(UTC), await desk.last()
        await asyncio.sleep(MINUTES * 60)
        moved = (await desk.last() - before).total_seconds()
        found = await desk.why()
        print(f"\n{template}, {'hidden' if hidden else 'visible'}: moved by {moved:.1f} s; {found}")
        assert moved <= SLACK_SECONDS
        assert found["open_connections"] >= 1
        await desk.set_time(int((datetime.now(UTC) - before).total_seconds()) + 20)
        w = await desk.until("STANDBY", 60)
        assert begun < datetime.fromisoformat(w["phase_changed_at"])
        print("   ", (await desk.why())["reason"])


@pytest.mark.parametrize("template", TEMPLATES)
async def test_whatever_is_done_is_counted_when_it_happens(platform: Platform, template: str) -> None:
    async with a_desk(platform, template) as (desk, _chromium):
        await asyncio.sleep(SETTLE_SECONDS)
        for action in ACTIONS[template]:
            begun = datetime.now(UTC)
            await action.do(desk.tab)
            await asyncio.sleep(action.lasts)
            late = (await desk.last() - begun).total_seconds()
            print(f"\n{template}: {action.name}: {late:+.1f} s")
            if (template, action.name) != ("jupyterlab", "one key typed in a cell"):  # sent nowhere before it is saved
                assert late >= 0, action.name


async def test_what_is_typed_into_a_cell_counts_within_twenty_seconds(platform: Platform) -> None:
    """JupyterLab sends no key that is typed, but saves by itself."""
    async with a_desk(platform, "jupyterlab") as (desk, _chromium):
        opened, typed = ides.JUPYTER[:2]
        await opened.do(desk.tab)
        await asyncio.sleep(SETTLE_SECONDS)
        begun = datetime.now(UTC)
        await typed.do(desk.tab)
        done = datetime.now(UTC)
        async with asyncio.timeout(60):
            while (last := await desk.last()) < begun:
                await asyncio.sleep(0.5)
        print(f"\ncounted {(last - done).total_seconds():.1f} s after it was typed")
        assert (last - done).total_seconds() <= TYPING_SECONDS


async def test_a_cell_that_computes_silently_keeps_it_awake_until_it_is_done(platform: Platform) -> None:
    async with a_desk(platform, "jupyterlab") as (desk, _chromium):
        for action in ides.JUPYTER[:1]:
            await action.do(desk.tab)
        await asyncio.sleep(5)
        await desk.tab.click(".jp-Notebook .jp-Cell .cm-content")
        await desk.tab.write("; time.sleep(90)")  # behind the import that is there
        await ides.run_cell(desk.tab)
        await desk.tab.until("document.querySelector('.jp-Notebook .jp-InputPrompt').textContent.includes('*')")
        await asyncio.sleep(3)
        await desk.set_time(15)
        await asyncio.sleep(60)
        assert (await desk.get())["desired_state"] == "RUNNING"
        assert (await desk.why())["counted"]["busy"] >= 1
        assert [line["data"]["work"] for line in await desk.history() if line["code"] == "kept_awake"] == ["kernel"]
        await desk.until("STANDBY", 120)
