"""Rows of backups that a page asked for. Called by `requests` and `maker`."""

from collections.abc import Sequence
from datetime import datetime

from codehub.backup.model import Kept, State
from codehub.db import Connection, Queries
from codehub.events import model as events
from codehub.events import outbox
from codehub.events.model import Event

sql = Queries("codehub.backup", "kept.sql")
KIND = "backup_updated"


async def all_of(c: Connection) -> list[Kept]:
    """The newest first."""
    return [Kept(**{**dict(row), "state": State(row["state"])}) for row in await c.fetch(sql.all)]


async def tell(c: Connection, now: datetime, ids: Sequence[str]) -> None:
    """Pages of admins that are open look again."""
    await outbox.write(c, now, [Event(events.ADMINS, KIND, id_, {"backup_id": id_}) for id_ in ids])
