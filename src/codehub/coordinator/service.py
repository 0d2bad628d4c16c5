"""What the coordinator is doing, for the API: the leader publishes it with every renewal of its lease."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from codehub.coordinator.leader import LEASE_NAME
from codehub.coordinator.store import sql
from codehub.db import Database
from codehub.policy import rules as policy_rules
from codehub.policy.actions import Action
from codehub.policy.model import Principal


@dataclass(frozen=True)
class Leadership:
    leader: str | None
    epoch: int
    expires_at: datetime | None
    loops: list[dict[str, Any]]


async def leadership(database: Database, caller: Principal) -> Leadership:
    policy_rules.require(caller, Action.LOOPS_READ)
    async with database.connection() as c:
        row = await c.fetchrow(sql.status, LEASE_NAME)
    if row is None:
        return Leadership(None, 0, None, [])
    loops = row["status"].get("loops", [])
    if not row["held"]:
        return Leadership(None, row["epoch"], None, loops)
    return Leadership(row["holder"], row["epoch"], row["expires_at"], loops)
