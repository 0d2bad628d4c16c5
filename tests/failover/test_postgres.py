"""PostgreSQL of two hosts in one URL, when the first is lost, becomes read-only or says nothing at all."""

import asyncio
import pathlib
import socket
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest

from codehub.clock import SystemClock
from codehub.db import Database, Listener, migrate
from codehub.db.connecting import connect
from codehub.errors import StartError, UnavailableError
from tests.failover.standby import Pair, running_pair

CHANNEL = "news"
ROOT = pathlib.Path(__file__).parents[2]


@pytest.fixture
async def pair() -> AsyncIterator[Pair]:
    async with running_pair() as made:
        await made.first.ask("CREATE TABLE notes (id int PRIMARY KEY)")
        yield made


async def when_back(act: Callable[[], Awaitable[object]]) -> float:
    """Seconds until it works, tried again and again, as requests are."""
    begun = time.monotonic()
    while True:
        try:
            await act()
        except UnavailableError:
            await asyncio.sleep(0.05)
        else:
            return time.monotonic() - begun


async def note(database: Database, number: int) -> None:
    async with database.transaction() as c:
        await c.execute("INSERT INTO notes VALUES ($1) ON CONFLICT DO NOTHING", number)


async def test_the_pool_and_the_listener_find_the_promoted_standby_and_nothing_acknowledged_is_lost(pair: Pair) -> None:
    database, listener, heard = (
        await Database.open(pair.url, size=4),
        Listener(pair.url, SystemClock()),
        asyncio.Event(),
    )
    listener.subscribe(CHANNEL, heard.set)
    listener.start()
    await listener.connected()
    acknowledged = []
    for number in range(50):
        await note(database, number)
        acknowledged.append(number)
    heard.clear()
    await pair.fail_over()
    await when_back(lambda: note(database, 50))
    await asyncio.wait_for(heard.wait(), 60)  # it listens again, and subscribers read anew
    heard.clear()
    async with database.connection() as c:
        await c.execute(f"NOTIFY {CHANNEL}")
        found = {row["id"] for row in await c.fetch("SELECT id FROM notes")}
    await asyncio.wait_for(heard.wait(), 60)
    assert found == {*acknowledged, 50}
    await listener.stop()
    await database.close()


async def test_a_primary_that_only_reads_from_now_on_is_left_for_another(pair: Pair) -> None:
    """What a switch-over does where the connections stay: their next write is refused, and says that it is away."""
    database = await Database.open(pair.url, size=2)
    await note(database, 1)
    for change in ("ALTER SYSTEM SET default_transaction_read_only = on", "SELECT pg_reload_conf()"):
        await pair.first.ask(change, "postgres")
    with pytest.raises(UnavailableError):
        while True:  # it reads its settings in a moment
            await note(database, 2)
    await pair.second.ask("SELECT pg_promote(true, 60)")
    await when_back(lambda: note(database, 3))
    assert await pair.second.ask("SELECT max(id) FROM notes") == 3
    await database.close()


async def test_a_host_that_says_nothing_costs_the_next_one_no_time_and_a_standby_alone_is_refused(pair: Pair) -> None:
    with socket.create_server(("127.0.0.1", 0)) as mute:
        hosts = f"127.0.0.1:{mute.getsockname()[1]},127.0.0.1:{pair.second.port},127.0.0.1:{pair.first.port}"
        url = f"{pair.first.url().partition('@')[0]}@{hosts}/codehub"
        connection = await connect(url, timeout=30)
        assert await connection.fetchval("SELECT inet_server_port()") == pair.first.port
        await connection.close()
    with pytest.raises(StartError, match="cannot use the database"):
        await Database.open(pair.second.url())
    with pytest.raises(StartError, match="cannot migrate"):
        await migrate.migrate(pair.second.url())


@pytest.mark.soak
def test_a_primary_that_is_cut_off_is_noticed_without_a_word_of_it() -> None:
    """As root, with nftables: in a network namespace of its own."""
    command = ["unshare", "-n", "sh", "-c", 'ip link set lo up && exec "$0" -m tests.failover.cut_off', sys.executable]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300, check=False)
    assert result.returncode == 0, result.stderr
    print(f"\n{result.stdout.strip()}")
