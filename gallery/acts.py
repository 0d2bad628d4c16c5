"""What is done on a page before its picture is taken.

Each is given the page and its cast, and gives the page to take, which may be another tab.
"""

import json
import re
from http import HTTPStatus
from typing import Any

from playwright.async_api import Page
from tests.courses.archives import zipped

from gallery.house import Cast

WAIT_MS = 120_000.0


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


async def tick_two(page: Page, _cast: Cast) -> Page:
    for box in (await page.locator(".pick input").all())[:2]:
        await box.check()
    return page


async def put_all_to_sleep(page: Page, _cast: Cast) -> Page:
    await page.locator('input[name="all"]').check()
    await page.locator('button[name="verb"][value="sleep"]').click()
    await page.wait_for_url(re.compile("/bulk/"))
    return page


async def look_what_would_go(page: Page, _cast: Cast) -> Page:
    await page.locator("main form button").click()
    await page.locator(".sums").wait_for(timeout=WAIT_MS)
    return page


async def see_everything_opened(page: Page, _cast: Cast) -> Page:
    for closed in await page.locator("main details:not(.menu, .sure)").all():
        await closed.evaluate("e => e.open = true")
    return page


async def go_offline(page: Page, _cast: Cast) -> Page:
    await page.context.set_offline(offline=True)
    await page.locator("#offline").wait_for(timeout=WAIT_MS)
    return page


async def change(page: Page, cast: Cast, key: str, **values: Any) -> int:
    """By the API, as the person who looks; gives the status of its answer."""
    path, said = cast.path(f"/api/v1/workspaces/{{{key}}}"), {"content-type": "application/json"}
    sent = "([path, headers, body]) => fetch(path, { method: 'PATCH', headers, body }).then((answer) => answer.status)"
    status: int = await page.evaluate(sent, [path, said, json.dumps(values)])
    return status


async def be_warned(page: Page, cast: Cast) -> Page:
    """Nobody typed for a while: it sleeps in less than two minutes."""
    await in_the_ide(page, cast)
    await change(page, cast, "runs", standby_ttl_seconds=110)
    await page.locator("[data-key=warning]").wait_for(timeout=WAIT_MS)
    return page


async def fall_asleep(page: Page, cast: Cast) -> Page:
    await in_the_ide(page, cast)
    await change(page, cast, "runs", standby_ttl_seconds=None, desired_state="STANDBY")
    await page.locator("[data-cover=asleep]").wait_for(timeout=WAIT_MS)
    return page


async def try_again(page: Page, _cast: Cast) -> Page:
    """What went wrong goes wrong again: meanwhile it is said how often."""
    await page.locator("main form button").first.click()
    await page.locator("p.note").first.wait_for(timeout=WAIT_MS)
    return page


async def be_over_the_limit(page: Page, cast: Cast) -> Page:
    """One after another is started, until one may not be: its page says which run, and what to do."""
    for key in ("asleep", "pending", "runs", "slow", "wrong"):
        if await change(page, cast, key, desired_state="RUNNING") >= HTTPStatus.BAD_REQUEST:
            await page.goto(cast.path(f"/open/{{{key}}}"))
            return page
    raise RuntimeError("all of them may run")


async def make_a_class(page: Page, cast: Cast) -> Page:
    """Of the first steps, or among one's classes; where it is there already, it is seen."""
    name = page.locator("main input[name=title]").first
    if await page.locator("details.adding > summary").count():
        await page.locator("details.adding > summary").first.click()
    if await name.count():
        await name.fill(cast.words.class_title)
        await page.locator("main form:has(input[name=title]) button").first.click()
    await page.locator("#invitations, .code-large").first.wait_for()
    return page


async def archive(page: Page, _cast: Cast) -> Page:
    await see_everything_opened(page, _cast)
    await page.locator("form[action$='/archive'] button").click()
    await page.locator(".undo").first.wait_for()
    return page


async def begin_a_backup(page: Page, _cast: Cast) -> Page:
    await page.locator("#make").click()
    await page.locator(".backup-now progress").wait_for()
    return page


async def install_an_ide(page: Page, _cast: Cast) -> Page:
    if await page.locator("#ide-install").count():
        await page.locator("#ide-install").click()
    await page.locator(".ide-steps li").first.wait_for(timeout=WAIT_MS)
    return page


async def stop_installing(page: Page, _cast: Cast) -> Page:
    await page.locator("#ide-cancel").click()
    await page.locator("#ide-install").wait_for(timeout=WAIT_MS)
    return page
