"""A person who is removed is in no schedule any more. In that transaction; `wiring` hands this to `auth`."""

from codehub.db import Connection
from codehub.forgetting import Forgotten
from codehub.schedules.store import sql


async def forget(c: Connection, person: Forgotten) -> None:
    await c.execute(sql.forget_learner, person.id)
    await c.execute(sql.forget_starts, person.id)
