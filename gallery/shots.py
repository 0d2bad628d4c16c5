"""The pictures: a name, who looks, where; and what they do there first.

A picture's `act` is given the page and its cast, and gives the page to take, which may be another tab.
"""

import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from playwright.async_api import Page
from tests.courses.archives import zipped

from gallery.house import Caller, Cast

Act = Callable[[Page, Cast], Awaitable[Page]]
WAIT_MS = 120_000.0


@dataclass(frozen=True)
class Shot:
    name: str
    who: str  # new (the admin of a new installation), nobody, learner, teacher, admin
    path: str
    act: Act | None = None
    whole: bool = True  # the page to its end; otherwise what a window shows
    held: bool = False  # its frame waits as long as the workspace does, and so does the end of loading


async def wrong_password(page: Page, cast: Cast) -> Page:
    await page.get_by_role("textbox").first.fill(cast.words.learner[0])
    await page.locator("input[type=password]").fill("not the right one")
    await page.locator("main form button").first.click()
    await page.locator("#wrong-password").wait_for()
    return page


async def open_menu(page: Page, _cast: Cast) -> Page:
    await page.locator("details.menu > summary").first.click()
    return page


async def open_adding(page: Page, _cast: Cast) -> Page:
    await page.locator("details.adding > summary").click()
    return page


async def begin(page: Page, _cast: Cast) -> Page:
    """Start, or go on with it here."""
    start = page.locator("article.player form[action$='/start'] button")
    await start.or_(page.locator("[data-step]")).first.wait_for()
    if await start.count():
        await start.first.click()
    await page.locator("[data-step]").wait_for()
    await page.wait_for_function("document.querySelector('.chunks:not(.ready)') === null")
    return page


async def answer_wrongly(page: Page, cast: Cast) -> Page:
    await begin(page, cast)
    for question in await page.locator(".question").all():
        choices = question.locator("input[type=radio], input[type=checkbox]")
        await (choices.first.check() if await choices.count() else question.get_by_role("textbox").fill("7"))
    await page.locator("#complete").click()
    await page.locator(".question.is-wrong").first.wait_for()
    return page


async def practise(page: Page, _cast: Cast) -> Page:
    """The instructions beside a JupyterLab that runs; who was there before is led there at once."""
    begin_here = page.locator("article.player form[action$='/start'] button")
    opens, ide = page.locator("#open-workspace"), page.locator("#ide")
    await begin_here.or_(opens).or_(ide).first.wait_for(timeout=WAIT_MS)
    if await begin_here.count():
        await begin_here.first.click()
        await opens.or_(ide).first.wait_for(timeout=WAIT_MS)
    if await opens.count():
        await opens.click()
    await ide.wait_for(timeout=WAIT_MS)
    await page.frame_locator("#ide").locator(".jp-Launcher, .jp-Notebook").first.wait_for(timeout=WAIT_MS)
    return page


async def fail(page: Page, cast: Cast) -> Page:
    tab = await practise(page, cast)
    panel = tab.frame_locator("#panel iframe")
    await panel.locator("#complete").click(timeout=WAIT_MS)
    await panel.locator(".checks .is-wrong").first.wait_for(timeout=WAIT_MS)
    await panel.locator(".checks").scroll_into_view_if_needed()
    return tab


async def wait_a_little(page: Page, _cast: Cast) -> Page:
    await page.wait_for_timeout(4000)
    return page


async def in_the_ide(page: Page, _cast: Cast) -> Page:
    await page.frame_locator("#ide").locator(".jp-Launcher").first.wait_for(timeout=WAIT_MS)
    return page


async def join_the_line(page: Page, _cast: Cast) -> Page:
    await page.locator("form[data-verb=join] button").click()
    await page.locator("form[data-verb=leave], form[data-verb=enter]").first.wait_for()
    return page


async def be_next(page: Page, cast: Cast) -> Page:
    await join_the_line(page, cast)
    await page.locator("#countdown").wait_for(timeout=WAIT_MS)
    return page


async def raise_a_hand(page: Page, cast: Cast) -> Page:
    await begin(page, cast)
    await page.locator("details:has(form[action$='/help'])").first.evaluate("e => { e.open = true }")
    return page


async def paste_a_list(page: Page, cast: Cast) -> Page:
    await page.locator("textarea").fill(cast.words.roster)
    await page.locator("main form button").click()
    await page.locator("table, .problem").first.wait_for()
    return page


async def bring_a_wrong_course(page: Page, _cast: Cast) -> Page:
    wrong = {"01-hello/notes.txt": "x", "course.md": "---\ntitle: a: b\n---\n", "02-two/session.md": "---\n---\n"}
    await page.locator("input[type=file]").set_input_files(
        {"name": "course.zip", "mimeType": "application/zip", "buffer": zipped(wrong)}
    )
    await page.locator("main form button").click()
    await page.locator("#problems-title").wait_for()
    return page


async def make_slips(page: Page, _cast: Cast) -> Page:
    await page.locator("main form button").click()
    await page.locator(".slips li").first.wait_for()
    return page


async def put_all_to_sleep(page: Page, _cast: Cast) -> Page:
    await page.locator('input[name="all"]').check()
    await page.locator('button[name="verb"][value="sleep"]').click()
    await page.wait_for_url(re.compile("/bulk/"))
    return page


async def look_what_would_go(page: Page, _cast: Cast) -> Page:
    await page.locator("main form button").click()
    await page.wait_for_load_state()
    return page


async def see_everything_opened(page: Page, _cast: Cast) -> Page:
    for closed in await page.locator("main details:not(.menu, .sure)").all():
        await closed.evaluate("e => e.open = true")
    return page


async def prepare_lessons(learner: Caller, admin: Caller, cast: Cast) -> None:
    """Of the Python course that comes with the product: the first at its practice, the second at its questions."""
    found = (await admin("GET", "/courses?limit=50"))["items"]
    (course,) = [one for one in found if one["title"] == cast.words.shipped]
    sessions = (await learner("POST", f"/courses/{course['id']}/plans"))["sessions"]
    cast.facts |= {f"lesson{n}": one["id"] for n, one in enumerate(sessions, 1)}
    cast.facts |= {"shipped_id": course["id"], "plan_id": sessions[0]["plan_id"]}
    source = await admin("GET", f"/courses/{course['id']}/source")
    for place, steps in ((0, 2), (1, 1)):
        run = await learner("POST", f"/sessions/{sessions[place]['id']}/runs")
        for index in range(steps):
            state = {"answers": right_answers(source["sessions"][place])} if index else {}
            path = f"/runs/{run['id']}/steps/{index}/complete"
            await learner("POST", path, fence=run["fence"], state=state)


def right_answers(session: dict[str, Any]) -> dict[str, Any]:
    questions = session["blueprint"]["checkQuestions"]
    return {
        one["id"]: one["answer"][0] if one["kind"] == "text" and isinstance(one["answer"], list) else one["answer"]
        for one in questions
    }


SHOTS: tuple[Shot, ...] = (
    Shot("welcome-way-in", "new", "/welcome/way-in"),
    Shot("welcome-workspace", "new", "/welcome/workspace"),
    Shot("welcome-course", "new", "/welcome/course"),
    Shot("welcome-class", "new", "/welcome/class"),
    Shot("welcome-end", "new", "/welcome/end"),
    Shot("sign-in", "nobody", "/login"),
    Shot("sign-in-wrong", "nobody", "/login", wrong_password),
    Shot("link-used", "nobody", "/login/nothing"),
    Shot("join", "nobody", "/join"),
    Shot("join-wrong", "nobody", "/join/BBBBBB"),
    Shot("join-who", "nobody", "/join/{code}"),
    Shot("wait", "learner", "/wait/{full}", join_the_line),
    Shot("wait-ready", "learner", "/wait/{free}", be_next),
    Shot("home", "learner", "/"),
    Shot("home-menu", "learner", "/", open_menu),
    Shot("home-adding", "learner", "/", open_adding),
    Shot("workspace", "learner", "/workspaces/{runs}"),
    Shot("workspace-stored", "learner", "/workspaces/{stored}"),
    Shot("workspace-wrong", "learner", "/workspaces/{wrong}"),
    Shot("log", "learner", "/workspaces/{runs}/log"),
    Shot("ide", "learner", "/open/{runs}", in_the_ide, whole=False),
    Shot("waking", "learner", "/open/{slow}", wait_a_little, held=True),
    Shot("restore", "learner", "/open/{stored}"),
    Shot("went-wrong", "learner", "/open/{wrong}"),
    Shot("learn", "learner", "/learn"),
    Shot("plan", "learner", "/plans/{plan_id}"),
    Shot("begin", "learner", "/sessions/{lesson4}"),
    Shot("read", "learner", "/sessions/{lesson3}", begin),
    Shot("help", "learner", "/sessions/{lesson3}", raise_a_hand),
    Shot("answer", "learner", "/sessions/{lesson2}", begin),
    Shot("answer-wrong", "learner", "/sessions/{lesson2}", answer_wrongly),
    Shot("practise", "learner", "/sessions/{lesson1}", practise, whole=False),
    Shot("practise-failed", "learner", "/sessions/{lesson1}", fail, whole=False),
    Shot("learner-classes", "learner", "/classes"),
    Shot("learner-class", "learner", "/classes/{class_id}"),
    Shot("account", "learner", "/account"),
    Shot("not-found", "learner", "/nowhere"),
    Shot("docs", "learner", "/docs"),
    Shot("classes", "teacher", "/classes"),
    Shot("class", "teacher", "/classes/{class_id}"),
    Shot("class-opened", "teacher", "/classes/{class_id}", see_everything_opened),
    Shot("wall", "teacher", "/classes/{class_id}/wall"),
    Shot("class-import", "teacher", "/classes/{class_id}/import"),
    Shot("class-import-preview", "teacher", "/classes/{class_id}/import", paste_a_list),
    Shot("class-sheet", "teacher", "/classes/{class_id}/sheet"),
    Shot("class-person", "teacher", "/classes/{class_id}/people/{asking}"),
    Shot("board", "teacher", "/classes/{class_id}/board"),
    Shot("board-session", "teacher", "/classes/{class_id}/board/{board_session}"),
    Shot("courses", "teacher", "/courses"),
    Shot("course", "teacher", "/courses/{course_id}"),
    Shot("closed", "teacher", "/courses/{shipped_id}"),
    Shot("course-import", "teacher", "/courses/import"),
    Shot("course-import-wrong", "teacher", "/courses/import", bring_a_wrong_course),
    Shot("course-preview", "teacher", "/courses/{course_id}/preview"),
    Shot("lines", "teacher", "/lines"),
    Shot("line", "teacher", "/lines/{full}"),
    Shot("admin-home", "admin", "/"),
    Shot("people", "admin", "/people"),
    Shot("people-menu", "admin", "/people", open_menu),
    Shot("workspaces", "admin", "/workspaces", whole=False),
    Shot("bulk", "admin", "/workspaces?q={asking}", put_all_to_sleep),
    Shot("operator-hour", "admin", "/operator?range=hour"),
    Shot("operator-day", "admin", "/operator?range=day"),
    Shot("operator-quarter", "admin", "/operator?range=quarter"),
    Shot("operator-what-if", "admin", "/operator?range=day&standby=15m&archive=2h&days=7"),
    Shot("audit", "admin", "/audit"),
    Shot("settings", "admin", "/settings"),
    Shot("settings-all", "admin", "/settings?all=1"),
    Shot("template-files", "admin", "/templates"),
    Shot("storage", "admin", "/storage"),
    Shot("storage-looked", "admin", "/storage", look_what_would_go),
)
