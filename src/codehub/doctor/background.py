"""What the coordinator could not do lately and has set aside, each with why. Reads the database where it answers."""

import asyncio

import asyncpg

from codehub.coordinator import setbacks
from codehub.db.connecting import connect
from codehub.doctor import reasons, servers
from codehub.doctor.model import Finding, ok, warn
from codehub.settings import Settings

NAME = "background work"
SHOWN = 5
MOST = 1_000


async def check(settings: Settings) -> Finding:
    url = await servers.database_to_ask(settings)
    if url is None:
        return ok(NAME, "not running now")
    try:
        async with asyncio.timeout(reasons.ANSWER_SECONDS):
            connection = await connect(url, timeout=reasons.ANSWER_SECONDS)
            try:
                found = await setbacks.listing(connection, MOST)
            finally:
                connection.terminate()
    except (OSError, TimeoutError, ValueError, asyncpg.PostgresError, asyncpg.InterfaceError):
        return ok(NAME, "cannot be seen without the database")
    if not found:
        return ok(NAME, "nothing is set aside")
    shown = "; ".join(
        f"{s.kind} {s.name}: {s.error} ({s.failures} times since {s.since:%Y-%m-%d %H:%M})" for s in found[:SHOWN]
    )
    more = f"; and {len(found) - SHOWN} more" if len(found) > SHOWN else ""
    advice = "Each is tried again by itself, at most every five minutes; the others go on meanwhile. Remove its cause."
    return warn(NAME, f"{len(found)} set aside: {shown}{more}", advice)
