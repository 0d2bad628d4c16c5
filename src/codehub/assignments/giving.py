"""Learners get the plans of their class, by a few statements for all of them together.

`service` gives a course to a whole class; `to_joiner` gives one who joins what the class has. `classes` is handed that
function by the composition root, so that every way into a class has it in its own transaction.
"""

from collections.abc import Sequence
from datetime import datetime

from codehub.assignments import store
from codehub.assignments.model import Assignment
from codehub.assignments.rules import MOST
from codehub.assignments.store import sql
from codehub.courses import rules as courses_rules
from codehub.courses import service as courses
from codehub.courses.service import Outline
from codehub.db import Connection
from codehub.events import outbox
from codehub.http import paging
from codehub.sessions import news, revisions
from codehub.sessions.revisions import Given


async def to_joiner(c: Connection, now: datetime, class_id: str, learner_id: str) -> None:
    """The class's row is locked: nothing is assigned meanwhile. What was withdrawn is given as well: it goes on."""
    for assignment in await store.page(c, class_id, paging.place(None), MOST):
        course = await courses.held(c, assignment.course_id)
        await revisions.one_plan_at_a_time(c, assignment.course_id, learner_id)
        await give(c, now, assignment, course, [learner_id])


async def give(c: Connection, now: datetime, assignment: Assignment, course: Outline, learners: Sequence[str]) -> int:
    """To how many of these learners. Who has an unfinished plan of the same course follows the class by that one."""
    missing = await store.without_a_plan(c, assignment.id, learners)
    if not missing:
        return 0
    begun = await revisions.unfinished_plans(c, assignment.course_id, missing)
    planned = [courses_rules.planned(lesson) for lesson in course.lessons]
    what = Given(
        assignment.course_id,
        course.course.version,
        course.course.title,
        assignment.starts_on,
        assignment.created_by,
        planned,
    )
    new = await revisions.add_plans(c, now, what, [id_ for id_ in missing if id_ not in begun])
    plans = {**begun, **new}
    await c.execute(sql.follow, assignment.id, list(plans), list(plans.values()))
    await outbox.write(c, now, [news.plan_updated(owner_id, plan_id) for owner_id, plan_id in plans.items()])
    return len(plans)
