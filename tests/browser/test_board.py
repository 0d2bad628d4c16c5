"""A teacher's board in a real browser: what learners do appears without a reload; hands go up and are answered.

With CODEHUB_SCREENSHOTS=folder the pictures are kept there, to be looked at.
"""

import pathlib
import re
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Any

import pytest
import pytest_asyncio
from playwright.async_api import Browser, Page, expect

from codehub.auth.profiles import Profile
from codehub.clock import SystemClock
from codehub.command import operator
from codehub.policy.model import Role
from codehub.settings import Settings
from codehub.wiring.api import open_services
from tests.assignments.given import a_taught_class, assigned, fill, the_plan
from tests.assignments.test_progress import WRONG
from tests.browser.conftest import IN_ONE_LOOP
from tests.browser.looking import CHECKS, FEW, LOOKS, PICTURES, Scheme, look, look_from
from tests.classes.test_classes import a_class
from tests.courses.writing import course, made, session
from tests.sessions.learning import CHECK, Learner
from tests.web.server import Site, serving

pytestmark = IN_ONE_LOOP
TITLES = ("Say hello", "Numbers", "만약에", "Loops that never end", "Functions", "A grade book")
SESSIONS = [{**session(f"s{n}", n, title), "blueprint": CHECK} for n, title in enumerate(TITLES * 2, 1)]


@dataclass(frozen=True)
class School:
    site: Site
    class_id: str
    kim: Learner
    mina: Learner
    jun: Learner

    @property
    def board(self) -> str:
        return f"/classes/{self.class_id}/board"


@pytest_asyncio.fixture(loop_scope="session")
async def school(settings: Settings) -> AsyncIterator[School]:
    async with AsyncExitStack() as stack:
        services = await stack.enter_async_context(open_services(settings, SystemClock()))
        await services.people.ensure_first_admin()
        services.hub.start()
        site = await stack.enter_async_context(serving(services))
        people = []
        for name, role in (("kim", Role.TEACHER), ("mina", Role.LEARNER), ("jun", Role.LEARNER)):
            await services.people.create_user(operator(), name, role)
            people.append(Learner(await stack.enter_async_context(site.client(await site.token(name)))))
        kim, mina, jun = people
        found, _ = await a_taught_class(kim, "mina", "jun", written=course(*SESSIONS, title="Python for beginners"))
        yield School(site, found["id"], kim, mina, jun)
        await services.hub.stop()


@asynccontextmanager
async def logged_in(school: School, chromium: Browser, name: str, *look: Any) -> AsyncIterator[Page]:
    language, scheme, width = look or ("en", "light", 1280)
    page = await look_from(chromium, school.site.url, language, scheme, width)
    await page.goto((await school.site.login_link(name)).url(school.site.url))
    await page.get_by_role("button").click()
    await page.wait_for_url("**/")
    yield page
    await page.context.close()


def cell(page: Page, name: str, number: int = 1) -> Any:
    return page.locator(f'tr[data-key="{name}"] td.of').nth(number - 1)


async def begun(learner: Learner, number: int = 1, *, fails: int = 0) -> Any:
    run = await learner.started((await the_plan(learner))["sessions"][number - 1]["id"])
    if fails:
        assert (await learner.complete(run, 0))[0] == 200
    for _ in range(fails):
        assert (await learner.complete(run, 1, WRONG))[0] == 422
    return run


async def test_what_a_learner_does_appears_without_a_reload_and_only_their_row_is_put_in(
    school: School, chromium: Browser
) -> None:
    async with logged_in(school, chromium, "kim") as page:
        await page.goto(school.board)
        await expect(cell(page, "mina")).to_have_class("of not_started")
        await page.evaluate("document.querySelector('tr[data-key=\"jun\"]').mark = 'kept'; window.same = true")
        await begun(school.mina, fails=2)
        await expect(cell(page, "mina")).to_have_class("of failing")
        await expect(cell(page, "mina")).to_contain_text("2/3 ×2")
        await expect(page.locator("tbody tr").first).to_have_attribute("data-key", "mina")  # failing first
        assert await page.evaluate("window.same && document.querySelector('tr[data-key=\"jun\"]').mark") == "kept"
        await cell(page, "mina").locator("a").click()
        await expect(page.get_by_role("heading", level=1)).to_contain_text("mina")
        await expect(page.locator(".answers")).to_contain_text("How many?")


async def test_an_answer_is_typed_in_peace_and_the_keyboard_goes_on_to_the_next_question(
    school: School, chromium: Browser
) -> None:
    async with logged_in(school, chromium, "kim") as board:
        await board.goto(school.board)
        for learner, asked in ((school.mina, "First?"), (school.jun, "Second?")):
            run = await begun(learner)
            await learner.ask("POST", f"/runs/{run['id']}/help", {"message": asked})
        answers = board.get_by_role("textbox", name="Answer")
        await expect(answers).to_have_count(2)
        await answers.first.press_sequentially("Look at ")
        await board.evaluate("document.activeElement.mark = 'kept'")
        # What the card says changes meanwhile, and so does the board around it.
        await school.site.services.profiles.change(operator(), "mina", Profile("김미나"))
        await begun(school.mina, 2, fails=1)
        await expect(cell(board, "mina", 2)).to_have_class("of failing")
        await board.keyboard.type("page 2")
        assert await board.evaluate("document.activeElement.mark") == "kept"
        await expect(answers.first).to_have_value("Look at page 2")
        await board.keyboard.press("Enter")
        await expect(answers).to_have_count(1)
        await expect(answers).to_be_focused()
        await board.keyboard.press("Enter")  # without words: they went there
        await expect(answers).to_have_count(0)
        await expect(board.get_by_role("heading", level=1)).to_be_focused()


async def test_a_hand_goes_up_on_the_board_and_the_answer_reaches_the_learner(
    school: School, chromium: Browser
) -> None:
    async with logged_in(school, chromium, "kim") as board, logged_in(school, chromium, "jun") as page:
        await board.goto(school.board)
        run_session = (await the_plan(school.jun))["sessions"][0]["id"]
        await page.goto(f"/sessions/{run_session}")
        await page.locator(f'[id="{run_session}-start"]').click()
        await page.get_by_text("Ask for help").click()
        await page.get_by_label(re.compile("What is it about")).fill("Where do I begin?")
        await page.get_by_role("button", name="Ask my teacher").click()
        await expect(page.locator(".help")).to_contain_text("Your teacher has been asked")
        hand = board.locator(".hand")
        await expect(hand).to_contain_text("Where do I begin?")
        await expect(board.locator("tbody tr").first).to_have_attribute("data-key", "jun")
        await hand.get_by_label("Answer").fill("With the first line.")
        await hand.get_by_role("button", name="Answered").click()
        await expect(page.locator(".help .answered")).to_contain_text("With the first line.")
        await expect(board.locator(".hand")).to_have_count(0)


async def test_a_teachers_start_page_begins_with_their_classes_and_says_at_once_who_asks_for_help(
    school: School, chromium: Browser
) -> None:
    async with logged_in(school, chromium, "kim") as page, logged_in(school, chromium, "jun") as learner:
        classes = page.locator("[data-key=taught]")
        await expect(classes.get_by_role("link", name="Open the board")).to_be_visible()
        await expect(classes).to_contain_text("2 learners")
        await expect(classes).not_to_contain_text("Asking for help")
        await school.jun.ask("POST", f"/runs/{(await begun(school.jun))['id']}/help", {"message": "Where?"})
        await expect(classes.get_by_text("Asking for help: 1", exact=True)).to_be_visible()
        await classes.get_by_role("link", name="Open the board").click()
        await page.get_by_role("button", name="Answered").click()
        await page.go_back()
        await expect(classes).not_to_contain_text("Asking for help")
        await expect(learner.locator("[data-key=taught]")).to_have_count(0)


async def test_without_scripts_the_board_and_the_hand_work_by_loading_pages(school: School, chromium: Browser) -> None:
    context = await chromium.new_context(base_url=school.site.url, java_script_enabled=False)
    page = await context.new_page()
    await page.goto((await school.site.login_link("jun")).url(school.site.url))
    await page.get_by_role("button").click()
    run = await begun(school.jun)
    await page.goto(f"/sessions/{run['session_id']}?run={run['id']}&fence={run['fence']}")
    await page.get_by_text("Ask for help").click()
    await page.get_by_role("button", name="Ask my teacher").click()
    await expect(page.locator(".help")).to_contain_text("Your teacher has been asked")
    await page.get_by_role("button", name="I don’t need help any more").click()
    await expect(page.get_by_text("Ask for help")).to_be_visible()
    await context.close()


@pytest.mark.parametrize(("language", "scheme", "width"), LOOKS if PICTURES else FEW)
async def test_the_board_is_whole_named_and_legible(
    school: School, chromium: Browser, language: str, scheme: Scheme, width: int
) -> None:
    await fill(school.site.services, school.class_id, 12)
    run = await begun(school.mina, 2, fails=3)
    await school.mina.finish(await school.mina.started((await the_plan(school.mina))["sessions"][0]["id"]), [{}])
    await school.jun.ask("POST", f"/runs/{(await begun(school.jun))['id']}/help", {"message": "막혔어요 " * 9})
    found: list[str] = []
    pages = {"board": school.board, "board-session": f"{school.board}/{run['session_id']}", "teacher-home": "/"}
    async with logged_in(school, chromium, "kim", language, scheme, width) as page:
        for name, path in pages.items():
            await page.goto(path)
            found += await look(page, name, language, scheme, width)
    async with logged_in(school, chromium, "jun", language, scheme, width) as page:
        sessions = (await the_plan(school.jun))["sessions"]
        await page.goto(f"/sessions/{sessions[0]['id']}")
        await page.locator(f'[id="{sessions[0]["id"]}-start"]').click()
        await page.wait_for_url("**fence=**")
        found += await look(page, "help", language, scheme, width)
    assert not found, "\n".join(found)


async def test_a_class_of_two_hundred_fits_a_projector_and_one_change_is_one_row(
    school: School, chromium: Browser
) -> None:
    """200 × 12, in the whole width; of 2,400 cells those of one learner are put in."""
    found = await a_class(school.kim)
    await fill(school.site.services, found["id"], 199)
    written = await made(school.kim, course(*SESSIONS, title="Projected", key="projected"))
    await assigned(school.kim, found, written)
    assert (await school.kim.ask("POST", f"/classes/{found['id']}/members", {"name": "mina"}))[0] == 201
    (plan,) = [one for one in (await school.mina.get("/plans"))["items"] if one["title"] == "Projected"]
    async with logged_in(school, chromium, "kim") as page:
        await page.set_viewport_size({"width": 1920, "height": 1080})
        await page.goto(f"/classes/{found['id']}/board")
        await expect(page.locator("tbody tr")).to_have_count(200)
        assert await page.locator("td.of").count() == 2400
        await page.evaluate(
            """() => {
                window.added = [];
                const rows = document.querySelector("tbody");
                new MutationObserver((changes) => {
                    const nodes = changes.flatMap((change) => [...change.addedNodes]);
                    added.push(...nodes.filter((node) => node.dataset).map((node) => node.dataset.key));
                }).observe(rows, { childList: true });
            }"""
        )
        sessions = (await school.mina.get(f"/plans/{plan['id']}"))["sessions"]
        await school.mina.started(sessions[0]["id"])
        await expect(cell(page, "mina")).to_have_class("of in_progress")
        assert set(await page.evaluate("added")) == {"mina"}
        if PICTURES:
            await page.screenshot(path=str(pathlib.Path(PICTURES) / "board-projector.png"))
        assert await page.evaluate(CHECKS) == []
