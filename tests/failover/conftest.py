from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass

import pytest

from codehub.db.redis import Client, open_redis, place
from tests.failover.sentinels import Watched, running_sentinels
from tests.waiting_room.clusters import Cluster, Node, running_cluster, until


@dataclass
class Several:
    """Redis as several servers, of which the one that has a key can be lost."""

    url: str
    servers: Watched | Cluster

    def primary_of(self, key: str) -> Node:
        return self.servers.primary_of(key) if isinstance(self.servers, Cluster) else self.servers.primary()

    def lose(self, key: str) -> None:
        """Returns when another one has taken over, as far as the servers know."""
        dead = self.primary_of(key)
        dead.kill()
        until(lambda: self.primary_of(key) is not dead)


@pytest.fixture(params=["sentinel", "cluster"])
def several(request: pytest.FixtureRequest) -> Iterator[Several]:
    if request.param == "sentinel":
        with running_sentinels() as watched:
            yield Several(watched.url, watched)
    else:
        with running_cluster() as cluster:
            yield Several(f"redis+cluster://127.0.0.1:1,127.0.0.1:{cluster.port}", cluster)


@pytest.fixture
async def redis_client(several: Several) -> AsyncIterator[Client]:
    """In the place of the embedded one: fixtures of other tests stand on it."""
    client = open_redis(several.url)
    yield client
    await client.aclose()


@pytest.fixture
def activity(redis_client: Client) -> str:
    """What the names of activity's keys begin with."""
    return place(redis_client, "activity")
