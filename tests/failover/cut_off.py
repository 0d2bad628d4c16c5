"""Run in a network namespace of its own: the machine of PostgreSQL's primary is cut off, not a word comes from it now.

Prints the seconds until a write is acknowledged by the promoted standby, and until news are listened for again.
"""

import asyncio
import subprocess
import time

from codehub.clock import SystemClock
from codehub.db import Database, Listener
from codehub.errors import UnavailableError
from tests.failover.standby import Pair, running_pair

CUT = """
table inet cut {{
 chain input {{
  type filter hook input priority 0
  tcp dport {port} drop
  tcp sport {port} drop
 }}
}}
"""


async def note(database: Database, number: int) -> None:
    async with database.transaction() as c:
        await c.execute("INSERT INTO notes VALUES ($1)", number)


async def lose(pair: Pair) -> None:
    database, listener, heard = (
        await Database.open(pair.url, size=4),
        Listener(pair.url, SystemClock()),
        asyncio.Event(),
    )
    listener.subscribe("news", heard.set)
    listener.start()
    await listener.connected()
    await asyncio.gather(*(note(database, number) for number in range(8)))
    heard.clear()
    begun = time.monotonic()
    subprocess.run(["nft", "-f", "-"], input=CUT.format(port=pair.first.port), text=True, check=True)
    under_way = [asyncio.create_task(note(database, number)) for number in range(100, 103)]
    await pair.second.ask("SELECT pg_promote(true, 60)")
    number = 200
    while True:
        try:
            await note(database, number)
            break
        except UnavailableError:
            number += 1
            await asyncio.sleep(0.05)
    written = time.monotonic() - begun
    await asyncio.gather(*under_way, return_exceptions=True)
    await heard.wait()
    print(f"written {written:.1f} s, listening {time.monotonic() - begun:.1f} s")
    kept = {row["id"] for row in await _rows(database)}
    assert kept >= {*range(8), number}
    await listener.stop()
    await database.close()


async def _rows(database: Database) -> list[dict[str, int]]:
    async with database.connection() as c:
        return [dict(row) for row in await c.fetch("SELECT id FROM notes")]


async def main() -> None:
    async with running_pair() as pair:
        await pair.first.ask("CREATE TABLE notes (id int PRIMARY KEY)")
        await lose(pair)


if __name__ == "__main__":
    asyncio.run(main())
