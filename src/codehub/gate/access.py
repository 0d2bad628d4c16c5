"""Who enters a workspace, and when coming to it wakes it: the one place for both.

Called by the pages on the way in (`web.entry`, `web.handover`) and, to wake, by the proxy's director, which decides who
enters by the same `policy` from memory. An owner is told of visits that they did not ask for.
"""

from dataclasses import replace
from datetime import timedelta
from typing import NamedTuple

from codehub import ids
from codehub.audit import service as audit
from codehub.audit.codes import Code
from codehub.auth.credentials import Credentials
from codehub.clock import Clock
from codehub.db import Connection, Database
from codehub.errors import NotFoundError, UnauthenticatedError
from codehub.gate.passes import MARGIN_SECONDS, TICKET_SECONDS, Pass, Passes
from codehub.policy import rules as policy
from codehub.policy.actions import Action
from codehub.policy.model import Decision, Principal, Relation, Resource
from codehub.workspaces import authorize, history, rules, store, visits
from codehub.workspaces.admission import Refused
from codehub.workspaces.model import Workspace
from codehub.workspaces.service import Workspaces
from codehub.workspaces.store import sql

VISIT = timedelta(hours=1)  # coming again within it is the same visit: the owner is told once
# A pass of a principal of whose visits the owner is told: after it ends they come again, and are mentioned again.
TOLD_SECONDS = 12 * 3600


class Visit(NamedTuple):
    """A workspace that a principal may enter, and on what ground."""

    workspace: Workspace
    resource: Resource
    decision: Decision


class Access:
    def __init__(
        self,
        database: Database,
        clock: Clock,
        workspaces: Workspaces,
        credentials: Credentials,
        passes: Passes,
        *,
        isolated: bool,
        session_seconds: int,
    ) -> None:
        """`isolated`: every workspace has an origin of its own."""
        self._database = database
        self._clock = clock
        self._workspaces = workspaces
        self._credentials = credentials
        self._passes = passes
        self._isolated = isolated
        self._session_seconds = session_seconds

    async def visit(self, principal: Principal, id_: str) -> Visit:
        """The workspace, for a principal who may enter it; for those who may not see it there is none."""
        async with self._database.connection() as c:
            found = await store.find(c, id_) if ids.is_label(id_) else None
            if found is None or found.deleted_at is not None:
                raise NotFoundError(authorize.missing(id_))
            resource = await authorize.resource_of(c, principal, found, isolated=self._isolated)
        decision = policy.decide(principal, Action.WORKSPACE_ENTER, resource)
        if decision.tells_owner and principal.visit_told is False:
            # A pass of before, by another right: a guest once, for example. Through the door again, where it is told.
            raise NotFoundError(authorize.missing(id_))
        return Visit(found, resource, policy.enforce(decision, authorize.missing(id_)))

    async def wake(self, principal: Principal, visit: Visit, *, asked: bool = False) -> Workspace | Refused:
        """Ask a sleeping one to run, once. `asked`: they said so, instead of just coming."""
        w = visit.workspace
        return await self._workspaces.wake(principal, w.id, asked=asked) if rules.is_asleep(w) else w

    async def arrive(self, principal: Principal, id_: str) -> Pass:
        """As `visit`, for a browser: the pass it gets. The owner learns that a guest came, or an admin unasked."""
        if principal.session_id is None:
            raise UnauthenticatedError("a pass stands on a browser's login: log in first")
        w, _, decision = await self.visit(principal, id_)
        async with self._database.transaction() as c:
            if decision.relation is Relation.GUEST:
                await c.execute(sql.note_opened, id_, principal.name, self._clock.now())
            if decision.tells_owner:
                await self._tell_owner(c, principal, w)
        seconds = max(self._session_seconds - MARGIN_SECONDS, TICKET_SECONDS)
        expires = self._clock.now().timestamp() + min(seconds, TOLD_SECONDS if decision.tells_owner else seconds)
        return Pass(id_, principal.name, principal.role, principal.session_id, int(expires), told=decision.tells_owner)

    async def _tell_owner(self, c: Connection, principal: Principal, w: Workspace) -> None:
        now = self._clock.now()
        await c.execute(sql.one_at_a_time, principal.name)
        if await c.fetchval(sql.entered_since, w.id, principal.name, now - VISIT):
            return
        await store.note(c, w.id, now, store.Change(principal.name, history.Entered()))
        await visits.tell_owner(c, now, w, principal, visits.Visit.ENTERED)
        await audit.record(c, now, principal.origin, Code.WORKSPACE_ENTER, w.id, owner=w.owner)

    async def pass_holder(self, text: str, id_: str) -> Principal | None:
        """Whose pass for this workspace a browser shows, if it is still good."""
        found = self._passes.read(text)
        if not found or found.workspace_id != id_ or found.expires <= self._clock.now().timestamp():
            return None
        person = await self._credentials.of_session(found.session_id)
        if person is None:
            return None
        own = {"display_name": person.display_name, "language": person.language, "time_zone": person.time_zone}
        return replace(found.principal, teaches=person.teaches, **own)  # type: ignore[arg-type]

    async def usual_seconds(self, id_: str) -> float | None:
        """How long its last starts took, in the middle; None: it was never started."""
        async with self._database.connection() as c:
            found = await c.fetchval(sql.usual_start_seconds, id_)
        return None if found is None else float(found)
