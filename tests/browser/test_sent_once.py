"""A form that leads to another page: its button says at once that it was sent, and a second click sends nothing."""

import pytest
from playwright.async_api import Locator, Page, expect

from tests.browser.conftest import IN_ONE_LOOP, WAIT_MS, Lab

pytestmark = IN_ONE_LOOP
expect.set_options(timeout=WAIT_MS)
FORMS = {  # page, field, its value, form
    "a class": ("teacher", "/classes", "title", "Python", "/do/classes"),
    "a person": ("admin", "/people", "name", "sent-once", "/do/people/add"),
    "a profile": ("learner", "/account", "display_name", "Mina", "/do/account/profile"),
}


UNFOLD = "form => { for (const fold of document.querySelectorAll('details')) fold.open ||= fold.contains(form); }"
TWICE = "button => { button.click(); button.click(); return button.getAttribute('aria-busy'); }"


async def fill(page: Page, path: str, field: str, value: str, action: str) -> Locator:
    """Its button."""
    form = page.locator(f"form[action='{action}']").first
    await page.goto(path)
    await form.evaluate(UNFOLD)
    await form.locator(f"[name={field}]").fill(value)
    return form.locator("button:not([type=button])").last


@pytest.mark.parametrize("what", FORMS)
async def test_a_form_says_that_it_was_sent_and_is_sent_once(lab: Lab, what: str) -> None:
    role, path, field, value, action = FORMS[what]
    async with lab.somebody(f"{role}-sends", role=role) as context:
        page, sent = await context.new_page(), list[str]()
        page.on("request", lambda request: sent.append(request.url) if request.method == "POST" else None)
        button = await fill(page, path, field, value, action)
        async with page.expect_navigation():
            assert await button.evaluate(TWICE) == "true"
        await expect(page.locator("button[aria-busy]")).to_have_count(0)
        assert len(sent) == 1
        await page.go_back()
        await expect(page.locator("button[aria-busy]")).to_have_count(0)
