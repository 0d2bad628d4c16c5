"""Courses that were sent and are not saved yet: what saving would do, and saving exactly that. Called by pages.

They are kept in the database, so that any process can be asked next: a few of each person, for an hour.
"""

import asyncio
import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from codehub import ids
from codehub.clock import Clock
from codehub.courses import differences, rules, source, store
from codehub.courses.differences import Difference
from codehub.courses.errors import CourseNotFoundError, DraftChangedError, DraftNotFoundError
from codehub.courses.model import Course
from codehub.courses.service import Courses
from codehub.courses.source import Source
from codehub.courses.store import sql as courses_sql
from codehub.courses.tree import Problem
from codehub.db import Connection, Database, Queries
from codehub.events import model as events
from codehub.events import outbox
from codehub.events.model import Event
from codehub.policy import rules as policy
from codehub.policy.actions import Action
from codehub.policy.model import Principal, Resource
from codehub.sessions import revisions
from codehub.sessions.revisions import Reach

sql = Queries("codehub.courses", "drafts.sql")
KEPT = timedelta(hours=1)
MOST_KEPT = 5  # of one person: each is as large as a course may be
MOST_WARNINGS = 200


@dataclass(frozen=True)
class Draft:
    """`course`: which it would change; None: it would be a new one. `copy_of`: one of the product, which stays."""

    id: str
    source: Source
    digest: str
    warnings: Sequence[Problem]
    course: Course | None
    copy_of: Course | None
    difference: Difference
    reach: Reach | None

    @property
    def is_same(self) -> bool:
        return self.course is not None and self.course.digest == self.digest

    @property
    def shown(self) -> str:
        """What the page shows, for `save`: the same course, on the same version of the same one."""
        return f"{self.digest[:16]}:{f'{self.course.id}:{self.course.version}' if self.course else 'new'}"


@dataclass(frozen=True)
class Saved:
    """What a draft became."""

    course_id: str


class Drafts:
    def __init__(self, database: Database, clock: Clock, courses: Courses) -> None:
        self._database = database
        self._clock = clock
        self._courses = courses

    async def keep(
        self, caller: Principal, course: Source, warnings: Sequence[Problem], course_id: str | None = None
    ) -> str:
        """Its id. Raise InvalidRequestError where it needs what this platform does not have."""
        _require(caller)
        self._courses.check(course)
        if course_id is not None:
            await self._courses.changeable(caller, course_id)
        body = await asyncio.to_thread(source.canonical, course)
        digest = await asyncio.to_thread(rules.digest, course)
        told = [[p.file, p.line, p.what] for p in warnings[:MOST_WARNINGS]]
        id_, now = ids.new(), self._clock.now()
        async with self._database.transaction() as c:
            await c.execute(sql.one_at_a_time, caller.id)
            await c.execute(sql.forget_expired, now)
            await c.execute(sql.forget_oldest, caller.id, MOST_KEPT - 1)
            await c.execute(sql.add, id_, caller.id, course_id, body, digest, told, now, now + KEPT)
            await self._tell(c, caller, id_)
        return id_

    async def show(self, caller: Principal, id_: str) -> Draft | Saved:
        """What saving it would do now."""
        _require(caller)
        async with self._database.connection() as c:
            row = await self._row(c, caller, id_)
            if row["saved_as"] is not None:
                return Saved(row["saved_as"])
            new = await _parsed(json.loads(row["body"]))
            course, copy_of = await _target(c, caller, row, new)
            old = await self._courses.source_in(c, course) if course else None
            reach = await revisions.reach(c, course.id) if course else None
        before = await _parsed(old) if old else None
        difference = await asyncio.to_thread(differences.compare, before, new) if before else Difference()
        warnings = [Problem(file, line, what, is_error=False) for file, line, what in row["warnings"]]
        return Draft(id_, new, row["digest"], warnings, course, copy_of, difference, reach)

    async def source(self, caller: Principal, id_: str) -> Source:
        """To be looked at as a learner would see it."""
        _require(caller)
        async with self._database.connection() as c:
            row = await self._row(c, caller, id_)
        if row["body"] is None:
            raise DraftNotFoundError("it was saved meanwhile")
        return await _parsed(json.loads(row["body"]))

    async def save(self, caller: Principal, id_: str, shown: str) -> str:
        """The course's id. What was saved already, by the first of two clicks, is not saved again."""
        _require(caller)
        async with self._database.transaction() as c:
            if ids.is_label(id_):
                await c.execute(sql.lock, id_, caller.id)
            row = await self._row(c, caller, id_)
            if row["saved_as"] is not None:
                return str(row["saved_as"])
            new = await _parsed(json.loads(row["body"]))
            course, copy_of = await _target(c, caller, row, new)
            if Draft(id_, new, row["digest"], (), course, copy_of, Difference(), None).shown != shown:
                raise DraftChangedError("the course has changed since it was shown")
            if course is not None and course.digest == row["digest"]:
                made = course.id  # nothing is different; also of one that is the product's
            elif course is not None:
                made = (await self._courses.change_in(c, caller, course.id, new, course.version)).course.id
            else:
                made = (await self._courses.create_in(c, caller, new)).course.id
            await c.execute(sql.saved, id_, made)
            await self._tell(c, caller, id_)
            return made

    async def _tell(self, c: Connection, caller: Principal, id_: str) -> None:
        """The person's other pages: a draft is nobody else's."""
        event = Event(events.user(caller.id), "draft_updated", id_, {"draft_id": id_})
        await outbox.write(c, self._clock.now(), [event])

    async def _row(self, c: Connection, caller: Principal, id_: str) -> Any:
        row = await c.fetchrow(sql.find, id_, caller.id, self._clock.now()) if ids.is_label(id_) else None
        if row is None:
            raise DraftNotFoundError("there is no such draft, or it is not kept any more")
        return row


def _require(caller: Principal) -> None:
    policy.require(caller, Action.COURSE_CREATE)
    if not caller.id:  # the operator, and who has the token of the settings
        raise DraftNotFoundError("drafts are people's: log in as one")


async def _parsed(value: object) -> Source:
    """In a thread: a large one takes long enough for others to notice."""
    return await asyncio.to_thread(source.parse, value)


async def _target(c: Connection, caller: Principal, row: Any, new: Source) -> tuple[Course | None, Course | None]:
    """Which course it would change; and which of the product's it is a copy of, that stays as it is."""
    found = await _named(c, caller, row["course_id"]) if row["course_id"] else await _by_key(c, caller, new)
    if found is None:
        return None, None
    if found.is_shipped and found.digest != row["digest"]:
        return await _of(c, caller.id, new, is_shipped=False), found
    return found, None


async def _named(c: Connection, caller: Principal, id_: str) -> Course:
    found = await store.find(c, id_)
    if found is None:
        raise CourseNotFoundError(f"there is no course {id_[:63]}")
    policy.require(caller, Action.COURSE_CHANGE, Resource(id=id_, owner=found.owner))
    return found


async def _by_key(c: Connection, caller: Principal, new: Source) -> Course | None:
    """The caller's own of this key and language; of who may change the platform's, one of these."""
    if own := await _of(c, caller.id, new, is_shipped=False):
        return own
    if not policy.allows(caller, Action.COURSE_CHANGE, Resource(owner=None)):
        return None
    return await _of(c, None, new, is_shipped=False) or await _of(c, None, new, is_shipped=True)


async def _of(c: Connection, owner_id: str | None, new: Source, *, is_shipped: bool) -> Course | None:
    id_ = await c.fetchval(courses_sql.by_key, owner_id, is_shipped, new.key, new.language, None)
    return await store.find(c, id_) if id_ else None
