"""Putting one to sleep to open another, as a browser and a program do it: the pages say how many run, and do it."""

import html
import re
from collections.abc import AsyncIterator

import aiohttp
import pytest

from codehub.command import operator
from codehub.coordinator.leader import Lease
from codehub.policy.model import Principal, Role
from codehub.settings import Settings
from codehub.web.services import Services
from codehub.workspaces.admission import admitted
from codehub.workspaces.model import Desired, Workspace
from codehub.workspaces.service import NewWorkspace
from codehub.workspaces.swaps import Swaps
from tests.virtual_time import ManualClock
from tests.web.server import Site

from dataclasses import replace  # isort: skip


@pytest.fixture
def settings(settings: Settings) -> Settings:
    return replace(settings, limits=replace(settings.limits, max_running_per_user=2, max_running_global=3))


@pytest.fixture
async def mina(site: Site) -> AsyncIterator[aiohttp.ClientSession]:
    await site.services.people.create_user(operator(), "mina", Role.LEARNER)
    async with site.browser("mina") as browser:
        yield browser


@pytest.fixture
async def swaps(services: Services, clock: ManualClock) -> Swaps:
    async with services.database.connection() as c:
        await c.execute(
            "INSERT INTO system_locks (name, holder, epoch, expires_at) VALUES ('coordinator', 'test', 1, 'infinity')"
        )
    return Swaps(Lease(services.database, "test", 1), clock)


async def observe(site: Site, w: Workspace, observed: str) -> None:
    async with site.services.database.connection() as c:
        await c.execute(
            "UPDATE workspaces SET observed_status = $2, volume_generation = 'g' WHERE id = $1", *(w.id, observed)
        )


async def make(site: Site, name: str, desired: Desired = Desired.RUNNING) -> Workspace:
    person = Principal("mina", Role.LEARNER, operator().scopes)
    made = admitted(await site.services.workspaces.create(person, NewWorkspace(name, "jupyterlab", desired)))
    await observe(site, made, "RUNNING" if desired is Desired.RUNNING else "STANDBY")
    return made


async def wanted(site: Site, *of: Workspace) -> list[Desired]:
    return [(await site.services.workspaces.get(operator(), w.id)).desired_state for w in of]


async def page(browser: aiohttp.ClientSession, path: str, status: int = 200) -> str:
    async with browser.get(path) as answer:
        assert answer.status == status
        return html.unescape(await answer.text())


async def test_the_page_says_how_many_run_and_its_button_puts_one_to_sleep_and_opens(
    site: Site, mina: aiohttp.ClientSession, swaps: Swaps
) -> None:
    one, two = await make(site, "Robotics"), await make(site, "Thesis")
    new = await make(site, "Week 3", Desired.STANDBY)
    async with mina.post(f"/do/{new.id}/start", allow_redirects=False) as answer:
        refused = answer.headers["location"]
    assert refused == f"/?at={new.id}&problem=RUNNING_LIMIT"
    shown = await page(mina, refused)
    assert "2 of 2 are running" in shown
    assert "Put “Robotics” to sleep and open" in shown
    assert "Put “Thesis” to sleep and open" in shown
    button = re.search(
        rf'action="(/do/{new.id}/swap)".*?name="then" value="(\w+)".*?value="({two.id})"', shown, re.DOTALL
    )
    assert button
    async with mina.post(button[1], data={"then": button[2], "instead_of": button[3]}, allow_redirects=False) as answer:
        assert (answer.status, answer.headers["location"]) == (303, f"/open/{new.id}")
    assert await wanted(site, one, two, new) == [Desired.RUNNING, Desired.STANDBY, Desired.STANDBY]
    await observe(site, two, "STANDBY")
    await swaps.tick()
    assert await wanted(site, one, two, new) == [Desired.RUNNING, Desired.STANDBY, Desired.RUNNING]


async def test_a_program_names_what_makes_room(site: Site, mina: aiohttp.ClientSession, swaps: Swaps) -> None:
    await make(site, "Robotics")
    two, new = await make(site, "Thesis"), await make(site, "Week 3", Desired.STANDBY)
    body = {"desired_state": "RUNNING"}
    path = f"/api/v1/workspaces/{new.id}"
    async with site.client(Authorization=f"Bearer {await site.token('mina')}") as program:
        async with program.patch(path, json=body) as answer:
            assert (answer.status, (await answer.json())["code"]) == (429, "RUNNING_LIMIT")
        async with program.patch(path, json={**body, "instead_of": new.id}) as answer:
            assert (answer.status, (await answer.json())["errors"][0]["field"]) == (400, "instead_of")
        async with program.patch(path, json={**body, "instead_of": "nosuchone"}) as answer:
            assert answer.status == 404
        async with program.patch(path, json={**body, "instead_of": two.id}) as answer:
            assert (answer.status, (await answer.json())["desired_state"]) == (202, "STANDBY")
        async with program.patch(path, json=body) as answer:  # it is on its way already
            assert answer.status == 202
        await observe(site, two, "STANDBY")
        await swaps.tick()
        async with program.get(path) as answer:
            assert (await answer.json())["desired_state"] == "RUNNING"


async def test_the_page_of_one_that_waits_for_its_place_says_so_and_says_when_it_does_not_come(
    site: Site, mina: aiohttp.ClientSession, swaps: Swaps, clock: ManualClock
) -> None:
    await make(site, "Robotics")
    two, new = await make(site, "Thesis"), await make(site, "Week 3", Desired.STANDBY)
    async with site.client(Authorization=f"Bearer {await site.token('mina')}") as program:
        full = await page(program, f"/w/{new.id}/", 502)
        assert "2 of 2 · put one to sleep and open" in full
        await clock.advance(600)  # asked for long ago: the waiting counts from the swap
        await mina.post(f"/do/{new.id}/swap", data={"instead_of": two.id}, allow_redirects=False)
        waking = await page(program, f"/w/{new.id}/", 503)
        assert "“Thesis” goes to sleep first" in waking
        assert 'data-elapsed="0"' in waking
        assert 'data-swapping="yes"' in waking
        await clock.advance(301)
        await swaps.tick()
        full = await page(program, f"/w/{new.id}/", 502)
        assert "did not fall asleep in time" in full
