"""What courses do to plans: keep blueprints, and bring a new version to the sessions that no learner has started.

Called by `courses.service` in its own transactions, with the course's row locked: plans of a course are revised one
version after the other.
"""

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

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


async def unfinished_plan(c: Connection, course_id: str, owner: str) -> str | None:
    """Its id. One person takes a course up once at a time: a double click makes one plan."""
    await c.execute(sql.one_at_a_time, owner, course_id)
    found: str | None = await c.fetchval(sql.unfinished, course_id, owner)
    return found


async def _plans(c: Connection, statement: str, *arguments: object) -> set[str]:
    return {row["plan_id"] for row in await c.fetch(statement, *arguments)}


def _values(session: Planned) -> tuple[str, str, int, str]:
    return session.key, session.title, session.day, session.blueprint_hash


def _columns(sessions: Sequence[Planned]) -> list[list[object]]:
    return [list(column) for column in zip(*(_values(session) for session in sessions), strict=True)]
