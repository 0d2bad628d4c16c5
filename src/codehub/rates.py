"""How often a person may do something: one bucket per person and kind, in Redis, for all processes together.

Asked at the edge (`http.access`) before any work. A bucket holds a minute's worth, so that a burst is fine and a flood
is not. Without Redis no request is stopped: what is counted in the database is bounded all the same.
"""

from math import ceil

from codehub import logs
from codehub.clock import Clock
from codehub.db.redis import FAILURES, Client, Script
from codehub.errors import RateLimitError

log = logs.get()
MINUTE_MS = 60_000
# What is kept is when the bucket would be full again. No bucket is emptier than empty: what is further away was kept
# before the clock was set back, and counts as nothing.
SPEND = Script("""
local now, each, most = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local kept = tonumber(redis.call('GET', KEYS[1]) or '0')
if kept > now + each * most then kept = now end
local full = math.max(kept, now) + each
local wait = full - each * most - now
if wait > 0 then return wait end
redis.call('SET', KEYS[1], string.format('%.0f', full), 'PX', each * most)
return 0
""")


class Rates:
    def __init__(self, client: Client, clock: Clock) -> None:
        self._clock = clock
        self._client = client

    async def spend(self, kind: str, person: str, per_minute: int | None) -> None:
        """One of what this person may do in a minute; None: no limit."""
        if per_minute is None:
            return
        now, each = int(self._clock.now().timestamp() * 1000), ceil(MINUTE_MS / per_minute)
        try:
            wait = int(await SPEND.run(self._client, [f"codehub:rate:{kind}:{person}"], [now, each, per_minute]))
        except FAILURES as e:
            log.warning("Rates are not counted: Redis does not answer", error=str(e))
            return
        if wait > 0:
            raise RateLimitError(
                f"{per_minute} a minute is the most of this: try again in {ceil(wait / 1000)} s",
                retry_after=ceil(wait / 1000),
            )
