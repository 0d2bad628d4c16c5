"""The waiting page on every screen it has, and the pages of those who run lines: whole, named and legible.

Every screen is reached as people reach it, by clicks, with the pump's ticks sent by hand; pictures as in
`test_every_page`.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from datetime import timedelta

import pytest
import pytest_asyncio
from playwright.async_api import Browser, Page, expect

from codehub.command import operator
from codehub.policy.model import Role
from codehub.settings import Settings
from codehub.wiring.api import open_services
from tests.browser.conftest import IN_ONE_LOOP
from tests.browser.looking import FEW, LOOKS, PICTURES, Scheme, look, look_from
from tests.virtual_time import ManualClock
from tests.waiting_room.queue_site import QueueSite
from tests.web.server import serving

pytestmark = IN_ONE_LOOP
LONG = "a-very-long-name-of-an-event-that-somebody-pasted_2026_03_02-ABC"
Step = Callable[[QueueSite, Page], Awaitable[None]]


@pytest_asyncio.fixture(loop_scope="session")
async def queue(settings: Settings, clock: ManualClock) -> AsyncIterator[QueueSite]:
    async with open_services(settings, clock) as services:
        await services.people.ensure_first_admin()
        for name, role in (("mina", Role.LEARNER), ("kim", Role.TEACHER)):
            await services.people.create_user(operator(), name, role)
        async with serving(services) as site:
            yield QueueSite.of(site, clock)


async def crowd(queue: QueueSite, event: str, count: int) -> list[str]:
    """People in line before anybody comes to the page."""
    tokens = []
    for n in range(count):
        sent = {"event_id": event, "user_id": f"person {n}"}
        answer = await queue.call("POST", "/join", "admin", json=sent)
        tokens.append(str(answer.body["waiting_token"]))
    return tokens


async def join(page: Page, event: str) -> None:
    await page.goto(f"/wait/{event}")
    await page.locator("form[data-verb=join] button").click()
    await expect(page.locator("form[data-verb=leave], form[data-verb=enter]").first).to_be_visible()


async def waiting(queue: QueueSite, page: Page) -> None:
    await queue.event("waiting", capacity=0)
    ahead = await crowd(queue, "waiting", 8)
    await join(page, "waiting")
    await queue.leave(ahead[0])
    await queue.leave(ahead[1])
    await page.goto("/wait/waiting")
    await expect(page.locator("#position")).to_have_text("7")
    await expect(page.locator("#since")).to_contain_text("2")


async def far(queue: QueueSite, page: Page) -> None:
    await queue.event(LONG, capacity=0)
    await crowd(queue, LONG, 120)
    await join(page, LONG)
    await expect(page.locator("#position")).to_have_text("121")


async def ready(queue: QueueSite, page: Page) -> None:
    await queue.event("ready")
    await join(page, "ready")
    await queue.tick()
    await page.goto("/wait/ready")
    await expect(page.locator("#countdown")).not_to_be_empty()


async def paused(queue: QueueSite, page: Page) -> None:
    await queue.event("paused")
    await join(page, "paused")
    await queue.event("paused", paused=True)
    await queue.tick()
    await page.goto("/wait/paused")


async def before(queue: QueueSite, page: Page, order: str = "fifo") -> None:
    opens_at = (queue.clock.now() + timedelta(hours=3)).isoformat()
    await queue.event(order, opens_at=opens_at, order=order)
    await join(page, order)
    await queue.tick()
    await page.goto(f"/wait/{order}")
    await expect(page.locator(".note").first).to_contain_text("12:00")


async def lottery(queue: QueueSite, page: Page) -> None:
    await before(queue, page, "lottery")


async def passed(queue: QueueSite, page: Page) -> None:
    await queue.event("passed")
    await join(page, "passed")
    (other,) = await crowd(queue, "passed", 1)
    await queue.tick()
    await page.goto("/wait/passed")
    await page.goto("about:blank")
    await queue.pass_time(80, other)
    await page.goto("/wait/passed")
    await expect(page.locator("[role=alert]")).to_be_visible()


async def gone(queue: QueueSite, page: Page) -> None:
    await queue.event("gone", capacity=0)
    await join(page, "gone")
    await page.goto("about:blank")  # a laptop that sleeps
    await queue.tick()
    await queue.pass_time(310)
    await page.goto("/wait/gone")


async def held(queue: QueueSite, page: Page) -> None:
    await queue.event("held")
    await join(page, "held")
    await queue.tick()
    await page.goto("/wait/held")
    await page.locator("form[data-verb=enter] button").click()
    await expect(page.locator("form[data-verb=back]")).to_be_visible()


async def full(queue: QueueSite, page: Page) -> None:
    await queue.event("full", capacity=0)
    await crowd(queue, "full", 3)
    await page.goto("/wait/full")


async def left(queue: QueueSite, page: Page) -> None:
    await queue.event("left", capacity=0)
    await join(page, "left")
    await page.locator("form[data-verb=leave] button").click()
    await expect(page.locator(".flash")).to_be_visible()


async def closed(queue: QueueSite, page: Page) -> None:
    await queue.event("closed", draining=True)
    await page.goto("/wait/closed")


async def free(_queue: QueueSite, page: Page) -> None:
    await page.goto("/wait/lab")


async def missing(_queue: QueueSite, page: Page) -> None:
    await page.goto("/wait/nothing")


async def refused(_queue: QueueSite, page: Page) -> None:
    await page.goto("/wait/lab?problem=NOT_YOUR_TURN")


SCREENS: Mapping[str, Step] = {
    step.__name__: step
    for step in (waiting, far, ready, paused, before, lottery, passed, gone, held, full, left, closed, free, missing)
} | {"refused": refused}


@pytest.mark.parametrize(("language", "scheme", "width"), [*LOOKS, ("en", "light", 1920)] if PICTURES else FEW)
async def test_every_screen_of_waiting_is_whole_named_and_legible(
    queue: QueueSite, chromium: Browser, language: str, scheme: Scheme, width: int
) -> None:
    page = await look_from(chromium, queue.site.url, language, scheme, width)
    found: list[str] = []
    await log_in(queue, page, "mina")
    for name, reach in SCREENS.items():
        await reach(queue, page)
        found += await look(page, f"wait-{name}", language, scheme, width)
        await page.goto("about:blank")
    await page.context.close()
    assert not found, "\n".join(found)


async def log_in(queue: QueueSite, page: Page, name: str) -> None:
    await page.goto((await queue.site.login_link(name)).url(queue.site.url))
    await page.get_by_role("button").click()
    await page.wait_for_url("**/")


@pytest.mark.parametrize(("language", "scheme", "width"), LOOKS if PICTURES else FEW)
async def test_every_page_of_who_runs_a_line_is_whole_named_and_legible(
    queue: QueueSite, chromium: Browser, language: str, scheme: Scheme, width: int
) -> None:
    await queue.call("PUT", f"/events/{LONG}", "admin", json={"capacity": 2})
    page = await look_from(chromium, queue.site.url, language, scheme, width)
    found: list[str] = []
    await log_in(queue, page, "kim")
    await page.goto("/lines")
    found += await look(page, "lines-none", language, scheme, width)
    await page.locator("input[name=id]").fill("workshop")
    await page.locator("input[name=capacity]").fill("1")
    await page.locator("form[action='/lines'] button").click()
    await page.wait_for_url("**/lines/workshop")
    found += await look(page, "line-empty", language, scheme, width)
    await crowd(queue, "workshop", 5)
    await queue.tick()
    await page.goto("/lines/workshop")
    found += await look(page, "line", language, scheme, width)
    await page.locator("#line-pause").click()
    await expect(page.locator("#line-resume")).to_be_visible()
    found += await look(page, "line-paused", language, scheme, width)
    await page.goto("/lines")
    found += await look(page, "lines", language, scheme, width)
    await page.goto(f"/lines/{LONG}")
    found += await look(page, "line-of-another", language, scheme, width)
    await page.context.close()
    assert not found, "\n".join(found)
