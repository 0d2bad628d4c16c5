"""Whether the first admin is still shown the first steps of a new installation. Called by the pages of these steps.

Only that they were enough is kept: what is done shows in what there is. Others are never asked; they come to a lab that
somebody has set up.
"""

from codehub.auth.service import FIRST_ADMIN
from codehub.auth.store import sql
from codehub.clock import Clock
from codehub.db import Database
from codehub.policy import rules as policy
from codehub.policy.actions import Action
from codehub.policy.model import Principal


class FirstSteps:
    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock

    async def is_open(self, caller: Principal) -> bool:
        """For this person, who is logged in with a browser?"""
        if caller.session_id is None:
            return False
        async with self._database.connection() as c:
            return bool(await c.fetchval(sql.first_steps_open, caller.id, FIRST_ADMIN))

    async def begin_with(self, name: str) -> bool:
        """Is this person, who is about to log in, led to them? At the first login alone."""
        async with self._database.connection() as c:
            return name == FIRST_ADMIN and bool(await c.fetchval(sql.never_logged_in, name))

    async def dismiss(self, caller: Principal) -> None:
        policy.require(caller, Action.USER_PROFILE, policy.account(caller.name))
        async with self._database.connection() as c:
            await c.execute(sql.end_first_steps, caller.id, self._clock.now())
