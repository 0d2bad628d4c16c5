"""What was learnt stays, without the name of a person who is removed. `wiring` hands this to `auth`.

Plans, sessions and runs know their learner by id. Only the answers that are kept for a request that is sent twice say
more, and nobody sends those again.
"""

from codehub.db import Connection
from codehub.forgetting import Forgotten
from codehub.sessions.store import sql


async def forget(c: Connection, person: Forgotten) -> None:
    await c.execute(sql.forget_answers, person.id)
