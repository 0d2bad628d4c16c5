"""Classes in a real browser: joining by a code from the wall on a telephone, and being told of a teacher who comes."""

import pathlib
import re

from playwright.async_api import Page, expect

from tests.browser.conftest import IN_ONE_LOOP, WAIT_MS, Lab
from tests.browser.test_dashboard import create

pytestmark = IN_ONE_LOOP
expect.set_options(timeout=WAIT_MS)
PHONE = {"width": 360, "height": 640}


async def a_code_on_the_wall(page: Page, title: str) -> str:
    await page.goto("/classes")
    if await page.locator("details.adding").count():
        await page.locator("details.adding > summary").click()
    await page.get_by_label("Name of the class").fill(title)
    await page.get_by_role("button", name="Make the class").click()
    await page.get_by_role("button", name="Make a code").click()
    await page.get_by_role("link", name="Show on the wall").click()
    return await page.locator(".wall-code").inner_text()


async def join(page: Page, code: str, name: str) -> None:
    await page.goto("/")
    await page.get_by_role("link", name="Join with a code").click()
    await page.get_by_label("Code").fill(code.lower())
    await page.get_by_role("button", name="Next").click()
    await page.get_by_label("Your name").fill("김민아")
    await page.get_by_label("User name").fill(name)
    await page.get_by_label("Password").fill("seven green boats sail")
    await page.get_by_role("button", name="Join the class").click()
    await expect(page.get_by_text("You are in")).to_be_visible()


async def test_a_learner_joins_by_a_code_from_the_wall_on_a_telephone_in_three_steps(lab: Lab) -> None:
    async with lab.somebody("kim-joins", role="teacher") as teacher:
        wall = await teacher.new_page()
        code = await a_code_on_the_wall(wall, "Python, Mondays")
        for name, script in (("mina-joins", True), ("jun-joins", False)):
            async with lab.browser(viewport=PHONE, java_script_enabled=script) as phone:
                page = await phone.new_page()
                await join(page, code, name)
                await expect(page.get_by_role("heading", name="Python, Mondays")).to_be_visible()
        await expect(wall.get_by_text("2 came")).to_be_visible()  # without loading it again


async def test_a_learner_is_told_on_their_page_that_a_teacher_came(lab: Lab) -> None:
    async with lab.somebody("kim-visits", role="teacher") as teacher, lab.browser() as learner:
        board = await teacher.new_page()
        code = await a_code_on_the_wall(board, "Visits")
        page, working = await learner.new_page(), await learner.new_page()
        await join(page, code, "mina-visited")
        await working.goto("/")
        await create(working, "Recursion")
        await page.goto("/")
        await board.get_by_role("link", name="Back to the class").click()
        await board.get_by_role("link", name=re.compile("Recursion")).click()
        await board.get_by_role("link", name="Open").or_(board.get_by_role("button", name="Open")).first.click()
        await expect(board).to_have_url(re.compile(r"/open/[a-z0-9]+$"))
        await expect(page.locator("#visited")).to_contain_text("kim-visits has just come into your workspace")
        await expect(page.locator("#visited a")).to_have_text("Recursion")


async def test_a_list_comes_as_a_file_with_and_without_javascript_and_a_large_one_is_said_before_it_is_sent(
    lab: Lab, tmp_path: pathlib.Path
) -> None:
    (tmp_path / "list.csv").write_bytes("이름,학번\r\n김민아,7\r\n박준,8\r\n".encode("cp949"))
    (tmp_path / "large.csv").write_bytes(b"a,b\n" * 100_000)
    for name, script in (("kim-lists", True), ("lee-lists", False)):
        async with lab.somebody(name, role="teacher", java_script_enabled=script) as teacher:
            page = await teacher.new_page()
            await page.goto("/classes")
            await page.get_by_label("Name of the class").fill("Lists")
            await page.get_by_role("button", name="Make the class").click()
            await page.get_by_role("link", name="Add people from a list").click()
            file = page.get_by_label("A file")
            await file.set_input_files(tmp_path / "large.csv")
            await page.get_by_role("button", name="See what will happen").click()
            if script:
                assert "too large" in await file.evaluate("field => field.validationMessage")
            else:
                await expect(page.get_by_role("alert")).to_contain_text("too large")
            await file.set_input_files(tmp_path / "list.csv")
            await page.get_by_role("button", name="See what will happen").click()
            await expect(page.get_by_text("2 new accounts")).to_be_visible()
            await page.get_by_role("button", name="Do exactly this").click()
            await expect(page.get_by_role("heading", name="Learners (2)")).to_be_visible()
            await expect(page.get_by_text("김민아", exact=True).first).to_be_visible()
