"""A session started with a place from the waiting room: the run holds it, and its end gives it to the next one."""

import pytest

from codehub.command import operator
from codehub.policy.model import ALL_SCOPES, Principal, Role
from codehub.sessions import service as sessions
from codehub.waiting_room import store
from codehub.waiting_room.ending import Endings
from codehub.waiting_room.events import EventChange
from codehub.waiting_room.model import LAB, Place, State
from codehub.waiting_room.pump import Pump
from tests.sessions.learning import LEARN, Learner
from tests.virtual_time import ManualClock
from tests.web.server import Site

EXAM = "exam"


@pytest.fixture
async def pump(site: Site, clock: ManualClock) -> Pump:
    services = site.services
    await services.people.create_user(operator(), "kim", Role.TEACHER)
    kim = Principal("kim", Role.TEACHER, ALL_SCOPES)
    await services.waiting_events.put(kim, EXAM, EventChange(capacity=1))
    ends = Endings(services.database, clock, sessions.running)
    settings, line = services.settings, services.waiting_streams._line
    return Pump(services.database, clock, settings.queue, settings.limits, line, ends)


async def entered(site: Site, pump: Pump, event: str = EXAM, name: str = "mina") -> str:
    async with site.services.database.connection() as c:
        id_ = await c.fetchval("SELECT id FROM users WHERE name = $1", name)
    person = Principal(name, Role.LEARNER, ALL_SCOPES, id=id_)
    ticket = await site.services.waiting_room.join(person, event)
    await pump.tick()
    return (await site.services.waiting_room.enter(ticket.token)).reservation_token


async def places(site: Site) -> list[Place]:
    async with site.services.database.connection() as c:
        return await store.query_places(c, "SELECT * FROM waiting_places WHERE state <> 'none'")


async def test_a_run_holds_the_place_it_was_started_with_until_it_ends(
    site: Site, mina: Learner, pump: Pump, clock: ManualClock
) -> None:
    session = await mina.session(LEARN)
    token = await entered(site, pump)
    status, run = await mina.start(session, reservation_token=token)
    assert status == 201
    for _ in range(3):
        await clock.advance(3000)  # longer than the lease, which is renewed while the run goes on
        await pump.tick()
        assert [(place.state, place.run_id) for place in await places(site)] == [(State.HELD, run["id"])]
    status, again = await mina.start(session, reservation_token=token)
    assert (status, again["id"]) == (200, run["id"])
    await mina.abandon(again)
    await pump.tick()
    assert await places(site) == []


async def test_a_place_that_is_over_starts_nothing(site: Site, mina: Learner, pump: Pump, clock: ManualClock) -> None:
    session = await mina.session(LEARN)
    token = await entered(site, pump)
    await clock.advance(301)
    for wrong in (token, "x", ""):
        status, refused = await mina.start(session, reservation_token=wrong)
        assert (status, refused["code"]) == (409, "RESERVATION_EXPIRED")
    assert (await mina.get(f"/sessions/{session}"))["status"] == "SCHEDULED"


async def test_a_place_in_lab_is_kept_for_the_workspace(site: Site, mina: Learner, pump: Pump) -> None:
    token = await entered(site, pump, LAB)
    status, _ = await mina.start(await mina.session(LEARN), reservation_token=token)
    assert status == 201
    assert [(place.event_id, place.state) for place in await places(site)] == [(LAB, State.RESERVED)]
