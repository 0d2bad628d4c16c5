"""What a person's groups at a provider give them here: a role, classes. Applied at each login, in its transaction.

A class that is gone, over or full keeps nobody out: the operator's log says so, and the login goes on.
"""

import contextlib
from dataclasses import dataclass
from datetime import datetime

from codehub import logs
from codehub.auth import provisioning
from codehub.auth.model import Person
from codehub.classes.model import Came, MemberRole
from codehub.classes.service import Classes
from codehub.db import Connection
from codehub.errors import CodeHubError, LastAdminError, NotFoundError
from codehub.openid import rules, store
from codehub.openid.model import Identity, Subject
from codehub.openid.store import sql
from codehub.policy import rules as policy
from codehub.policy.actions import Action
from codehub.policy.model import Principal, Role
from codehub.settings.openid import Provider

log = logs.get()


@dataclass(frozen=True)
class Mapping:
    """For one login."""

    classes: Classes
    provider: Provider
    by: Principal
    now: datetime

    async def apply(
        self, c: Connection, person: Person, identity: Identity, subject: Subject, admins: frozenset[str]
    ) -> Person:
        person = await self._role(c, person, identity, subject, admins)
        await self._classes(c, person, identity, subject)
        return person

    async def lock_classes(self, c: Connection, identity: Identity | None, subject: Subject) -> None:
        """All that `apply` may change, in one order: two logins at once do not wait for each other in a circle."""
        given = await store.classes_of(c, identity.id) if identity else frozenset[str]()
        for class_id in sorted(rules.mapped_classes(self.provider, subject.groups) | given):
            with contextlib.suppress(NotFoundError):  # which `apply` says
                await self.classes.authorized(c, self.by, class_id, Action.CLASS_MANAGE, lock=True)

    async def _role(
        self, c: Connection, person: Person, identity: Identity, subject: Subject, admins: frozenset[str]
    ) -> Person:
        mapped = rules.mapped_role(self.provider, subject.groups)
        otherwise = Role(self.provider.role)
        role, given = rules.role_now(person.role, identity.role_given, mapped, otherwise)
        if role is not person.role:
            try:
                person = await provisioning.change_role(c, self.by, person, role, self.now, admins)
            except LastAdminError:
                log.warning("The only admin stays admin, whatever their groups say", user=person.name)
                return person
        if given is not identity.role_given:
            await c.execute(sql.note_role, identity.id, given)
        return person

    async def _classes(self, c: Connection, person: Person, identity: Identity, subject: Subject) -> None:
        wanted, given = rules.mapped_classes(self.provider, subject.groups), await store.classes_of(c, identity.id)
        for class_id in sorted(wanted | given):
            try:
                await self._class(c, person, identity, class_id, stays=class_id in wanted)
            except NotFoundError:
                log.warning(
                    "A group is mapped to a class that is not there", provider=self.provider.name, class_=class_id
                )
            except CodeHubError as e:
                log.warning("A group's class is as it was", provider=self.provider.name, class_=class_id, why=e.detail)

    async def _class(self, c: Connection, person: Person, identity: Identity, class_id: str, *, stays: bool) -> None:
        """Added, not joined: a teacher of the class does not look after an account that has a login elsewhere."""
        found = await self.classes.authorized(c, self.by, class_id, Action.CLASS_MANAGE, lock=True)
        if not stays:
            with contextlib.suppress(NotFoundError):  # taken out by hand
                await self.classes.dismiss(c, self.by, found, person.name)
            await c.execute(sql.remove_class, identity.id, class_id)
            return
        role = MemberRole.LEARNER if policy.may_attend(person.role) else MemberRole.TEACHER
        if await self.classes.admit(c, self.by, found, person, role, Came.ADDED):
            await c.execute(sql.add_class, identity.id, class_id)
