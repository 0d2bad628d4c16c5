"""Which classes a teacher hears of: audiences for the stream of events, and the kinds that move them.

The rows of these are written by triggers when who teaches a class changes. `web.live` asks.
"""

from collections.abc import Mapping

from codehub.assignments.progress_store import sql
from codehub.db import Connection
from codehub.events.hub import Kind
from codehub.policy import rules as policy
from codehub.policy.model import Principal

CLASS = "class"
EVERY_CLASS = f"{CLASS}:*"
KINDS: Mapping[str, Kind] = {"class_joined": Kind(joins=CLASS), "class_left": Kind(leaves=CLASS)}


async def memberships(c: Connection, caller: Principal) -> list[str]:
    """A teacher who is none any more has no classes; with another role a stream ends, and begins anew."""
    if not caller.id or not policy.is_staff(caller):
        return []
    return [f"{CLASS}:{record['class_id']}" for record in await c.fetch(sql.taught_by, caller.id)]
