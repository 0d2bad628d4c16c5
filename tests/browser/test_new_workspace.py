"""A new workspace from a git address, and VS Code installed from the page, on a platform that runs."""

import json
import os
import pathlib
import shutil
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.async_api import Browser, Page, expect

from tests.browser.conftest import IN_ONE_LOOP, WAIT_MS, Lab
from tests.ides import small_packages
from tests.places import a_place
from tests.platform import Platform, codehub, running
from tests.workspaces.git_server import GitServer, git_server
from tests.workspaces.ides import PROGRAMS, write_templates

pytestmark = IN_ONE_LOOP
expect.set_options(timeout=WAIT_MS)
PICTURES = os.environ.get("CODEHUB_TEST_PICTURES")


@pytest.fixture(scope="module")
def place() -> Iterator[pathlib.Path]:
    with a_place(on_disk=True) as folder:
        yield folder


@pytest.fixture(scope="module")
def server(place: pathlib.Path) -> Iterator[GitServer]:
    with git_server(place / "git") as started:
        yield started


@pytest.fixture(scope="module")
def small_platform(place: pathlib.Path, server: GitServer) -> Iterator[Platform]:
    templates = write_templates(place / "templates")
    starter = templates / "trusting"
    starter.mkdir()
    for name, data in server.home.items():
        (starter / name).write_bytes(data)
    command = json.dumps(PROGRAMS["tiny"])
    text = f'title = "Trusting"\nstarter = "trusting"\n[process]\ncommand = {command}\nnetwork = "host"\n'
    (templates / "trusting.toml").write_text(text)
    settings: dict[str, Any] = {
        "CODEHUB_TEMPLATES_DIR": str(templates),
        "CODEHUB_DRAIN_SECONDS": "1",
        "CODEHUB_MAX_RUNNING_PER_USER": "0",
    }
    settings |= small_packages.make(place / "small")
    with running(place / "data", **settings) as started:
        yield started


@pytest.fixture
def lab(small_platform: Platform, chromium: Browser) -> Iterator[Lab]:
    made = Lab(small_platform, chromium)
    yield made
    assert made.complaints == []


async def pictures(page: Page, name: str) -> None:
    """For those who want to look: at both widths, in both lights and languages."""
    if not PICTURES:
        return
    here = page.url
    for language in ("en", "ko"):
        await page.goto(f"{here.partition('#')[0].partition('?')[0]}?lang={language}")
        if name.startswith("form"):
            await page.evaluate("document.querySelectorAll('details.adding, #from-git').forEach(d => d.open = true)")
        for width, light in ((360, "light"), (360, "dark"), (1280, "light"), (1280, "dark")):
            await page.set_viewport_size({"width": width, "height": 900})
            await page.emulate_media(color_scheme=light)  # type: ignore[arg-type]
            wide = await page.evaluate("document.documentElement.scrollWidth > innerWidth")
            assert not wide, (name, language, width)
            await page.screenshot(path=f"{PICTURES}/{name}-{language}-{width}-{light}.png", full_page=True)
    await page.goto(f"{here.partition('#')[0].partition('?')[0]}?lang=en")


async def test_a_repository_is_there_and_a_wrong_one_is_told_and_fetched_again(lab: Lab, server: GitServer) -> None:
    async with lab.somebody("boss", role="admin") as browser:
        page = await browser.new_page()
        await page.goto("/")
        await pictures(page, "form")
        await page.locator("#from-git summary").click()
        await page.get_by_label("Trusting").check()
        await page.get_by_label("Address").fill("https://boss:secret@127.0.0.1/x.git")
        await page.locator("form.create button").last.click()
        await expect(page.get_by_role("alert")).to_contain_text("holds a name or a password")
        assert "secret" not in page.url
        assert "secret" not in await page.content()

        server.held.clear()
        await page.get_by_label("Trusting").check()
        if not await page.get_by_label("Address").is_visible():
            await page.locator("#from-git summary").click()
        await page.get_by_label("Address").fill(f"{server.url}/slow/hello.git")
        await page.locator("form.create button").last.click()
        await page.wait_for_url("**/open/*")
        id_ = page.url.rpartition("/")[2]
        await page.goto(f"/workspaces/{id_}")
        await expect(page.locator(".fetch")).to_contain_text(f"Fetching {server.url}/slow/hello.git into ~/hello …")
        await pictures(page, "fetching")
        server.held.set()
        await expect(page.locator("main")).to_contain_text(f"{server.url}/slow/hello.git was fetched into ~/hello.")
        await expect(page.locator(".history")).to_contain_text("is in the folder hello")
        home = lab.platform.data_dir / "workspaces" / "homes" / id_ / "volume" / "home"
        assert (home / "hello" / "README").read_text() == "hello\n"

        made = codehub(
            *("workspace", "create", "Wrong", "--owner", "boss", "--template", "trusting"),
            *("--git", f"{server.url}/later.git", "--json"),
            CODEHUB_DATA_DIR=str(lab.platform.data_dir),
        )
        assert made.returncode == 0, made.stderr
        wrong = json.loads(made.stdout)
        assert (wrong["repository"]["status"], wrong["repository"]["cause"]) == ("FAILED", "not_found")
        await page.goto("/")
        card = page.locator(f"#w-{wrong['id']}")
        await expect(card).to_contain_text("was not fetched: there is no repository at this address")
        await expect(card).to_contain_text("Your workspace works without it.")
        await pictures(page, "failed")
        shutil.copytree(server.folder / "served" / "hello.git", server.folder / "served" / "later.git")
        await card.get_by_role("button", name="Fetch again").click()
        await expect(card.locator(".fetch")).to_have_count(0)
        await page.goto(f"/workspaces/{wrong['id']}")
        await expect(page.locator("main")).to_contain_text("was fetched into ~/later.")


async def test_vs_code_is_installed_from_the_page_with_its_progress_live(lab: Lab, place: pathlib.Path) -> None:
    control = place / "small" / "control"
    (control / "hold-rebuild").touch()
    async with lab.somebody("boss", role="admin") as first, lab.somebody("chief", role="admin") as second:
        here, there = await first.new_page(), await second.new_page()
        await here.goto("/templates")
        await expect(here.locator("#ide")).to_contain_text("VS Code is not installed")
        await pictures(here, "ide-missing")
        await there.goto("/?template=tiny")
        await there.get_by_role("button", name="Install VS Code").click()
        await there.wait_for_url("**/templates#ide")
        for page in (here, there):
            await expect(page.locator("#ide [aria-current=step]")).to_contain_text("Building 1 of 1: argon2")
            await expect(page.locator("#ide .ide-lines")).to_contain_text("working on rebuild")
        await pictures(here, "ide-running")
        before = await here.locator("#ide > p").first.inner_text()
        await expect(here.locator("#ide > p").first).not_to_have_text(before)  # seconds pass
        await there.goto("/?template=tiny")
        await expect(there.get_by_role("link", name="See how far it is")).to_be_visible()
        await here.reload()
        await here.get_by_role("button", name="Stop installing").click()
        await expect(here.locator("#ide")).to_contain_text("Installing VS Code was stopped")
        (control / "hold-rebuild").unlink()
        (control / "break-run").touch()
        await here.get_by_role("button", name="Install VS Code").click()
        await expect(here.locator("#ide")).to_contain_text("VS Code could not be installed")
        await expect(here.locator("#ide")).to_contain_text("fatal error: no.h: No such file")
        await pictures(here, "ide-failed")
        (control / "break-run").unlink()
        await here.get_by_role("button", name="Try again").click()
        await expect(here.locator("#ide")).to_contain_text("VS Code is installed")
        await pictures(here, "ide-done")
        await here.get_by_role("link", name="New workspace").click()
        await expect(here.locator("input[value=code-server]")).to_be_checked()
