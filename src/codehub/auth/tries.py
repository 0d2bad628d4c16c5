"""How often a password may be tried: wrong tries slow down that person from that network, and nobody elsewhere.

Asked by `passwords` before any work. A try is counted before it is known to be wrong, so that a thousand at once are no
way around; a right one is given back. Names are not stored but as hashes: people type passwords into the wrong field.

Three buckets, in Redis, for all processes together: a person's tries from one network, quick and over the day, and all
of a network, for those who try one password at many names. Without Redis each process counts for itself.
"""

import hashlib
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil

from codehub import logs
from codehub.auth import password_rules
from codehub.clock import Clock
from codehub.db.redis import FAILURES, Client, Script, place
from codehub.errors import TooManyTriesError

log = logs.get()


@dataclass(frozen=True)
class Bucket:
    kind: str
    most: int  # at once
    each_ms: int  # until there is one more


QUICK = Bucket("quick", 10, 60_000)
DAY = Bucket("day", 100, 864_000)  # about a hundred a day, once the first hundred are used
NETWORK = Bucket("network", 300, 2_000)  # a school behind one address, of which every tenth mistypes
KEPT_AT_MOST = 20_000  # buckets in memory, without Redis; the ones used longest ago are forgotten

# What is kept is when a bucket would be full again. One is taken from all of them or from none.
TAKE = Script("""
local now, wait = tonumber(ARGV[1]), 0
for i, key in ipairs(KEYS) do
  local each, most = tonumber(ARGV[2 * i]), tonumber(ARGV[2 * i + 1])
  local full = math.max(tonumber(redis.call('GET', key) or '0'), now) + each
  wait = math.max(wait, full - each * most - now)
end
if wait > 0 then return wait end
for i, key in ipairs(KEYS) do
  local each = tonumber(ARGV[2 * i])
  local full = math.max(tonumber(redis.call('GET', key) or '0'), now) + each
  redis.call('SET', key, string.format('%.0f', full), 'PX', full - now)
end
return 0
""")
GIVE_BACK = Script("""
for i, key in ipairs(KEYS) do
  local full = tonumber(redis.call('GET', key) or '0') - tonumber(ARGV[i + 1])
  if full > tonumber(ARGV[1]) then
    redis.call('SET', key, string.format('%.0f', full), 'PX', math.ceil(full - tonumber(ARGV[1])))
  else
    redis.call('DEL', key)
  end
end
""")


@dataclass(frozen=True)
class Try:
    """One that was begun, with its buckets."""

    keys: Sequence[str]
    network: str


class Tries:
    def __init__(self, client: Client, clock: Clock, key: str) -> None:
        self._redis = client
        self._clock = clock
        self._key = hashlib.sha256(f"tries:{key}".encode()).digest()
        self._place = place(client, "tries")  # a script uses several of the keys
        self._here = LocalBuckets()

    async def begin(self, name: str, address: str | None) -> Try:
        """Counted as wrong until it is said to be right."""
        network = password_rules.network_of(address)
        who = hashlib.blake2b(f"{name}\n{network}".encode("utf-8", "replace"), digest_size=16, key=self._key)
        whose = (QUICK, who.hexdigest()), (DAY, who.hexdigest()), (NETWORK, network)
        keys = [f"{self._place}codehub:tries:{bucket.kind}:{of}" for bucket, of in whose]
        if wait := await self._taken(keys):
            seconds = ceil(wait / 1000)
            detail = f"too many wrong tries from your network: try again in {seconds} s"
            raise TooManyTriesError(detail, retry_after=seconds)
        return Try(keys, network)

    async def _taken(self, keys: Sequence[str]) -> int:
        """How many milliseconds to wait; 0: it was taken."""
        args = [n for bucket in (QUICK, DAY, NETWORK) for n in (bucket.each_ms, bucket.most)]
        try:
            return int(await TAKE.run(self._redis, keys, [self._now(), *args]))
        except FAILURES as e:
            log.warning("Tries are counted in this process alone: Redis does not answer", error=str(e))
            return self._here.take(dict(zip(keys, (QUICK, DAY, NETWORK), strict=True)), self._now())

    async def was_right(self, begun: Try) -> None:
        """Its person is here: what was wrong before is forgotten for this network, this one for all of it."""
        await self._forget(begun, QUICK.each_ms * QUICK.most, DAY.each_ms * DAY.most)

    async def was_none(self, begun: Try) -> None:
        """Nothing was compared after all."""
        await self._forget(begun, QUICK.each_ms, DAY.each_ms)

    async def _forget(self, begun: Try, quick: int, day: int) -> None:
        given = (quick, day, NETWORK.each_ms)
        self._here.give_back(dict(zip(begun.keys, given, strict=True)), self._now())
        try:
            await GIVE_BACK.run(self._redis, begun.keys, [self._now(), *given])
        except FAILURES as e:
            log.warning("A right try stays counted: Redis does not answer", error=str(e))

    def _now(self) -> int:
        return int(self._clock.now().timestamp() * 1000)


class LocalBuckets:
    """The same, in the memory of one process; no more than so many."""

    def __init__(self, most: int = KEPT_AT_MOST) -> None:
        self._most = most
        self._full_at: OrderedDict[str, int] = OrderedDict()

    def take(self, buckets: dict[str, Bucket], now: int) -> int:
        full = {key: max(self._full_at.get(key, 0), now) + bucket.each_ms for key, bucket in buckets.items()}
        wait = max(full[key] - bucket.each_ms * bucket.most - now for key, bucket in buckets.items())
        if wait > 0:
            return wait
        for key, at in full.items():
            self._full_at[key] = at
            self._full_at.move_to_end(key)
        while len(self._full_at) > self._most:
            self._full_at.popitem(last=False)
        return 0

    def give_back(self, given: dict[str, int], now: int) -> None:
        for key, ms in given.items():
            if key in self._full_at:
                self._full_at[key] -= ms
                if self._full_at[key] <= now:
                    del self._full_at[key]

    def __len__(self) -> int:
        return len(self._full_at)
