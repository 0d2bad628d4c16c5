"""A learner works through sessions in a real browser: every step, two devices, double clicks, without JavaScript."""

import re

from playwright.async_api import Page, expect

from codehub.clock import SystemClock
from codehub.runtimes.config import RuntimeConfig
from codehub.runtimes.process import ProcessRuntime
from tests.browser.conftest import IN_ONE_LOOP, WAIT_MS, Lab, inside
from tests.browser.learning import CHECK_ONLY, SECRETS, SESSION, answer, begin, check, give_plan, read_all, runs_of

pytestmark = IN_ONE_LOOP
expect.set_options(timeout=WAIT_MS)
IDE = re.compile(r"^\d+ /w/")  # what the small IDE says


async def type_in_terminal(lab: Lab, workspace_id: str, command: str) -> None:
    runtime = ProcessRuntime(lab.platform.data_dir, RuntimeConfig(), None, SystemClock())
    done = await runtime.exec(workspace_id, ["sh", "-c", command])
    assert done.exit_code == 0, done


async def open_workspace(page: Page) -> str:
    """By the button, with the session beside it, and back to the session's own page; the workspace's id."""
    session = page.url
    await page.get_by_role("button", name=re.compile("pen the workspace")).click()
    await expect(inside(page)).to_contain_text(IDE)
    await expect(page.frame_locator("#panel iframe").get_by_role("button", name="Check my work")).to_be_visible()
    found = re.search(r"/open/([a-z0-9]+)", page.url)
    assert found
    await page.goto(session)
    return found[1]


async def test_a_learner_works_through_a_whole_session(lab: Lab) -> None:
    async with lab.somebody("mina") as browser:
        activity = {**SESSION["practiceActivity"], "files": {"start/example.txt": "a newer example"}}
        plan = await give_plan(lab, "mina", SESSION, {**SESSION, "practiceActivity": activity})
        page = await browser.new_page()
        await page.set_viewport_size({"width": 600, "height": 500})  # what is said is brought to where it is seen
        await page.goto("/")
        await page.get_by_role("link", name="Learn").click()
        await expect(page.get_by_text("0 of 2 completed")).to_be_visible()
        await page.get_by_role("link", name="Day 1").click()
        await expect(page.get_by_text("You can stop at any time.")).to_be_visible()
        await page.get_by_role("button", name="Start", exact=True).click()

        await expect(page.get_by_text("First.")).to_be_visible()
        await expect(page.get_by_text("Second.")).to_be_hidden()
        await page.get_by_role("button", name="Next →").click()
        await expect(page.get_by_text("Second.")).to_be_visible()
        await page.reload()
        await expect(page.get_by_text("2 of 3")).to_be_visible()  # where one was
        await page.get_by_role("button", name="Next →").click()
        await page.get_by_role("button", name="Continue").click()

        await expect(page.get_by_text("Question 1 of 3")).to_be_visible()
        assert not [secret for secret in SECRETS if secret in await page.content()]
        await answer(page, count="two")
        await check(page)
        await expect(page.get_by_text("1 of 3 need another look")).to_be_in_viewport()
        await expect(page.get_by_text("Count from zero.")).to_be_visible()
        await expect(page.get_by_label("two")).to_be_checked()
        await expect(page.get_by_label("Your answer")).to_have_value("range")
        await page.get_by_label("three").check()
        await check(page)

        await expect(page.get_by_text("All answers are right.")).to_be_visible()
        assert not [secret for secret in SECRETS if secret in await page.content()]
        id_ = await open_workspace(page)
        await expect(page.locator(".lab .pill")).to_contain_text("Running")
        await expect(page.get_by_text("The files for this session are in your workspace.")).to_be_visible()
        await page.get_by_role("button", name="Check my work").click()
        await expect(page.get_by_text("Make card.txt.")).to_be_visible()
        await expect(page.locator(".checks pre")).to_contain_text("card.txt")
        await expect(page.locator(".checks li").first).to_contain_text("Passed")
        await type_in_terminal(lab, id_, "echo me > card.txt; echo mine > start/example.txt")
        await page.get_by_role("button", name="Check my work").click()

        await expect(page.get_by_text("All checks passed.")).to_be_visible()
        await page.get_by_role("link", name="Answer").click()  # look back
        await expect(page.get_by_label("three")).to_be_checked()
        await expect(page.get_by_label("three")).to_be_disabled()
        await page.get_by_role("link", name="Go on where you were").click()
        await page.get_by_role("button", name="Finish the session").click()
        await expect(page.get_by_role("heading", name="Session completed")).to_be_visible()
        await page.get_by_role("link", name="Read it again").click()
        await expect(page.get_by_text("First.")).to_be_visible()
        await page.get_by_role("link", name="Practise").click()
        await expect(page.locator(".checks .is-right")).to_have_count(2)
        await page.get_by_text("What it last printed").last.click()
        await expect(page.locator(".checks pre").last).to_contain_text("card.txt")
        await page.get_by_role("link", name="Back to the session").click()
        await page.get_by_role("link", name="Back to the plan").click()
        await expect(page.get_by_text("1 of 2 completed")).to_be_visible()

        await page.get_by_role("button", name="Start: Day 2").click()  # the same workspace, with a changed file in it
        await read_all(page)
        await answer(page)
        await check(page)
        assert await open_workspace(page) == id_
        await expect(page.get_by_text("start/example.new.txt")).to_be_visible()
        assert len(await runs_of(browser, plan["sessions"][0]["id"])) == 1


async def test_another_device_takes_over_and_what_was_typed_stays(lab: Lab) -> None:
    async with lab.somebody("duo") as laptop, lab.somebody("duo") as phone:
        plan = await give_plan(lab, "duo", CHECK_ONLY)
        id_ = plan["sessions"][0]["id"]
        here, there = await laptop.new_page(), await phone.new_page()
        await begin(here, id_)
        await here.get_by_label("two").check()
        await here.get_by_label("Your answer").fill("half a th")

        await there.goto(f"/sessions/{id_}")
        await expect(there.get_by_text("It is open on another page or device")).to_be_visible()
        await there.get_by_role("button", name="Go on").click()
        await expect(here.get_by_text("You went on with this in another tab or on another device.")).to_be_visible()
        await expect(here.get_by_label("Your answer")).to_have_value("half a th")
        await expect(here.get_by_label("Your answer")).to_be_disabled()

        await here.get_by_role("button", name="Take it back").click()
        await expect(here.get_by_label("Your answer")).to_have_value("half a th")
        await expect(here.get_by_label("two")).to_be_checked()
        await expect(there.get_by_text("You went on with this in another tab or on another device.")).to_be_visible()
        await answer(here)
        await check(here)
        await here.get_by_role("button", name="Finish the session").click()
        await expect(there.get_by_role("heading", name="Session completed")).to_be_visible()
        assert [run["fence"] for run in await runs_of(laptop, id_)] == [3]


async def test_a_double_click_and_the_back_button_make_one_run(lab: Lab) -> None:
    async with lab.somebody("quick") as browser:
        plan = await give_plan(lab, "quick", CHECK_ONLY)
        id_ = plan["sessions"][0]["id"]
        page = await browser.new_page()
        await page.goto(f"/sessions/{id_}")
        await page.get_by_role("button", name="Start", exact=True).dblclick()
        await expect(page.get_by_text("Question 1 of 3")).to_be_visible()
        assert [(run["fence"], run["status"]) for run in await runs_of(browser, id_)] == [(1, "RUNNING")]
        await page.go_back()
        await page.get_by_role("button", name="Go on").click()
        await expect(page.get_by_text("Question 1 of 3")).to_be_visible()
        await answer(page)
        await page.reload()
        await expect(page.get_by_label("Your answer")).to_have_value("range")  # not sent yet, and still there
        await expect(page.get_by_label("while")).to_be_checked()
        await check(page)
        await expect(page.get_by_role("heading", name="You did it")).to_be_visible()
        await page.go_back()
        assert len(await runs_of(browser, id_)) == 1


async def test_two_tabs_follow_each_other_and_a_session_is_skipped_once_asked(lab: Lab) -> None:
    async with lab.somebody("tabs") as browser:
        plan = await give_plan(lab, "tabs", CHECK_ONLY, CHECK_ONLY)
        ids = [session["id"] for session in plan["sessions"]]
        board, page = await browser.new_page(), await browser.new_page()
        await board.goto(f"/plans/{plan['id']}")
        await begin(page, ids[0])
        line = board.locator("ol.sessions > li").first
        await expect(line.locator(".pill")).to_contain_text("In progress")
        await line.locator("details.menu > summary").click()
        await line.get_by_text("Skip this session").click()
        await expect(line.get_by_text("The attempt you are at ends and stays in the list").first).to_be_visible()
        await line.get_by_role("button", name="Skip it").click()
        await expect(line.locator(".pill")).to_contain_text("Skipped")
        await expect(page.get_by_role("heading", name="You skipped this session")).to_be_visible()
        await board.get_by_role("button", name="Start: Day 2").click()
        await expect(board.get_by_text("Question 1 of 3")).to_be_visible()


async def test_all_of_it_without_javascript(lab: Lab) -> None:
    async with (
        lab.somebody("plain", java_script_enabled=False) as browser,
        lab.somebody("plain", java_script_enabled=False) as other,
    ):
        plan = await give_plan(lab, "plain", SESSION)
        id_ = plan["sessions"][0]["id"]
        page = await browser.new_page()
        await page.goto("/learn")
        await page.get_by_role("button", name="Start", exact=True).click()
        for chunk in ("First.", "Second.", "Third."):
            await expect(page.get_by_text(chunk)).to_be_visible()
        await page.get_by_role("button", name="Continue").click()
        await answer(page, count="two")
        elsewhere = await other.new_page()
        await begin(elsewhere, id_)
        await check(page)  # too late: the other one has it
        await expect(page.get_by_text("You went on with this in another tab or on another device.")).to_be_visible()
        await expect(page.get_by_label("two")).to_be_checked()
        await page.get_by_role("button", name="Take it back").click()
        await expect(page.get_by_label("Your answer")).to_have_value("range")
        await check(page)
        await expect(page.get_by_text("Count from zero.")).to_be_visible()
        await page.get_by_label("three").check()
        await check(page)
        workspace = await open_workspace(page)
        await page.reload()
        await page.get_by_role("button", name="Put the files there").click()
        await expect(page.get_by_text("The files for this session are in your workspace.")).to_be_visible()
        await type_in_terminal(lab, workspace, "touch card.txt")
        await page.get_by_role("button", name="Check my work").click()
        await page.get_by_role("button", name="Finish the session").click()
        await expect(page.get_by_role("heading", name="Session completed")).to_be_visible()


async def test_a_full_lab_is_said_and_nothing_is_lost(lab: Lab) -> None:
    async with lab.somebody("full") as browser:
        for name in ("One", "Two"):
            await lab.workspace("full", name, "tiny", "RUNNING")
        plan = await give_plan(lab, "full", {**SESSION, "steps": ["PRACTICE", "COMPLETE"]})
        page = await browser.new_page()
        await begin(page, plan["sessions"][0]["id"])
        await page.get_by_role("button", name="Open the workspace").click()
        await expect(page.get_by_text("No more workspaces may run at the moment.")).to_be_visible()
        await expect(page.get_by_role("button", name="Open the workspace")).to_be_visible()


async def test_checks_that_take_long_are_seen_to_be_at_work_whatever_happens_meanwhile(lab: Lab) -> None:
    async with lab.somebody("slow") as browser:
        wait = {"id": "go", "title": "It goes", "command": "touch begun; while [ ! -e go ]; do sleep 0.1; done"}
        activity = {**SESSION["practiceActivity"], "checks": [{**wait, "timeoutSeconds": 60}]}
        plan = await give_plan(
            lab, "slow", {**SESSION, "steps": ["PRACTICE", "COMPLETE"], "practiceActivity": activity}
        )
        page = await browser.new_page()
        await begin(page, plan["sessions"][0]["id"])
        id_ = await open_workspace(page)
        await expect(page.get_by_text("The files for this session are in your workspace.")).to_be_visible()
        await page.get_by_role("button", name="Check my work").click()
        await type_in_terminal(lab, id_, "while [ ! -e begun ]; do sleep 0.05; done")
        async with page.expect_response(lambda response: "/sessions/" in response.url):
            await lab.rename(id_, "Another name")  # makes the page look again
        button = page.locator("#complete")
        await expect(button).to_contain_text("Checking your work")
        await button.dispatch_event("click")  # does no harm
        await type_in_terminal(lab, id_, "touch go")
        await expect(page.get_by_text("All checks passed.")).to_be_visible()
        await page.get_by_role("button", name="Log out").click()
        await expect(page.get_by_role("heading", name="Log in to CodeHub")).to_be_visible()
        assert await page.evaluate("Object.keys(localStorage)") == []


async def test_the_page_says_that_the_learner_is_there(lab: Lab) -> None:
    async with lab.somebody("there") as browser:
        plan = await give_plan(lab, "there", CHECK_ONLY)
        id_ = plan["sessions"][0]["id"]
        page = await browser.new_page()
        await page.clock.install()
        await begin(page, id_)
        await page.wait_for_load_state()  # then its script runs
        before = (await runs_of(browser, id_))[0]["last_activity_at"]
        async with page.expect_response(re.compile("/activity$")) as beat:
            await page.clock.run_for(61_000)
        assert (await beat.value).status == 200
        assert (await runs_of(browser, id_))[0]["last_activity_at"] > before
