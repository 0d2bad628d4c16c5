"""SQL about installations; rows become dataclasses here. Called by `service` and `loop`."""

from datetime import datetime
from typing import Any

from codehub.db import Connection, Queries, Row
from codehub.ides.model import Installation, Problem, Status, StepBegun

sql = Queries("codehub.ides")


def _step(kept: dict[str, Any]) -> StepBegun:
    return StepBegun(kept["code"], kept["title"], kept["data"], datetime.fromisoformat(kept["at"]), kept["before"])


def _installation(record: Row) -> Installation:
    problem = record["problem"] or {}
    fields = {name: value for name, value in record.items() if name != "problem"}
    return Installation(
        **{
            **fields,
            "status": Status(record["status"]),
            "steps": [_step(kept) for kept in record["steps"]],
            "problem": Problem(problem["code"]) if problem else None,
            "problem_data": {name: value for name, value in problem.items() if name != "code"},
        }
    )


async def all_of(c: Connection) -> dict[str, Installation]:
    return {record["name"]: _installation(record) for record in await c.fetch(sql.all)}
