"""How often a wrong code may be tried: wrong ones slow down their network, and all networks together.

Asked by `joining`. Only wrong codes are counted: a class that joins at once from one address waits for nothing. The
answer to a wrong code is held until its network may try again, so that the next, right one finds the way free. Codes of
one network are looked up one after the other: a thousand at once are no way around. Those that come while others are
held wait for a few seconds, and then are sent away (429).
"""

import asyncio
import contextlib
from collections import Counter
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from math import ceil

from codehub import logs
from codehub.auth import password_rules
from codehub.clock import Clock
from codehub.db.redis import FAILURES, Client, Script, place
from codehub.errors import TooManyTriesError

log = logs.get()


@dataclass(frozen=True)
class Bucket:
    most: int  # wrong codes at once
    each_ms: int  # until there is one more


NETWORK = Bucket(20, 3_000)  # a class behind one address, of which half mistypes
ALL = Bucket(300, 1_000)  # 86,400 a day: with twenty good codes, one of the day's guesses is right every 27 days
LONGEST_HOLD = 5.0  # seconds
MOST_HELD = 100  # requests in a process
# Of one network: strangers behind one address have a few requests at a time at the API (`proxy`), and whoever logs in
# there must not wait for those who guess.
MOST_HELD_OF_A_NETWORK = 3
# What is kept is when a bucket would be full again. Says how long each is overdrawn.
OVERDRAWN = Script("""
local now, wait = tonumber(ARGV[1]), 0
for i, key in ipairs(KEYS) do
  local each, most = tonumber(ARGV[3 * i - 1]), tonumber(ARGV[3 * i])
  local full = math.max(tonumber(redis.call('GET', key) or '0'), now) + tonumber(ARGV[3 * i + 1])
  if full > now then redis.call('SET', key, string.format('%.0f', full), 'PX', math.ceil(full - now)) end
  wait = math.max(wait, full - each * most - now)
end
return math.ceil(wait)
""")


@dataclass
class Attempt:
    is_wrong: bool = False  # said by whoever looked the code up


@dataclass
class Turn:
    """Of one network's codes."""

    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    wanted: int = 0  # by how many


class CodeTries:
    def __init__(self, client: Client, clock: Clock) -> None:
        self._clock = clock
        self._client = client
        self._place = place(client, "codes")  # the script uses both keys
        self._turns: dict[str, Turn] = {}
        self._held: Counter[str] = Counter()  # by network

    @contextlib.asynccontextmanager
    async def one(self, address: str | None) -> AsyncIterator["Attempt"]:
        """A code is looked up inside of this, alone among those of its network. To leave it takes, of a wrong one,
        as long as its network has to wait.

        A wrong one is counted before the next of its network is looked up: of many that come at once, no more than
        may be wrong are looked at, so that they do not close their network, and all others, for an hour.
        """
        network, attempt = password_rules.network_of(address), Attempt()
        async with self._turn(network):
            yield attempt
            wait = await self._ask(network, wrong=True) if attempt.is_wrong else 0.0
        if wait > LONGEST_HOLD:
            log.warning("Wrong codes of invitations: slowed down", network=network)
            raise _too_many(wait)
        if wait > 0:
            await self._hold(network, wait)

    @contextlib.asynccontextmanager
    async def _turn(self, network: str) -> AsyncIterator[None]:
        turn = self._turns.setdefault(network, Turn())
        turn.wanted += 1
        try:
            for _ in range(2):  # those before us may have been wrong meanwhile: then we wait for them, once
                await self._wait(network)
                async with turn.lock:
                    if (wait := await self._due(network)) <= 0:
                        yield
                        return
            raise _too_many(wait)
        finally:
            turn.wanted -= 1
            if not turn.wanted:
                del self._turns[network]

    async def _wait(self, network: str) -> None:
        """For those of this network that are held."""
        wait = await self._due(network)
        if wait > LONGEST_HOLD:
            raise _too_many(wait)
        if wait > 0:
            await self._hold(network, wait)
            wait = await self._due(network)
            if wait > 0:
                raise _too_many(wait)

    async def _due(self, network: str) -> float:
        """In how many seconds the next code of this network may be looked up. Also without Redis, which counts them: no
        more are looked up than can be held.
        """
        wait = await self._ask(network, wrong=False)
        return max(wait, NETWORK.each_ms / 1000) if self._is_full(network) else wait

    def _is_full(self, network: str) -> bool:
        return self._held[network] >= MOST_HELD_OF_A_NETWORK or self._held.total() >= MOST_HELD

    async def _hold(self, network: str, seconds: float) -> None:
        if self._is_full(network):
            raise _too_many(seconds)
        self._held[network] += 1
        try:
            await self._clock.sleep(seconds)
        finally:
            self._held -= Counter((network,))  # which leaves nothing of those that are at none

    async def _ask(self, network: str, *, wrong: bool) -> float:
        """For how many seconds more are tried than may be."""
        args = [n for b in (NETWORK, ALL) for n in (b.each_ms, b.most, b.each_ms if wrong else 0)]
        now = int(self._clock.now().timestamp() * 1000)
        keys = [f"{self._place}codehub:codes:{of}" for of in (network, "all")]
        try:
            return int(await OVERDRAWN.run(self._client, keys, [now, *args])) / 1000
        except FAILURES as e:
            log.warning("Wrong codes are not counted, and each is held: Redis does not answer", error=str(e))
            return NETWORK.each_ms / 1000 if wrong else 0.0


def _too_many(wait: float) -> TooManyTriesError:
    seconds = ceil(wait)
    return TooManyTriesError(f"too many wrong codes: try again in {seconds} s", retry_after=seconds)
