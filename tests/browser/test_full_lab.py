"""More people than places: all get in, in order, never twice, never more than there are places; and learn meanwhile.

`make test` has one place and four people, `make soak` three places and twelve people, three of them in Chromium.
"""

import asyncio
import contextlib
from collections.abc import Iterator

import pytest
from playwright.async_api import Browser, expect

from tests.browser.conftest import IN_ONE_LOOP, WAIT_MS, Lab
from tests.browser.full_class import PRACTICE, Learner, Notes, Reader, by_api, in_a_browser, watch
from tests.places import a_place
from tests.platform import Platform, running

pytestmark = IN_ONE_LOOP
expect.set_options(timeout=WAIT_MS)


@pytest.fixture
def small_platform(places: int) -> Iterator[Platform]:
    with (
        a_place() as folder,
        running(folder / "data", CODEHUB_MAX_RUNNING_GLOBAL=str(places), CODEHUB_DRAIN_SECONDS="1") as started,
    ):
        yield started


@pytest.mark.parametrize(("places", "people", "browsers"), [(1, 4, 1), pytest.param(3, 12, 3, marks=pytest.mark.soak)])
async def test_all_get_a_place_in_order_and_learn_meanwhile(
    small_platform: Platform, chromium: Browser, places: int, people: int, browsers: int
) -> None:
    await all_get_a_place(Lab(small_platform, chromium), places, people, browsers)


async def all_get_a_place(lab: Lab, places: int, people: int, browsers: int) -> None:
    notes = Notes()
    async with contextlib.AsyncExitStack() as stack:
        holders = [await stack.enter_async_context(by_api(lab, f"first{n}", notes)) for n in range(places)]
        for holder in holders:  # there is room for them, so they wait for nothing
            await holder.learn()
            await holder.open()
        waiting: list[Learner | Reader] = []
        for n in range(people - places):
            reads = n % ((people - places) // browsers) == 1
            come = in_a_browser(lab, f"w{n}", notes) if reads else by_api(lab, f"w{n}", notes)
            waiting.append(await stack.enter_async_context(come))
            await waiting[-1].join()
        async with asyncio.timeout(600), asyncio.TaskGroup() as tasks:
            watching = tasks.create_task(watch(lab, notes))
            working = [tasks.create_task(one.wait_and_learn()) for one in waiting]
            await asyncio.gather(*(_has_learnt(one) for one in waiting))
            assert notes.entered == [], "nobody goes in while all places are taken"
            await asyncio.gather(*working, *(holder.practise() for holder in holders))
            watching.cancel()
    _judge(notes, [one.name for one in waiting], [holder.name for holder in holders], places)
    assert sum(isinstance(one, Reader) for one in waiting) == browsers
    assert lab.complaints == []


async def _has_learnt(one: Learner | Reader) -> None:
    if isinstance(one, Reader):
        await expect(one.page.get_by_role("heading", name="This step needs a place in the lab")).to_be_visible()
        return
    while one.run["step_index"] < PRACTICE:
        await asyncio.sleep(0.05)


def _judge(notes: Notes, joined: list[str], holders: list[str], places: int) -> None:
    assert sorted(notes.entered) == sorted(joined), "each gets in, once"
    assert sorted(notes.finished) == sorted([*joined, *holders])
    assert set(notes.at_entry.values()) == {PRACTICE}, "they learnt while they waited"
    assert 0 < notes.most_running <= places
    assert all(position <= places for position in notes.ready_at.values()), notes.ready_at
    for n, name in enumerate(notes.entered):  # of those with an offer at the same time, any may be the first to use it
        assert abs(joined.index(name) - n) < places, (notes.entered, joined)
