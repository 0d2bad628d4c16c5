"""A running application, a teacher who writes courses and learners who take them up."""

from collections.abc import AsyncIterator

import pytest

from codehub.command import operator
from codehub.policy.model import Role
from codehub.web.services import Services
from tests.sessions.learning import Learner
from tests.web.server import ADMIN_TOKEN, Site, serving


@pytest.fixture
async def site(services: Services) -> AsyncIterator[Site]:
    await services.people.ensure_first_admin()
    async with serving(services) as started:
        yield started


async def person(site: Site, name: str, role: Role) -> str:
    """Their token."""
    await site.services.people.create_user(operator(), name, role)
    return await site.token(name)


@pytest.fixture
async def kim(site: Site) -> AsyncIterator[Learner]:
    """A teacher."""
    async with site.client(await person(site, "kim", Role.TEACHER)) as client:
        yield Learner(client)


@pytest.fixture
async def mina(site: Site) -> AsyncIterator[Learner]:
    async with site.client(await person(site, "mina", Role.LEARNER)) as client:
        yield Learner(client)


@pytest.fixture
async def jun(site: Site) -> AsyncIterator[Learner]:
    async with site.client(await person(site, "jun", Role.LEARNER)) as client:
        yield Learner(client)


@pytest.fixture
async def admin(site: Site) -> AsyncIterator[Learner]:
    async with site.client(ADMIN_TOKEN) as client:
        yield Learner(client)
