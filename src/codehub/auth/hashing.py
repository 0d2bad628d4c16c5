"""Passwords become argon2id hashes here, and are compared with them, in a pool of their own.

Used by `passwords` alone. A hash is made to cost time and memory, so that a stolen table is of little use; that cost
must not become a way to stop the platform. So two are worked on at a time, in threads (the library leaves the
interpreter to others meanwhile), the rest waits. Networks take turns: one that sends many waits for itself. What waits
is bounded, for a network and in all; beyond that the answer is to come again.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError

from codehub.errors import BusyError

Result = TypeVar("Result")
AT_ONCE = 2
# 19 MiB and two passes, in one thread: a fraction of a tenth of a second, and what OWASP asks for at least. Raised
# later, every person's hash is replaced when they next log in.
HASHER = PasswordHasher(time_cost=2, memory_cost=19_456, parallelism=1)
MOST_OF_A_NETWORK = 200  # some classes that log in at the same minute, all behind one address
MOST_IN_ALL = 1000
RETRY_SECONDS = 5
# Of no password: compared with where there is none, so that it takes as long as where there is one.
NOBODYS = HASHER.hash("")


class Hashing:
    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(AT_ONCE, thread_name_prefix="passwords")
        self._turns = Turns(AT_ONCE, MOST_OF_A_NETWORK, MOST_IN_ALL)

    async def hash(self, password: str, network: str) -> str:
        return await self._run(network, lambda: HASHER.hash(_bytes(password)))

    async def matches(self, hashed: str | None, password: str, network: str) -> bool:
        """None: there is nothing to compare with, which takes as long."""
        return await self._run(network, lambda: _matches(hashed or NOBODYS, password)) and hashed is not None

    @staticmethod
    def is_outdated(hashed: str) -> bool:
        return HASHER.check_needs_rehash(hashed)

    async def _run(self, network: str, work: Callable[[], Result]) -> Result:
        await self._turns.take(network)
        running = asyncio.get_running_loop().run_in_executor(self._threads, work)
        # A client that leaves does not stop the thread: its turn ends when the thread is done.
        running.add_done_callback(lambda _: self._turns.give_back())
        return await asyncio.shield(running)


def _bytes(password: str) -> bytes:
    """JSON can have halves of surrogate pairs, which are wrong and no mistake of ours."""
    return password.encode("utf-8", "surrogatepass")


def _matches(hashed: str, password: str) -> bool:
    try:
        return HASHER.verify(hashed, _bytes(password))
    except (VerificationError, InvalidHashError):
        return False


class Turns:
    """So many at a time; of those who wait, each network's first in turn."""

    def __init__(self, at_once: int, most_of_one: int, most_in_all: int) -> None:
        self._free = at_once
        self._most_of_one = most_of_one
        self._most_in_all = most_in_all
        self._waiting: dict[str, deque[asyncio.Future[None]]] = {}  # in the order in which networks have their turns
        self._count = 0

    async def take(self, network: str) -> None:
        if self._free and not self._waiting:
            self._free -= 1
            return
        line = self._waiting.get(network, deque())
        if len(line) >= self._most_of_one or self._count >= self._most_in_all:
            raise BusyError("too many people log in right now: try again in a moment", retry_after=RETRY_SECONDS)
        mine = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(network, line).append(mine)
        self._count += 1
        try:
            await mine
        except asyncio.CancelledError:
            if mine.done() and not mine.cancelled():
                self.give_back()  # it was given while its client left
            else:
                self._leave(network, mine)
            raise

    def give_back(self) -> None:
        self._free += 1
        while self._free and self._waiting:
            network = next(iter(self._waiting))
            line = self._waiting.pop(network)
            first = line.popleft()
            self._count -= 1
            if line:
                self._waiting[network] = line  # behind the others
            self._free -= 1
            first.set_result(None)

    def _leave(self, network: str, mine: asyncio.Future[None]) -> None:
        line = self._waiting[network]
        line.remove(mine)
        self._count -= 1
        if not line:
            del self._waiting[network]
