"""What courses do to plans: keep blueprints, and bring a new version to the sessions that no learner has started.

Called by `courses.service` in its own transactions, with the course's row locked: plans of a course are revised one
version after the other.
"""

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime

from codehub import ids
from codehub.db import Connection, Queries
from codehub.events import outbox
from codehub.sessions import blueprint, news
from codehub.sessions.blueprint import Blueprint

sql = Queries("codehub.sessions", "revisions.sql")


@dataclass(frozen=True)
class Planned:
    """A session as a course has it."""

    key: str
    title: str
    day: int
    blueprint_hash: str


@dataclass(frozen=True)
class Revision:
    """What another version changes, by keys."""

    changed: Sequence[Planned]
    added: Sequence[Planned]
    gone: Sequence[str]
    order: Sequence[str] | None  # all keys; None: those that stay are in the order they had, and nothing comes between


@dataclass(frozen=True)
class Reach:
    """Whom a new version of a course reaches."""

    plans: int  # of it, in all
    untouched: Mapping[str, int]  # by a session's key: in how many plans it was not begun
    present: Mapping[str, int]  # in how many plans it is


@dataclass(frozen=True)
class Given:
    """A course as several learners get it at once."""

    course_id: str
    version: int
    title: str
    starts_on: date
    by: str  # the name of who gives it
    sessions: Sequence[Planned]


async def keep(c: Connection, now: datetime, blueprints: Sequence[Blueprint]) -> list[str]:
    """Their hashes."""
    texts = [blueprint.canonical(one) for one in blueprints]
    hashes = [blueprint.digest(text) for text in texts]
    views = [blueprint.view_digest(one) for one in blueprints]
    await c.execute(sql.keep_blueprints, hashes, texts, views, now)
    return hashes


async def bodies(c: Connection, hashes: Collection[str]) -> Mapping[str, object]:
    """The blueprints as JSON."""
    return {row["hash"]: json.loads(row["body"]) for row in await c.fetch(sql.bodies, list(hashes))}


async def apply(c: Connection, now: datetime, course_id: str, version: int, title: str, revision: Revision) -> None:
    """Learners whose plan changed are told; what their plan says of its course does not count."""
    plans = await c.fetch(sql.plans_of, course_id)
    touched: set[str] = set()
    if plans and revision.changed:
        touched |= await _plans(c, sql.change, course_id, now, *_columns(revision.changed))
    if plans and revision.gone:
        touched |= await _plans(c, sql.cancel, course_id, now, list(revision.gone))
    if plans and revision.added:
        rows = [
            (ids.new(), plan["id"], plan["last"] + number, *_values(session))
            for plan in plans
            for number, session in enumerate(revision.added, 1)
        ]
        touched |= await _plans(c, sql.add, now, *([row[n] for row in rows] for n in range(7)))
    if plans and revision.order is not None:
        await c.execute(sql.order, course_id, list(revision.order))
    await c.execute(sql.note_version, course_id, version, title)
    await outbox.write(c, now, [news.plan_updated(p["owner_id"], p["id"]) for p in plans if p["id"] in touched])


async def used(c: Connection, course_ids: Sequence[str]) -> dict[str, int]:
    """How many plans there are of each of these courses; of those without any, nothing."""
    return {row["course_id"]: row["plans"] for row in await c.fetch(sql.used, list(course_ids))}


async def reach(c: Connection, course_id: str) -> Reach:
    found = await c.fetch(sql.reach, course_id)
    return Reach(
        plans=await c.fetchval(sql.plans_in_all, course_id),
        untouched={row["key"]: row["reached"] for row in found},
        present={row["key"]: row["plans"] for row in found},
    )


async def unfinished_plan(c: Connection, course_id: str, owner: str) -> str | None:
    """Its id. One person takes a course up once at a time: a double click makes one plan."""
    await c.execute(sql.one_at_a_time, owner, course_id)
    found: str | None = await c.fetchval(sql.unfinished, course_id, owner)
    return found


async def one_plan_at_a_time(c: Connection, course_id: str, owner_id: str) -> None:
    """Who is given a course does not take it up at the same moment."""
    await c.execute(sql.one_at_a_time_by_id, owner_id, course_id)


async def unfinished_plans(c: Connection, course_id: str, owner_ids: Sequence[str]) -> dict[str, str]:
    """Of each of these people who has one: the newest plan of the course that has something left to do."""
    found = await c.fetch(sql.unfinished_of, course_id, list(owner_ids))
    return {record["owner_id"]: record["id"] for record in found}


async def add_plans(c: Connection, now: datetime, given: Given, owner_ids: Sequence[str]) -> dict[str, str]:
    """A plan for each of them, by two statements for all: their ids by owner. No limit of plans counts these."""
    plans = {owner_id: ids.new() for owner_id in owner_ids}
    if not plans:
        return plans
    what = (given.title, given.by, now, given.course_id, given.version, given.starts_on)
    await c.execute(sql.add_plans, list(plans.values()), list(plans), *what)
    rows = [(ids.new(), plan_id, position) for plan_id in plans.values() for position in range(len(given.sessions))]
    places = [list(column) for column in zip(*rows, strict=True)]
    await c.execute(sql.add_planned, now, given.starts_on, *places, *_columns(given.sessions))
    return plans


async def _plans(c: Connection, statement: str, *arguments: object) -> set[str]:
    return {row["plan_id"] for row in await c.fetch(statement, *arguments)}


def _values(session: Planned) -> tuple[str, str, int, str]:
    return session.key, session.title, session.day, session.blueprint_hash


def _columns(sessions: Sequence[Planned]) -> list[list[object]]:
    return [list(column) for column in zip(*(_values(session) for session in sessions), strict=True)]
