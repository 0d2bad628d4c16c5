"""What timers ask for: the part of the service that the TTL runner and the controller's recheck call.

One set-based statement each, inside a transaction that the caller's lease guards. None overwrites a person's request.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from codehub.db import Connection, Queries, rows
from codehub.workspaces import history, store
from codehub.workspaces.model import HistoryEntry, Work, Workspace
from codehub.workspaces.store import Change
from codehub.workspaces.store import sql as workspace_sql

sql = Queries("codehub.workspaces", "ttl.sql")


@dataclass(frozen=True)
class Idle:
    """A workspace whose time is up, with what that was decided from."""

    id: str
    template: str
    address: Mapping[str, Any] | None
    idle_since: datetime
    seconds: int


async def note_activity(c: Connection, newest: Mapping[str, datetime]) -> int:
    """Move activity into the rows; how many moved. In one order, so that two who do this never wait for each other."""
    found = sorted(newest.items())
    status: str = await c.execute(sql.note_activity, [id_ for id_, _ in found], [at for _, at in found])
    return int(status.rsplit(" ", 1)[-1])


async def awake_templates(c: Connection) -> list[str]:
    return [record["template"] for record in await c.fetch(sql.awake_templates)]


async def asleep_templates(c: Connection) -> list[str]:
    return [record["template"] for record in await c.fetch(sql.asleep_templates)]


async def idle(
    c: Connection, seconds_by_template: Mapping[str, int], *, as_of: datetime, not_before: datetime, limit: int
) -> list[Idle]:
    """Whose time is up as of then. Whatever happened before `not_before` is taken to have happened at it."""
    names, seconds = list(seconds_by_template), list(seconds_by_template.values())
    found = await c.fetch(sql.idle, names, seconds, as_of, not_before, limit)
    return [Idle(**record) for record in found]


async def put_to_sleep(c: Connection, found: Sequence[Idle], now: datetime) -> list[str]:
    ids, since, seconds = [w.id for w in found], [w.idle_since for w in found], [w.seconds for w in found]
    slept = await c.fetch(sql.put_to_sleep, ids, since, seconds, now)
    return await _told(c, slept)


async def keep_busy(c: Connection, found: Sequence[Idle], work: Mapping[str, Work], now: datetime) -> None:
    """Their time is up and they compute: history says so, in one line for as long as nothing else happens."""
    ids, since = [w.id for w in found], [w.idle_since for w in found]
    await c.execute(sql.keep_busy, ids, since, [work[id_] for id_ in ids], now)


async def store_away(
    c: Connection,
    seconds_by_template: Mapping[str, int],
    *,
    as_of: datetime,
    not_before: datetime,
    now: datetime,
    limit: int,
) -> list[str]:
    names, seconds = list(seconds_by_template), list(seconds_by_template.values())
    return await _told(c, await c.fetch(sql.store_away, names, seconds, as_of, not_before, limit, now))


async def _told(c: Connection, records: Collection[Mapping[str, Any]]) -> list[str]:
    if records:
        await c.execute(workspace_sql.wake_controller)
    return [record["workspace_id"] for record in records]


async def last_sleep(c: Connection, id_: str) -> HistoryEntry | None:
    """The newest line of its history about sleeping; for explanations."""
    found = rows(HistoryEntry, await c.fetch(sql.last_sleep, id_))
    return found[0] if found else None


async def keep_awake(
    c: Connection, id_: str, op_id: str, until: datetime, reason: str, now: datetime
) -> Workspace | None:
    """From inside a run of it. None: that run is over."""
    before = await store.lock(c, id_)
    held = await store.update(c, sql.keep_awake, id_, until, reason or None, now, op_id)
    fresh = before is None or before.keep_awake_until is None or before.keep_awake_until <= now
    if held and fresh:
        await store.note(c, id_, now, Change("workspace", history.Held(reason or None)))
    return held


async def withdraw(c: Connection, id_: str, newest: datetime, now: datetime) -> Workspace | None:
    """A person was at work: a timer's request to sleep is taken back. None: it was not a timer's any more."""
    kept = await store.update(c, sql.withdraw_sleep, id_, newest, now)
    if kept:
        await store.note(c, id_, now, Change("ttl", history.WorkResumed(newest), "RUNNING", "STANDBY"))
    return kept
