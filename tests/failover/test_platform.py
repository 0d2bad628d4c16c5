"""`codehub serve` on servers that are several, under load, while each primary is lost: Redis, PostgreSQL; on S3.

Prints how long no poll in line was answered, and no write acknowledged. Nothing acknowledged is lost, no place is given
twice, the IDE is the very same process all the time, and its home comes back from S3 as it was.
"""

import asyncio
import time

import pytest

from codehub.db import migrate
from codehub.runtimes.layout import Layout
from tests.archives import s3, trees
from tests.failover.conftest import Several
from tests.failover.load import Load
from tests.failover.standby import Pair, running_pair
from tests.faults.test_killed_platform import everybody
from tests.places import a_place
from tests.platform import Platform, running
from tests.workspaces.ides import write_templates
from tests.workspaces.test_lifecycle import api, create, first_pid, until, want

CAPACITY = 20
pytestmark = pytest.mark.soak
PLACES = "SELECT count(*) FROM waiting_places WHERE event_id = 'exam' AND state IN ('reserved', 'held')"


@pytest.mark.parametrize("several", ["sentinel", "cluster"], indirect=True)
async def test_each_primary_is_lost_under_load(several: Several, s3_server: s3.S3Server) -> None:
    with a_place() as folder:
        async with running_pair() as pair:
            await migrate.migrate(pair.url)
            environment = {
                "CODEHUB_DATABASE_URL": pair.url,
                "CODEHUB_REDIS_URL": several.url,
                "CODEHUB_ARCHIVE_URL": f"s3://{s3.BUCKET}/{folder.name}",
                "CODEHUB_SECRET_KEY": "a-secret-key-of-these-tests",
                "CODEHUB_TEMPLATES_DIR": str(write_templates(folder / "templates")),
                "COORDINATOR_IDLE_INTERVAL": "1",
                "COORDINATOR_ACTIVE_INTERVAL": "0.2",
                **s3_server.environment(),
            }
            with running(folder / "data", **environment) as platform:
                await _campaign(platform, pair, several)


async def _campaign(platform: Platform, pair: Pair, several: Several) -> None:
    async with platform.client() as client:
        await api(client, "PUT", "/api/v1/queue/events/exam", capacity=CAPACITY)
        id_ = await create(client)
        await until(client, id_, "RUNNING")
        home = Layout(platform.data_dir).of(id_).home
        (home / "noise").write_bytes(bytes(range(256)) * 40_000)
        picture, process = trees.without_owner(home), first_pid(platform, id_)
    load = Load(platform, "exam")
    async with load.running():
        while len(load.created) < 20 or not load.admitted:
            await asyncio.sleep(0.1)
        begun = time.monotonic()
        await asyncio.to_thread(several.lose, "{exam}")
        redis = await load.longest_gap(load.polled, begun)
        begun = time.monotonic()
        await pair.fail_over()
        postgres = await load.longest_gap(load.acknowledged, begun)
        while len(load.admitted) < CAPACITY:
            await asyncio.sleep(0.2)
        await asyncio.sleep(3)  # the others go on asking
    print(f"\nRedis's primary lost: no poll for {redis:.1f} s; PostgreSQL's: no write for {postgres:.1f} s")
    assert first_pid(platform, id_) == process
    assert set(load.created) - await everybody(platform) == set()
    assert len(set(load.admitted)) == len(load.admitted) == CAPACITY
    assert await pair.second.ask(PLACES) == CAPACITY
    async with platform.client() as client:
        await want(client, id_, "ARCHIVED")
        assert not home.exists()
        await want(client, id_, "STANDBY")
    assert trees.without_owner(home) == picture
    assert (await platform.wait_for("/readyz", 200, 60))["ready"]
