"""Real IDEs that fall asleep under an open page, in real time: told before, woken from there, nothing is lost."""

import asyncio
import time
from collections.abc import Iterator

import pytest
from playwright.async_api import Browser, FrameLocator, Page, expect

from tests.browser.conftest import IN_ONE_LOOP, WAIT_MS, Lab
from tests.places import a_place
from tests.platform import Platform, running

pytestmark = [IN_ONE_LOOP, pytest.mark.soak]
expect.set_options(timeout=WAIT_MS)
STANDBY = 150  # seconds; the bar warns two minutes before
TYPED = "almost_lost = 6 * 7"


@pytest.fixture(scope="module")
def platform() -> Iterator[Platform]:
    with (
        a_place() as folder,
        running(
            folder / "data", TTL_STANDBY_SECONDS=str(STANDBY), COORDINATOR_TTL_INTERVAL="5", ACTIVITY_FLUSH_INTERVAL="5"
        ) as started,
    ):
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


IDES = {
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
        assert covered - asleep < 5
