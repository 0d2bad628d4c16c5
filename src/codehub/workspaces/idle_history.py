"""How workspaces ran and stood idle, as far back as that is kept. Read by `activity.what_if_service`.

`idle_periods` is written by a trigger, by the clock that puts workspaces to sleep; housekeeping removes the oldest.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from codehub.db import Connection, Queries, rows

sql = Queries("codehub.workspaces", "idle_history.sql")
KEPT = timedelta(days=15)
MOST = 500_000  # idle periods that are kept


@dataclass(frozen=True)
class Line:
    """Of a workspace's history."""

    workspace_id: str
    at: datetime
    code: str
    data: Mapping[str, Any]
    from_state: str | None
    to_state: str | None


@dataclass(frozen=True)
class IdlePeriod:
    """Five minutes and more without work in a workspace that ran."""

    workspace_id: str
    began_at: datetime
    ended_at: datetime
    kept_awake_until: datetime | None


@dataclass(frozen=True)
class Facts:
    """A workspace as it is now."""

    id: str
    template: str
    standby_ttl_seconds: int | None
    archive_ttl_seconds: int | None
    phase: str
    phase_changed_at: datetime
    idle_since: datetime
    keep_awake_until: datetime | None


async def lines(c: Connection, since: datetime, limit: int) -> list[Line]:
    """The newest first."""
    return rows(Line, await c.fetch(sql.lines, since, limit))


async def periods(c: Connection, since: datetime, limit: int) -> list[IdlePeriod]:
    """The newest first."""
    return rows(IdlePeriod, await c.fetch(sql.periods, since, limit))


async def facts(c: Connection, ids: Sequence[str]) -> list[Facts]:
    return rows(Facts, await c.fetch(sql.facts, list(ids)))


async def known_since(c: Connection) -> datetime:
    """From when on no idle period is missing."""
    found: datetime = await c.fetchval(sql.known_since)
    return found


async def prune(c: Connection, now: datetime, limit: int) -> int:
    return int(await c.fetchval(sql.prune, now - KEPT, MOST, limit))
