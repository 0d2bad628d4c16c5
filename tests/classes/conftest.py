"""A running application with a school's people, each with a client of their own."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack

import pytest

from codehub.command import operator
from codehub.policy.model import Role
from codehub.web.services import Services
from tests.sessions.learning import Learner
from tests.web.server import ADMIN_TOKEN, Site, serving

Enrol = Callable[..., Awaitable[Learner]]


@pytest.fixture
async def site(services: Services) -> AsyncIterator[Site]:
    await services.people.ensure_first_admin()
    async with serving(services) as started:
        yield started


@pytest.fixture
async def person(site: Site) -> AsyncIterator[Enrol]:
    """Makes an account, and says its API's client."""
    async with AsyncExitStack() as stack:

        async def make(name: str, role: Role = Role.LEARNER) -> Learner:
            await site.services.people.create_user(operator(), name, role)
            return Learner(await stack.enter_async_context(site.client(await site.token(name))))

        yield make


@pytest.fixture
async def kim(person: Enrol) -> Learner:
    """A teacher."""
    return await person("kim", Role.TEACHER)


@pytest.fixture
async def lee(person: Enrol) -> Learner:
    """A teacher of another class."""
    return await person("lee", Role.TEACHER)


@pytest.fixture
async def mina(person: Enrol) -> Learner:
    return await person("mina")


@pytest.fixture
async def admin(site: Site) -> AsyncIterator[Learner]:
    async with site.client(ADMIN_TOKEN) as client:
        yield Learner(client)
