"""Invitations of a class, for its teachers: made, listed, revoked. Called by `invitations_api` and pages.

How they are followed is in `joining`.
"""

from datetime import datetime, timedelta

from codehub import ids
from codehub.audit import service as audit
from codehub.audit.codes import Code
from codehub.classes import codes, rules, store
from codehub.classes.errors import InvitationLimitError, InvitationNotFoundError
from codehub.classes.model import Invitation
from codehub.classes.service import Classes
from codehub.classes.store import sql
from codehub.clock import Clock
from codehub.db import Connection, Database
from codehub.policy.actions import Action
from codehub.policy.model import Principal
from codehub.settings import LimitsConfig

LONGEST_SECONDS = 366 * 86400
USUAL_SECONDS = 7 * 86400
MOST_USES = 10_000
KEPT = timedelta(days=30)  # after they are over


class Invitations:
    def __init__(self, database: Database, clock: Clock, limits: LimitsConfig, classes: Classes) -> None:
        self._database = database
        self._clock = clock
        self._limits = limits
        self._classes = classes

    async def create(
        self, caller: Principal, class_id: str, *, seconds: int = USUAL_SECONDS, max_uses: int | None = None
    ) -> Invitation:
        now = self._clock.now()
        async with self._database.transaction() as c:
            found = await self._classes.authorized(c, caller, class_id, Action.CLASS_INVITE, lock=True)
            rules.check_open(found)
            most = self._limits.max_invitations_per_class
            if most and await c.fetchval(sql.count_invitations, class_id, now) >= most:
                raise InvitationLimitError(f"{found.title} has {most} invitations: revoke one of them first")
            made = None
            while made is None:  # a code that is another's, once in millions of times
                fields = class_id, codes.new(), caller.name, now, now + timedelta(seconds=seconds), max_uses
                made = await store.add_invitation(c, ids.new(), *fields)
            await audit.record(c, now, caller.origin, Code.INVITATION_CREATE, class_id, id=made.id)
            await self._classes.announce(c, class_id, now)
        return made

    async def page(self, caller: Principal, class_id: str, *, after: store.After, limit: int) -> list[Invitation]:
        """Those that are not over, oldest first."""
        async with self._database.connection() as c:
            await self._classes.authorized(c, caller, class_id, Action.CLASS_INVITATIONS)
            return await store.page_invitations(c, class_id, self._clock.now(), after, limit)

    async def revoke(self, caller: Principal, class_id: str, which: str) -> None:
        """By its id or its code. Whoever came by it stays."""
        now = self._clock.now()
        async with self._database.transaction() as c:
            await self._classes.authorized(c, caller, class_id, Action.CLASS_INVITE, lock=True)
            id_ = await c.fetchval(sql.revoke_invitation, class_id, codes.read(which) or which, now)
            if id_ is None:
                raise InvitationNotFoundError
            await audit.record(c, now, caller.origin, Code.INVITATION_REVOKE, class_id, id=id_)
            await self._classes.announce(c, class_id, now)


async def prune(c: Connection, now: datetime, limit: int) -> int:
    """Remove those that are long over; called by housekeeping, a bounded number at a time."""
    return int((await c.execute(sql.prune_invitations, now - KEPT, limit)).split()[-1])
