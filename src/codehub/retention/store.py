"""SQL of the garbage collection and of the trash; rows become frozen dataclasses here."""

from collections import defaultdict
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime

from codehub.db import Connection, Queries, Row, rows
from codehub.retention.rules import Facts, Points
from codehub.workspaces.model import Health, Observed, Operation

sql = Queries("codehub.retention")


@dataclass(frozen=True)
class Orphan:
    kind: str
    name: str
    workspace_id: str
    rule: str  # of `rules.Rule`
    bytes: int
    seen_at: datetime
    condemned_at: datetime | None


def _facts(record: Row) -> Facts:
    words = {
        "operation": Operation(record["operation"]),
        "health_status": Health(record["health_status"]),
        "observed_status": Observed(record["observed_status"]),
    }
    return Facts(**{**record, **words})


async def facts(c: Connection, ids: Collection[str]) -> dict[str, Facts]:
    return {record["id"]: _facts(record) for record in await c.fetch(sql.facts, list(ids))}


async def lock_facts(c: Connection, id_: str) -> Facts | None:
    record = await c.fetchrow(sql.lock_facts, id_)
    return _facts(record) if record else None


async def points(c: Connection, ids: Collection[str]) -> Mapping[str, Points]:
    places: dict[str, dict[str, int]] = defaultdict(dict)
    operations: dict[str, set[str]] = defaultdict(set)
    for record in await c.fetch(sql.points, list(ids)):
        places[record["workspace_id"]][record["archive_key"]] = record["place"]
        operations[record["workspace_id"]].add(record["op_id"])
    return {id_: Points(places[id_], frozenset(operations[id_])) for id_ in places}


async def due(
    c: Connection, before: datetime, set_aside: Mapping[str, list[str]], kinds: Collection[str], limit: int
) -> list[Orphan]:
    aside = (set_aside["archive"], set_aside["volume"])
    return rows(Orphan, await c.fetch(sql.due_orphans, before, list(kinds), *aside, limit))
