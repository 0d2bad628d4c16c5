"""The use cases about courses, each one transaction: write, change, withdraw, take up. For the API and the start."""

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any

from codehub import ids
from codehub.audit import service as audit
from codehub.audit.codes import Code
from codehub.clock import Clock
from codehub.courses import rules, store
from codehub.courses.errors import (
    CourseChangedError,
    CourseExistsError,
    CourseLimitError,
    CourseNotFoundError,
    CourseShippedError,
    CourseWithdrawnError,
)
from codehub.courses.model import Course, Lesson, Version
from codehub.courses.source import Source
from codehub.courses.store import sql
from codehub.db import Connection, Database
from codehub.errors import InvalidRequestError, NotFoundError
from codehub.events import model as events
from codehub.events import outbox
from codehub.events.model import Event
from codehub.policy import rules as policy
from codehub.policy.actions import Action
from codehub.policy.model import Kind, Origin, Principal, Resource
from codehub.sessions import blueprint, revisions
from codehub.sessions.model import Plan
from codehub.sessions.service import NewPlan, NewSession, Sessions
from codehub.settings import SessionConfig

AUDITED = {True: Code.COURSE_WITHDRAW, False: Code.COURSE_OFFER}  # whether it is withdrawn
PLATFORM = Origin("codehub")  # installs what comes with the product; no person can have this name


@dataclass(frozen=True)
class Outline:
    """What every person may know of a course: not what is in its sessions."""

    course: Course
    lessons: Sequence[Lesson]


class Courses:
    def __init__(self, database: Database, clock: Clock, config: SessionConfig, sessions: Sessions) -> None:
        self._database = database
        self._clock = clock
        self._config = config
        self._sessions = sessions

    async def create(self, caller: Principal, course: Source, owner: str | None = None) -> Outline:
        """Of who asks; the operator's own are the platform's."""
        async with self._database.transaction() as c:
            return await self.create_in(c, caller, course, owner)

    async def create_in(self, c: Connection, caller: Principal, course: Source, owner: str | None = None) -> Outline:
        """The same, in the transaction of the caller."""
        policy.require(caller, Action.COURSE_CREATE)
        if owner is not None and not policy.is_self(caller, owner):
            policy.require(caller, Action.COURSE_CREATE_FOR)
        self.check(course)
        return await self._add(c, caller.origin, course, await self._owner(c, caller, owner))

    async def page(
        self,
        caller: Principal,
        *,
        language: str | None,
        owner: str | None,
        key: str | None,
        after: store.After,
        limit: int,
    ) -> list[Course]:
        """What is withdrawn is listed for its owner and for admins, who may offer it again."""
        policy.require(caller, Action.COURSE_LIST)
        whose = None if policy.allows(caller, Action.COURSE_LIST_WITHDRAWN) else caller.name
        async with self._database.connection() as c:
            which = {"language": language, "owner": owner, "key": key, "withdrawn_of": whose}
            return await store.page(c, **which, after=after, limit=limit)

    async def languages(self, caller: Principal, ids_: Sequence[str]) -> dict[str, str]:
        """In which language each of these is, for plans that were made of them; also of those that were withdrawn."""
        policy.require(caller, Action.COURSE_LIST)
        async with self._database.connection() as c:
            return await store.languages(c, ids_)

    async def get(self, caller: Principal, id_: str) -> Outline:
        async with self._database.connection() as c:
            found = await self._find(c, caller, id_, Action.COURSE_SEE)
            return Outline(found, await store.lessons(c, id_, found.version))

    async def source(self, caller: Principal, id_: str, version: int | None = None) -> tuple[Course, dict[str, Any]]:
        """As its author wrote it, with answers."""
        async with self._database.connection() as c:
            await self._find(c, caller, id_, Action.COURSE_SOURCE)
            found = await store.find(c, id_, version)
            if found is None:
                raise CourseNotFoundError(f"the course {id_} has no version {version}")
            return found, await self.source_in(c, found)

    async def source_in(self, c: Connection, course: Course) -> dict[str, Any]:
        """Of a course that the caller may read; of this version."""
        lessons = await store.lessons(c, course.id, course.version)
        bodies = await revisions.bodies(c, {lesson.blueprint_hash for lesson in lessons})
        head = {name: getattr(course, name) for name in ("key", "title", "language", "description", "author")}
        sessions = [
            {"key": s.key, "title": s.title, "day": s.day, "blueprint": bodies[s.blueprint_hash]} for s in lessons
        ]
        return {**head, "sessions": sessions}

    async def changeable(self, caller: Principal, id_: str) -> Course:
        """The course, for who may change it."""
        async with self._database.connection() as c:
            return await self._find(c, caller, id_, Action.COURSE_CHANGE)

    async def versions(
        self, caller: Principal, id_: str, *, newest: int | None = None, limit: int
    ) -> list[tuple[Version, list[Lesson]]]:
        """From this one backwards, for who may read all of it."""
        async with self._database.connection() as c:
            found = await self._find(c, caller, id_, Action.COURSE_SOURCE)
            return await store.versions(c, id_, newest or found.version, limit)

    async def used(self, caller: Principal, ids_: Sequence[str]) -> dict[str, int]:
        """How many plans there are of each of these; of those without any, nothing."""
        policy.require(caller, Action.COURSE_CREATE)
        async with self._database.connection() as c:
            return await revisions.used(c, ids_)

    async def change(self, caller: Principal, id_: str, course: Source, based_on: int | None = None) -> Outline:
        """A new version, which reaches the sessions that no learner has started; the same again changes nothing.

        `based_on`: the version that was read before; another one by now is refused, so that no change is lost.
        """
        async with self._database.transaction() as c:
            return await self.change_in(c, caller, id_, course, based_on)

    async def change_in(
        self, c: Connection, caller: Principal, id_: str, course: Source, based_on: int | None = None
    ) -> Outline:
        """The same, in the transaction of the caller."""
        self.check(course)
        await _locked(c, sql.lock, id_)
        found = await self._find(c, caller, id_, Action.COURSE_CHANGE)
        if found.is_shipped:
            raise CourseShippedError(f"{found.title} changes with the product: export it and import it as your own")
        if based_on is not None and based_on != found.version:
            hint = "look at it, and send your change with that version"
            raise CourseChangedError(f"version {found.version} is the newest by now: {hint}", version=found.version)
        return await self._revise(c, caller.origin, found, course)

    async def take_up(
        self, caller: Principal, id_: str, starts_on: date | None = None, owner: str | None = None
    ) -> tuple[Plan, bool]:
        """A plan from the newest version; the one that is there and not finished, and False, if there is one."""
        rules.check_day(starts_on)
        if owner is not None and not policy.is_self(caller, owner):
            policy.require(caller, Action.PLAN_CREATE_FOR, Resource(owner=owner))
        async with self._database.transaction() as c:
            await _locked(c, sql.hold, id_)
            found = await self._find(c, caller, id_, Action.COURSE_TAKE)
            if there := await revisions.unfinished_plan(c, id_, owner or caller.name):
                plan_id, created = there, False
            elif found.withdrawn_at is not None:
                raise CourseWithdrawnError(rules.not_offered(found))
            else:
                new = await self._plan(c, found, starts_on or self._clock.now().date(), owner)
                plan_id, created = (await self._sessions.create_plan_in(c, caller, new)).id, True
        return await self._sessions.plan(caller, plan_id), created

    async def to_assign(self, c: Connection, caller: Principal, id_: str) -> Outline:
        """As it is now, for learners to whom the caller gives it in this transaction; no one takes it up meanwhile."""
        await _locked(c, sql.lock, id_)
        found = await self._find(c, caller, id_, Action.COURSE_TAKE)
        if found.withdrawn_at is not None:
            raise CourseWithdrawnError(rules.not_offered(found))
        lessons = await store.lessons(c, id_, found.version)
        bodies = await revisions.bodies(c, {lesson.blueprint_hash for lesson in lessons})
        parsed = await asyncio.to_thread(lambda: [blueprint.parse(bodies[lesson.blueprint_hash]) for lesson in lessons])
        for position, session in enumerate(parsed):
            self._sessions.check_template(session, f"sessions.{position}.blueprint")
        return Outline(found, lessons)

    async def withdraw(self, caller: Principal, id_: str) -> Outline:
        """Nobody takes it up any more; plans of it go on, and new versions reach them. Twice is once."""
        return await self._set_withdrawn(caller, id_, withdrawn=True)

    async def offer(self, caller: Principal, id_: str) -> Outline:
        """What was withdrawn can be taken up again."""
        return await self._set_withdrawn(caller, id_, withdrawn=False)

    async def _set_withdrawn(self, caller: Principal, id_: str, *, withdrawn: bool) -> Outline:
        async with self._database.transaction() as c:
            await _locked(c, sql.lock, id_)  # who takes it up at this moment was first, or is refused
            found = await self._find(c, caller, id_, Action.COURSE_WITHDRAW)
            lessons = await store.lessons(c, id_, found.version)
            if withdrawn == (found.withdrawn_at is not None):
                return Outline(found, lessons)
            now = self._clock.now()
            await c.execute(sql.withdraw, id_, now if withdrawn else None)
            await audit.record(c, now, caller.origin, AUDITED[withdrawn], id_, title=found.title)
            return await self._outline(c, now, id_, lessons)

    async def install(self, courses: Iterable[Source]) -> list[str]:
        """What comes with the product: new ones, and new versions of those that changed. Safe in several processes."""
        changed = []
        async with self._database.transaction() as c:
            await c.execute(sql.one_course_at_a_time, PLATFORM.actor)
            there = {(row["key"], row["language"]): row for row in await c.fetch(sql.shipped)}
            for course in courses:
                found = there.get((course.key, course.language))
                if found is None:
                    changed.append((await self._add(c, PLATFORM, course, None, is_shipped=True)).course.id)
                elif found["digest"] != rules.digest(course):
                    await c.execute(sql.lock, found["id"])
                    now = await store.find(c, found["id"])
                    assert now  # noqa: S101 (just read)
                    changed.append((await self._revise(c, PLATFORM, now, course)).course.id)
        return changed

    # --- parts

    def check(self, course: Source) -> None:
        """Raise InvalidRequestError where it needs what this platform does not have."""
        for number, session in enumerate(course.sessions):
            self._sessions.check_template(session.blueprint, f"sessions.{number}.blueprint")

    async def _owner(self, c: Connection, caller: Principal, owner: str | None) -> str | None:
        if owner is None:
            owner_id = caller.id or None
        else:
            owner_id = await c.fetchval(sql.owner, owner)
            if owner_id is None:
                raise NotFoundError(policy.NO_SUCH_USER)
        most = policy.allowance(caller, self._config.max_courses_per_user)
        if owner_id is not None and most is not None and caller.kind is Kind.PERSON:
            await c.execute(sql.one_course_at_a_time, owner_id)
            made = await c.fetchval(sql.count, owner_id)
            if made >= most:
                hint = "change one of them, or ask an admin to raise CODEHUB_MAX_COURSES_PER_USER"
                raise CourseLimitError(f"there are {made} courses; {most} is the most: {hint}", courses=made)
        return owner_id

    async def _add(
        self, c: Connection, by: Origin, course: Source, owner_id: str | None, *, is_shipped: bool = False
    ) -> Outline:
        now = self._clock.now()
        await _require_no_id(c, course)
        id_ = await store.add(c, now, course, owner_id, is_shipped=is_shipped)
        if id_ is None:
            other = await c.fetchval(sql.by_key, owner_id, is_shipped, course.key, course.language, None)
            raise _exists(course, other)
        lessons = await self._keep(c, now, by, id_, 1, course)
        await audit.record(c, now, by, Code.COURSE_CREATE, id_, title=course.title)
        return await self._outline(c, now, id_, lessons)

    async def _revise(self, c: Connection, by: Origin, found: Course, course: Source) -> Outline:
        now, version = self._clock.now(), found.version + 1
        old = await store.lessons(c, found.id, found.version)
        if rules.digest(course) == found.digest:
            return Outline(found, old)
        if version > rules.MOST_VERSIONS:
            hint = "go on in a new course"
            raise CourseLimitError(f"{found.title} has {found.version} versions, which is the most: {hint}")
        owner_id = await c.fetchval(sql.owner_id, found.id)
        other = await c.fetchval(sql.by_key, owner_id, found.is_shipped, course.key, course.language, found.id)
        if other is not None:
            raise _exists(course, other)
        if course.key != found.key:
            await _require_no_id(c, course)
        lessons = await self._keep(c, now, by, found.id, version, course)
        await c.execute(sql.change, found.id, course.key, course.language, version, now)
        await revisions.apply(c, now, found.id, version, course.title, rules.revision(old, lessons))
        await audit.record(c, now, by, Code.COURSE_CHANGE, found.id, title=course.title, version=version)
        return await self._outline(c, now, found.id, lessons)

    async def _keep(
        self, c: Connection, now: datetime, by: Origin, id_: str, version: int, course: Source
    ) -> list[Lesson]:
        hashes = await revisions.keep(c, now, [session.blueprint for session in course.sessions])
        lessons = [
            Lesson(s.key, s.title, s.day, tuple(step.value for step in s.blueprint.steps), hash_)
            for s, hash_ in zip(course.sessions, hashes, strict=True)
        ]
        await store.add_version(c, now, id_, version, course, rules.digest(course), by.actor, lessons)
        return lessons

    async def _outline(self, c: Connection, now: datetime, id_: str, lessons: Sequence[Lesson]) -> Outline:
        made = await store.find(c, id_)
        assert made  # noqa: S101 (just written)
        await _tell(c, now, made)
        return Outline(made, lessons)

    async def _find(self, c: Connection, caller: Principal, id_: str, action: Action) -> Course:
        found = await store.find(c, id_) if ids.is_label(id_) else None
        if found is None:
            raise CourseNotFoundError(f"there is no course {id_[:63]}")
        policy.require(caller, action, Resource(id=id_, owner=found.owner))
        return found

    async def _plan(self, c: Connection, course: Course, starts_on: date, owner: str | None) -> NewPlan:
        lessons = await store.lessons(c, course.id, course.version)
        bodies = await revisions.bodies(c, {lesson.blueprint_hash for lesson in lessons})
        parsed = await asyncio.to_thread(lambda: {hash_: blueprint.parse(body) for hash_, body in bodies.items()})
        sessions = [NewSession(s.title, rules.on(starts_on, s.day), parsed[s.blueprint_hash], s.key) for s in lessons]
        return NewPlan(course.title, sessions, owner, course.id, course.version, starts_on)


async def _tell(c: Connection, now: datetime, course: Course) -> None:
    """Those whose pages show it to be changed: its owner, and admins, who see all. An admin's own is told twice."""
    owner_id, data = await c.fetchval(sql.owner_id, course.id), {"course_id": course.id, "version": course.version}
    audiences = [events.user(owner_id), events.ADMINS] if owner_id else [events.ADMINS]
    await outbox.write(c, now, [Event(audience, "course_updated", course.id, data) for audience in audiences])


async def _locked(c: Connection, statement: str, id_: str) -> None:
    """What cannot be an id is not asked for: the database refuses some texts."""
    if ids.is_label(id_):
        await c.execute(statement, id_)


async def held(c: Connection, id_: str) -> Outline:
    """As it is now, and until the end of the transaction: for those who get it with what their class has."""
    await c.execute(sql.hold, id_)
    found = await store.find(c, id_)
    assert found  # noqa: S101 (no course is ever removed)
    return Outline(found, await store.lessons(c, id_, found.version))


async def _require_no_id(c: Connection, course: Source) -> None:
    """Commands name a course by its id or its key: one is never taken for the other."""
    if course.key is not None and await c.fetchval(sql.is_course, course.key):
        raise InvalidRequestError(f"{course.key!r} is the id of a course: choose another key", field="key")


def _exists(course: Source, other: str | None) -> CourseExistsError:
    hint = f"change that one (PUT /api/v1/courses/{other}), or choose another key"
    return CourseExistsError(f"there is a course {course.key!r} in {course.language} already: {hint}", course_id=other)
