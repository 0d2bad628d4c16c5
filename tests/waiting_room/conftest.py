from collections.abc import AsyncIterator
from typing import Any

import pytest
import redis.asyncio

from codehub.db import Database
from codehub.web.services import Services
from tests.virtual_time import ManualClock
from tests.waiting_room.hall import EXAM, Hall
from tests.waiting_room.lines import Room, check_line
from tests.waiting_room.queue_site import QueueSite
from tests.web.server import serving


@pytest.fixture
def line_client(redis_client: redis.asyncio.Redis) -> redis.asyncio.Redis:
    """Where the line is. `test_line_in_a_cluster` has another one."""
    return redis_client


@pytest.fixture
async def closed_room(line_client: Any, clock: ManualClock) -> AsyncIterator[Room]:
    """An event whose line was never opened. After every test, the sets of its line agree with each other."""
    room = Room(line_client, clock)
    yield room
    await room.line.aclose()
    await check_line(line_client, room.event)


@pytest.fixture
async def room(closed_room: Room) -> Room:
    await closed_room.open()
    return closed_room


@pytest.fixture
async def hall(database: Database, redis_client: redis.asyncio.Redis, clock: ManualClock) -> AsyncIterator[Hall]:
    """A whole waiting room. After every test, the sets of its line agree with each other."""
    made = Hall(database, redis_client, clock)
    yield made
    await made.aclose()
    await check_line(redis_client, EXAM, drawn=True)


@pytest.fixture
async def queue(services: Services, clock: ManualClock) -> AsyncIterator[QueueSite]:
    """Over HTTP, without a coordinator: tests send the pump's ticks."""
    await services.people.ensure_first_admin()
    async with serving(services) as site:
        yield QueueSite.of(site, clock)
