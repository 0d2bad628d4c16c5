"""What becomes of a person's workspaces and shares when they are deactivated, or removed. In that transaction.

`wiring` hands these to `auth`, which knows people and not workspaces. Whatever operation is under way is carried on;
afterwards the desired state is asleep, and `service` refuses any other until they are active again.
"""

from datetime import datetime

from codehub.db import Connection
from codehub.forgetting import Forgotten
from codehub.policy import rules as policy
from codehub.policy.actions import Action
from codehub.policy.model import Principal
from codehub.workspaces import authorize
from codehub.workspaces.store import sql

LONGEST_NAME = 100  # characters of a workspace's


async def put_away(c: Connection, person: str, by: Principal, now: datetime) -> None:
    """Their workspaces sleep and are not held awake; what others shared with them is shared no more."""
    await c.execute(sql.lock_all_of, person)  # waits for requests that are being made at this moment
    desired_by = authorize.desired_by(by, policy.require(by, Action.USER_CHANGE))
    await c.execute(sql.sleep_all_of, person, now, by.name, desired_by)
    await c.execute(sql.end_shares_with, person, now, by.name)
    await c.execute(sql.wake_controller)


async def throw_away(c: Connection, person: str, by: Principal, now: datetime) -> None:
    """Of a person who is removed: what is theirs lies in the trash, and is shared with nobody. After `put_away`."""
    await c.execute(sql.trash_all_of, person, now, by.name)
    await c.execute(sql.end_shares_of, person)


async def forget(c: Connection, person: Forgotten) -> None:
    """History stays, without their names; so do the names that others typed who shared something with them."""
    await c.execute(sql.forget_shares, list(person.names))
    for w in await c.fetch(sql.named_of, person.id):
        name = person.text(w["name"])[:LONGEST_NAME]
        if name != w["name"]:
            await c.execute(sql.forget_name, w["id"], name)
    found = await c.fetch(sql.history_mentioning, person.id, [f"%{name}%" for name in person.names])
    for line in found:
        data = person.data(line["data"], about=line["about"])
        if data != line["data"]:
            await c.execute(sql.replace_history, line["id"], data)
