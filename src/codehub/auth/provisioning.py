"""Accounts that another capability makes or changes, in a transaction of its own. Called by `openid`."""

from datetime import datetime

from codehub import ids
from codehub.audit import service as audit
from codehub.audit.codes import Code
from codehub.auth import logins, rules, store
from codehub.auth.model import Person
from codehub.auth.service import RESERVED
from codehub.auth.store import sql
from codehub.db import Connection
from codehub.policy import rules as policy
from codehub.policy.actions import Action
from codehub.policy.model import Principal, Role


async def find(c: Connection, user_id: str) -> Person | None:
    return await store.find_person(c, user_id)


async def lock(c: Connection, user_id: str) -> Person | None:
    """By id, so that a rename in between does not lose them; also one who is deactivated."""
    found = await store.find_person(c, user_id)
    locked = await store.lock_user(c, found.name) if found else None
    return locked if locked and locked.id == user_id else None


async def named(c: Connection, name: str) -> Person | None:
    return await store.find_user(c, name) if ids.is_label(name) else None


async def lock_named(c: Connection, name: str) -> Person | None:
    return await store.lock_user(c, name) if ids.is_label(name) else None


async def lock_admins(c: Connection) -> frozenset[str]:
    """Their ids. Before any person is locked, as everywhere."""
    return frozenset(await store.lock_admins(c))


async def add(c: Connection, by: Principal, name: str, role: Role, now: datetime, display_name: str) -> Person | None:
    """None when the name is, or was, another person's, or a part's of the platform."""
    policy.require(by, Action.USER_CREATE)
    person = None if name in RESERVED else await store.add_user(c, name, role, now, display_name)
    if person:
        await audit.record(c, now, by.origin, Code.USER_CREATE, name, role=role)
    return person


async def change_role(
    c: Connection, by: Principal, person: Person, role: Role, now: datetime, admins: frozenset[str]
) -> Person:
    """`admins`: those who are active, locked."""
    policy.require(by, Action.USER_CHANGE)
    rules.check_admin_remains(person, role, active=person.active, other_admins=len(admins - {person.id}))
    changed = await store.change_user(c, person.id, role, person.deactivated_at)
    await logins.end_with_role(c, person, role, now, by.origin)
    await c.execute(sql.announce)
    await audit.record(c, now, by.origin, Code.USER_CHANGE, person.name, role=role, active=person.active)
    return changed
