"""SQL about what classes are given; rows become frozen dataclasses here. Called by the services of this folder."""

from collections.abc import Sequence
from datetime import datetime

from codehub.assignments.model import Assignment, Taught
from codehub.db import Connection, Queries, one, rows

sql = Queries("codehub.assignments")
After = tuple[datetime, str]


async def find(c: Connection, class_id: str, id_: str) -> Assignment | None:
    return one(Assignment, await c.fetchrow(sql.find, id_, class_id))


async def page(c: Connection, class_id: str, after: After, limit: int) -> list[Assignment]:
    return rows(Assignment, await c.fetch(sql.page, class_id, *after, limit))


async def taught(c: Connection, teacher_id: str, course_id: str, limit: int) -> list[Taught]:
    return rows(Taught, await c.fetch(sql.taught, teacher_id, course_id, limit))


async def learners(c: Connection, class_id: str) -> list[str]:
    """Their ids."""
    return [record["user_id"] for record in await c.fetch(sql.class_learners, class_id)]


async def without_a_plan(c: Connection, id_: str, learners: Sequence[str]) -> list[str]:
    return [record["id"] for record in await c.fetch(sql.without_a_plan, id_, learners)]


async def given_to(c: Connection, learner_id: str, limit: int) -> dict[str, str]:
    """A class's title by plan."""
    return {record["plan_id"]: record["title"] for record in await c.fetch(sql.given_to, learner_id, limit)}


async def classes_of_plans(c: Connection, plan_ids: Sequence[str]) -> dict[str, list[str]]:
    """Titles of the classes that a plan is from."""
    found: dict[str, list[str]] = {}
    for record in await c.fetch(sql.classes_of_plans, plan_ids):
        found.setdefault(record["plan_id"], []).append(record["title"])
    return found
