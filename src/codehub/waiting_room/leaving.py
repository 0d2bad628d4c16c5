"""What becomes of a person's waiting and of their places when they are deactivated, or removed. In that transaction.

`wiring` hands these to `auth`. Who only waits has no row: Redis alone knows their number. So at every event that has a
line they get one by which every number of theirs is over; the pump tells Redis, and tokens that they still have are
refused. Who is active again has that row taken away, and joins as anyone does.
"""

from datetime import datetime

from codehub.db import Connection
from codehub.forgetting import Forgotten
from codehub.policy.model import Principal
from codehub.waiting_room import rules, store, tokens
from codehub.waiting_room.model import Place
from codehub.waiting_room.store import sql


async def put_away(c: Connection, person: str, _by: Principal, now: datetime) -> None:
    """They wait nowhere, and have no place: the next in line gets it."""
    id_ = await c.fetchval(sql.account, person)
    for record in await c.fetch(sql.events_of_person, id_):
        event = await store.lock_event(c, record["id"])
        if event is None:
            continue
        pid = tokens.pid(event.secret, id_)
        before = await store.find_place(c, event.id, pid) or Place(event.id, pid, now, person=id_)
        await store.save(c, rules.barred(before, now))
        await c.execute(sql.watch, event.id)
    await c.execute(sql.nudge)


async def let_back(c: Connection, person: str) -> None:
    """Active again."""
    await c.execute(sql.unbar, person, rules.ALL_OVER)


async def forget(c: Connection, person: Forgotten) -> None:
    """Rows stay, because they say what is over; also those of a name, without an account, that an admin put in line."""
    await c.execute(sql.forget_person, person.id, list(person.names), [f"={name}" for name in person.names])
