"""SQL about the work that a PRACTICE asks of the coordinator. Called by the modules beside it (`practice…`)."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

from codehub.db import Connection, Queries, rows

sql = Queries("codehub.sessions", "practice.sql")
LEFT_SECONDS = 60.0  # that a result waits for a request that was told to ask again; later, things may have changed
CHANNEL, DONE_CHANNEL = "codehub_practice", "codehub_practice_done"


class Kind(StrEnum):
    FILES = "files"
    CHECKS = "checks"


@dataclass(frozen=True)
class Task:
    """As the leader claims it."""

    id: str
    kind: Kind
    workspace_id: str
    template: str  # of the workspace
    request: Mapping[str, Any]
    created_at: datetime


@dataclass(frozen=True)
class NewTask:
    id: str
    kind: Kind
    run_id: str
    workspace_id: str
    step_index: int
    fence: int
    request: Mapping[str, Any]


async def add_or_join(c: Connection, new: NewTask, now: datetime) -> str | None:
    """The id of the task to wait for. None: the one under way ended this moment, or the workspace is gone."""
    same = (new.run_id, new.kind, new.step_index, new.fence)
    left: str | None = await c.fetchval(sql.not_taken, *same, now - timedelta(seconds=LEFT_SECONDS))
    if left:
        return left
    made: str | None = await c.fetchval(
        sql.add_task,
        *(new.id, new.kind, new.run_id, new.workspace_id, new.step_index, new.fence, dict(new.request), now),
    )
    if made is None:
        made = await c.fetchval(sql.under_way, *same)
    else:
        await c.execute(sql.wake_coordinator)
    return made


async def results(c: Connection, ids: Collection[str]) -> dict[str, Mapping[str, Any]]:
    return {row["id"]: row["result"] for row in await c.fetch(sql.results, list(ids))}


async def claim(c: Connection, kind: Kind, room: int, node: str, epoch: int, now: datetime) -> list[Task]:
    found = await c.fetch(sql.claim, kind, room, node, epoch, now)
    return sorted(rows(Task, found), key=lambda task: (task.created_at, task.id))


async def delivered(c: Connection, workspace_id: str, paths: Sequence[str]) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for row in await c.fetch(sql.delivered, workspace_id, list(paths)):
        found.setdefault(row["path"], set()).add(row["digest"])
    return found
