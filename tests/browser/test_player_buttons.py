"""What a learner presses in a session's page, and where its answer is seen: at the button, on any screen."""

import re

import pytest
from playwright.async_api import Locator, expect

from tests.browser.conftest import IN_ONE_LOOP, WAIT_MS, Lab
from tests.browser.learning import CHECK_ONLY, SESSION, answer, begin, check, give_plan, runs_of

pytestmark = IN_ONE_LOOP
expect.set_options(timeout=WAIT_MS)
PRACTICE = {**SESSION, "steps": ["PRACTICE", "COMPLETE"]}
LONG_PRACTICE = {
    **PRACTICE,
    "practiceActivity": {**SESSION["practiceActivity"], "instructions": "\n\n".join(["Read this line."] * 60)},
}
PHONE, DESKTOP = {"width": 360, "height": 640}, {"width": 1280, "height": 800}


async def is_at(said: Locator, button: Locator) -> bool:
    """Does it stand at the button: no farther from it than two lines of text?"""
    text, pressed = await said.bounding_box(), await button.bounding_box()
    assert text
    assert pressed
    return abs(pressed["y"] - (text["y"] + text["height"])) < 60


async def test_enter_in_a_form_with_open_questions_sends_nothing_and_says_which_they_are(lab: Lab) -> None:
    async with lab.somebody("enter") as browser:
        id_ = (await give_plan(lab, "enter", CHECK_ONLY))["sessions"][0]["id"]
        page = await browser.new_page()
        await begin(page, id_)
        await page.get_by_label("Your answer").fill("range")
        await page.get_by_label("Your answer").press("Enter")
        said = page.get_by_text("these questions have no answer: 1, 2.")
        await expect(said).to_be_visible()
        await expect(page.get_by_label("two")).to_be_focused()
        await expect(page.get_by_label("Your answer")).to_have_value("range")
        await expect(page.locator(".is-open")).to_have_count(2)
        await expect(page.get_by_text("Not right yet")).to_have_count(0)
        await page.get_by_label("three").check()
        await expect(page.locator(".is-open")).to_have_count(1)
        await check(page)
        await expect(page.get_by_text("these questions have no answer: 2.")).to_be_visible()
        await expect(page.get_by_label("for", exact=True)).to_be_focused()
        assert (await runs_of(browser, id_))[0]["step_index"] == 0
        await answer(page)
        await page.get_by_label("Your answer").press("Enter")
        await expect(page.get_by_role("heading", name="You did it")).to_be_visible()


async def test_open_questions_are_named_and_focused_while_the_player_is_still_on_its_way(lab: Lab) -> None:
    """On a slow network the file that would refuse the form comes late: the server refuses it, in the same way."""
    async with lab.somebody("early") as browser:
        page = await browser.new_page()
        await page.route("**/static/*/player.js", lambda route: route.abort())
        await begin(page, (await give_plan(lab, "early", CHECK_ONLY))["sessions"][0]["id"])
        await page.get_by_label("Your answer").fill("range")
        await page.get_by_label("Your answer").press("Enter")
        await expect(page.get_by_text("these questions have no answer: 1, 2.")).to_be_visible()
        await expect(page.get_by_label("two")).to_be_focused()


async def test_wrong_answers_keep_the_focus_where_it_was(lab: Lab) -> None:
    async with lab.somebody("focus") as browser:
        page = await browser.new_page()
        await begin(page, (await give_plan(lab, "focus", CHECK_ONLY))["sessions"][0]["id"])
        await answer(page, word="rang")
        await page.get_by_label("Your answer").press("Enter")
        await expect(page.get_by_text("1 of 3 need another look")).to_be_visible()
        await expect(page.get_by_label("Your answer")).to_be_focused()


async def test_open_questions_are_named_without_javascript_too(lab: Lab) -> None:
    async with lab.somebody("open", java_script_enabled=False, locale="ko-KR") as browser:
        id_ = (await give_plan(lab, "open", CHECK_ONLY))["sessions"][0]["id"]
        page = await browser.new_page()
        await page.goto(f"/sessions/{id_}")
        await page.get_by_role("button", name="시작하기").click()
        await page.get_by_label("three").check()
        await page.get_by_role("button", name="답 확인하기").click()
        await expect(page.get_by_text("아직 답하지 않은 문제가 있어 보내지 않았습니다: 2, 3번")).to_be_visible()
        await expect(page.get_by_label("three")).to_be_checked()
        await expect(page.get_by_label("for", exact=True)).to_be_focused()
        await expect(page.get_by_text("다시 생각해 보세요")).to_have_count(0)


@pytest.mark.parametrize("size", [PHONE, DESKTOP], ids=["phone", "desktop"])
async def test_opening_and_checking_are_seen_without_scrolling_and_answered_at_the_button(
    lab: Lab, size: dict[str, int]
) -> None:
    name = f"fold{size['width']}"
    async with lab.somebody(name, viewport=size) as browser:
        page = await browser.new_page()
        await begin(page, (await give_plan(lab, name, LONG_PRACTICE))["sessions"][0]["id"])
        button = page.get_by_role("button", name="Check my work")
        await expect(page.get_by_role("button", name="Open the workspace")).to_be_in_viewport(ratio=1)
        await expect(button).to_be_in_viewport(ratio=1)
        await button.click()
        failed = page.get_by_text("Not yet. Look at what did not pass")
        await expect(failed).to_be_in_viewport(ratio=1)
        assert await is_at(failed, button)
        await expect(page.locator(".checks pre")).to_be_in_viewport()


async def test_wrong_answers_are_said_at_the_button(lab: Lab) -> None:
    async with lab.somebody("told", viewport=PHONE) as browser:
        page = await browser.new_page()
        await begin(page, (await give_plan(lab, "told", CHECK_ONLY))["sessions"][0]["id"])
        await answer(page, count="two")
        await check(page)
        said = page.get_by_text("1 of 3 need another look")
        await expect(said).to_be_in_viewport(ratio=1)
        assert await is_at(said, page.get_by_role("button", name="Check my answers"))
        await page.get_by_role("link", name="Question 1 of 3").click()
        await expect(page.get_by_text("Count from zero.")).to_be_in_viewport()


@pytest.mark.parametrize(
    ("locale", "press", "waking", "failed"),
    [
        ("en-GB", "Check my work", "Waking the workspace, then checking", "Not yet. Look at what did not pass"),
        ("ko-KR", "실습 확인하기", "워크스페이스를 깨운 다음 실습을 확인합니다", "아직 통과하지 못한 항목이 있습니다"),
    ],
    ids=["en", "ko"],
)
async def test_checking_wakes_a_workspace_that_sleeps_and_then_checks(
    lab: Lab, locale: str, press: str, waking: str, failed: str
) -> None:
    name = f"sleeper-{locale[:2]}"
    async with lab.somebody(name, locale=locale) as browser:
        page = await browser.new_page()
        session = (await give_plan(lab, name, PRACTICE))["sessions"][0]["id"]
        await page.goto(f"/sessions/{session}")
        await page.get_by_role("button", name=re.compile("^(Start|시작하기)$")).click()
        await page.get_by_role("button", name=press).click()  # there is none yet: it is made
        await expect(page.get_by_text(failed)).to_be_visible()
        await lab.put_to_sleep((await runs_of(browser, session))[0]["workspace_id"])
        await expect(page.locator(".lab .pill")).to_have_attribute("title", "STANDBY")
        await page.get_by_role("button", name=press).click()
        await expect(page.get_by_text(waking)).to_be_visible()
        await expect(page.get_by_text(waking)).to_have_count(0)
        await expect(page.get_by_text(failed)).to_be_visible()
        await expect(page.locator(".lab .pill")).to_have_attribute("title", "RUNNING")
