"""SQL about workspaces; rows become frozen dataclasses here. Called by the service and by the controller."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from codehub.db import Connection, Queries, one, rows
from codehub.workspaces.history import Record
from codehub.workspaces.model import (
    Desired,
    DesiredBy,
    Health,
    HistoryEntry,
    Observed,
    Operation,
    Phase,
    RestorePoint,
    Workspace,
)

sql = Queries("codehub.workspaces")
points = Queries("codehub.workspaces", "points.sql")
After = tuple[datetime, str]
WORDS = {
    "observed_status": Observed,
    "health_status": Health,
    "operation": Operation,
    "phase": Phase,
    "desired_state": Desired,
    "desired_by": DesiredBy,
}


def workspace(record: Mapping[str, Any]) -> Workspace:
    fields = {name: value for name, value in record.items() if name != "owner_id"}
    return Workspace(**{**fields, **{name: word(record[name]) for name, word in WORDS.items()}})


def _maybe(record: Mapping[str, Any] | None) -> Workspace | None:
    return None if record is None else workspace(record)


async def find(c: Connection, id_: str) -> Workspace | None:
    return _maybe(await c.fetchrow(sql.find, id_))


async def lock(c: Connection, id_: str, *, wait: bool = True) -> Workspace | None:
    return _maybe(await c.fetchrow(sql.lock if wait else sql.lock_if_free, id_))


async def query(c: Connection, statement: str, *args: Any) -> list[Workspace]:
    return [workspace(record) for record in await c.fetch(statement, *args)]


async def update(c: Connection, statement: str, *args: Any) -> Workspace | None:
    """Run a statement that returns the row it changed; None: it was not as expected any more."""
    return _maybe(await c.fetchrow(statement, *args))


@dataclass(frozen=True)
class Change:
    """A line for the history."""

    actor: str
    what: Record
    from_state: str | None = None
    to_state: str | None = None
    took_seconds: float | None = None


async def note(c: Connection, id_: str, at: datetime, change: Change) -> None:
    await c.execute(
        sql.add_history,
        id_,
        at,
        change.actor,
        change.what.code,
        change.what.data(),
        change.from_state,
        change.to_state,
        change.took_seconds,
    )


async def page_history(
    c: Connection, id_: str, before: int, limit: int, codes: Collection[str] | None = None
) -> list[HistoryEntry]:
    wanted = None if codes is None else list(codes)
    return rows(HistoryEntry, await c.fetch(sql.page_history, id_, before, limit, wanted))


async def owned_by_admin(c: Connection, id_: str) -> bool:
    return bool(await c.fetchval(sql.owned_by_admin, id_))


async def running(c: Connection) -> set[str]:
    return {record["id"] for record in await c.fetch(sql.running)}


async def page_points(c: Connection, id_: str, keep: int, before: After | None, limit: int) -> list[RestorePoint]:
    moment, op_id = before or (None, "")
    return rows(RestorePoint, await c.fetch(points.page_points, id_, moment, op_id, limit, keep))


async def find_point(c: Connection, id_: str, archive_key: str | None) -> RestorePoint | None:
    return one(RestorePoint, await c.fetchrow(points.find_point, id_, archive_key))
