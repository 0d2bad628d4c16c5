"""The use cases about classes and their members, each one transaction. Called by `api`, pages and invitations."""

from collections.abc import Awaitable, Callable, Collection
from dataclasses import replace
from datetime import datetime

from codehub import ids
from codehub.audit import service as audit
from codehub.audit.codes import Code
from codehub.auth import enrolment, logins
from codehub.auth.model import Person
from codehub.classes import rules, store
from codehub.classes.errors import ClassLimitError, ClassNotFoundError, MemberLimitError
from codehub.classes.model import Came, Member, MemberRole, SchoolClass
from codehub.classes.store import sql
from codehub.clock import Clock
from codehub.db import Connection, Database
from codehub.errors import NotFoundError
from codehub.events import outbox
from codehub.events.model import Event
from codehub.policy import rules as policy
from codehub.policy.actions import Action
from codehub.policy.model import Effect, Kind, Principal, Resource
from codehub.settings import LimitsConfig

Joined = Callable[[Connection, datetime, str, str], Awaitable[None]]


class Classes:
    def __init__(
        self, database: Database, clock: Clock, limits: LimitsConfig, changed: Callable[[], None], joined: Joined
    ) -> None:
        """`changed`: called when who teaches whom has changed, for what is remembered of people in this process.

        `joined`: called with the class's and the learner's id when one came, in the same transaction.
        """
        self._database = database
        self._clock = clock
        self._limits = limits
        self.changed = self._changed = changed
        self._joined = joined

    # --- classes

    async def create(self, caller: Principal, title: str) -> SchoolClass:
        """Who makes it teaches it; what the operator makes has no teacher until one is added."""
        policy.require(caller, Action.CLASS_CREATE)
        id_, now = ids.new(), self._clock.now()
        async with self._database.transaction() as c:
            await self._check_count(c, caller)
            await c.execute(sql.add, id_, title, caller.name, now)
            if caller.kind is Kind.PERSON:
                await c.execute(sql.add_member, id_, caller.id, MemberRole.TEACHER, Came.ADDED, None, now)
            await audit.record(c, now, caller.origin, Code.CLASS_CREATE, id_, title=title)
            return await self._found(c, id_)

    async def _check_count(self, c: Connection, caller: Principal) -> None:
        most = policy.allowance(caller, self._limits.max_classes_per_user)
        if most is None:
            return
        await c.execute(sql.one_class_at_a_time, caller.name)
        if await c.fetchval(sql.count_made, caller.name) >= most:
            raise ClassLimitError(f"you have made {most} classes: delete one of them first")

    async def page(
        self, caller: Principal, *, everybodys: bool, archived: bool, after: store.After, limit: int
    ) -> list[SchoolClass]:
        """Those that they teach or attend; an admin may ask for all."""
        policy.require(caller, Action.CLASS_LIST_ALL if everybodys else Action.CLASS_LIST)
        async with self._database.connection() as c:
            return await store.page(c, None if everybodys else caller.id, archived=archived, after=after, limit=limit)

    async def titles(self, caller: Principal, ids_: Collection[str]) -> dict[str, str]:
        """Of these, as far as they are still there; for who may list all."""
        policy.require(caller, Action.CLASS_LIST_ALL)
        if not ids_:
            return {}
        async with self._database.connection() as c:
            return {row["id"]: row["title"] for row in await c.fetch(store.sql.titles, list(ids_))}

    async def get(self, caller: Principal, id_: str) -> SchoolClass:
        async with self._database.connection() as c:
            return await self.authorized(c, caller, id_, Action.CLASS_SEE)

    async def change(
        self, caller: Principal, id_: str, *, title: str | None = None, archived: bool | None = None
    ) -> SchoolClass:
        """An archived class can be read, gives its teachers no rights any more, and takes nobody in."""
        now = self._clock.now()
        async with self._database.transaction() as c:
            found = await self.authorized(c, caller, id_, Action.CLASS_CHANGE, lock=True)
            archived_at = found.archived_at if archived is None else (found.archived_at or now) if archived else None
            changed = replace(found, title=title or found.title, archived_at=archived_at)
            if changed != found:
                await c.execute(sql.change, id_, changed.title, archived_at)
                data = {"title": changed.title, "archived": archived_at is not None}
                await audit.record(c, now, caller.origin, Code.CLASS_CHANGE, id_, **data)
                await self.announce(c, id_, now)
        self._changed()
        return changed

    async def delete(self, caller: Principal, id_: str) -> None:
        """The class, who is in it and its invitations; people, their work and what they learnt stay."""
        async with self._database.transaction() as c:
            found = await self.authorized(c, caller, id_, Action.CLASS_CHANGE, lock=True)
            now = self._clock.now()
            await self.announce(c, id_, now)
            await c.execute(sql.delete, id_)
            await audit.record(c, now, caller.origin, Code.CLASS_DELETE, id_, title=found.title)
        self._changed()

    # --- members

    async def members(self, caller: Principal, id_: str, *, after: str, limit: int) -> list[Member]:
        async with self._database.connection() as c:
            await self.authorized(c, caller, id_, Action.CLASS_MEMBERS)
            return await store.members(c, id_, after=after, limit=limit)

    async def require(self, caller: Principal, id_: str, action: Action) -> SchoolClass:
        """For other services: the class, for a principal who may do that with it."""
        async with self._database.connection() as c:
            return await self.authorized(c, caller, id_, action)

    async def member(self, caller: Principal, id_: str, name: str) -> Member:
        async with self._database.connection() as c:
            await self.authorized(c, caller, id_, Action.CLASS_MANAGE)
            return await self._member(c, id_, name)

    async def shown_teachers(self, found: SchoolClass) -> list[str]:
        """As they are called. Whoever has the class may know who teaches it."""
        async with self._database.connection() as c:
            members = await store.members(c, found.id, limit=max(len(found.teachers), 1))
        return [member.display_name or member.name for member in members if member.teaches]

    async def add_member(self, caller: Principal, id_: str, name: str, role: MemberRole) -> Member:
        """One who has an account; who is in the class already stays as they are."""
        async with self._database.transaction() as c:
            found = await self.authorized(c, caller, id_, Action.CLASS_MANAGE, lock=True)
            person = await logins.lock_person(c, name)
            if person is None:
                raise NotFoundError(policy.NO_SUCH_USER)
            await self.admit(c, caller, found, person, role, Came.ADDED)
            member = await self._member(c, id_, name)
        self._changed()
        return member

    async def admit(
        self,
        c: Connection,
        caller: Principal,
        found: SchoolClass,
        person: Person,
        role: MemberRole,
        came: Came,
        school_id: str | None = None,
    ) -> bool:
        """Into the class, whose row is locked, in a transaction of the caller's; False: was in it already."""
        rules.check_open(found)
        rules.check_member(person.name, person.role, role)
        if await store.role_in(c, found.id, person.id):
            return False
        most, now = self._limits.max_class_members, self._clock.now()
        if most and await c.fetchval(sql.count_members, found.id) >= most:
            raise MemberLimitError(f"{found.title} has {most} people: take some out, or make another class")
        await c.execute(sql.add_member, found.id, person.id, role, came, school_id, now)
        await audit.record(c, now, caller.origin, Code.CLASS_MEMBER_ADD, found.id, user=person.name, role=role)
        if role is MemberRole.LEARNER:
            await self._joined(c, now, found.id, person.id)
        await self.announce(c, found.id, now)
        return True

    async def remove_member(self, caller: Principal, id_: str, name: str) -> None:
        """Out of the class; the account, and all that is theirs, stays."""
        async with self._database.transaction() as c:
            found = await self.authorized(c, caller, id_, Action.CLASS_MANAGE, lock=True)
            await self.dismiss(c, caller, found, name)
        self._changed()

    async def dismiss(self, c: Connection, caller: Principal, found: SchoolClass, name: str) -> None:
        """Out of the class, whose row is locked, in a transaction of the caller's. With a teacher, links end."""
        member = await self._member(c, found.id, name)
        if member.teaches:
            rules.check_teacher_remains(name, len(found.teachers))
            # They may have the sheet of links in hand.
            await enrolment.drop_links(c, [row["user_id"] for row in await c.fetch(sql.looked_after, found.id)])
        now = self._clock.now()
        await c.execute(sql.remove_member, found.id, member.user_id)
        await audit.record(c, now, caller.origin, Code.CLASS_MEMBER_REMOVE, found.id, user=name)
        await self.announce(c, found.id, now)

    # --- how

    async def authorized(
        self, c: Connection, caller: Principal, id_: str, action: Action, *, lock: bool = False
    ) -> SchoolClass:
        """The class, for a principal who may do that with it."""
        missing = ClassNotFoundError(f"there is no class {id_[:63]}")
        if not ids.is_label(id_):
            raise missing
        if lock:
            await store.lock(c, id_)
        found = await store.find(c, id_)
        if found is None:
            raise missing
        role = await store.role_in(c, id_, caller.id) if caller.id else None
        teaches = role is MemberRole.TEACHER and policy.is_staff(caller)
        resource = Resource(id_, is_taught=teaches, is_member=role is not None)
        decision = policy.decide(caller, action, resource)
        if decision.effect is Effect.HIDE:
            raise missing
        policy.enforce(decision)
        return found

    async def _found(self, c: Connection, id_: str) -> SchoolClass:
        found = await store.find(c, id_)
        assert found  # noqa: S101 (just made)
        return found

    async def _member(self, c: Connection, id_: str, name: str) -> Member:
        found = await store.members(c, id_, name=name, limit=1) if ids.is_label(name) else []
        if not found:
            raise NotFoundError(f"there is no such person in this class: {name[:63]}")
        return found[0]

    @staticmethod
    async def announce(c: Connection, id_: str, now: datetime) -> None:
        """To those who look at the class: something about it, or about who is in it, changed."""
        await outbox.write(c, now, [Event(f"class:{id_}", "class_updated", id_, {"class_id": id_})])
