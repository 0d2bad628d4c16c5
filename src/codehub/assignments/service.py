"""The use cases about what a class is given, each one transaction. Called by the API and by pages."""

from collections.abc import Sequence
from datetime import date

from codehub import ids
from codehub.assignments import giving, progress_store, rules, store
from codehub.assignments.errors import AssignmentNotFoundError
from codehub.assignments.model import Assignment, LearnerProgress, Progress, Taught
from codehub.assignments.store import sql
from codehub.audit import service as audit
from codehub.audit.codes import Code
from codehub.classes import rules as class_rules
from codehub.classes.service import Classes
from codehub.clock import Clock
from codehub.courses import rules as course_rules
from codehub.courses.service import Courses
from codehub.db import Connection, Database
from codehub.errors import NotFoundError
from codehub.http import paging
from codehub.policy import rules as policy
from codehub.policy.actions import Action
from codehub.policy.model import Principal


class Assignments:
    def __init__(self, database: Database, clock: Clock, classes: Classes, courses: Courses) -> None:
        self._database = database
        self._clock = clock
        self._classes = classes
        self._courses = courses

    async def assign(
        self, caller: Principal, class_id: str, course_id: str, starts_on: date | None = None
    ) -> tuple[Assignment, bool]:
        """Every learner of the class gets a plan; False: the class had it, and nothing changed."""
        async with self._database.transaction() as c:
            found = await self._classes.authorized(c, caller, class_id, Action.CLASS_ASSIGN, lock=True)
            class_rules.check_open(found)
            if there := await self._going_on(c, class_id, course_id):
                rules.check_same(there, starts_on)
                return there, False
            course = await self._courses.to_assign(c, caller, course_id)
            course_rules.check_day(starts_on)
            rules.check_count(found, await c.fetchval(sql.count, class_id))
            now, id_ = self._clock.now(), ids.new()
            await c.execute(sql.add, id_, class_id, course_id, starts_on or now.date(), caller.name, now)
            made = await store.find(c, class_id, id_)
            assert made  # noqa: S101 (just made)
            learners = await giving.give(c, now, made, course, await store.learners(c, class_id))
            data = {"title": course.course.title, "learners": learners}
            await audit.record(c, now, caller.origin, Code.ASSIGNMENT_CREATE, class_id, **data)
            await self._classes.announce(c, class_id, now)
            return made, True

    async def _going_on(self, c: Connection, class_id: str, course_id: str) -> Assignment | None:
        id_ = await c.fetchval(sql.going_on, class_id, course_id) if ids.is_label(course_id) else None
        return await store.find(c, class_id, id_) if id_ else None

    async def page(self, caller: Principal, class_id: str, *, after: store.After, limit: int) -> list[Assignment]:
        """Those that go on; also for the learners of the class."""
        async with self._database.connection() as c:
            await self._classes.authorized(c, caller, class_id, Action.CLASS_SEE)
            return await store.page(c, class_id, after, limit)

    async def end(self, caller: Principal, class_id: str, id_: str) -> None:
        """The plans stay, and go on; who joins later does not get it."""
        async with self._database.transaction() as c:
            await self._classes.authorized(c, caller, class_id, Action.CLASS_ASSIGN, lock=True)
            found = await store.find(c, class_id, id_) if ids.is_label(id_) else None
            if found is None or found.ended_at is not None:
                raise AssignmentNotFoundError(f"the class was not given {id_[:63]}, or it has ended")
            now = self._clock.now()
            await c.execute(sql.end, id_, now)
            await audit.record(c, now, caller.origin, Code.ASSIGNMENT_END, class_id, title=found.title)
            await self._classes.announce(c, class_id, now)

    async def taught(self, caller: Principal, course_id: str, *, limit: int) -> list[Taught]:
        """One's own classes to which this course can be given, or was."""
        policy.require(caller, Action.CLASS_LIST)
        if not policy.is_staff(caller):
            return []
        async with self._database.connection() as c:
            return await store.taught(c, caller.id, course_id, limit)

    async def classes_of(self, caller: Principal, plan_ids: Sequence[str]) -> dict[str, list[str]]:
        """From which classes plans are that the caller may see: titles by plan."""
        policy.require(caller, Action.PLAN_LIST)
        async with self._database.connection() as c:
            return await store.classes_of_plans(c, plan_ids) if plan_ids else {}

    async def given_to(self, caller: Principal, *, limit: int) -> dict[str, str]:
        """One's own plans from classes that go on, with the class's title."""
        policy.require(caller, Action.PLAN_LIST)
        async with self._database.connection() as c:
            return await store.given_to(c, caller.id, limit)

    async def progress(self, caller: Principal, class_id: str, assignment_id: str | None = None) -> Progress:
        """Of all its learners, or of one of its courses. An archived class can be read, too."""
        async with self._database.connection() as c:
            await self._classes.authorized(c, caller, class_id, Action.CLASS_PROGRESS)
            given = await store.page(c, class_id, paging.place(None), rules.MOST)
            if assignment_id is not None and assignment_id not in {one.id for one in given}:
                raise AssignmentNotFoundError(f"the class was not given {assignment_id[:63]}, or it has ended")
            learners = await progress_store.learners(c, class_id, assignment_id)
        return Progress(given, rules.columns(given, learners), learners)

    async def progress_of(self, caller: Principal, class_id: str, name: str) -> LearnerProgress:
        """Of one learner of the class."""
        async with self._database.connection() as c:
            await self._classes.authorized(c, caller, class_id, Action.CLASS_PROGRESS)
            found = await progress_store.learners(c, class_id, name=name)
        if not found:
            raise NotFoundError(f"there is no such learner in this class: {name[:63]}")
        return found[0]
