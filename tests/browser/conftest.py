"""A real Chromium, once per run; a real platform with small IDEs, once per file; people who are logged in.

Tests here run in one event loop (`pytestmark = IN_ONE_LOOP`), because a browser lives in the loop it was started from.
"""

import asyncio
import contextlib
import os
import pathlib
import re
import shutil
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field

import aiohttp
import pytest
import pytest_asyncio
from playwright.async_api import Browser, BrowserContext, ConsoleMessage, Locator, Page, async_playwright

from codehub.templates import programs
from tests.ides.small_packages import CAN_BUILD
from tests.places import a_place
from tests.platform import Platform, running
from tests.workspaces.git_server import CAN_SERVE
from tests.workspaces.ides import write_templates

IN_ONE_LOOP = pytest.mark.asyncio(loop_scope="session")
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
WAIT_MS = 30_000.0  # for anything to appear; generous, since the machine may be busy
START_SECONDS = 120.0  # for an IDE to run, or to sleep: a cold start of JupyterLab is the longest thing there is


# An admin without another way in is asked for one; the first of all, for the first steps.
AFTER_A_LINK = re.compile(r"/(account/way-in|welcome/way-in)?$")


SHELL = "chromium-headless-shell"  # the same engine without the windows around it: a page takes a tenth of the time
WHOLE = ("chromium", "chromium-browser", "google-chrome")


def find_chromium(*programs: str) -> str | None:
    """Debian: `apt install chromium-headless-shell`."""
    return next(filter(None, map(shutil.which, programs)), None)


def find_code_server() -> str | None:
    """Where `codehub ide install code-server` put it (name it in CODEHUB_TEST_IDE_DIR): it takes minutes, so no test
    installs it.
    """
    folder = os.environ.get("CODEHUB_TEST_IDE_DIR")
    found = programs.find("code-server", pathlib.Path(folder).parent) if folder else shutil.which("code-server")
    return str(found) if found else None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """What needs a program that is not here is not selected, and counted so."""

    def can_run(item: pytest.Item) -> bool:
        if "code-server" in item.name.replace("_", "-") and not find_code_server():
            return False
        if item.path.name in ("test_ides.py", "test_hidden_tab.py") or "gives_frames_no_service_worker" in item.name:
            return bool(find_chromium(*WHOLE))
        if item.path.name == "test_new_workspace.py" and not (CAN_SERVE and CAN_BUILD):
            return False
        return "chromium" not in getattr(item, "fixturenames", ()) or bool(find_chromium(SHELL, *WHOLE))

    if left_out := [item for item in items if not can_run(item)]:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in left_out]


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def chromium() -> AsyncIterator[Browser]:
    found = find_chromium(SHELL, *WHOLE)
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=found, args=FLAGS)
        yield browser
        await browser.close()


@dataclass
class Lab:
    """A platform, a browser, and ways for people to come."""

    platform: Platform
    chromium: Browser
    complaints: list[str] = field(default_factory=list)  # of the pages' consoles: what no test expected

    @contextlib.asynccontextmanager
    async def somebody(self, name: str, *, role: str = "learner", **options: object) -> AsyncIterator[BrowserContext]:
        """A person's browser, logged in by their link."""
        async with self.browser(**options) as context:
            page = await context.new_page()
            await page.goto(await self.login_link(name, role))
            await page.get_by_role("button").click()
            await page.wait_for_url(AFTER_A_LINK)
            await page.close()
            yield context

    @contextlib.asynccontextmanager
    async def browser(self, **options: object) -> AsyncIterator[BrowserContext]:
        """Nobody's yet. Cookies and cache are its own."""
        # Without moving pictures: drawing them in software takes a core, and there is nothing to see.
        options = {"base_url": self.platform.url, "locale": "en-GB", "reduced_motion": "reduce", **options}
        context = await self.chromium.new_context(**options)  # type: ignore[arg-type]
        context.set_default_timeout(WAIT_MS)
        context.on("page", self._listen)
        try:
            yield context
        finally:
            await context.close()

    def _listen(self, page: Page) -> None:
        page.on("console", self._console)
        page.on("pageerror", lambda error: self.complaints.append(str(error)))

    def _console(self, message: ConsoleMessage) -> None:
        # The browser notes every answer of status 400 and above itself; which those are is for tests to say.
        if message.type == "error" and "Failed to load resource" not in message.text:
            self.complaints.append(f"{message.text} ({message.location.get('url', '')})")

    async def login_link(self, name: str, role: str = "learner") -> str:
        async with self.platform.client() as client:
            await (await client.post("/api/v1/users", json={"name": name, "role": role})).read()
            async with client.post(f"/api/v1/users/{name}/login-links") as answer:
                link: str = (await answer.json())["url"]
                return link

    async def workspace(self, owner: str, name: str, template: str, state: str) -> str:
        """Made by a program of theirs; wait for it to be so, except for an IDE that never runs."""
        async with (
            self.platform.client() as admin,
            admin.post(f"/api/v1/users/{owner}/tokens", json={}) as answer,
        ):
            token = (await answer.json())["token"]
        async with self.platform.client(token) as client:
            wanted = {"name": name, "template": template, "desired_state": state}
            async with client.post("/api/v1/workspaces", json=wanted) as answer:
                assert answer.status == 201
                id_: str = (await answer.json())["id"]
            async with asyncio.timeout(START_SECONDS):
                while template != "hangs" and (await self.state(client, id_)) != (state, "NONE"):
                    await asyncio.sleep(0.05)
        return id_

    async def state(self, client: aiohttp.ClientSession, id_: str) -> tuple[str, str]:
        async with client.get(f"/api/v1/workspaces/{id_}") as answer:
            w = await answer.json()
            return w["phase"], w["operation"]

    async def put_to_sleep(self, id_: str) -> None:
        """By somebody else's hand; waits for it."""
        async with self.platform.client() as admin:
            async with admin.patch(f"/api/v1/workspaces/{id_}", json={"desired_state": "STANDBY"}) as answer:
                assert answer.status == 202, await answer.text()
            async with asyncio.timeout(START_SECONDS):
                while (await self.state(admin, id_)) != ("STANDBY", "NONE"):
                    await asyncio.sleep(0.05)

    async def rename(self, id_: str, name: str) -> None:
        """By somebody else's hand."""
        async with (
            self.platform.client() as admin,
            admin.patch(f"/api/v1/workspaces/{id_}", json={"name": name}) as answer,
        ):
            assert answer.status == 200


def inside(page: Page) -> Locator:
    """What the IDE shows, in the frame of the page around it."""
    return page.frame_locator("#ide").locator("body")


@pytest.fixture(scope="module")
def small_platform() -> Iterator[Platform]:
    with (
        a_place() as folder,
        running(
            folder / "data",
            CODEHUB_TEMPLATES_DIR=str(write_templates(folder / "templates")),
            CODEHUB_MAX_RUNNING_PER_USER="2",
            CODEHUB_DRAIN_SECONDS="1",  # open event streams would hold the end up for the whole of it
        ) as started,
    ):
        yield started


@pytest.fixture
def lab(small_platform: Platform, chromium: Browser) -> Iterator[Lab]:
    """Fails the test when a page's console complained."""
    made = Lab(small_platform, chromium)
    yield made
    assert made.complaints == []
