"""What becomes of a person's workspaces and shares when they are deactivated. In the transaction that does it.

`wiring` hands this to `auth.service`, which knows people and not workspaces. Whatever operation is under way is carried
on; afterwards the desired state is asleep, and `service` refuses any other until they are active again.
"""

from datetime import datetime

from codehub.db import Connection
from codehub.policy import rules as policy
from codehub.policy.actions import Action
from codehub.policy.model import Principal
from codehub.workspaces import authorize
from codehub.workspaces.store import sql


async def put_away(c: Connection, person: str, by: Principal, now: datetime) -> None:
    """Their workspaces sleep and are not held awake; what others shared with them is shared no more."""
    await c.execute(sql.lock_all_of, person)  # waits for requests that are being made at this moment
    desired_by = authorize.desired_by(by, policy.require(by, Action.USER_CHANGE))
    await c.execute(sql.sleep_all_of, person, now, by.name, desired_by)
    await c.execute(sql.end_shares_with, person, now, by.name)
    await c.execute(sql.wake_controller)
