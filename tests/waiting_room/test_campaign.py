"""Thousands of random histories on real servers, each judged. A violation comes with the seed that replays it.

`CODEHUB_TEST_SEED=17 make test ARGS=tests/waiting_room/test_campaign.py` is that history alone; `17,40` are two.
"""

import os
import random
from collections.abc import Awaitable, Callable

import pytest
import redis.asyncio

from codehub.db import Database
from codehub.policy.model import Principal
from tests.waiting_room import recording
from tests.waiting_room.campaign import Campaign
from tests.waiting_room.histories import timeline

SLICE = 8
MANY = 2000


Judge = Callable[[int], Awaitable[list[str]]]
# A pump that is ended between two of its questions leaves those that it had not asked yet.
pytestmark = [
    pytest.mark.filterwarnings("ignore:coroutine 'Offers:RuntimeWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


@pytest.fixture
async def judged(database_url: str, database: Database, redis_client: redis.asyncio.Redis) -> Judge:
    """What the history of a seed breaks."""
    await recording.install(database_url)
    people: dict[str, Principal] = {}

    async def judged(seed: int) -> list[str]:
        campaign = Campaign(database, redis_client, seed, people)
        try:
            history, violations = await campaign.run()
        finally:
            await campaign.clean()
        if violations:
            print("\n".join([f"seed {seed}", *map(str, violations), timeline(history)]))
        return [f"seed {seed}: {violation}" for violation in violations]

    return judged


async def test_random_histories_break_no_promise(judged: Judge) -> None:
    wanted = os.environ.get("CODEHUB_TEST_SEED")
    seeds = list(map(int, wanted.split(","))) if wanted else range(SLICE)
    assert [text for seed in seeds for text in await judged(seed)] == []


@pytest.mark.soak
async def test_thousands_of_random_histories_break_no_promise(judged: Judge) -> None:
    first = random.SystemRandom().randrange(10**9)
    assert [text for seed in range(first, first + MANY) for text in await judged(seed)] == []
