"""Real IDEs that fall asleep under an open page, in real time: told before, woken from there, nothing is lost.

And what VS Code needs of a frame: a service worker for its previews, or else a tab of its own.
"""

import asyncio
import contextlib
import os
import re
import shutil
import time
from collections.abc import Iterator

import pytest
from playwright.async_api import Browser, FrameLocator, Page, async_playwright, expect

from tests.browser.conftest import FLAGS, IN_ONE_LOOP, WAIT_MS, WHOLE, Lab, find_chromium
from tests.places import a_place
from tests.platform import Platform, running

pytestmark = [IN_ONE_LOOP, pytest.mark.soak]
expect.set_options(timeout=WAIT_MS)
STANDBY = 150  # seconds; the bar warns two minutes before
OPENS_MS = 120_000.0  # VS Code's page, also on a busy machine
COVERED_SECONDS = 2.0  # after it slept
TYPED = "almost_lost = 6 * 7"


@pytest.fixture(scope="module")
def platform() -> Iterator[Platform]:
    env = {"TTL_STANDBY_SECONDS": str(STANDBY), "COORDINATOR_TTL_INTERVAL": "5", "ACTIVITY_FLUSH_INTERVAL": "5"}
    with a_place() as folder:
        if ide := os.environ.get("CODEHUB_TEST_IDE_DIR"):  # built by `codehub ide install code-server`
            (folder / "data").mkdir(mode=0o755)
            shutil.copytree(ide, folder / "data" / "ide", symlinks=True)
        with running(folder / "data", first_start=bool(ide), **env) as started:
            yield started


@pytest.fixture
def lab(platform: Platform, chromium: Browser) -> Lab:
    """Their pages go on asking while they sleep, and say so in the console."""
    return Lab(platform, chromium)


async def type_in_jupyterlab(page: Page, ide: FrameLocator) -> None:
    await ide.locator(".jp-LauncherCard[title^=Python]").first.click()
    cell = ide.locator(".jp-CodeCell .cm-content").first
    await cell.click()
    await page.keyboard.type(TYPED)
    await expect(cell).to_contain_text(TYPED)


async def found_in_jupyterlab(ide: FrameLocator) -> None:
    await expect(ide.locator(".jp-CodeCell .cm-content").first).to_contain_text(TYPED)


async def type_in_terminal(page: Page, ide: FrameLocator) -> None:
    await expect(ide.locator(".xterm-screen").first).to_be_visible()
    await ide.locator(".xterm-helper-textarea").first.focus()
    await page.keyboard.type(f"echo '{TYPED}' > note.txt; cat note.txt\n")


async def found_in_terminal(ide: FrameLocator) -> None:
    await expect(ide.locator(".xterm-screen").first).to_be_visible()


async def make_in_code_server(page: Page, ide: FrameLocator, name: str, line: str) -> None:
    """A file, by its terminal, opened in its editor."""
    await expect(ide.locator(".explorer-folders-view")).to_be_visible(timeout=OPENS_MS)
    screen = ide.locator(".terminal-wrapper.active .xterm-screen")
    for _ in range(10):  # keys pressed before its commands are loaded are lost
        await page.keyboard.press("Control+Shift+Backquote")
        with contextlib.suppress(AssertionError):
            await expect(screen).to_be_visible(timeout=5_000)
            break
    file = ide.locator(".explorer-folders-view").get_by_text(name)
    for _ in range(10):  # so are those before the shell is there
        await screen.click()
        await page.keyboard.type(f"{line}\n")
        with contextlib.suppress(AssertionError):
            await expect(file).to_be_visible(timeout=10_000)
            break
    await file.dblclick()
    await expect(ide.locator(".tab.active", has_text=name)).to_be_visible()
    await ide.locator(".monaco-editor .view-lines").first.click()


async def type_in_code_server(page: Page, ide: FrameLocator) -> None:
    """And never save it."""
    await make_in_code_server(page, ide, "note.py", "touch note.py")
    await page.keyboard.type(TYPED)
    await found_in_code_server(ide)


async def found_in_code_server(ide: FrameLocator) -> None:
    words = re.compile(r"\s".join(map(re.escape, TYPED.split())))  # it draws its own kind of space
    await expect(ide.locator(".monaco-editor .view-lines").first).to_have_text(words, timeout=OPENS_MS)


IDES = {
    "code-server": (type_in_code_server, found_in_code_server),
    "jupyterlab": (type_in_jupyterlab, found_in_jupyterlab),
    "terminal": (type_in_terminal, found_in_terminal),
}


@pytest.mark.parametrize("template", IDES)
async def test_an_ide_that_falls_asleep_under_an_open_page_is_told_before_and_woken_from_there(
    lab: Lab, template: str
) -> None:
    type_in, found_in = IDES[template]
    async with lab.somebody(f"mina-{template}", viewport={"width": 1280, "height": 800}) as context:
        page = await context.new_page()
        id_ = await lab.workspace(f"mina-{template}", "Asleep soon", template, "RUNNING")
        await page.goto(f"/open/{id_}")
        ide = page.frame_locator("#ide")
        await type_in(page, ide)
        begun = time.monotonic()
        await expect(page.locator(".frame-note")).to_contain_text("2 minutes", timeout=STANDBY * 1000)
        warned = time.monotonic()
        async with lab.platform.client() as admin:
            async with asyncio.timeout(STANDBY * 2):
                while (await lab.state(admin, id_))[0] != "STANDBY":
                    await asyncio.sleep(0.1)
        asleep = time.monotonic()
        await expect(page.locator("[data-cover]")).to_be_visible()
        covered = time.monotonic()
        await page.get_by_role("link", name="Wake").click()
        await found_in(ide)
        print(
            f"{template}: warned after {warned - begun:.0f} s, asleep {asleep - warned:.0f} s later, "
            f"said {covered - asleep:.1f} s after that, back in {time.monotonic() - covered:.1f} s"
        )
        assert asleep - warned > 60
        assert covered - asleep < COVERED_SECONDS


async def test_previews_and_clipboard_of_code_server_work_in_the_frame(lab: Lab) -> None:
    allowed = ["clipboard-read", "clipboard-write"]
    async with lab.somebody("reader", viewport={"width": 1280, "height": 800}, permissions=allowed) as context:
        page = await context.new_page()
        id_ = await lab.workspace("reader", "Previews", "code-server", "RUNNING")
        await page.goto(f"/open/{id_}")
        ide = page.frame_locator("#ide")
        await make_in_code_server(page, ide, "text.md", "echo '# A heading' > text.md")
        await page.keyboard.press("Control+a")
        await page.keyboard.press("Control+c")
        inside = page.frames[1]
        assert "# A heading" in await inside.evaluate("navigator.clipboard.readText()")
        await page.keyboard.press("Control+Shift+v")
        preview = ide.frame_locator("iframe.webview").frame_locator("#active-frame")
        await expect(preview.get_by_role("heading", name="A heading")).to_be_visible(timeout=OPENS_MS)
        scopes = (
            "navigator.serviceWorker.getRegistrations().then((all) => all.map((one) => new URL(one.scope).pathname))"
        )
        assert all(scope.startswith(f"/w/{id_}/") for scope in await inside.evaluate(scopes))


async def test_code_server_has_a_tab_of_its_own_where_a_browser_gives_frames_no_service_worker(
    platform: Platform,
) -> None:
    """A whole Chromium that keeps no cookies of other sites: Debian's comes so, and a private window is so."""
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=find_chromium(*WHOLE), args=FLAGS)
        own = Lab(platform, browser)
        async with own.somebody("private") as context:
            page = await context.new_page()
            id_ = await own.workspace("private", "Own tab", "code-server", "RUNNING")
            await page.goto(f"/open/{id_}")
            await expect(page).to_have_url(re.compile(rf"//{id_}\.[^/]+/w/{id_}/"), timeout=OPENS_MS)
            await expect(page.locator(".monaco-workbench")).to_be_visible(timeout=OPENS_MS)
        await browser.close()
