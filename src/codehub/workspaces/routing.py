"""What the proxy knows of workspaces: who may enter and where it listens; and which of them are news."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from codehub.db import Connection
from codehub.workspaces.model import Desired, Operation, Phase, Position
from codehub.workspaces.store import events_after, sql


@dataclass(frozen=True, slots=True)
class Entry:
    """One workspace, as far as a request to it is concerned."""

    id: str
    template: str
    people: frozenset[str]  # the owner and whom they let in
    phase: Phase
    operation: Operation
    desired: Desired
    address: Mapping[str, Any] | None
    standby_ttl_seconds: int | None


def _entry(record: Mapping[str, Any]) -> Entry:
    return Entry(
        record["id"],
        record["template"],
        frozenset([record["owner"], *record["guests"]]),
        Phase.DELETED if record["deleted"] else Phase(record["phase"]),
        Operation(record["operation"]),
        Desired(record["desired_state"]),
        record["address"],
        record["standby_ttl_seconds"],
    )


async def in_use(c: Connection) -> list[Entry]:
    return [_entry(record) for record in await c.fetch(sql.routes_in_use)]


async def of(c: Connection, ids: Collection[str]) -> list[Entry]:
    return [_entry(record) for record in await c.fetch(sql.routes_of, list(ids))]


async def newest(c: Connection) -> Position:
    return await c.fetchval(sql.newest_event), 2**62


async def changed_since(c: Connection, position: Position) -> tuple[set[str], Position]:
    """Ids of workspaces that changed, and where that list ends. Ask again until nothing is left."""
    found = await events_after(c, position)
    end = (found[-1]["xact"], found[-1]["event_id"]) if found else position
    return {record["workspace_id"] for record in found}, end
