"""Logging in with a password in a real browser, with and without JavaScript, by keyboard; and what is logged of it."""

import asyncio
import re
import subprocess

import pytest
from playwright.async_api import Page, expect

from tests.browser.conftest import IN_ONE_LOOP, WAIT_MS, Lab
from tests.platform import CODEHUB, clean_environment

pytestmark = IN_ONE_LOOP
expect.set_options(timeout=WAIT_MS)
LAMP = "a quiet lamp by the river"
BOAT = "a slow boat on the water"
WRONG = "something else entirely"


async def add(lab: Lab, name: str, role: str = "learner") -> None:
    async with lab.platform.client() as client:
        body = {"name": name, "role": role, "password": LAMP}
        async with client.post("/api/v1/users", json=body) as answer:
            assert answer.status == 201, await answer.text()


async def fill(page: Page, name: str, password: str) -> None:
    await page.get_by_label("User name").fill(name)
    await page.get_by_label("Password").fill(password)


async def test_the_platform_says_its_name_which_passkeys_need(lab: Lab) -> None:
    assert re.fullmatch(r"http://localhost:\d+", lab.platform.url)


@pytest.mark.parametrize("scripts", [True, False])
async def test_a_wrong_password_costs_nothing_that_was_typed_but_itself(lab: Lab, *, scripts: bool) -> None:
    name = "with-scripts" if scripts else "without"
    await add(lab, name)
    async with lab.browser(java_script_enabled=scripts) as browser:
        page = await browser.new_page()
        await page.goto("/learn")  # which has to wait for a login
        await fill(page, name, WRONG)
        await page.get_by_role("button", name="Log in", exact=True).click()
        await expect(page.get_by_role("alert")).to_contain_text("The user name or the password is wrong")
        await expect(page.get_by_label("User name")).to_have_value(name)
        await expect(page.get_by_label("Password")).to_have_value("")
        await expect(page.get_by_label("Password")).to_be_focused()
        await page.keyboard.type(LAMP)
        await page.keyboard.press("Enter")
        await expect(page).to_have_url(re.compile(r"/learn$"))
        await page.get_by_role("button", name="Log out").click()
        await expect(page.get_by_role("heading", name="Log in to CodeHub")).to_be_visible()
        await page.go_back()
        await expect(page.get_by_role("heading", name="Log in to CodeHub")).to_be_visible()


async def test_the_keyboard_alone_logs_in(lab: Lab) -> None:
    await add(lab, "keys")
    async with lab.browser() as browser:
        page = await browser.new_page()
        await page.goto("/login")
        await expect(page.get_by_label("User name")).to_be_focused()
        await page.keyboard.type("Keys ")  # as a telephone writes it
        await page.keyboard.press("Tab")
        await page.keyboard.type(LAMP)
        await page.keyboard.press("Enter")
        await expect(page.get_by_role("heading", name="Hello, keys")).to_be_visible()


async def test_another_person_at_the_same_browser_is_told_whose_session_ends(lab: Lab) -> None:
    await add(lab, "first-one")
    await add(lab, "second-one")
    async with lab.browser() as browser:
        early, page = await browser.new_page(), await browser.new_page()
        await early.goto("/login")
        await page.goto("/login")
        await fill(page, "first-one", LAMP)
        await page.get_by_role("button", name="Log in", exact=True).click()
        await expect(page.get_by_role("heading", name="Hello, first-one")).to_be_visible()
        await fill(early, "second-one", LAMP)  # a tab from before
        await early.get_by_role("button", name="Log in", exact=True).click()
        await expect(early.get_by_text("You are logged in as first-one")).to_be_visible()
        await expect(early.get_by_label("User name")).to_have_value("second-one")
        await early.get_by_label("Password").fill(LAMP)
        await early.get_by_role("button", name="Log in", exact=True).click()
        await expect(early.get_by_role("heading", name="Hello, second-one")).to_be_visible()


async def test_an_admin_with_a_link_chooses_a_password_or_not_now_and_changes_it_later(lab: Lab) -> None:
    link = await lab.login_link("boss", "admin")
    async with lab.browser() as browser:
        page = await browser.new_page()
        await page.goto(link)
        await page.get_by_role("button", name="Log in as boss").click()
        await expect(page.get_by_role("heading", name="Choose how you come back")).to_be_visible()
        await page.get_by_role("link", name="Not now").click()
        await page.get_by_role("link", name="Choose one").click()
        await page.get_by_label("New password").fill("1234567890")
        await page.get_by_role("button", name="Set the password").click()
        await expect(page.get_by_role("alert")).to_contain_text("most common")
        await page.get_by_label("New password").fill(BOAT)
        await page.get_by_role("button", name="Set the password").click()
        await expect(page.get_by_role("heading", name="Hello, boss")).to_be_visible()
        await expect(page.get_by_text("no password or passkey yet")).to_have_count(0)
        await page.goto("/account")
        await page.get_by_label("Current password").fill(BOAT)
        await page.get_by_label("New password").fill(LAMP)
        await page.get_by_role("button", name="Change the password").click()
        await expect(page.get_by_text("Your password is set")).to_be_visible()


async def test_a_shell_sets_a_password_and_no_log_has_one(lab: Lab) -> None:
    await add(lab, "shelly")
    command = [*CODEHUB, "user", "password", "shelly"]
    environment = clean_environment(CODEHUB_DATA_DIR=str(lab.platform.data_dir))

    def run(typed: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            command, env=environment, input=typed, capture_output=True, text=True, timeout=90, check=False
        )

    done = await asyncio.to_thread(run, f"{BOAT}\n")
    assert (done.returncode, "shelly has a new password" in done.stdout) == (0, True), done.stderr
    refused = await asyncio.to_thread(run, "1234567890\n")
    assert refused.returncode == 1
    assert "most common" in refused.stderr
    async with lab.platform.client("") as client:
        for password, status in ((WRONG, 401), (BOAT, 200)):
            async with client.post("/api/v1/login", json={"name": "shelly", "password": password}) as answer:
                assert answer.status == status
    logs = [path for path in lab.platform.data_dir.rglob("*.log") if path.is_file()]
    said = lab.platform.output() + lab.platform.errors() + "".join(p.read_text(errors="replace") for p in logs)
    assert "/api/v1/users/shelly/password" in said
    for password in (LAMP, BOAT, WRONG):
        for form in (password, password.replace(" ", "+"), password.replace(" ", "%20")):
            assert form not in said
