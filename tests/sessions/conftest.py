from collections.abc import AsyncIterator

import pytest

from codehub.web.services import Services
from tests.sessions.learning import Learner, learner
from tests.web.server import Site, serving


@pytest.fixture
async def site(services: Services) -> AsyncIterator[Site]:
    await services.people.ensure_first_admin()
    async with serving(services) as started:
        yield started


@pytest.fixture
async def mina(site: Site) -> AsyncIterator[Learner]:
    async with learner(site) as made:
        yield made
