"""`codehub doctor` on servers that are several: who is primary, what stands behind it, what a failover would cost."""

import dataclasses
import os

from codehub import settings
from codehub.db import migrate
from codehub.doctor import redis, servers
from codehub.doctor.model import Level
from tests.failover.conftest import Several
from tests.failover.sentinels import PASSWORD, SENTINEL_PASSWORD, Watched
from tests.failover.standby import running_pair, wait_for
from tests.waiting_room.clusters import until


async def test_it_sees_who_is_primary_and_a_replica_that_is_gone(several: Several) -> None:
    found = await redis.check(several.url)
    watched = isinstance(several.servers, Watched)
    primary = several.primary_of("x")
    assert f"127.0.0.1:{primary.port}" in found.detail
    assert ("3 Sentinel(s), quorum 2" if watched else "cluster of 6 nodes") in found.detail
    assert "no replica" not in found.detail
    # What Sentinels watch here writes its log, the cluster's nodes do not.
    assert found.level is (Level.OK if watched else Level.WARN)
    assert watched or "appendonly is off" in found.detail
    several.lose("x")
    until(lambda: several.primary_of("x").client.info("replication")["connected_slaves"] == 0)
    while (found := await redis.check(several.url)).level is Level.FAIL:
        assert "no server answers" in found.detail  # until all Sentinels know of the other one
    assert found.level is Level.WARN
    assert "no replica is connected" in found.detail
    assert PASSWORD not in found.detail
    assert SENTINEL_PASSWORD not in found.detail


async def test_it_sees_whether_a_standby_would_have_everything() -> None:
    async with running_pair() as pair:
        await migrate.migrate(pair.url)
        config = settings.load({**os.environ, "CODEHUB_DATABASE_URL": pair.url})
        config = dataclasses.replace(config, storage=dataclasses.replace(config.storage, database_url=pair.url))
        found = await servers.database(config)
        assert found.level is Level.OK, found.detail
        assert f"primary 127.0.0.1:{pair.first.port}, 1 standby(s), 1 of them synchronous" in found.detail
        await pair.first.ask("ALTER SYSTEM RESET synchronous_standby_names", "postgres")
        await pair.first.ask("SELECT pg_reload_conf()", "postgres")
        await wait_for(pair.first, "SELECT sync_state FROM pg_stat_replication", "async")
        found = await servers.database(config)
        assert (found.level, "may lose what was acknowledged" in found.detail) == (Level.WARN, True)
        pair.second.kill()
        await wait_for(pair.first, "SELECT count(*) FROM pg_stat_replication", 0)
        assert "nothing would take over" in (await servers.database(config)).detail
