"""What tests of a session's page share: a plan for a person, and the steps of their page."""

import re
from typing import Any

from playwright.async_api import BrowserContext, Page, expect

from tests.browser.conftest import Lab

QUESTIONS: list[dict[str, Any]] = [
    {
        "id": "count",
        "kind": "single",
        "prompt": "How many lines?",
        "choices": [{"id": "a", "text": "two"}, {"id": "b", "text": "three"}],
        "answer": "b",
        "feedback": {"a": "Count from *zero*."},
    },
    {
        "id": "loops",
        "kind": "multiple",
        "prompt": "Which are loops?",
        "choices": ["for", "while", "if"],
        "answer": ["for", "while"],
    },
    {"id": "word", "kind": "text", "prompt": "Its name?", "answer": ["range"]},
]
SESSION: dict[str, Any] = {
    "steps": ["LEARN", "CHECK", "PRACTICE", "COMPLETE"],
    "learningContent": ["# One\n\nFirst.", "# Two\n\nSecond.", "# Three\n\nThird."],
    "checkQuestions": QUESTIONS,
    "practiceActivity": {
        "template": "tiny",
        "instructions": "Write `card.txt`.",
        "files": {"start/example.txt": "an example\n"},
        "checks": [
            {"id": "start", "title": "The example is there", "command": "cat start/example.txt"},
            {"id": "card", "title": "The card is there", "command": "ls card.txt", "hint": "Make `card.txt`."},
        ],
    },
    "encouragement": "You made a **card**.",
}
CHECK_ONLY = {**SESSION, "steps": ["CHECK", "COMPLETE"], "practiceActivity": None}
SECRETS = ("Count from", "ls card.txt", "Make card.txt")  # that no page may have before they were earned


async def give_plan(lab: Lab, owner: str, *blueprints: Any, title: str = "Python") -> Any:
    """An admin's plan for a person; its JSON."""
    sessions = [
        {"title": f"Day {n}", "scheduled_for_date": "2026-03-02", "blueprint": blueprint}
        for n, blueprint in enumerate(blueprints, 1)
    ]
    async with (
        lab.platform.client() as admin,
        admin.post("/api/v1/plans", json={"title": title, "owner": owner, "sessions": sessions}) as answer,
    ):
        assert answer.status == 201, await answer.text()
        return await answer.json()


async def runs_of(browser: BrowserContext, session_id: str) -> list[dict[str, Any]]:
    answer = await browser.request.get(f"/api/v1/sessions/{session_id}/runs")
    items: list[dict[str, Any]] = (await answer.json())["items"]
    return items


async def begin(page: Page, session_id: str) -> None:
    await page.goto(f"/sessions/{session_id}")
    await page.get_by_role("button", name=re.compile("^(Start|Go on)$")).click()
    await expect(page).to_have_url(re.compile(r"run=.*fence="))


async def read_all(page: Page) -> None:
    for _ in range(2):
        await page.get_by_role("button", name="Next →").click()
    await page.get_by_role("button", name="Continue").click()


async def answer(page: Page, count: str = "three", word: str = "range") -> None:
    await page.get_by_label(count).check()
    for name in ("for", "while"):
        await page.get_by_label(name, exact=True).check()
    await page.get_by_label("Your answer").fill(word)


async def check(page: Page) -> None:
    await page.get_by_role("button", name="Check my answers").click()
