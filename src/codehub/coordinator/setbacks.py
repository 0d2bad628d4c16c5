"""One object's failure is that object's: a loop notes it here, goes on with the others and tries it again later.

Used by loops that go through many objects (the controller, the garbage collection, the trash). In the database, so that
the next leader waits as well, and `codehub doctor` can show them.
"""

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from codehub import logs, metrics
from codehub.clock import Clock
from codehub.coordinator.leader import Lease
from codehub.coordinator.store import sql
from codehub.db import Connection, rows
from codehub.errors import CodeHubError
from codehub.retry import back_off

log = logs.get()
FIRST_SECONDS, LONGEST_SECONDS = 1.0, 300.0
JITTER = 0.2
LONGEST_ERROR = 2_000
WORKSPACE = "workspace"  # a kind


@dataclass(frozen=True)
class Setback:
    kind: str
    name: str
    failures: int
    error: str
    since: datetime
    retry_at: datetime


@dataclass
class Setbacks:
    """Of one kind of object. `load` reads them once a tick; the other verbs keep that up to date."""

    lease: Lease
    clock: Clock
    kind: str
    jitter: Callable[[], float] = random.random
    _known: dict[str, tuple[int, datetime]] = field(default_factory=dict)

    async def load(self, c: Connection) -> None:
        found = await c.fetch(sql.setbacks, self.kind)
        self._known = {row["name"]: (row["failures"], row["retry_at"]) for row in found}

    def waiting(self) -> list[str]:
        """Those whose next attempt is not due."""
        now = self.clock.now()
        return [name for name, (_, retry_at) in self._known.items() if retry_at > now]

    def has(self, name: str) -> bool:
        return name in self._known

    async def note(self, name: str, error: Exception) -> None:
        failures = self._known.get(name, (0, None))[0] + 1
        said = logs.redact_text(describe(error))[:LONGEST_ERROR]
        now = self.clock.now()
        pause = back_off(failures, FIRST_SECONDS, LONGEST_SECONDS) * (1 - JITTER * self.jitter())
        retry_at = now + timedelta(seconds=pause)
        metrics.SETBACKS.labels(self.kind).inc()
        log.warning("Set aside, the others go on", kind=self.kind, name=name, failures=failures, error=said)
        async with self.lease.transaction() as c:
            await c.execute(sql.note_setback, self.kind, name, failures, said, now, retry_at)
        self._known[name] = (failures, retry_at)

    async def clear(self, name: str) -> None:
        """It went well. Costs nothing where nothing had gone wrong."""
        if self._known.pop(name, None):
            async with self.lease.transaction() as c:
                await c.execute(sql.clear_setback, self.kind, name)


def describe(error: Exception) -> str:
    return error.detail if isinstance(error, CodeHubError) else f"{type(error).__name__}: {error}"


async def forget(c: Connection, kind: str, name: str) -> None:
    """A person asked for something: the next tick tries it at once, whatever pause it was given."""
    await c.execute(sql.clear_setback, kind, name)


async def listing(c: Connection, limit: int) -> list[Setback]:
    """The oldest first; for `codehub doctor`."""
    return rows(Setback, await c.fetch(sql.all_setbacks, limit))
