"""What the garbage collection and the trash would remove, when and why: for `/storage` and `codehub gc --dry-run`.

Only the coordinator can look: homes are not readable for the API. So an admin asks by a row, a loop of the coordinator
looks and writes down what it found, and pages show that with its age. Nothing is changed by looking.
"""

from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from typing import Any

from codehub.clock import Clock
from codehub.coordinator.driver import Loop, Tick
from codehub.coordinator.leader import Lease
from codehub.db import Database
from codehub.policy import rules as policy
from codehub.policy.actions import Action
from codehub.policy.model import Principal
from codehub.retention.gc import AT_ONCE, Finder
from codehub.retention.store import sql

NAME = "storage-preview"
PERIOD_SECONDS = 30.0
KEPT = 500  # things that are written down one by one; all are counted
TRASH, PURGED = "trash", "purged"


@dataclass(frozen=True)
class Thing:
    kind: str  # `archive`, `volume`, `container`, `workspace`
    name: str
    bytes: int | None  # None: not measured
    goes_at: datetime
    why: str  # a rule's code, or `trash` and `purged` of a workspace

    def as_json(self) -> dict[str, Any]:
        return {**asdict(self), "goes_at": self.goes_at.isoformat()}


@dataclass(frozen=True)
class Preview:
    asked_at: datetime | None
    made_at: datetime | None
    things: list[Thing]
    total: int
    bytes: int

    @property
    def waits(self) -> bool:
        return self.asked_at is not None and (self.made_at is None or self.made_at < self.asked_at)


async def look(finder: Finder, now: datetime) -> list[Thing]:
    """Everything that would go, soonest first."""
    delay, found = timedelta(seconds=finder.config.orphan_seconds), list[Thing]()
    async for batch in finder.find():
        orphans = [finding for finding in batch if finding.verdict.orphan]
        for finding in await finder.since(orphans):
            at = now if finding.kind == "container" else (finding.seen_at or now) + delay
            found.append(Thing(finding.kind, finding.name, finding.bytes or None, at, finding.verdict.rule.value))
    return sorted([*found, *await in_trash(finder, now)], key=lambda thing: thing.goes_at)


async def in_trash(finder: Finder, now: datetime) -> list[Thing]:
    """What lies in the trash, with the time when it goes."""
    kept = timedelta(seconds=finder.config.trash_seconds)
    async with finder.database.connection() as c:
        found = await c.fetch(sql.trash_due, now + timedelta(days=36500), [], AT_ONCE, finder.runtime.node)
        sizes = await c.fetch(sql.sizes_of, [record["id"] for record in found])
    of = {record["id"]: record["disk_bytes"] for record in sizes}
    return [
        Thing("workspace", r["id"], of.get(r["id"]), now, PURGED)
        if r["purge"]
        else Thing("workspace", r["id"], of.get(r["id"]), r["deleted_at"] + kept, TRASH)
        for r in found
    ]


class Previews:
    """What pages ask for."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock

    async def ask(self, caller: Principal) -> None:
        policy.require(caller, Action.STORAGE_PREVIEW)
        async with self._database.transaction() as c:
            await c.execute(sql.ask_preview, self._clock.now())
            await c.execute(sql.wake_coordinator)

    async def get(self, caller: Principal) -> Preview:
        policy.require(caller, Action.STORAGE_PREVIEW)
        async with self._database.connection() as c:
            record = await c.fetchrow(sql.preview)
        if record is None:
            return Preview(None, None, [], 0, 0)
        things = [Thing(**{**item, "goes_at": datetime.fromisoformat(item["goes_at"])}) for item in record["things"]]
        return Preview(record["asked_at"], record["made_at"], things, record["total"], record["bytes"])


class PreviewLoop:
    def __init__(self, lease: Lease, finder: Finder, clock: Clock) -> None:
        self._lease = lease
        self._finder = finder
        self._clock = clock

    def loop(self) -> Loop:
        return Loop(NAME, self.tick, period=PERIOD_SECONDS, timeout=3600.0)

    async def tick(self) -> Tick:
        async with self._lease.database.connection() as c:
            if not await c.fetchval(sql.preview_is_asked):
                return Tick({"found": 0})
        begun = self._clock.now()
        found = await look(self._finder, begun)
        kept = [thing.as_json() for thing in found[:KEPT]]
        async with self._lease.transaction() as c:
            await c.execute(sql.save_preview, begun, kept, len(found), sum(thing.bytes or 0 for thing in found))
        return Tick({"found": len(found)})
