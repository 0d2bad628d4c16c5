"""A running application per test, with its first admin."""

from collections.abc import AsyncIterator

import aiohttp
import pytest

from codehub.web.services import Services
from tests.web.server import Site, serving


@pytest.fixture
async def site(services: Services) -> AsyncIterator[Site]:
    await services.people.ensure_first_admin()
    async with serving(services) as started:
        yield started


@pytest.fixture
async def admin(site: Site) -> AsyncIterator[aiohttp.ClientSession]:
    async with site.admin() as client:
        yield client


@pytest.fixture
async def nobody(site: Site) -> AsyncIterator[aiohttp.ClientSession]:
    async with site.client() as client:
        yield client
