"""A session's page in several tabs, and the back button in it: what is one's own goes on, what was typed stays."""

import re

from playwright.async_api import Page, expect

from tests.browser.conftest import IN_ONE_LOOP, WAIT_MS, Lab
from tests.browser.learning import CHECK_ONLY, answer, begin, check, give_plan, runs_of

pytestmark = IN_ONE_LOOP
expect.set_options(timeout=WAIT_MS)
READ_AND_ANSWER = {**CHECK_ONLY, "steps": ["LEARN", "CHECK", "COMPLETE"]}
TAKEN = "You went on with this in another tab or on another device."
ELSEWHERE = "It is open on another page or device"


async def a_session(lab: Lab, owner: str, blueprint: object = CHECK_ONLY) -> str:
    id_: str = (await give_plan(lab, owner, blueprint))["sessions"][0]["id"]
    return id_


async def begin_here(page: Page, session_id: str) -> None:
    """And wait for the page's scripts, which note that this browser has the run."""
    await begin(page, session_id)
    await page.wait_for_function("() => Object.keys(localStorage).some((key) => key.endsWith(':held'))")


async def next_chunk(page: Page) -> None:
    await page.get_by_role("button", name="Next →").click()


async def test_the_back_button_leads_to_no_false_alarm(lab: Lab) -> None:
    async with lab.somebody("backer") as browser:
        id_ = await a_session(lab, "backer")
        page = await browser.new_page()
        await begin_here(page, id_)
        await page.goto("/learn")
        await page.goto(f"/sessions/{id_}")  # goes on by itself
        await expect(page.get_by_text("Question 1 of 3")).to_be_visible()
        first = page.url
        await page.goto(f"/sessions/{id_}?run={(await runs_of(browser, id_))[0]['id']}&fence=0")  # an older one
        await expect(page).to_have_url(first)
        await expect(page.get_by_text("Question 1 of 3")).to_be_visible()
        await expect(page.get_by_text(TAKEN)).to_have_count(0)
        assert [run["fence"] for run in await runs_of(browser, id_)] == [1]


async def test_coming_back_to_the_page_before_a_run_stays_there_and_says_nothing_of_other_devices(lab: Lab) -> None:
    async with lab.somebody("before") as browser:
        id_ = await a_session(lab, "before")
        page = await browser.new_page()
        await begin_here(page, id_)
        await page.go_back()
        await expect(page.get_by_text("This is where you stopped")).to_be_visible()
        await expect(page.get_by_text(ELSEWHERE)).to_be_hidden()
        await page.get_by_role("button", name="Go on").click()
        await expect(page.get_by_text("Question 1 of 3")).to_be_visible()


async def test_a_tab_that_was_closed_is_opened_again_and_just_goes_on(lab: Lab) -> None:
    async with lab.somebody("closer") as browser:
        id_ = await a_session(lab, "closer")
        page = await browser.new_page()
        await begin_here(page, id_)
        await page.get_by_label("Your answer").fill("half a th")
        await page.close()
        again = await browser.new_page()
        await again.goto(f"/sessions/{id_}")
        await expect(again.get_by_label("Your answer")).to_have_value("half a th")
        await expect(again.get_by_text(TAKEN)).to_have_count(0)


async def test_a_tab_that_really_has_the_run_is_said_and_both_keep_what_was_typed(lab: Lab) -> None:
    async with lab.somebody("twice") as browser:
        id_ = await a_session(lab, "twice")
        one, two = await browser.new_page(), await browser.new_page()
        await begin_here(one, id_)
        await one.get_by_label("two").check()
        await one.get_by_label("Your answer").fill("typed in one")
        await two.goto(f"/sessions/{id_}")
        await expect(two.get_by_text(ELSEWHERE)).to_be_visible()
        await two.get_by_role("button", name="Go on").click()
        await expect(one.get_by_text(TAKEN)).to_be_visible()
        await two.get_by_label("Your answer").fill("typed in two")
        await expect(one.get_by_label("Your answer")).to_have_value("typed in one")

        await one.get_by_role("button", name="Take it back").click()
        await expect(one.get_by_text("These are the answers you typed in this tab.")).to_be_visible()
        await expect(one.get_by_label("Your answer")).to_have_value("typed in one")
        await one.get_by_role("button", name="Show the others").click()
        await expect(one.get_by_label("Your answer")).to_have_value("typed in two")
        await one.get_by_role("button", name="Back to mine").click()
        await expect(one.get_by_label("Your answer")).to_have_value("typed in one")
        await expect(one.get_by_label("two")).to_be_checked()
        await expect(two.get_by_text(TAKEN)).to_be_visible()
        await expect(two.get_by_label("Your answer")).to_have_value("typed in two")
        await answer(one)
        await check(one)
        await expect(one.get_by_role("heading", name="You did it")).to_be_visible()


async def test_back_is_the_chunk_before_and_then_the_step_before(lab: Lab) -> None:
    async with lab.somebody("reader") as browser:
        page = await browser.new_page()
        await begin_here(page, await a_session(lab, "reader", READ_AND_ANSWER))
        await next_chunk(page)
        await next_chunk(page)
        await expect(page.get_by_text("Third.")).to_be_visible()
        await page.go_back()
        await expect(page.get_by_text("Second.")).to_be_visible()
        await expect(page.get_by_text("2 of 3")).to_be_visible()
        await page.reload()
        await expect(page.get_by_text("Second.")).to_be_visible()
        await page.go_back()
        await expect(page.get_by_text("First.")).to_be_visible()
        await page.go_forward()
        await page.go_forward()
        await expect(page.get_by_text("Third.")).to_be_visible()
        await page.get_by_role("button", name="Continue").click()
        await expect(page.get_by_text("Question 1 of 3")).to_be_visible()

        await page.go_back()
        await expect(page.get_by_text("You are looking back at a step that is done.")).to_be_visible()
        await expect(page.get_by_text("Third.")).to_be_visible()
        await page.go_back()
        await expect(page.get_by_text("Second.")).to_be_visible()
        await expect(page.get_by_text("First.")).to_be_hidden()
        await page.get_by_role("link", name="Go on where you were").click()
        await expect(page.get_by_text("Question 1 of 3")).to_be_visible()
        await expect(page).not_to_have_url(re.compile("#part"))


async def test_a_page_that_was_scrolled_down_says_that_the_session_went_on_elsewhere(lab: Lab) -> None:
    """Its buttons are gone at that moment: the reason has to be where the learner looks."""
    async with lab.somebody("scroller", viewport={"width": 360, "height": 640}) as browser:
        long = {**READ_AND_ANSWER, "learningContent": ["# Long\n\n" + "A line to read.\n\n" * 80]}
        id_ = await a_session(lab, "scroller", long)
        one, two = await browser.new_page(), await browser.new_page()
        await begin_here(one, id_)
        await one.evaluate("scrollTo(0, 1500)")
        await two.goto(f"/sessions/{id_}")
        await two.get_by_role("button", name="Go on").click()
        await expect(one.get_by_text(TAKEN)).to_be_in_viewport()
        await expect(one.get_by_role("button", name="Take it back")).to_be_in_viewport()


async def test_a_click_without_a_connection_is_answered_where_the_learner_looks(lab: Lab) -> None:
    async with lab.somebody("unplugged", viewport={"width": 360, "height": 640}) as browser:
        long = {**READ_AND_ANSWER, "learningContent": ["# Long\n\n" + "A line to read.\n\n" * 80]}
        id_ = await a_session(lab, "unplugged", long)
        page = await browser.new_page()
        await begin_here(page, id_)
        await browser.set_offline(True)
        await page.get_by_role("button", name="Continue").click()
        await expect(page.locator("#offline")).to_be_in_viewport()
        await browser.set_offline(False)
        await expect(page.locator("#offline")).to_be_hidden()
        await page.get_by_role("button", name="Continue").click()
        await expect(page.get_by_text("Question 1 of 3")).to_be_visible()
