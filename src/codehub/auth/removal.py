"""Removing a person: what they did stays, without their name; what was theirs goes. Called by `api` and pages.

The row stays as well, because everything that is kept names it by its id; it has no name that would say who it was.
The name is not given again: a hash of it is kept, and of all that they had before.
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import datetime

from codehub import ids
from codehub.audit import service as audit
from codehub.audit.codes import Code
from codehub.auth import rules, store
from codehub.auth.credentials import Credentials
from codehub.auth.model import Person
from codehub.auth.service import FIRST_ADMIN, Leaving
from codehub.auth.store import sql
from codehub.clock import Clock
from codehub.db import Connection, Database
from codehub.errors import NotFoundError, PersonKeptError
from codehub.forgetting import Forgotten
from codehub.policy import rules as policy
from codehub.policy.actions import Action
from codehub.policy.model import Principal, Role

Forget = Callable[[Connection, Forgotten], Awaitable[None]]


@dataclass(frozen=True)
class Consequences:
    """What the other capabilities do in the same transaction: first with the person, then without their name."""

    leaving: Sequence[Leaving] = ()
    forgetting: Sequence[Forget] = ()


class Removal:
    def __init__(self, database: Database, clock: Clock, credentials: Credentials, consequences: Consequences) -> None:
        self._database = database
        self._clock = clock
        self._credentials = credentials
        self._consequences = consequences

    async def remove(self, caller: Principal, name: str) -> None:
        policy.require(caller, Action.USER_REMOVE)
        now = self._clock.now()
        async with self._database.transaction() as c:
            person = await self._lock(c, name)
            await store.revoke_all(c, person.id, now)
            for leave in self._consequences.leaving:
                await leave(c, name, caller, now)
            await audit.record(c, now, caller.origin, Code.USER_REMOVE, name)
            await self._forget(c, person, now)
            await c.execute(sql.announce)
        self._credentials.forget()

    async def _lock(self, c: Connection, name: str) -> Person:
        """The person, who may be removed."""
        admins = await store.lock_admins(c)
        person = await store.lock_user(c, name) if ids.is_label(name) else None
        if person is None:
            raise NotFoundError(policy.NO_SUCH_USER)
        if person.name == FIRST_ADMIN:
            raise PersonKeptError(f"{FIRST_ADMIN} stays: CODEHUB_ADMIN_TOKEN acts as it. Deactivate it instead")
        others = len(set(admins) - {person.id})
        rules.check_admin_remains(person, Role.LEARNER, active=False, other_admins=others)
        return person

    async def _forget(self, c: Connection, person: Person, now: datetime) -> None:
        former = await store.former_names(c, person.id)
        forgotten = Forgotten(person.id, frozenset({person.name, *former}), person.display_name, rules.no_name(person))
        for forget in (audit.forget, *self._consequences.forgetting):
            await forget(c, forgotten)
        for statement in (sql.forget_passwords, sql.forget_passkeys, sql.forget_identities, sql.forget_links):
            await c.execute(statement, person.id)
        for statement in (sql.forget_sessions, sql.forget_tokens, sql.hash_names):
            await c.execute(statement, person.id)
        await c.execute(sql.forget_user, person.id, forgotten.instead, now)
