"""A click on a workspace that is busy with something else: nobody is told to come back, the page waits and does it."""

import asyncio
from collections.abc import AsyncIterator

import pytest_asyncio
from playwright.async_api import Browser, Request, Route, expect

from codehub.command import operator
from codehub.policy.model import Principal, Role
from codehub.settings import Settings
from codehub.wiring.api import open_services
from codehub.workspaces.admission import admitted
from codehub.workspaces.model import Desired, Operation, Workspace
from codehub.workspaces.service import NewWorkspace
from tests.browser.conftest import IN_ONE_LOOP, WAIT_MS
from tests.browser.looking import look_from
from tests.virtual_time import ManualClock
from tests.web.server import Site, serving

pytestmark = IN_ONE_LOOP
expect.set_options(timeout=WAIT_MS)


@pytest_asyncio.fixture(loop_scope="session")
async def site(settings: Settings, clock: ManualClock) -> AsyncIterator[Site]:
    async with open_services(settings, clock) as services:
        await services.people.create_user(operator(), "mina", Role.LEARNER)
        async with serving(services) as site:
            yield site


async def put(site: Site, w: Workspace, operation: Operation) -> None:
    """What only the coordinator would bring about; none runs here. What is being started does not run yet."""
    busy = operation is not Operation.NONE
    observed = "STANDBY" if operation is Operation.STARTING else "RUNNING"
    async with site.services.database.connection() as c:
        await c.execute(
            "UPDATE workspaces SET observed_status = $5, desired_state = 'RUNNING', operation = $2, op_id = $3,"
            " op_started_at = $4 WHERE id = $1",
            *(w.id, operation, "op" if busy else None, site.services.clock.now() if busy else None, observed),
        )


async def only_forms(route: Route) -> None:
    """The page hears nothing of the operation: it is sent as it was when it was looked at last."""
    looks = route.request.method == "GET" and "x-requested-with" in route.request.headers
    await (route.abort() if looks or route.request.resource_type == "eventsource" else route.continue_())


async def test_a_page_waits_for_what_is_under_way_and_does_it_then(
    site: Site, chromium: Browser, clock: ManualClock
) -> None:
    mina = Principal("mina", Role.LEARNER, operator().scopes)
    w = admitted(await site.services.workspaces.create(mina, NewWorkspace("Week 3", "terminal", Desired.STANDBY)))
    await put(site, w, Operation.NONE)
    page = await look_from(chromium, site.url, "en", "light", 1280)
    await page.goto((await site.login_link("mina")).url(site.url))
    await page.get_by_role("button").click()
    await page.wait_for_url("**/")
    await page.route("**/*", only_forms)
    sent: list[Request] = []
    page.on("request", lambda request: sent.append(request) if request.method == "POST" else None)
    await page.locator("details.menu > summary").click()
    await put(site, w, Operation.STARTING)
    await page.get_by_role("button", name="Put to sleep").click()
    async with asyncio.timeout(WAIT_MS / 1000):
        while len(sent) < 2:  # the first request waited as long as one may
            await asyncio.sleep(0.01)
            await clock.advance(0.25)
        await expect(page.locator(".asking")).to_have_count(1)
        await put(site, w, Operation.NONE)
        while (await site.services.workspaces.get(mina, w.id)).desired_state is not Desired.STANDBY:
            await asyncio.sleep(0.01)
            await clock.advance(0.25)
    await expect(page.locator(".asking")).to_have_count(0)
    await expect(page.locator(".problem")).to_have_count(0)
    await page.context.close()
