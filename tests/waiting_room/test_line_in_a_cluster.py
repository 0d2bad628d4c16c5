"""The same line in a Redis Cluster: every test of it once more, and a node that dies while people wait."""

import asyncio
from collections.abc import AsyncIterator, Iterator

import pytest
from redis.asyncio.cluster import RedisCluster

from codehub.errors import UnavailableError
from codehub.waiting_room import keys
from codehub.waiting_room.line import Polled
from codehub.waiting_room.model import LOSS, Check, Marked, Standing, Why
from tests.waiting_room import test_line_join, test_line_loss, test_line_offers, test_line_silence, test_line_views
from tests.waiting_room.clusters import Cluster, running_cluster, until
from tests.waiting_room.lines import Room, Waiter

SAME = (test_line_join, test_line_loss, test_line_offers, test_line_silence, test_line_views)
OTHER = {
    "test_a_personal_stream_is_small",  # these servers are not the embedded one
    "test_the_log_is_capped",
}
globals().update(
    {
        name: found
        for module in SAME
        for name, found in vars(module).items()
        if name not in OTHER and name[:5] == "test_"
    }
)
everything_logged = test_line_silence.everything_logged


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with running_cluster() as started:
        yield started


@pytest.fixture
async def line_client(cluster: Cluster) -> AsyncIterator[RedisCluster]:
    async with RedisCluster(host="127.0.0.1", port=cluster.port, socket_timeout=3) as client:
        await client.flushall(target_nodes=RedisCluster.PRIMARIES)
        yield client


async def test_events_are_spread_over_the_nodes_and_each_is_on_one(line_client: RedisCluster, cluster: Cluster) -> None:
    events = [f"event-{n}" for n in range(12)]
    for event in events:
        assert len({cluster.primary_of(key).port for key in keys.of_event(event)}) == 1
    assert len({cluster.primary_of(keys.meta(event)).port for event in events}) == 3


async def polled(room: Room, who: Waiter) -> Polled:
    """As a page that goes on asking while the node is away."""
    while True:
        try:
            return await room.poll(who)
        except UnavailableError:
            await asyncio.sleep(0.05)


async def test_a_node_dies_its_replica_takes_over_and_people_return_at_their_sequence(
    room: Room, cluster: Cluster
) -> None:
    people = await room.join_all("a", "b", "c", "d")
    await room.mark(people[0], 7)
    primary = cluster.primary_of(keys.event(room.event))
    primary.ask("WAIT", 1, 5000)
    primary.kill()
    until(lambda: cluster.primary_of(keys.event(room.event)).port != primary.port)
    assert await polled(room, people[1]) is LOSS, "another server: what it has may be older than what we knew"
    assert await room.open(2, hold=90, window=300)
    await room.line.drop(room.event, people[3].pid, people[3].seq, Why.STALE)  # as if it had been in the last second
    assert isinstance(await polled(room, people[0]), Check), "its mark comes back from PostgreSQL"
    assert await room.mark(people[0], 7, epoch=2) is Marked.OK
    assert await room.put_back(people[3])
    new = await room.join("new")
    assert await room.positions([*people, new]) == [1, 2, 3, 4, 5]
    first = await polled(room, people[0])
    assert isinstance(first, Standing)
    assert first.ready
    await room.pass_time(11, *people, new)
    assert await room.first() == [who.pid for who in (*people[1:], new)]
