"""What people do in an IDE that stands in the page around it: clipboard, full screen, downloads, keys, leaving."""

import asyncio
import contextlib
from collections.abc import AsyncIterator

from playwright.async_api import Dialog, FrameLocator, Page, expect

from tests.browser.conftest import IN_ONE_LOOP, WAIT_MS, Lab
from tests.browser.test_frame import forgive_the_ide

pytestmark = IN_ONE_LOOP
expect.set_options(timeout=WAIT_MS)
ALLOWED = ["clipboard-read", "clipboard-write"]  # what the person was asked for, and said yes to
STEPS = 40  # at most, of the Shift+Tab key, from anywhere in an IDE to the bar
AUTOSAVE = """async () => {
  const settings = `${location.pathname.split("/lab")[0]}/lab/api/settings/@jupyterlab/docmanager-extension:plugin`;
  return (await (await fetch(settings)).json()).schema.properties.autosaveInterval.default;
}"""
FOCUSED = "document.activeElement.id || document.activeElement.className"


@contextlib.asynccontextmanager
async def an_ide(lab: Lab, owner: str, template: str) -> AsyncIterator[tuple[Page, FrameLocator, str]]:
    async with lab.somebody(owner, permissions=ALLOWED, viewport={"width": 1280, "height": 800}) as context:
        id_ = await lab.workspace(owner, "Lab 1", template, "RUNNING")
        page = await context.new_page()
        await page.goto(f"/open/{id_}")
        yield page, page.frame_locator("#ide"), id_
    forgive_the_ide(lab)


async def type_into_a_notebook(page: Page, ide: FrameLocator, text: str) -> None:
    await ide.locator(".jp-LauncherCard[title^=Python]").first.click()
    cell = ide.locator(".jp-CodeCell .cm-content").first
    await cell.click()
    await page.keyboard.type(text)
    await expect(cell).to_contain_text(text)


async def out_by_keyboard(page: Page) -> None:
    for _ in range(STEPS):
        await page.keyboard.press("Shift+Tab")
        if await page.evaluate(FOCUSED) != "ide":
            return
    raise AssertionError("the keyboard does not come out of the IDE")


async def refuse_to_leave(page: Page, asked: list[str]) -> None:
    """The person stays, whenever the browser asks."""

    async def stay(dialog: Dialog) -> None:
        asked.append(dialog.type)
        await dialog.dismiss()

    page.on("dialog", stay)


async def until_asked(asked: list[str], times: int) -> None:
    async with asyncio.timeout(WAIT_MS / 1000):
        while len(asked) < times:
            await asyncio.sleep(0.05)


async def test_jupyterlab_has_keyboard_clipboard_and_downloads_as_in_a_tab_of_its_own(lab: Lab) -> None:
    async with an_ide(lab, "clip", "jupyterlab") as (page, ide, _):
        await expect(ide.locator(".jp-LauncherCard").first).to_be_visible()
        assert await page.evaluate(FOCUSED) == "ide"  # without a click
        await expect(page.locator("#ide")).to_have_attribute("title", "Lab 1: JupyterLab")
        await out_by_keyboard(page)
        await page.get_by_role("link", name="Into the IDE").focus()
        await page.keyboard.press("Enter")
        await expect(page.locator("#ide")).to_be_focused()
        await type_into_a_notebook(page, ide, "copied = 1")
        inside = page.frames[1]
        await page.keyboard.press("Control+a")
        await page.keyboard.press("Control+c")
        assert await inside.evaluate("navigator.clipboard.readText()") == "copied = 1"
        await inside.evaluate("navigator.clipboard.writeText('# pasted')")
        await page.keyboard.press("Control+v")
        await expect(ide.locator(".jp-CodeCell .cm-content").first).to_have_text("# pasted")
        assert await inside.evaluate("document.featurePolicy.allowsFeature('keyboard-map')")  # other layouts than US
        assert (
            await inside.evaluate(AUTOSAVE) == 15
        )  # seconds: what is typed into a cell counts as work when it is saved
        await page.keyboard.press("Escape")  # out of the cell, in which Tab means something else
        await out_by_keyboard(page)
        await ide.locator(".jp-DirListing-item", has_text="Untitled.ipynb").click(button="right")
        async with page.expect_download() as download:
            await ide.locator(".lm-Menu-item[data-command='filebrowser:download']").click()
        assert (await download.value).suggested_filename == "Untitled.ipynb"


async def test_jupyterlab_is_dark_where_the_pages_around_it_are(lab: Lab) -> None:
    async with an_ide(lab, "dusk", "jupyterlab") as (page, ide, _):
        await expect(ide.locator("body[data-jp-theme-light=true]")).to_be_attached()
        await page.emulate_media(color_scheme="dark")
        await expect(ide.locator("body[data-jp-theme-light=false]")).to_be_attached()


async def test_who_leaves_unsaved_work_is_asked_and_who_wakes_a_workspace_is_not(lab: Lab) -> None:
    async with an_ide(lab, "unsaved", "jupyterlab") as (page, ide, id_):
        await type_into_a_notebook(page, ide, "not_saved_yet = 1")
        asked: list[str] = []
        await refuse_to_leave(page, asked)
        await page.close(run_before_unload=True)
        await until_asked(asked, 1)
        await page.locator(".brand").click(no_wait_after=True)
        await until_asked(asked, 2)
        assert not page.is_closed()
        assert page.url.endswith(f"/open/{id_}")
        await page.keyboard.type("2")
        await lab.put_to_sleep(id_)
        await page.evaluate("document.body.dataset.before = true")
        await page.get_by_role("link", name="Wake").click()
        await expect(page.locator("body:not([data-before]) #ide")).to_be_attached()  # of the page that came after it
        await page.locator(".brand").click()
        await expect(page.get_by_role("heading", level=1)).to_have_text("Hello, unsaved")
        assert asked == ["beforeunload"] * 2


async def test_a_terminal_gives_the_keyboard_back_by_one_key(lab: Lab) -> None:
    async with an_ide(lab, "keys", "terminal") as (page, ide, _):
        await expect(ide.locator(".xterm-screen").first).to_be_visible()
        assert await page.evaluate(FOCUSED) == "ide"
        await page.keyboard.type("echo typed-at-''once\n")
        await expect(ide.locator("body")).to_contain_text("typed-at-once")
        await page.keyboard.press("Shift+Tab")
        assert await page.evaluate(FOCUSED) == "ide"  # the terminal's own
        await page.keyboard.press("Control+Shift+ArrowUp")
        await expect(page.locator(".brand")).to_be_focused()


async def test_a_warning_is_seen_in_full_screen_and_sleep_ends_it(lab: Lab) -> None:
    async with an_ide(lab, "whole", "terminal") as (page, ide, id_):
        await ide.locator(".xterm-screen").first.click()
        await page.frames[1].evaluate("document.documentElement.requestFullscreen()")
        assert await page.evaluate("document.fullscreenElement.id") == "ide"
        async with (
            lab.platform.client() as admin,
            admin.patch(f"/api/v1/workspaces/{id_}", json={"standby_ttl_seconds": 119}) as answer,
        ):
            assert answer.status == 200, await answer.text()
        note = page.locator(".frame-note")
        await expect(note).to_be_visible()
        assert await note.evaluate("note => note.matches(':popover-open')")  # the browser draws it above all else
        assert await page.evaluate(FOCUSED) == "ide"
        await expect(page.locator("#announce")).to_have_text(
            "Goes to sleep in less than 2 minutes: nobody has worked in it for a while."
        )
        await page.evaluate("document.exitFullscreen()")
        await note.get_by_role("button", name="Keep awake").click()
        await expect(note).to_have_count(0)
        await ide.locator(".xterm-screen").first.click()
        await page.frames[1].evaluate("document.documentElement.requestFullscreen()")
        await lab.put_to_sleep(id_)
        await expect(page.get_by_role("link", name="Wake")).to_be_focused()
        await expect(page.get_by_role("link", name="Wake")).to_have_accessible_description(
            "Asleep Your files are as you left them; it opens in seconds."
        )
        await expect(page.locator("#announce")).to_have_text("Asleep")
        assert await page.evaluate("document.fullscreenElement") is None
