"""Nobody at work is stopped, nobody idle is kept: a day of a few people here, a month of a thousand in `make soak`."""

import pytest
from redis.asyncio import Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff

from codehub.db import Database
from tests.activity.simulation import Simulation

NOWHERE = Redis(port=1, retry=Retry(NoBackoff(), 0))


@pytest.mark.parametrize(
    ("people", "days"), [(20, 0.08), pytest.param(1000, 30, marks=pytest.mark.soak)], ids=["a slice", "a month"]
)
async def test_nobody_at_work_is_stopped_and_nobody_idle_is_kept(
    database: Database, redis_client: Redis, people: int, days: float
) -> None:
    result = await Simulation(database, redis_client, NOWHERE, people, days, seed=20261115).run()
    print(f"\n{people} people for {days} days: {result}")
    assert result.sleeps > people / 4
    assert result.early == []
    if days > 1:  # trouble is as frequent in the slice as in a month: a percentile of it would say nothing
        assert result.over_time(0.999) <= 90
