"""A person who is removed is in no class any more. In that transaction; `wiring` hands this to `auth`."""

from codehub.classes.store import sql
from codehub.db import Connection
from codehub.forgetting import Forgotten


async def forget(c: Connection, person: Forgotten) -> None:
    await c.execute(sql.leave_all, person.id)
