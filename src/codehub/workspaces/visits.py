"""The owner is told at once of those who need no leave of theirs to come in: on whatever page of ours they are."""

from datetime import datetime
from enum import StrEnum

from codehub.db import Connection
from codehub.events import model, outbox
from codehub.events.model import Event
from codehub.policy.model import Principal
from codehub.workspaces.model import Workspace
from codehub.workspaces.store import sql


class Visit(StrEnum):
    ENTERED = "entered"
    DOWNLOADED = "downloaded"


async def tell_owner(c: Connection, now: datetime, w: Workspace, by: Principal, what: Visit) -> None:
    """In the transaction that also writes it into the history."""
    owner_id = await c.fetchval(sql.owner_id, w.id)
    said = {"workspace_id": w.id, "workspace": w.name, "by": by.called, "what": what}
    await outbox.write(c, now, [Event(model.user(owner_id), "workspace_visited", w.id, said)])
