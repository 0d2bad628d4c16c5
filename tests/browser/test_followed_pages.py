"""Pages that follow what others do: courses and drafts, in two browsers; and a backup, from the click to its file."""

import pathlib
from typing import Any

import aiohttp
from playwright.async_api import expect

from tests.browser.conftest import IN_ONE_LOOP, WAIT_MS, Lab
from tests.courses.archives import SMALL, zipped

pytestmark = IN_ONE_LOOP
expect.set_options(timeout=WAIT_MS)


def written(title: str) -> dict[str, str | bytes]:
    return {**SMALL, "course.md": SMALL["course.md"].replace("title: Small", f"title: {title}")}


async def change(client: aiohttp.ClientSession, id_: str, title: str) -> None:
    """As `codehub course import` does it."""
    async with client.get(f"/api/v1/courses/{id_}/source") as answer:
        source: dict[str, Any] = await answer.json()
        assert answer.status == 200, source
    wanted = {name: source[name] for name in ("key", "title", "language", "description", "author", "sessions")}
    async with client.put(f"/api/v1/courses/{id_}", json={**wanted, "title": title}) as answer:
        assert answer.status == 200, await answer.text()


async def test_pages_of_courses_follow_what_is_imported_elsewhere(lab: Lab, tmp_path: pathlib.Path) -> None:
    file = tmp_path / "small.zip"
    async with (
        lab.somebody("kim-follows", role="teacher") as kim,
        lab.somebody("boss-follows", role="admin") as boss,
        lab.platform.client() as api,
    ):
        listed, everybodys = await kim.new_page(), await boss.new_page()
        await listed.goto("/courses")
        await everybodys.goto("/courses")
        sending = await kim.new_page()
        file.write_bytes(zipped(written("First words")))
        await sending.goto("/courses/import")
        await sending.get_by_label("Archive of the folder").set_input_files(file)
        await sending.get_by_role("button", name="See what it would do").click()
        draft = await kim.new_page()
        await draft.goto(sending.url)
        await sending.get_by_role("button", name="Save the course").click()
        await sending.wait_for_url("**/courses/*")
        id_ = sending.url.partition("?")[0].rpartition("/")[2]
        for page in (listed, everybodys):  # its owner's list, and an admin's of all
            await expect(page.get_by_role("link", name="First words")).to_be_visible()
        await draft.wait_for_url(f"**/courses/{id_}")  # saved in the other tab: there is no draft any more

        await change(api, id_, "Second words")
        for page in (listed, everybodys):
            await expect(page.get_by_role("link", name="Second words")).to_be_visible()
        await expect(draft.get_by_role("heading", name="Second words")).to_be_visible()
        await expect(draft.get_by_role("heading", name="Version 2")).to_be_visible()

        file.write_bytes(zipped(written("Third words")))
        await sending.goto("/courses/import")
        await sending.get_by_label("Archive of the folder").set_input_files(file)
        await sending.get_by_role("button", name="See what it would do").click()
        await expect(sending.get_by_text("Title: Second words → Third words")).to_be_visible()
        await change(api, id_, "Other words")  # what is shown is what would be saved
        await expect(sending.get_by_text("Title: Other words → Third words")).to_be_visible()
        await expect(sending.get_by_role("button", name="Save as version 4")).to_be_visible()


async def test_a_backup_is_made_followed_and_deleted_on_the_page(lab: Lab, tmp_path: pathlib.Path) -> None:
    async with (
        lab.somebody("boss-backs-up", role="admin", accept_downloads=True) as boss,
        lab.somebody("boss-looks-on", role="admin") as other,
    ):
        page, watching = await boss.new_page(), await other.new_page()
        await watching.goto("/backups")
        await expect(watching.get_by_text("None yet.")).to_be_visible()
        await page.goto("/backups")
        await page.get_by_role("button", name="Make a backup").dblclick()
        for each in (page, watching):  # without being loaded again
            await expect(each.get_by_text("made by boss-backs-up")).to_have_count(1)
            await expect(each.get_by_role("button", name="Make a backup")).to_be_visible()
        async with page.expect_download() as coming:
            await page.get_by_role("button", name="Download").click()
        file = tmp_path / "page.codehub"
        await (await coming.value).save_as(file)
        (kept,) = (lab.platform.data_dir / "backups").iterdir()
        assert file.read_bytes() == kept.read_bytes()
        await page.locator("details.menu > summary").last.click()
        await page.get_by_role("button", name="Delete for good").click()
        for each in (page, watching):
            await expect(each.get_by_text("None yet.")).to_be_visible()
        assert list((lab.platform.data_dir / "backups").iterdir()) == []
