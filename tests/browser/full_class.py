"""A class in a lab that is too small for it: learners who wait in line, by API or in a browser, and learn meanwhile.

`test_full_lab` lets them come, watches what runs, and judges what they noted. Everything is real: `codehub serve`,
the line, terminals as workspaces.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

import aiohttp
from playwright.async_api import BrowserContext, Page, expect

from tests.browser.conftest import WAIT_MS, Lab
from tests.browser.learning import QUESTIONS, SESSION, answer, begin, check, give_plan, read_all

LONG = 240  # seconds that a person may have to wait for their place
ANSWERS = {"count": "b", "loops": ["for", "while"], "word": "range"}
PRACTICE = 2  # its index
ACTIVITY = {
    "template": "terminal",
    "instructions": "Look around.",
    "files": {"start/example.txt": "an example\n"},
    "checks": [{"id": "start", "title": "The example is there", "command": "cat start/example.txt"}],
}
BLUEPRINT: dict[str, Any] = {**SESSION, "checkQuestions": QUESTIONS, "practiceActivity": ACTIVITY}


@dataclass
class Notes:
    """What happened, in order."""

    entered: list[str] = field(default_factory=list)
    at_entry: dict[str, int] = field(default_factory=dict)  # the step at which a run was
    ready_at: dict[str, int] = field(default_factory=dict)  # the position when told so
    most_running: int = 0
    finished: list[str] = field(default_factory=list)


@dataclass
class Learner:
    """One of the class, by API. Their plan and run are made when they come."""

    lab: Lab
    name: str
    notes: Notes
    client: aiohttp.ClientSession
    run: dict[str, Any]
    waiting_token: str = ""

    async def call(self, method: str, path: str, expected: int, **body: Any) -> Any:
        async with self.client.request(method, f"/api/v1{path}", json=body or None) as got:
            said = await got.json() if got.status != 204 else None
            assert got.status == expected, (self.name, path, said)
            return said

    async def complete(self, index: int, **state: Any) -> None:
        path = f"/runs/{self.run['id']}/steps/{index}/complete"
        self.run = await self.call("POST", path, 200, fence=self.run["fence"], state=state)

    async def join(self) -> None:
        said = await self.call("POST", "/queue/join", 201, event_id="lab", user_id=self.name)
        self.waiting_token = said["waiting_token"]

    async def learn(self) -> None:
        await self.complete(0)
        await self.complete(1, answers=ANSWERS)

    async def get_in(self) -> None:
        async with asyncio.timeout(LONG):
            while not (status := await self.status())["ready_for_entry"]:
                await asyncio.sleep(status["poll_after_ms"] / 1000)
        self.notes.ready_at[self.name] = status["position"]
        await self.call("POST", "/queue/enter", 200, waiting_token=self.waiting_token)
        self.notes.entered.append(self.name)
        self.notes.at_entry[self.name] = self.run["step_index"]
        async with self.client.get("/api/v1/queue/status", params={"token": self.waiting_token}) as got:
            assert got.status == 404, "one token enters once"

    async def status(self) -> Any:
        async with self.client.get("/api/v1/queue/status", params={"token": self.waiting_token}) as got:
            assert got.status == 200, (self.name, await got.text())
            return await got.json()

    async def open(self) -> str:
        """The workspace, and the starter files in it once it runs."""
        async with asyncio.timeout(LONG):
            while True:
                said = await self.call("POST", f"/runs/{self.run['id']}/workspace", 200, fence=self.run["fence"])
                if said["files"] is not None:
                    return str(said["workspace_id"])
                await asyncio.sleep(0.1)

    async def practise(self) -> None:
        id_ = await self.open()
        await self.complete(PRACTICE)
        await self.complete(PRACTICE + 1)
        assert self.run["status"] == "COMPLETED"
        self.notes.finished.append(self.name)
        await self.lab.put_to_sleep(id_)

    async def wait_and_learn(self) -> None:
        await self.learn()
        await self.get_in()
        await self.practise()


@contextlib.asynccontextmanager
async def by_api(lab: Lab, name: str, notes: Notes) -> AsyncIterator[Learner]:
    await lab.login_link(name)
    session = (await give_plan(lab, name, BLUEPRINT))["sessions"][0]["id"]
    async with lab.platform.client() as admin, admin.post(f"/api/v1/users/{name}/tokens", json={}) as answered:
        token = (await answered.json())["token"]
    async with lab.platform.client(token) as client:
        async with client.post(f"/api/v1/sessions/{session}/runs") as got:
            run = await got.json()
        yield Learner(lab, name, notes, client, run)


@dataclass
class Reader:
    """One of the class, in a browser: they wait in the bar of their session."""

    lab: Lab
    name: str
    notes: Notes
    browser: BrowserContext
    page: Page

    async def join(self) -> None:
        await self.page.get_by_role("button", name="Wait in line").click()
        await expect(self.page.locator("[data-line]")).to_contain_text("You are number")

    async def learn(self) -> None:
        await read_all(self.page)
        await answer(self.page)
        await check(self.page)
        await expect(self.page.get_by_text("All answers are right.")).to_be_visible()

    async def wait_and_learn(self) -> None:
        await self.learn()
        await self.page.get_by_role("button", name="Take the place").click(timeout=LONG * 1000)
        self.notes.entered.append(self.name)
        self.notes.at_entry[self.name] = PRACTICE
        await expect(self.page.get_by_text("The files for this session are in your workspace.")).to_be_visible()
        await self.page.get_by_role("button", name="Check my work").click()
        await self.page.get_by_role("button", name="Finish the session").click()
        await expect(self.page.get_by_role("heading", name="Session completed")).to_be_visible()
        self.notes.finished.append(self.name)
        of_mine = {"owner": self.name}
        async with self.lab.platform.client() as admin, admin.get("/api/v1/workspaces", params=of_mine) as got:
            (mine,) = (await got.json())["items"]
        await self.lab.put_to_sleep(mine["id"])


@contextlib.asynccontextmanager
async def in_a_browser(lab: Lab, name: str, notes: Notes) -> AsyncIterator[Reader]:
    async with lab.somebody(name) as browser:
        session = (await give_plan(lab, name, BLUEPRINT))["sessions"][0]["id"]
        page = await browser.new_page()
        await begin(page, session)
        yield Reader(lab, name, notes, browser, page)


async def watch(lab: Lab, notes: Notes) -> None:
    """How many run at most, as an operator sees it; until it is cancelled."""
    async with lab.platform.client() as admin:
        while True:
            async with admin.get("/api/v1/workspaces", params={"limit": 200}) as got:
                found = (await got.json())["items"]
            running = [w for w in found if "RUNNING" in {w["desired_state"], w["observed_status"]}]
            notes.most_running = max(notes.most_running, len(running))
            await asyncio.sleep(WAIT_MS / 300_000)
