"""A provider that does what it is told, and an application that knows it as `school`."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack

import pytest

from codehub.settings import Settings
from codehub.wiring.api import open_services
from tests.openid import wicked
from tests.openid.visits import with_providers
from tests.openid.wicked import CLIENT_ID, CLIENT_SECRET, Wicked
from tests.virtual_time import ManualClock
from tests.web.server import Site, serving


class Sites:
    """Applications with settings of the test's own."""

    def __init__(self, settings: Settings, clock: ManualClock, provider: Wicked, stack: AsyncExitStack) -> None:
        self.settings = settings
        self._clock = clock
        self._provider = provider
        self._stack = stack

    def school(self, **said: str) -> dict[str, str]:
        return {
            "issuer": self._provider.issuer,
            "client_id": CLIENT_ID,
            "client_secret": CLIENT_SECRET,
            "title": "Hanbit School",
            "create": "true",
            **said,
        }

    async def open(self, **said: str) -> Site:
        """With the provider `school`, which creates people unless told otherwise."""
        return await self.open_with(school=self.school(**said))

    async def open_with(self, **providers: dict[str, str]) -> Site:
        settings = with_providers(self.settings, **providers)
        services = await self._stack.enter_async_context(open_services(settings, self._clock))
        await services.people.ensure_first_admin()
        return await self._stack.enter_async_context(serving(services))


@pytest.fixture
async def provider(clock: ManualClock) -> AsyncIterator[Wicked]:
    async with wicked.running(clock) as started:
        yield started


@pytest.fixture
async def sites(settings: Settings, clock: ManualClock, provider: Wicked) -> AsyncIterator[Sites]:
    async with AsyncExitStack() as stack:
        yield Sites(settings, clock, provider, stack)


@pytest.fixture
async def site(sites: Sites) -> Site:
    return await sites.open()
