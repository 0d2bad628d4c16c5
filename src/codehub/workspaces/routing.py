"""What the proxy knows of workspaces: who may enter and where it listens."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from codehub import logs
from codehub.db import Connection
from codehub.workspaces.model import Desired, Operation, Phase
from codehub.workspaces.store import sql

log = logs.get()


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
    owner: str
    teachers: frozenset[str] = frozenset()  # of the owner's classes
    # The outbox's position when it was read: of two readings, the one with the higher is not the older.
    as_of: int = field(default=0, compare=False)


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
        record["owner"],
        frozenset(record["teachers"]),
        record["as_of"],
    )


def _entries(records: Iterable[Mapping[str, Any]]) -> list[Entry]:
    """A row that cannot be read is that workspace's trouble: it is not there, and the others are."""
    entries = []
    for record in records:
        try:
            entries.append(_entry(record))
        except Exception:
            log.exception("A workspace's row cannot be read: no user is let in", workspace=record["id"])
    return entries


async def in_use(c: Connection) -> list[Entry]:
    return _entries(await c.fetch(sql.routes_in_use))


async def of(c: Connection, ids: Collection[str]) -> list[Entry]:
    return _entries(await c.fetch(sql.routes_of, list(ids)))
