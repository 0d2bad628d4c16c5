"""The real JupyterLab in the platform's page: the launcher comes at once, only once, and wherever it came before."""

import json
import re
from collections.abc import Iterator

import pytest
from playwright.async_api import Browser, FrameLocator, Page, expect

from tests.browser.conftest import IN_ONE_LOOP, WAIT_MS, Lab
from tests.places import a_place
from tests.platform import Platform, running

pytestmark = IN_ONE_LOOP
expect.set_options(timeout=WAIT_MS)
SLOW_MS = 4 * WAIT_MS  # a whole JupyterLab on a busy machine
REFUSE_STORAGE = """
if (location.hostname !== 'localhost' && location.hostname !== '127.0.0.1') {
  for (const name of ['localStorage', 'sessionStorage']) {
    Object.defineProperty(window, name, {
      configurable: true,
      get() { throw new DOMException('Access is denied for this document.', 'SecurityError'); },
    });
  }
}
"""


@pytest.fixture(scope="module")
def platform() -> Iterator[Platform]:
    with a_place() as folder, running(folder / "data") as started:
        yield started


@pytest.fixture
def lab(platform: Platform, chromium: Browser) -> Lab:
    return Lab(platform, chromium)


async def opened(page: Page, address: str) -> FrameLocator:
    await page.goto(address)
    ide = page.frame_locator("#ide")
    await expect(ide.locator("#jp-main-dock-panel")).to_be_visible(timeout=SLOW_MS)
    return ide


async def tabs(page: Page) -> list[str]:
    """Of the main area, when everything that JupyterLab does by itself is done."""
    await page.locator("#main").wait_for(timeout=SLOW_MS)
    await page.locator(".jp-Launcher, .jp-Document").first.wait_for(timeout=SLOW_MS)
    await page.wait_for_timeout(2_500)  # twice its two pauses
    return [text.strip() for text in await page.locator("#jp-main-dock-panel .lm-TabBar-tabLabel").all_inner_texts()]


async def test_the_launcher_comes_once_wherever_it_came_and_a_layout_is_respected(lab: Lab) -> None:
    async with lab.somebody("mina", viewport={"width": 1280, "height": 800}) as context:
        id_ = await lab.workspace("mina", "Lab", "jupyterlab", "RUNNING")
        page = await context.new_page()
        asked: list[str] = []
        page.on("request", lambda request: asked.append(request.url))
        ide = await opened(page, f"/open/{id_}")
        await expect(ide.locator(".jp-Launcher")).to_have_count(1, timeout=SLOW_MS)
        shared = [url for url in asked if "://shared-files.localhost:" in url]
        assert any(re.search(r"/_codehub/jupyterlab/[\w.]+-[0-9a-f]{16}/main\.", url) for url in shared)
        assert not [url for url in asked if f"/w/{id_}/static/lab/" in url]
        assert not [url for url in asked if "/lab/api/build" in url]
        origin = next(re.match(r"http://[^/]+", url)[0] for url in asked if f"/w/{id_}/" in url)  # type: ignore[index]
        base = f"{origin}/w/{id_}"
        await page.close()

        own = await context.new_page()
        await own.goto(f"/w/{id_}/")
        assert await tabs(own) == ["Launcher"]
        for path in ("/lab/workspaces/other", "/lab/workspaces/other?reset", "/doc"):
            await own.goto(base + path)
            assert (await tabs(own)) in (["Launcher"], []), path
            assert await own.locator(".jp-Launcher").count() == 1, path
        await own.evaluate(
            "([url, body]) => fetch(url, {method: 'PUT', body, headers: {'X-XSRFToken': "
            "document.cookie.match(/_xsrf=([^;]*)/)?.[1] ?? ''}})",
            [f"{base}/api/contents/notes.txt", json.dumps({"type": "file", "format": "text", "content": "hello"})],
        )
        await own.goto(f"{base}/lab/tree/notes.txt")
        assert await tabs(own) == ["notes.txt"]
        await own.goto(f"{base}/lab")  # what was open is restored
        assert await tabs(own) == ["notes.txt"]
        await own.goto(f"{base}/lab?reset")
        assert await tabs(own) == ["Launcher"]


async def test_jupyterlab_starts_in_our_page_also_where_the_browser_refuses_it_storage(lab: Lab) -> None:
    """It would take that for another window of the same name, and load itself again, without end."""
    async with lab.somebody("jun", viewport={"width": 1280, "height": 800}) as context:
        await context.add_init_script(REFUSE_STORAGE)
        id_ = await lab.workspace("jun", "Lab", "jupyterlab", "RUNNING")
        page = await context.new_page()
        ide = await opened(page, f"/open/{id_}")
        await expect(ide.locator(".jp-Launcher")).to_have_count(1, timeout=SLOW_MS)
        assert not [frame.url for frame in page.frames if "/workspaces/auto-" in frame.url]
