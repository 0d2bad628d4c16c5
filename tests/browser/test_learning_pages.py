"""Every page of learning in every state, language, scheme and width: nothing sticks out, all has a name, is legible.

With CODEHUB_SCREENSHOTS=folder the pictures are kept there, to be looked at.
"""

import json
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import pytest
import pytest_asyncio
from playwright.async_api import Browser, Page, expect

from codehub.command import operator
from codehub.courses import installation
from codehub.policy.model import Principal, Role
from codehub.sessions import blueprint
from codehub.sessions.model import Plan
from codehub.sessions.service import NewPlan, NewSession
from codehub.settings import Settings
from codehub.web.attempts import Attempt, Attempts
from codehub.web.services import Services
from codehub.wiring.api import open_services
from codehub.workspaces.admission import admitted
from codehub.workspaces.model import Desired
from codehub.workspaces.service import NewWorkspace
from tests.browser.conftest import AFTER_A_LINK, IN_ONE_LOOP
from tests.browser.looking import FEW, LOOKS, PICTURES, Scheme, look, look_from
from tests.sessions.learning import LEARN
from tests.virtual_time import ManualClock
from tests.web.server import Site, serving

pytestmark = IN_ONE_LOOP
CODE = (
    "```python\nfor i in range(3):\n"
    "    print('a line of code that is rather long, longer than a phone is wide, and then some')\n```\n\n"
    "```text\nwhat it prints\n```"
)
CHUNKS = [
    "# Loops\n\nA **loop** does the same thing several times. `range(3)` counts from 0.\n\n" + CODE,
    "## Tables\n\n| a | b |\n|---|--:|\n| 1 | 2 |\n\n> A quote.\n\n1. One\n2. Two\n   - Three",
]
QUESTIONS: list[dict[str, Any]] = [
    {
        "id": "one",
        "kind": "single",
        "prompt": f"How many lines does this print?\n\n{CODE}",
        "choices": [{"id": "a", "text": "`2`"}, {"id": "b", "text": "Three"}],
        "answer": "b",
        "feedback": {"a": "`range(3)` begins at 0, so count again: 0, 1, …"},
    },
    {
        "id": "some",
        "kind": "multiple",
        "prompt": "Which are loops?",
        "choices": ["for", "while", "if"],
        "answer": ["for", "while"],
    },
    {"id": "word", "kind": "text", "prompt": "다음 빈칸에 들어갈 말은?", "answer": "range"},
]
PRACTICE: dict[str, Any] = {
    "instructions": "# Print a card\n\nWrite `card.py`:\n\n1. Make the file\n2. Run it\n\n" + CODE,
    "files": {"01/example.txt": "hello\n"},
    "checks": [
        {"id": "there", "title": "card.py is there", "command": "test -f card.py"},
        {
            "id": "runs",
            "title": "It runs without an error",
            "command": "python3 card.py",
            "hint": "Read the **last** line first.",
        },
    ],
}
ALL = {
    "steps": ["LEARN", "CHECK", "PRACTICE", "COMPLETE"],
    "learningContent": CHUNKS,
    "checkQuestions": QUESTIONS,
    "practiceActivity": PRACTICE,
    "encouragement": "You wrote a loop. *Everything* that follows is more of the same.",
}
REREAD = {**ALL, "steps": ["LEARN", "CHECK", "COMPLETE"], "practiceActivity": None}
MANY = {**ALL, "steps": ["LEARN", "CHECK"] * 20 + ["COMPLETE"]}
ANSWERS = {"one": "b", "some": ["for", "while"], "word": "range"}
WRONG = Attempt({"one": "a", "some": ["for"], "word": "range"}, ["one", "some"], {"one": QUESTIONS[0]["feedback"]["a"]})
FAILED = Attempt(
    checks=[
        {
            "id": "there",
            "title": "card.py is there",
            "passed": True,
            "output": "",
            "hint": None,
            "timed_out": False,
            "left_out": 0,
        },
        {
            "id": "runs",
            "title": "It runs without an error",
            "passed": False,
            "output": "Traceback (most recent call last):\n  File 'card.py', line 1\nNameError: 'x'" + "!" * 200,
            "hint": "Read the **last** line first.",
            "timed_out": True,
            "left_out": 70000,
        },
    ]
)
LONG = "A-title-without-any-place-to-break-it-which-a-teacher-pasted-from-somewhere-and-never-looked-at-ag"


@dataclass(frozen=True)
class Gallery:
    site: Site
    pages: dict[str, str]


@dataclass
class Learner:
    """One person's plans, brought into every state through the services."""

    services: Services
    clock: ManualClock
    who: Principal

    async def plan(self, title: str, *sessions: tuple[str, int, Any]) -> Plan:
        today = self.clock.now().date()
        new = [NewSession(name, today + timedelta(days=days), blueprint.parse(of)) for name, days, of in sessions]
        await self.clock.advance(1)
        return await self.services.sessions.create_plan(self.who, NewPlan(title, new))

    async def start(self, session_id: str) -> dict[str, Any]:
        await self.clock.advance(1)
        run: dict[str, Any] = json.loads((await self.services.runs.start(self.who, session_id)).body)
        return run

    async def at(self, session_id: str, steps: int) -> dict[str, Any]:
        """A run of it with so many steps done; of PRACTICE, without its checks."""
        run = await self.start(session_id)
        for index in range(min(steps, 2)):
            state = {"answers": ANSWERS} if index == 1 else {}
            await self.services.runs.complete_step(self.who, run["id"], index, run["fence"], state)
        if steps > 2:
            async with self.services.database.connection() as c:
                await c.execute("UPDATE session_runs SET step_index = $2 WHERE id = $1", run["id"], steps)
        return run

    async def in_workspace(self, run: dict[str, Any], status: str) -> str:
        made = admitted(
            await self.services.workspaces.create(
                self.who, NewWorkspace(f"Loops {status}", "terminal", Desired.STANDBY)
            )
        )
        async with self.services.database.connection() as c:
            await c.execute(
                "UPDATE workspaces SET observed_status = $2, desired_state = $2 WHERE id = $1", made.id, status
            )
            await c.execute("UPDATE session_runs SET workspace_id = $2 WHERE id = $1", run["id"], made.id)
        return made.id


def playing(session_id: str, run: dict[str, Any], **more: str) -> str:
    said = "".join(f"&{name}={value}" for name, value in more.items())
    return f"/sessions/{session_id}?run={run['id']}&fence={run['fence']}{said}"


async def reread(learner: Learner, id_: str) -> dict[str, str]:
    """A completed session, with a wrong answer in it."""
    run = await learner.start(id_)
    await Attempts(learner.services.redis).note(run["id"], 1, WRONG)
    for index in range(3):
        state = {"answers": ANSWERS} if index == 1 else {}
        await learner.services.runs.complete_step(learner.who, run["id"], index, run["fence"], state)
    again = f"/sessions/{id_}?read=yes"
    return {"course-done": f"/sessions/{id_}", "reread": again, "reread-check": f"{again}&step=1"}


async def furnish(learner: Learner) -> dict[str, str]:
    """A page for each state."""
    services, attempts = learner.services, Attempts(learner.services.redis)
    done = await learner.plan("Git", ("Commits", -20, LEARN))
    await services.sessions.skip(learner.who, done.sessions[0].id)
    days = [-9, -5, -1, 0, 0, 1, 2, 3, 4, 40, 400]
    names = "Begin Read Answer Wrong Missing Practise Asleep Failed Finish Elsewhere Abandoned"
    plan = await learner.plan("Python", *((name, day, ALL) for name, day in zip(names.split(), days, strict=True)))
    other = await learner.plan(
        LONG,
        ("Skipped", -3, ALL),
        ("Canceled", -2, ALL),
        (LONG, 0, MANY),
        ("Done", 1, LEARN),
        ("Later", 9, ALL),
    )
    ids = {session.title: session.id for session in (*plan.sessions, *other.sessions)}
    pages = {"going-on": "/", "learn": "/learn", "learn-refused": "/learn?problem=PLAN_LIMIT"}
    pages |= {"plan": f"/plans/{plan.id}", "plan-long": f"/plans/{other.id}", "plan-finished": f"/plans/{done.id}"}
    whole = await learner.plan("Loops", ("Reread", 0, REREAD))
    pages |= await reread(learner, whole.sessions[0].id)
    pages["begin"] = f"/sessions/{ids['Begin']}"
    abandoned = await learner.at(ids["Abandoned"], 2)
    await services.runs.abandon(learner.who, abandoned["id"], abandoned["fence"], None)
    pages["abandoned"] = f"/sessions/{ids['Abandoned']}"
    await services.sessions.skip(learner.who, ids["Skipped"])
    await learner.at(ids["Canceled"], 1)
    await services.sessions.cancel(learner.who, ids["Canceled"])
    pages |= {name.lower(): f"/sessions/{ids[name]}" for name in ("Skipped", "Canceled", "Done")}
    run = await learner.start(ids["Done"])
    for index in range(2):
        await services.runs.complete_step(learner.who, run["id"], index, run["fence"], {})
    pages["read"] = playing(ids["Read"], await learner.at(ids["Read"], 0))
    answer = await learner.at(ids["Answer"], 1)
    pages["answer"] = playing(ids["Answer"], answer, since="1")
    pages["look-back"] = playing(ids["Answer"], answer, step="0")
    wrong = await learner.at(ids["Wrong"], 1)
    await attempts.note(wrong["id"], 1, WRONG)
    pages["wrong"] = playing(ids["Wrong"], wrong, problem="CHECK_FAILED")
    missing = await learner.at(ids["Missing"], 1)
    await attempts.note(missing["id"], 1, Attempt({"one": "b", "some": []}))
    pages["missing"] = playing(ids["Missing"], missing, problem="ANSWERS_MISSING")
    pages["practise"] = playing(ids["Practise"], await learner.at(ids["Practise"], 2), done="answers")
    asleep = await learner.at(ids["Asleep"], 2)
    await learner.in_workspace(asleep, "STANDBY")
    pages["asleep"] = playing(ids["Asleep"], asleep, problem="WORKSPACE_NOT_RUNNING")
    pages["waking"] = playing(ids["Asleep"], asleep, waking="yes")
    pages["full"] = playing(ids["Asleep"], asleep, problem="RUNNING_LIMIT")
    failed = await learner.at(ids["Failed"], 2)
    workspace = await learner.in_workspace(failed, "RUNNING")
    await attempts.note(failed["id"], 2, FAILED)
    beside = [{"path": "01/example.txt", "put": "beside", "name": "01/example.new.txt"}]
    await attempts.note_files(failed["id"], workspace, beside)
    pages["failed"] = playing(ids["Failed"], failed, problem="PRACTICE_FAILED")
    finish = await learner.at(ids["Finish"], 3)
    pages["finish"] = playing(ids["Finish"], finish, done="checks")
    pages["look-back-check"] = playing(ids["Finish"], finish, step="1")
    pages["look-back-practice"] = playing(ids["Finish"], finish, step="2")
    elsewhere = await learner.at(ids["Elsewhere"], 1)
    pages["elsewhere"] = f"/sessions/{ids['Elsewhere']}"
    await learner.start(ids["Elsewhere"])
    pages["taken-over"] = playing(ids["Elsewhere"], elsewhere, problem="RUN_TAKEN_OVER")
    pages["many"] = playing(ids[LONG], await learner.at(ids[LONG], 20))
    pages["late"] = f"/sessions/{ids['Later']}"
    return pages


@pytest_asyncio.fixture(loop_scope="session")
async def gallery(settings: Settings, clock: ManualClock) -> AsyncIterator[Gallery]:
    async with open_services(settings, clock) as services:
        await services.people.ensure_first_admin()
        for name in ("mina", "jun"):
            await services.people.create_user(operator(), name, Role.LEARNER)
        learner = Learner(services, clock, Principal("mina", Role.LEARNER, operator().scopes))
        pages = await furnish(learner)
        await installation.run(services.courses)
        async with serving(services) as site:
            yield Gallery(site, pages)


@pytest.mark.parametrize(("language", "scheme", "width"), LOOKS if PICTURES else FEW)
async def test_every_page_of_learning_is_whole_named_and_legible(
    gallery: Gallery, chromium: Browser, language: str, scheme: Scheme, width: int
) -> None:
    page = await look_from(chromium, gallery.site.url, language, scheme, width)
    found: list[str] = []
    for name in ("jun", "mina"):
        await page.goto((await gallery.site.login_link(name)).url(gallery.site.url))
        await page.get_by_role("button").first.click()
        await page.wait_for_url("**/")
        if name == "jun":
            for path in ("/", "/learn"):
                await page.goto(path)
                found += await look(page, f"empty{path.replace('/', '-')}", language, scheme, width)
    for name, path in gallery.pages.items():
        await page.goto(path)
        await page.wait_for_function("document.querySelector('.chunks:not(.ready)') === null")
        found += await look(page, name, language, scheme, width)
    await page.goto(gallery.pages["plan"])
    await page.locator("details.menu > summary").nth(3).click()
    await page.locator("details.menu[open] details.sure > summary").first.click()
    found += await look(page, "plan-menu", language, scheme, width)
    await page.goto(gallery.pages["failed"])
    await page.locator("details.menu > summary").click()
    await page.locator("details.menu[open] details.sure > summary").first.click()
    found += await look(page, "session-menu", language, scheme, width)
    for path in ("/", gallery.pages["plan"], gallery.pages["begin"]):
        await page.goto(path)
        found += await menus_seen(page)
    await page.goto("/plans/nothing")
    found += await look(page, "not-there", language, scheme, width)
    found += await look_as_admin(gallery, page, (language, scheme, width))
    await page.context.close()
    assert not found, "\n".join(found)


async def look_as_admin(gallery: Gallery, page: Page, seen: tuple[str, Scheme, int]) -> list[str]:
    """Courses with their menu, and one that is withdrawn."""
    await page.goto((await gallery.site.login_link("admin")).url(gallery.site.url))
    await page.get_by_role("button").first.click()
    await page.wait_for_url(AFTER_A_LINK)
    await page.goto("/learn")
    found = await menus_seen(page)
    await page.locator("details.menu > summary").first.click()
    await page.locator("details.menu[open] details.sure > summary").click()
    found += await look(page, "courses-menu", *seen)
    await page.locator("details.menu[open] button.danger").click()
    await page.locator("#withdrawn > summary").click()
    found += await look(page, "withdrawn", *seen)
    await page.locator("#withdrawn button").click()  # as it was, for those who look next
    await expect(page.locator("#withdrawn")).to_have_count(0)
    return found


async def menus_seen(page: Page) -> list[str]:
    """What is in each menu when it is open, as a person sees it who has just clicked on it."""
    found = []
    for menu in await page.locator("details.menu").all():
        await menu.locator("> summary").click()
        items = menu.locator(".menu-list")
        await expect(items).to_be_in_viewport(ratio=0.99)
        box, view = await items.bounding_box(), page.viewport_size
        if not box or not view or box["x"] < 0 or box["x"] + box["width"] > view["width"]:
            found.append(f"{page.url}: a menu is not seen as a whole: {box}")
        await menu.locator("> summary").click()
    return found
