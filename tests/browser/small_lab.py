"""A lab with one place, in this process: time, the pump's ticks and who has the place are a test's to say."""

import contextlib
import dataclasses
from collections.abc import AsyncIterator

from playwright.async_api import BrowserContext, Locator, Page, expect

from codehub.command import operator
from codehub.policy.model import Principal, Role
from codehub.sessions import blueprint
from codehub.sessions.service import NewPlan, NewSession
from codehub.settings import Settings
from codehub.waiting_room.model import LAB
from codehub.web.services import Services
from codehub.wiring.api import open_services
from codehub.workspaces.admission import admitted
from codehub.workspaces.model import Desired
from codehub.workspaces.service import NewWorkspace
from tests.browser.learning import SESSION
from tests.virtual_time import ManualClock
from tests.waiting_room.queue_site import QueueSite
from tests.web.server import serving


@dataclasses.dataclass
class SmallLab:
    queue: QueueSite
    services: Services
    taken: str = ""  # the workspace that has the place

    async def fill(self) -> None:
        """Another person has the place."""
        made = await self.services.workspaces.create(_person("other"), NewWorkspace("w", "terminal"))
        self.taken = admitted(made).id

    async def free(self) -> None:
        await self.services.workspaces.request(_person("other"), self.taken, Desired.STANDBY)
        await self.queue.tick()

    async def plan(self, name: str) -> str:
        """The id of its only session."""
        lesson = blueprint.parse({**SESSION, "practiceActivity": {**SESSION["practiceActivity"], "template": None}})
        new = NewPlan("Python", [NewSession("Day 1", self.services.clock.now().date(), lesson)])
        return (await self.services.sessions.create_plan(_person(name), new)).sessions[0].id

    async def session(self, browser: BrowserContext, name: str) -> Page:
        """Their page of it, begun; its language is the browser's."""
        page = await browser.new_page()
        await page.goto((await self.queue.site.login_link(name)).url(self.queue.site.url))
        await page.get_by_role("button").click()
        await page.wait_for_url("**/")
        await page.goto(f"/sessions/{await self.plan(name)}")
        await page.locator("article.player form[action$='/start'] button").first.click()
        await expect(page.locator("[data-step]")).to_be_visible()
        return page

    async def crowd(self, count: int) -> list[str]:
        """People in line."""
        tokens = []
        for n in range(count):
            sent = {"event_id": LAB, "user_id": f"person {n}"}
            joined = await self.queue.call("POST", "/join", "admin", json=sent)
            tokens.append(str(joined.body["waiting_token"]))
        return tokens


def _person(name: str) -> Principal:
    return Principal(name, Role.LEARNER, operator().scopes)


@contextlib.asynccontextmanager
async def small_lab(settings: Settings, clock: ManualClock, *people: str) -> AsyncIterator[SmallLab]:
    limits = dataclasses.replace(settings.limits, max_running_global=1)
    async with open_services(dataclasses.replace(settings, limits=limits), clock) as services:
        await services.people.ensure_first_admin()
        for name in ("other", *people):
            await services.people.create_user(operator(), name, Role.LEARNER)
        async with serving(services) as site:
            yield SmallLab(QueueSite.of(site, clock), services)


def bar(page: Page) -> Locator:
    return page.locator("[data-line]")
