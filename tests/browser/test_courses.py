"""A teacher in a real browser: exports a course, changes it, sees the difference, saves, gives it to a class."""

import io
import pathlib
import zipfile

from playwright.async_api import Page, expect

from tests.browser.conftest import IN_ONE_LOOP, WAIT_MS, Lab

pytestmark = IN_ONE_LOOP
expect.set_options(timeout=WAIT_MS)


async def download(page: Page, name: str, to: pathlib.Path) -> pathlib.Path:
    async with page.expect_download() as coming:
        await page.get_by_role("link", name=name).first.click()
    await (await coming.value).save_as(to)
    return to


async def choose(page: Page, file: pathlib.Path) -> None:
    await page.get_by_label("Archive of the folder").set_input_files(file)
    await page.get_by_role("button", name="See what it would do").click()


def changed(data: bytes, old: str, new: str) -> bytes:
    """The same archive, with other words in its files."""
    made = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as packed, zipfile.ZipFile(made, "w") as other:
        for name in packed.namelist():
            other.writestr(name, packed.read(name).decode().replace(old, new))
    return made.getvalue()


async def test_a_teacher_exports_changes_imports_looks_saves_and_assigns(lab: Lab, tmp_path: pathlib.Path) -> None:
    for name, script in (("kim-writes", True), ("lee-writes", False)):
        async with lab.somebody(name, role="teacher", java_script_enabled=script, accept_downloads=True) as teacher:
            page = await teacher.new_page()
            await page.goto("/")
            await page.get_by_role("link", name="Courses").first.click()
            example = await download(page, "Download an example", tmp_path / f"{name}-example.zip")
            await page.get_by_role("link", name="Import a course").first.click()
            await choose(page, example)
            await expect(page.get_by_text("This would be a new course of yours.")).to_be_visible()
            await page.get_by_role("button", name="Save the course").click()
            await expect(page.get_by_text("Saved.")).to_be_visible()

            exported = await download(page, "Download as .zip", tmp_path / f"{name}.zip")
            exported.write_bytes(changed(exported.read_bytes(), "title: My course", "title: My better course"))
            await page.get_by_role("link", name="Import a new version").click()
            await choose(page, exported)
            await expect(page.get_by_text("This would be version 2 of “My course”.")).to_be_visible()
            await expect(page.get_by_text("Title: My course → My better course")).to_be_visible()
            await page.get_by_role("link", name="Preview as learner").click()
            await expect(page.get_by_text("Preview: this is what learners see.")).to_be_visible()
            await page.get_by_role("link", name="Answer").click()
            await expect(page.get_by_role("group", name="Question 1").first).to_be_visible()
            await page.get_by_role("link", name="← My better course").click()
            await page.get_by_role("button", name="Save as version 2").click()
            await expect(page.get_by_role("heading", name="My better course")).to_be_visible()

            course = page.url.partition("?")[0]
            await page.get_by_role("link", name="Make a class").click()
            await page.get_by_label("Name of the class").fill("Mondays")
            await page.get_by_role("button", name="Make the class").click()
            await expect(page.get_by_role("heading", name="Mondays")).to_be_visible()
            await page.goto(course)
            await page.get_by_role("button", name="Give it to the class").click()
            await page.wait_for_url("**/classes/*/board*")
            await page.goto(course)
            await expect(page.get_by_text("All your classes have it.")).to_be_visible()
    assert lab.complaints == []
