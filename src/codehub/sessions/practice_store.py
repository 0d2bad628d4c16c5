"""SQL about the work that a PRACTICE asks of the coordinator. Called by the modules beside it (`practice…`)."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

from codehub.db import Connection, Queries, rows
from codehub.sessions.errors import PracticeBusyError
from codehub.sessions.practice_runner import superseded

sql = Queries("codehub.sessions", "practice.sql")
LEFT_SECONDS = 60.0  # that a result waits for a request that was told to ask again; later, things may have changed
MOST_WAITING = 8  # of one person: a page of theirs waits for one, so that more are left over from pages closed since
BUSY_SECONDS = 10
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
    owner: str | None = await c.fetchval(sql.lock_owner, new.workspace_id)
    under_way: str | None = await c.fetchval(sql.under_way, *same)
    if owner is None or under_way:
        return under_way
    order = (new.run_id, new.kind, new.fence, new.step_index)
    if await c.fetch(sql.supersede, *order, superseded(), now):
        await c.execute(sql.say_done)
    if await c.fetchval(sql.waiting_of, owner) >= MOST_WAITING:
        raise PracticeBusyError(
            f"{MOST_WAITING} of your requests wait for their turn already: ask again when one has ended",
            retry_after=BUSY_SECONDS,
        )
    made: str | None = await c.fetchval(
        sql.add_task,
        *(new.id, new.kind, new.run_id, new.workspace_id, new.step_index, new.fence, dict(new.request), now),
    )
    if made:
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
