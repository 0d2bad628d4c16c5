"""May this principal do that with this workspace? The one place that gathers what `policy` needs to know of it.

Asked by every service that acts on a workspace, with the row at hand and in the transaction that acts.
"""

from dataclasses import replace

from codehub.db import Connection
from codehub.errors import NotFoundError
from codehub.policy import rules as policy
from codehub.policy.actions import Action
from codehub.policy.model import Decision, Kind, Principal, Relation, Resource, System
from codehub.workspaces.model import DesiredBy, Workspace
from codehub.workspaces.store import sql

BY_RELATION = {
    Relation.OWNER: DesiredBy.USER,
    Relation.GUEST: DesiredBy.GUEST,
    Relation.TEACHER: DesiredBy.TEACHER,
    Relation.ADMIN: DesiredBy.ADMIN,
    Relation.OPERATOR: DesiredBy.OPERATOR,
    Relation.PERSON: DesiredBy.USER,
}
BY_SYSTEM = {
    System.TTL: DesiredBy.TTL,
    System.WAKE: DesiredBy.WAKE,
    System.SESSIONS: DesiredBy.SESSION,
    System.WAITING_ROOM: DesiredBy.WAITING_ROOM,
    System.SCHEDULES: DesiredBy.SCHEDULE,
}


def missing(id_: str) -> str:
    """The same for one that never was and for another person's."""
    return f"there is no workspace {id_[:63]}"


async def resource_of(c: Connection, principal: Principal, w: Workspace, *, isolated: bool = True) -> Resource:
    """`isolated`: it has an origin of its own; only entering depends on it."""
    found = Resource(w.id, w.owner, is_isolated=isolated)
    if principal.kind is not Kind.PERSON or Relation.OWNER in policy.relations_to(principal, found) or w.deleted_at:
        return found  # nothing that lies in the trash is shared
    return replace(found, is_guest=bool(await c.fetchval(sql.is_guest, w.id, principal.name)))


async def authorize(c: Connection, principal: Principal, action: Action, w: Workspace | None, id_: str) -> Decision:
    """Raises what those get who may not. `w`: the row, if there is one."""
    if w is None:
        raise NotFoundError(missing(id_))
    return policy.enforce(policy.decide(principal, action, await resource_of(c, principal, w)), missing(id_))


def desired_by(principal: Principal, decision: Decision) -> DesiredBy:
    """On whose behalf it is, as the row says it."""
    if decision.relation is Relation.SYSTEM:
        return BY_SYSTEM[System(principal.name)]
    return BY_RELATION[decision.relation or Relation.PERSON]
