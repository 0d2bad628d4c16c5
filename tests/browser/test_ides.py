"""The real IDEs in a real browser through the proxy: what a person does in them in an hour, in a minute.

Each way runs on an origin of its own and, where workspaces have none, below the platform's path; what the console says
is compared with what it says when the browser talks to the same IDE directly.
"""

import asyncio
import contextlib
import hashlib
import os
import pathlib
import re
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from dataclasses import dataclass

import aiohttp
import pytest
from playwright.async_api import Browser, ConsoleMessage, Page, async_playwright, expect

from tests.browser.conftest import FLAGS, IN_ONE_LOOP, WAIT_MS, WHOLE, find_chromium, find_code_server
from tests.places import a_place
from tests.platform import ADMIN_TOKEN, Platform, running

pytestmark = [IN_ONE_LOOP, pytest.mark.soak]
expect.set_options(timeout=WAIT_MS)
BIG = 200 * 1000 * 1000
VARYING = re.compile(r"\S*://[^\s)'\"]+|/w/[a-z0-9]+|/home/[a-z0-9-]+|/tmp/codehub-\w+|[0-9a-f]{8,}|\d+")
PICTURES = pathlib.Path(os.environ.get("CODEHUB_PICTURES") or tempfile.gettempdir()) / "codehub-ides"


@dataclass
class Desk:
    """A page with an IDE in it, and what its console complained about."""

    page: Page
    base: str  # where the IDE's own paths begin
    complaints: set[str]

    async def fetch(self, path: str) -> str:
        """As the page's own script would."""
        text: str = await self.page.evaluate("url => fetch(url).then(r => r.text())", self.base + path)
        return text


def note(into: set[str]) -> Callable[[ConsoleMessage], None]:
    def noted(message: ConsoleMessage) -> None:
        if message.type == "error":
            where = pathlib.PurePosixPath(message.location.get("url", "").partition("?")[0]).name
            into.add(VARYING.sub("#", f"{message.text} {where}")[:160])

    return noted


@pytest.fixture(scope="module")
def big_file() -> Iterator[pathlib.Path]:
    with tempfile.TemporaryDirectory(prefix="codehub-") as folder:
        path = pathlib.Path(folder) / "big.bin"
        path.write_bytes(os.urandom(1_000_000) * (BIG // 1_000_000))
        yield path


@contextlib.asynccontextmanager
async def a_browser(port: int = 0) -> AsyncIterator[Browser]:
    """For which the platform on this port is as good as one behind TLS: VS Code's page asks for that."""
    names = "--host-resolver-rules=MAP codehub.test 127.0.0.1"
    trusted = f"--unsafely-treat-insecure-origin-as-secure=http://codehub.test:{port}"
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=find_chromium(*WHOLE), args=[*FLAGS, names, trusted])
        yield browser
        await browser.close()


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@contextlib.contextmanager
def a_platform(way: str, port: int) -> Iterator[Platform]:
    """`origin`: every workspace has its own. `path`: they have none, as on a bare address without a domain for them."""
    env = {"CODEHUB_PORT": str(port)}
    if way == "path":
        env["CODEHUB_PUBLIC_URL"] = f"http://codehub.test:{port}"
    with a_place() as folder:
        if ide := os.environ.get("CODEHUB_TEST_IDE_DIR"):  # built by `codehub ide install code-server`
            (folder / "data").mkdir(mode=0o755)
            shutil.copytree(ide, folder / "data" / "ide", symlinks=True)
        with running(folder / "data", first_start=True, **env) as started:
            yield started


async def log_in(platform: Platform, page: Page) -> None:
    """As somebody who is no admin: those open no workspace where it has no origin of its own."""
    people = f"http://127.0.0.1:{platform.url.rpartition(':')[2]}/api/v1/users"
    async with aiohttp.ClientSession(headers={"Authorization": f"Bearer {ADMIN_TOKEN}"}) as client:
        async with client.post(people, json={"name": "mina", "role": "learner"}) as answer:
            assert answer.status == 201
        async with client.post(f"{people}/mina/login-links") as answer:
            await page.goto((await answer.json())["url"])
    await page.get_by_role("button", name="Log in as").click()
    await expect(page.get_by_role("button", name="Create and open")).to_be_visible()


async def through_the_proxy(platform: Platform, page: Page, template: str, way: str) -> Desk:
    """From the login link: choose, create, and it opens."""
    complaints: set[str] = set()
    await log_in(platform, page)
    await page.locator(f"input[name=template][value={template}]").check()
    await page.get_by_role("button", name="Create and open").click()
    if way == "path":
        await page.get_by_role("button", name="I understand: open it").click()
    await expect(page).to_have_url(re.compile(r"/(w|open)/[a-z0-9]+"))
    if opened := re.search(r"/open/([a-z0-9]+)", page.url):  # in the page of ours; here it has a tab of its own
        await page.goto(f"/w/{opened[1]}/")
        await expect(page).to_have_url(re.compile(r"/w/[a-z0-9]+/"))
    page.on("console", note(complaints))
    found = re.match(r"(http://[^/]+/w/[a-z0-9]+/)", page.url)
    assert found
    return Desk(page, found[1], complaints)


@contextlib.asynccontextmanager
async def directly(browser: Browser, command: list[str], ready: str) -> AsyncIterator[Desk]:
    """The same program on a port of its own."""
    port, complaints = free_port(), set[str]()
    # Its children may live and write for some seconds after it has ended.
    with tempfile.TemporaryDirectory(prefix="codehub-", ignore_cleanup_errors=True) as home:
        arguments = [part.format(port=port, home=home) for part in command]
        env = {**os.environ, "HOME": home}
        process = subprocess.Popen(arguments, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        context = await browser.new_context(viewport={"width": 1280, "height": 800})
        context.set_default_timeout(WAIT_MS)
        page = await context.new_page()
        page.on("console", note(complaints))
        try:
            async with asyncio.timeout(60):
                while True:
                    with contextlib.suppress(OSError):
                        socket.create_connection(("127.0.0.1", port), 1).close()
                        break
                    await asyncio.sleep(0.2)
            await page.goto(f"http://127.0.0.1:{port}{ready}")
            yield Desk(page, f"http://127.0.0.1:{port}/", complaints)
        finally:
            await context.close()
            process.terminate()
            process.wait(20)


# JupyterLab.


async def in_jupyterlab(desk: Desk) -> None:
    """Run a cell, type in a terminal, save."""
    page = desk.page
    await page.locator(".jp-LauncherCard[data-category=Notebook]").first.click()
    cell = page.locator(".jp-CodeCell .cm-content").first
    await expect(cell).to_be_visible()
    await expect(page.locator(".jp-Notebook-ExecutionIndicator[data-status=idle]")).to_be_visible()
    await cell.click()
    await page.keyboard.type("6 * 7000 + 1")
    await expect(cell).to_contain_text("6 * 7000 + 1")
    output = page.locator(".jp-OutputArea-output", has_text="42001").first
    for _ in range(10):  # what is run in the moment the kernel appears is lost, by JupyterLab itself
        await cell.click()
        await page.keyboard.press("Shift+Enter")
        with contextlib.suppress(AssertionError):
            await expect(output).to_be_visible(timeout=5_000)
            break
    await expect(output).to_be_visible()
    await page.keyboard.press("Control+s")
    if await page.get_by_role("button", name="Rename").count():
        await page.get_by_role("button", name="Rename").click()
    await until(lambda: desk.fetch("api/contents/Untitled.ipynb"), "42001")
    await page.get_by_role("button", name="New Launcher").first.click()
    await page.locator(".jp-LauncherCard[data-category=Other]", has_text="Terminal").click()
    await expect(page.locator(".jp-Terminal .xterm-screen")).to_be_visible()
    await page.locator(".jp-Terminal .xterm-screen").click()
    await asyncio.sleep(1)
    await page.keyboard.type("echo $((40+2))x > ~/typed.txt\n")
    await until(lambda: desk.fetch("api/contents?content=1"), "typed.txt")
    assert "42x" in await desk.fetch("api/contents/typed.txt?content=1")


async def test_a_persons_hour_in_jupyterlab(big_file: pathlib.Path) -> None:
    lab = str(pathlib.Path(sys.executable).parent / "jupyter-lab")
    command = [lab, "--no-browser", "--allow-root", "--ServerApp.port={port}", "--IdentityProvider.token="]
    command += ["--ServerApp.root_dir={home}", "--ServerApp.ip=127.0.0.1"]
    port = free_port()
    async with a_browser(port) as browser:
        async with directly(browser, command, "/lab") as desk:
            await in_jupyterlab(desk)
            expected = desk.complaints
        for way in ("origin", "path"):
            with a_platform(way, port) as platform:
                context = await browser.new_context(
                    base_url=platform.url, viewport={"width": 1280, "height": 800}, accept_downloads=True
                )
                context.set_default_timeout(WAIT_MS)
                desk = await through_the_proxy(platform, await context.new_page(), "jupyterlab", way)
                await in_jupyterlab(desk)
                await the_rest(desk, big_file, upload_to_jupyterlab, f"jupyterlab-{way}")
                assert desk.complaints - expected == set(), way
                await log_out(platform, desk)
                await context.close()


async def upload_to_jupyterlab(desk: Desk, path: pathlib.Path) -> str:
    page = desk.page
    async with page.expect_file_chooser() as chooser:
        await page.locator(
            "#filebrowser [data-command='filebrowser:upload'], #filebrowser jp-button[title*='Upload']"
        ).first.click()
    await (await chooser.value).set_files(path)
    await page.get_by_role("button", name="Upload", exact=True).click()  # it asks, because it is large
    await until(lambda: desk.fetch("api/contents?content=1"), f'"size": {BIG}', seconds=180)
    return "files/big.bin"


# code-server.


async def in_code_server(desk: Desk) -> None:
    """Type in a terminal, make a file and save it."""
    page = desk.page
    await expect(page.locator(".monaco-workbench")).to_be_visible()
    await expect(page.locator(".statusbar")).to_be_visible()
    await expect(page.locator(".explorer-folders-view")).to_be_visible()
    screen = page.locator(".terminal-wrapper.active .xterm-screen")
    for _ in range(10):  # keys pressed before its commands are loaded are lost
        await page.keyboard.press("Control+Shift+Backquote")
        with contextlib.suppress(AssertionError):
            await expect(screen).to_be_visible(timeout=5_000)
            break
    await asyncio.sleep(2)
    await page.locator(".terminal-wrapper.active .xterm-screen").click()
    await page.keyboard.type("echo $((40+2))x > ~/typed.txt\n")
    await expect(page.locator(".explorer-folders-view", has_text="typed.txt")).to_be_visible()
    await page.locator(".explorer-folders-view").get_by_text("typed.txt").dblclick()
    await expect(page.locator(".monaco-editor .view-lines", has_text="42x")).to_be_visible()
    await page.locator(".monaco-editor .view-lines").first.click()
    await page.keyboard.press("Control+End")
    await page.keyboard.type("and more")
    await page.keyboard.press("Control+s")
    await expect(page.locator(".tab.dirty")).to_have_count(0)


async def until(ask: Callable[[], Awaitable[str]], expected: str, seconds: float = 60) -> None:
    async with asyncio.timeout(seconds):
        while expected not in (await ask()):
            await asyncio.sleep(0.3)


async def the_rest(
    desk: Desk, big_file: pathlib.Path, upload: Callable[[Desk, pathlib.Path], Awaitable[str]], name: str
) -> None:
    """200 MB up and down, a reload, a second tab."""
    page = desk.page
    PICTURES.mkdir(exist_ok=True)
    await page.screenshot(path=PICTURES / f"{name}.png")
    path = await upload(desk, big_file)
    async with page.expect_download(timeout=180_000) as started:
        await page.evaluate(
            "url => { const a = document.createElement('a'); a.href = url; a.download = ''; a.click(); }",
            desk.base + path,
        )
    got = await (await started.value).path()
    assert _digest(got) == _digest(big_file)
    await reload(desk)
    other = await page.context.new_page()
    listen = note(desk.complaints)
    other.on("console", listen)
    await other.goto(page.url)
    for tab in (page, other):
        await expect(tab.locator(".jp-LabShell, .monaco-workbench").first).to_be_visible()
    other.remove_listener("console", listen)
    await other.close()


async def reload(desk: Desk) -> None:
    """What a page says while it is being left, its work cut off anywhere, is chance; the new one starts without it."""
    before = set(desk.complaints)

    def forget(_frame: object) -> None:
        desk.complaints.intersection_update(before)

    desk.page.once("framenavigated", forget)
    await desk.page.reload()


def _digest(path: pathlib.Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


async def log_out(platform: Platform, desk: Desk) -> None:
    """Elsewhere, in the same browser: the IDE is closed to it within seconds."""
    dashboard = await desk.page.context.new_page()
    await dashboard.goto("/")
    await dashboard.get_by_role("button", name="Log out").click()
    await expect(dashboard.get_by_role("button", name="Log out")).to_have_count(0)
    await until(lambda: desk.page.evaluate("url => fetch(url).then(r => '' + r.status)", desk.base), "401", seconds=15)
    del platform


async def test_a_persons_hour_in_code_server(big_file: pathlib.Path) -> None:
    found = find_code_server()
    assert found
    command = [found, "--auth=none", "--bind-addr=127.0.0.1:{port}", "--disable-telemetry"]
    command += ["--disable-update-check", "--disable-workspace-trust", "{home}"]
    port = free_port()
    async with a_browser(port) as browser:
        async with directly(browser, command, "/") as desk:
            await in_code_server(desk)
            await the_rest(desk, big_file, upload_to_code_server, "code-server-directly")
            expected = desk.complaints
        for way in ("origin", "path"):
            with a_platform(way, port) as platform:
                context = await browser.new_context(
                    base_url=platform.url, viewport={"width": 1280, "height": 800}, accept_downloads=True
                )
                context.set_default_timeout(WAIT_MS)
                desk = await through_the_proxy(platform, await context.new_page(), "code-server", way)
                await in_code_server(desk)
                await the_rest(desk, big_file, upload_to_code_server, f"code-server-{way}")
                assert desk.complaints - expected == set(), way
                await log_out(platform, desk)
                await context.close()


async def upload_to_code_server(desk: Desk, path: pathlib.Path) -> str:
    """By its own explorer's menu; downloaded by the address its server gives files by."""
    page = desk.page
    await page.locator(".explorer-folders-view").click(button="right", position={"x": 60, "y": 500})
    async with page.expect_file_chooser() as chooser:
        await page.get_by_role("menuitem", name=re.compile("^Upload")).click()
    await (await chooser.value).set_files(path)
    await expect(page.locator(".explorer-folders-view", has_text="big.bin")).to_be_visible(timeout=180_000)
    home = re.search(r"folder=([^&]+)", page.url)
    assert home
    await until(lambda: _size_in_code_server(desk, f"{home[1]}/big.bin"), f"-{BIG}-", seconds=180)
    return f"vscode-remote-resource?path={home[1]}/big.bin"


async def _size_in_code_server(desk: Desk, path: str) -> str:
    """It says no length, but its tag has the size in it."""
    ask = "url => fetch(url).then(r => { r.body.cancel(); return '' + r.headers.get('etag'); })"
    tag: str = await desk.page.evaluate(ask, f"{desk.base}vscode-remote-resource?path={path}")
    return tag
