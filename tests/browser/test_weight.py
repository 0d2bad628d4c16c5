"""Pages are light and stand still: what a browser fetches for the first, how far anything moves while it loads."""

from urllib.parse import urlsplit

import pytest
from playwright.async_api import BrowserContext, Page, expect

from tests.browser.conftest import IN_ONE_LOOP, WAIT_MS, Lab

pytestmark = IN_ONE_LOOP
expect.set_options(timeout=WAIT_MS)
MOST_BYTES = 150_000  # over the wire, headers included
MOST_SHIFT = 0.1  # as browsers judge it: a page that moves less is good
SHIFT = """() => new Promise((done) => {
  let sum = 0;
  const add = (list) => { for (const one of list.getEntries()) if (!one.hadRecentInput) sum += one.value; };
  new PerformanceObserver(add).observe({ type: "layout-shift", buffered: true });
  setTimeout(() => done(sum), 500);
})"""
PAGES = {
    "learner": ("/", "/learn", "/account", "/classes"),
    "teacher": ("/", "/classes", "/courses"),
    "admin": ("/", "/people", "/workspaces", "/operator", "/settings", "/audit", "/templates", "/storage", "/backups"),
}


class Wire:
    """Counts what comes over it."""

    def __init__(self) -> None:
        self.bytes = 0

    async def listen(self, context: BrowserContext, page: Page) -> None:
        session = await context.new_cdp_session(page)
        session.on("Network.loadingFinished", self._add)
        await session.send("Network.enable")

    def _add(self, event: dict[str, float]) -> None:
        self.bytes += int(event["encodedDataLength"])


async def test_the_first_page_is_light(lab: Lab) -> None:
    """Of a browser that was never here, with a workspace on it, after the login."""
    async with lab.somebody("light") as context:
        await lab.workspace("light", "A first one", "tiny", "STANDBY")
        page, wire = await context.new_page(), Wire()
        await wire.listen(context, page)
        session = await context.new_cdp_session(page)
        await session.send("Network.setCacheDisabled", {"cacheDisabled": True})
        await page.goto("/", wait_until="load")
        await expect(page.get_by_text("A first one").first).to_be_visible()
        await page.wait_for_timeout(500)  # what the script fetches after that
        assert 0 < wire.bytes <= MOST_BYTES


@pytest.mark.parametrize("role", PAGES)
@pytest.mark.parametrize("width", [360, 1280])
async def test_nothing_jumps_while_a_page_loads(lab: Lab, role: str, width: int) -> None:
    name = f"still-{role}-{width}"
    async with lab.somebody(name, role=role, viewport={"width": width, "height": 780}) as context:
        await lab.workspace(name, "A first one", "tiny", "STANDBY")
        page = await context.new_page()
        moved = {}
        for path in PAGES[role]:
            await page.goto(path, wait_until="load")
            assert urlsplit(page.url).path == path
            if (shift := await page.evaluate(SHIFT)) > MOST_SHIFT:
                moved[path] = shift
        assert moved == {}
