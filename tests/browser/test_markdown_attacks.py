"""Whatever stands in a blueprint, a session's page under its content security policy runs none of it and loads none."""

import re
from typing import Any

from playwright.async_api import Page, Request, expect

from tests.browser.conftest import IN_ONE_LOOP, WAIT_MS, Lab
from tests.browser.learning import begin, give_plan
from tests.markdown import attacks

pytestmark = IN_ONE_LOOP
expect.set_options(timeout=WAIT_MS)
# Without those that no blueprint may have: NUL, halves of surrogate pairs, nothing.
ALL = [text for text in attacks.ATTACKS if text.strip() and not re.search("[\x00\ud800-\udfff]", text)]
BLUEPRINT: dict[str, Any] = {
    "steps": ["LEARN", "CHECK", "PRACTICE", "COMPLETE"],
    "learningContent": ALL,
    "checkQuestions": [
        {
            "id": f"q{n}",
            "kind": "single",
            "prompt": text,
            "choices": [{"id": "a", "text": text}, {"id": "b", "text": "right"}],
            "answer": "b",
            "feedback": {"a": text},
        }
        for n, text in enumerate(ALL)
    ],
    "practiceActivity": {"instructions": "\n\n".join(ALL), "checks": []},
    "encouragement": "\n\n".join(ALL),
}
# What got through would call one of these, be an element that loads or runs something, or carry a handler.
WATCH = "window.called = []; for (const f of ['alert', 'confirm', 'prompt']) window[f] = (x) => window.called.push(x);"
FOUND = """() => [
    ...window.called,
    ...[...document.querySelectorAll(".md *")].filter((e) =>
        ["SCRIPT", "STYLE", "IMG", "IFRAME", "OBJECT", "EMBED", "SVG", "MATH", "FORM", "INPUT", "LINK", "META", "BASE"]
            .includes(e.tagName.toUpperCase())
        || [...e.attributes].some((a) => a.name.startsWith("on") || a.name === "style" || a.name === "srcdoc")
        || (e.href && !["http:", "https:", "mailto:"].includes(e.protocol))
    ).map((e) => e.outerHTML),
]"""


async def hover_and_focus(page: Page) -> None:
    """As a person would, over everything that a text made."""
    await page.evaluate(
        """() => { for (const e of document.querySelectorAll(".md *")) {
            e.dispatchEvent(new MouseEvent("mouseover", { bubbles: true })); e.focus?.();
            if (e.tagName !== "A") e.click?.();
        } }"""
    )
    assert await page.evaluate(FOUND) == []


async def test_nothing_in_a_blueprint_runs_or_loads_on_a_page(lab: Lab) -> None:
    async with lab.somebody("target") as browser:
        plan = await give_plan(lab, "target", BLUEPRINT)
        page = await browser.new_page()
        await page.add_init_script(WATCH)
        foreign: list[str] = []

        def note(request: Request) -> None:
            if not request.url.startswith(lab.platform.url):
                foreign.append(request.url)

        page.on("request", note)
        await begin(page, plan["sessions"][0]["id"])
        await expect(page.locator(".chunk")).to_have_count(len(ALL))
        await page.evaluate("() => document.querySelectorAll('.chunk').forEach((chunk) => (chunk.hidden = false))")
        await hover_and_focus(page)
        await page.evaluate("() => document.querySelector('[data-last]').requestSubmit()")
        await expect(page.locator(".question")).to_have_count(len(ALL))
        await page.evaluate("() => document.querySelectorAll('[value=a]').forEach((input) => (input.checked = true))")
        await page.get_by_role("button", name="Check my answers").click()
        await expect(page.locator(".said")).to_have_count(len(ALL))
        await hover_and_focus(page)
        await page.evaluate("() => document.querySelectorAll('[value=b]').forEach((input) => (input.checked = true))")
        await page.get_by_role("button", name="Check my answers").click()
        await expect(page.locator(".lab")).to_be_visible()
        await hover_and_focus(page)
        await page.get_by_role("button", name="Continue").click()
        await expect(page.get_by_role("heading", name="You did it")).to_be_visible()
        await hover_and_focus(page)
        assert foreign == []
