"""Who is deactivated waits in no line and keeps no place, within a look of the pump; who is active again may join."""

import pytest

from codehub.command import operator
from codehub.policy.model import Principal, Role
from codehub.waiting_room.errors import TokenExpiredError
from codehub.waiting_room.events import EventChange
from codehub.web.services import Services
from tests.auth.helpers import add, deactivate, make_token


@pytest.fixture
async def people(services: Services) -> list[Principal]:
    await services.waiting_events.put(operator(), "quiz", EventChange(capacity=1))
    for name in ("mina", "jun"):
        await add(services, name, Role.LEARNER)
    return [await services.credentials.by_token((await make_token(services, name)).secret) for name in ("mina", "jun")]


async def states(services: Services, id_: str) -> list[tuple[str, bool]]:
    async with services.database.connection() as c:
        found = await c.fetch("SELECT state, noted FROM waiting_places WHERE person = $1", id_)
    return [(row["state"], row["noted"]) for row in found]


async def test_a_deactivated_person_cannot_enter_with_the_token_that_they_have(
    services: Services, people: list[Principal]
) -> None:
    mina, _ = people
    ticket = await services.waiting_room.join(mina, "quiz")
    await deactivate(services, "mina")
    with pytest.raises(TokenExpiredError):
        await services.waiting_room.enter(ticket.token)
    assert await states(services, mina.id) == [("none", False)]  # the pump tells Redis


async def test_who_is_active_again_joins_the_line_as_anyone_does(services: Services, people: list[Principal]) -> None:
    mina, jun = people
    await services.waiting_room.join(mina, "quiz")
    await services.waiting_room.join(jun, "quiz")
    await deactivate(services, "mina")
    await services.people.change_user(operator(), "mina", role=None, active=True)
    assert await states(services, mina.id) == []
    assert (await services.waiting_room.join(mina, "quiz")).status
