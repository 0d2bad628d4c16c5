"""Writing events, reading them back, removing the old. Capabilities write; `follower` and `hub` read.

A row gets its position when its transaction commits (migration 0007): positions become visible in their order, so that
reading on from a position misses nothing, however transactions overlap.
"""

from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

from codehub.db import Connection, Queries, Row
from codehub.events.model import Event, Stored

sql = Queries("codehub.events")
AT_ONCE = 1_000  # events that are read by one statement
MISSED_AT_MOST = 1_000  # events that one client gets, or that are read for it, when it resumes


@dataclass(frozen=True)
class Batch:
    events: Sequence[Stored]
    lost: bool  # something after the position asked for was removed already
    more: bool  # than these were there when they were read


async def write(c: Connection, now: datetime, events: Sequence[Event]) -> None:
    """In the transaction of the change; readers are woken by its commit, once."""
    if events:
        await c.execute(sql.write, now, [asdict(event) for event in events])


async def newest(c: Connection) -> int:
    """The position up to which everything is visible."""
    return int(await c.fetchval(sql.newest))


async def after(c: Connection, position: int) -> Batch:
    """The next ones. Ask again while there may be more."""
    found = await c.fetch(sql.after, position, AT_ONCE)
    events = [_stored(r) for r in found if r["position"] is not None]
    return Batch(events, found[0]["floor"] > position, len(events) == AT_ONCE)


async def missed(c: Connection, audiences: Collection[str], since: int, to: int) -> list[Stored] | None:
    """Of these audiences, in (since, to]; None: too many, or some are gone.

    The floor is read last: what was removed while we read is noticed.
    """
    classes = [a.replace("*", "%") for a in audiences if a.endswith(":*")]
    if classes:
        found = await c.fetch(sql.missed_by_class, list(audiences), since, to, MISSED_AT_MOST + 1, classes)
    else:
        found = await c.fetch(sql.missed, list(audiences), since, to, MISSED_AT_MOST + 1)
    if len(found) > MISSED_AT_MOST or await c.fetchval(sql.floor) > since:
        return None
    return [_stored(record) for record in found if record.get("theirs", True)]


async def prune(c: Connection, before: datetime, limit: int) -> int:
    """Remove the oldest that are past their time; called by housekeeping, a bounded number at a time."""
    return int(await c.fetchval(sql.prune, before, limit))


def _stored(record: Row | Any) -> Stored:
    return Stored(record["position"], record["audience"], record["kind"], record["subject"], record["data"])
