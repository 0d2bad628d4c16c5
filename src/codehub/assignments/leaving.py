"""What was asked and answered stays, without the names of a person who is removed. `wiring` hands this to `auth`."""

from codehub.assignments.progress_store import sql
from codehub.db import Connection
from codehub.forgetting import Forgotten


async def forget(c: Connection, person: Forgotten) -> None:
    for hand in await c.fetch(sql.hands_of, person.id):
        answer = hand["answer"]
        said = person.text(hand["message"]), None if answer is None else person.text(answer)
        if said != (hand["message"], answer):
            await c.execute(sql.say_otherwise, hand["id"], *said)
