"""Who leads. A lease row on the database's clock, renewed every 2 s, taken over 6 s after the last renewal.

Two things keep a former leader from writing. It stops by its own clock before the lease can have run out; and if it
could not notice (stopped, swapped out), every write goes through `Lease.transaction`, which locks the epoch it was
elected with: a higher epoch in the row, and the transaction is refused.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from codehub import logs, metrics
from codehub.clock import Clock
from codehub.coordinator.store import sql
from codehub.db import Connection, Database
from codehub.errors import LeaseLostError, UnavailableError

log = logs.get()
LEASE_NAME = "coordinator"
LEASE_SECONDS = 6.0
RENEW_SECONDS = 2.0
# The leader gives up by its own clock this long before the database would let another one lead.
MARGIN_SECONDS = 1.0
ASK_SECONDS = 1.0  # how often a follower looks
SILENT_SECONDS = 2 * LEASE_SECONDS  # without a word of the database: then this one could not lead

# For the pool of a coordinator. A leader that is stopped in the middle of a fenced transaction holds the lease row; the
# database ends that transaction before the lease runs out, so that the row is free when another one wants to take over.
# (One stopped between the messages of a single statement is not idle to the database: the next leader ends it.)
SESSION_SETTINGS = {"idle_in_transaction_session_timeout": "3s", "lock_timeout": "3s"}


@dataclass(frozen=True)
class Lease:
    """Proof of having been elected, with the number every write is checked against."""

    database: Database
    holder: str
    epoch: int

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[Connection]:
        """A transaction that can only commit while no other coordinator leads."""
        async with self.database.transaction() as connection:
            if await connection.fetchval(sql.fence, LEASE_NAME, self.epoch, self.holder) is None:
                raise LeaseLostError(f"epoch {self.epoch} is over: another coordinator leads")
            yield connection

    async def require(self) -> None:
        """Raises `LeaseLostError` when another coordinator leads."""
        async with self.transaction():
            pass


Work = Callable[[Lease], Awaitable[None]]
Status = Callable[[], dict[str, Any]]


class Leader:
    """Stands for election for ever; while elected, runs the work it was given."""

    def __init__(self, database: Database, clock: Clock, holder: str, work: Work, status: Status) -> None:
        self._database = database
        self._clock = clock
        self._holder = holder
        self._work = work
        self._status = status
        self._answered: float | None = None  # when the database last said how it stands

    def stands(self) -> bool:
        """Does this process take part: has it heard of the lease not long ago?"""
        return self._answered is not None and self._clock.monotonic() - self._answered < SILENT_SECONDS

    async def run(self) -> None:
        while True:
            asked = self._clock.monotonic()
            if (epoch := await self._try_acquire()) is not None:
                await self._lead(Lease(self._database, self._holder, epoch), asked)
            await self._clock.sleep(ASK_SECONDS)

    async def _try_acquire(self) -> int | None:
        try:
            async with self._database.connection() as c:
                if not await c.fetchval(sql.vacant, LEASE_NAME):
                    self._answered = self._clock.monotonic()
                    return None
                if ended := await c.fetchval(sql.end_fenced, LEASE_NAME):
                    log.warning("Ended transactions of a leader that is gone", count=ended)
                epoch: int | None = await c.fetchval(
                    sql.acquire, LEASE_NAME, self._holder, LEASE_SECONDS, self._status()
                )
                self._answered = self._clock.monotonic()
        except UnavailableError as e:
            log.warning("Cannot stand for election", error=e.detail)
            return None
        return epoch

    async def _lead(self, lease: Lease, asked: float) -> None:
        log.info("Leading", epoch=lease.epoch, holder=self._holder)
        metrics.LEADING.set(1)
        work = asyncio.ensure_future(self._work(lease))
        renewal = asyncio.create_task(self._keep_renewing(lease, asked), name="lease-renewal")
        try:
            await asyncio.wait({work, renewal}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            metrics.LEADING.set(0)
            for task in (work, renewal):
                task.cancel()
            results = await asyncio.gather(work, renewal, return_exceptions=True)
            for result in results:
                if isinstance(result, Exception):
                    log.warning("Leadership ended", epoch=lease.epoch, reason=str(result))
            await asyncio.shield(self._release(lease))

    async def _keep_renewing(self, lease: Lease, renewed: float) -> None:
        """Returns only by an exception: when the lease is lost, or could not be renewed in time."""
        while True:
            await self._clock.sleep(RENEW_SECONDS)
            asked = self._clock.monotonic()
            left = renewed + LEASE_SECONDS - MARGIN_SECONDS - asked
            if left <= 0:
                raise LeaseLostError("the lease could not be renewed in time")
            try:
                async with asyncio.timeout(left):
                    if not await self._renew(lease):
                        raise LeaseLostError(f"epoch {lease.epoch} is over: another coordinator leads")
                renewed = asked
            except TimeoutError:
                raise LeaseLostError("the lease could not be renewed in time") from None
            except UnavailableError as e:
                log.warning("Lease not renewed, trying again", error=e.detail)

    async def _renew(self, lease: Lease) -> bool:
        async with self._database.connection() as c:
            renewed = await c.fetchval(sql.renew, LEASE_NAME, lease.holder, lease.epoch, LEASE_SECONDS, self._status())
        self._answered = self._clock.monotonic()
        return bool(renewed)

    async def _release(self, lease: Lease) -> None:
        """Let the next one in without waiting. If it cannot be said, the lease runs out by itself."""
        try:
            async with asyncio.timeout(2), self._database.connection() as c:
                await c.execute(sql.release, LEASE_NAME, lease.holder, lease.epoch)
        except (UnavailableError, TimeoutError):
            log.warning("Could not give the lease back, it will run out")
