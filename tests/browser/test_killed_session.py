"""kill -9 of everything while a learner is at a session; after a restart another browser has step, answers and files.

`make test` kills in the middle of a PRACTICE's checks; `make soak` at every other moment, too.
"""

import socket
from collections.abc import Iterator

import pytest
from playwright.async_api import Browser, Page, expect

from tests.browser.conftest import IN_ONE_LOOP, WAIT_MS, Lab, inside
from tests.browser.learning import SESSION, answer, begin, check, give_plan, read_all, runs_of
from tests.browser.test_player import open_workspace, type_in_terminal
from tests.places import a_place
from tests.platform import Platform, running
from tests.workspaces.ides import write_templates

pytestmark = IN_ONE_LOOP
expect.set_options(timeout=WAIT_MS)
# The first time it never ends: it is what is under way when everything dies.
HANGS_ONCE = "[ -e begun ] || { touch begun; sleep 300; }; grep me card.txt"
ACTIVITY = {
    **SESSION["practiceActivity"],
    "checks": [{"id": "card", "title": "The card is there", "command": HANGS_ONCE, "timeoutSeconds": 60}],
}
BLUEPRINT = {**SESSION, "practiceActivity": ACTIVITY}
MOMENTS = ["reading", "answering", "waking", "finishing"]


@pytest.fixture
def platform() -> Iterator[Platform]:
    """On a port that it has again after a restart, as a real one."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    with a_place() as folder:
        templates = str(write_templates(folder / "templates"))
        environment = {"CODEHUB_TEMPLATES_DIR": templates, "CODEHUB_PORT": port, "CODEHUB_DRAIN_SECONDS": "1"}
        with running(folder / "data", first_start=False, **environment) as started:
            yield started


@pytest.fixture
def lab(platform: Platform, chromium: Browser) -> Lab:
    """Its pages lose their connection on purpose, and say so in the console."""
    return Lab(platform, chromium)


async def go_to(page: Page, lab: Lab, moment: str) -> str | None:
    """To the moment at which everything dies; the workspace's id, if there is one."""
    if moment == "reading":
        await page.get_by_role("button", name="Next →").click()
        return None
    await read_all(page)
    await answer(page, count="two" if moment == "answering" else "three")
    await check(page)
    if moment == "answering":
        await expect(page.get_by_text("1 of 3 need another look")).to_be_visible()
        return None
    if moment == "waking":
        # Until its script is there, which a page without a server cannot get any more.
        async with page.expect_event("requestfinished", lambda request: request.url.endswith("/frame.js")):
            await page.get_by_role("button", name="Open the workspace").click()
        return None
    id_ = await open_workspace(page)
    await expect(page.get_by_text("The files for this session are in your workspace.")).to_be_visible()
    await type_in_terminal(lab, id_, "echo this is me > card.txt")
    if moment == "finishing":
        await type_in_terminal(lab, id_, "touch begun")
    await page.get_by_role("button", name="Check my work").click()
    if moment == "finishing":
        await expect(page.get_by_role("button", name="Finish the session")).to_be_visible()
    else:
        await type_in_terminal(lab, id_, "while [ ! -e begun ]; do sleep 0.05; done")
    return id_


async def finish(page: Page, lab: Lab, moment: str) -> None:
    """From where it was: the step, the answers, the files."""
    if moment == "reading":
        await read_all(page)
    if moment == "answering":
        await expect(page.get_by_label("two")).to_be_checked()
        await expect(page.get_by_label("Your answer")).to_have_value("range")
    if moment in {"reading", "answering"}:
        await answer(page)
        await check(page)
    await expect(page.get_by_role("link", name="Answer")).to_be_visible()
    await page.get_by_role("link", name="Answer").click()
    await expect(page.get_by_label("three")).to_be_checked()
    await expect(page.get_by_label("Your answer")).to_have_value("range")
    await page.get_by_role("link", name="Go on where you were").click()
    if moment != "finishing":
        id_ = await open_workspace(page)
        await expect(page.get_by_text("The files for this session are in your workspace.")).to_be_visible()
        if moment != "checking":
            await type_in_terminal(lab, id_, "echo this is me > card.txt; touch begun")
        await type_in_terminal(lab, id_, "grep example start/example.txt && grep 'this is me' card.txt")
        await page.get_by_role("button", name="Check my work").click()
    await page.get_by_role("button", name="Finish the session").click()
    await expect(page.get_by_role("heading", name="Session completed")).to_be_visible()


@pytest.mark.parametrize("moment", ["checking", *(pytest.param(m, marks=pytest.mark.soak) for m in MOMENTS)])
async def test_a_session_goes_on_in_another_browser_after_everything_was_killed(lab: Lab, moment: str) -> None:
    async with lab.somebody("mina") as browser:
        session = (await give_plan(lab, "mina", BLUEPRINT))["sessions"][0]["id"]
        old = await browser.new_page()
        await begin(old, session)
        await go_to(old, lab, moment)
        lab.platform.kill_tree()
        lab.platform.end_workspaces()
        lab.platform.start()
        async with lab.somebody("mina") as another:
            page = await another.new_page()
            await begin(page, session)
            # A page that waited for its workspace goes on to it by itself, with the session beside it.
            there = old.frame_locator("#panel iframe") if moment == "waking" else old
            told = there.get_by_text("You went on with this in another tab or on another device.")
            await expect(told).to_be_visible(timeout=3 * WAIT_MS)  # a leader is found, and starts the workspace
            await finish(page, lab, moment)
            runs = await runs_of(another, session)
        assert [(run["status"], run["fence"]) for run in runs] == [("COMPLETED", 2)]
        await expect(there.get_by_role("heading", name="Session completed")).to_be_visible()


async def test_open_pages_say_that_nothing_answers_and_follow_again_after_a_restart(lab: Lab) -> None:
    """The start page and an IDE's frame, in two tabs: a session's is in the other test."""
    async with lab.somebody("mina") as browser:
        id_ = await lab.workspace("mina", "Essay", "tiny", "RUNNING")
        home, frame = await browser.new_page(), await browser.new_page()
        for page, path in ((home, "/"), (frame, f"/open/{id_}")):
            await page.goto(path)
            await expect(page.locator(".pill").first).to_contain_text("Running")
        lab.platform.kill_tree()
        for page in (home, frame):
            await page.bring_to_front()
            await expect(page.locator("#offline")).to_be_visible()
        lab.platform.start()
        async with lab.platform.client() as admin:
            await (await admin.patch(f"/api/v1/workspaces/{id_}", json={"desired_state": "STANDBY"})).read()
        for page in (home, frame):
            await page.bring_to_front()
            await expect(page.locator("#offline")).to_be_hidden()
            # A leader is found first.
            await expect(page.locator(".pill").first).to_contain_text("Asleep", timeout=3 * WAIT_MS)
        await frame.get_by_role("link", name="Wake").click()
        await expect(inside(frame)).to_contain_text(f"/w/{id_}/")
