"""SQL about courses and their versions; rows become frozen dataclasses here. Called by `service`."""

from collections.abc import Sequence
from datetime import datetime

from codehub import ids
from codehub.courses.model import Course, Lesson, Version
from codehub.courses.source import Source
from codehub.db import Connection, Queries, one, rows

sql = Queries("codehub.courses")
After = tuple[datetime, str]


async def add(
    c: Connection, now: datetime, course: Source, owner_id: str | None, *, is_shipped: bool = False
) -> str | None:
    """Its id; None: the owner has one with this key and language. The version is added apart."""
    made: str | None = await c.fetchval(sql.add, ids.new(), owner_id, course.key, course.language, is_shipped, now)
    return made


async def languages(c: Connection, ids_: Sequence[str]) -> dict[str, str]:
    return {row["id"]: row["language"] for row in await c.fetch(sql.languages, list(ids_))}


async def add_version(
    c: Connection,
    now: datetime,
    id_: str,
    version: int,
    course: Source,
    digest: str,
    by: str,
    lessons: Sequence[Lesson],
) -> None:
    await c.execute(sql.add_version, id_, version, course.title, course.description, course.author, digest, by, now)
    columns = [
        [lesson.key for lesson in lessons],
        [lesson.title for lesson in lessons],
        [lesson.day for lesson in lessons],
        [" ".join(lesson.steps) for lesson in lessons],
        [lesson.blueprint_hash for lesson in lessons],
    ]
    await c.execute(sql.add_sessions, id_, version, *columns)


async def find(c: Connection, id_: str, version: int | None = None) -> Course | None:
    """At this version; None: at its newest."""
    return one(Course, await c.fetchrow(sql.find, id_, version))


async def page(
    c: Connection,
    *,
    language: str | None,
    owner: str | None,
    key: str | None,
    withdrawn_of: str | None,
    after: After,
    limit: int,
) -> list[Course]:
    """`withdrawn_of`: of those that are withdrawn only this person's; None: all."""
    return rows(Course, await c.fetch(sql.page, language, owner, key, *after, limit, withdrawn_of))


async def lessons(c: Connection, id_: str, version: int) -> list[Lesson]:
    found = await c.fetch(sql.lessons, id_, version)
    return [Lesson(**{**record, "steps": tuple(record["steps"])}) for record in found]


async def versions(c: Connection, id_: str, newest: int, limit: int) -> list[tuple[Version, list[Lesson]]]:
    """From this one backwards, each with its sessions."""
    found = rows(Version, await c.fetch(sql.versions, id_, newest, limit))
    sessions: dict[int, list[Lesson]] = {version.version: [] for version in found}
    for record in await c.fetch(sql.lessons_of_versions, id_, list(sessions)):
        fields = {name: value for name, value in record.items() if name != "version"}
        sessions[record["version"]].append(Lesson(**{**fields, "steps": tuple(record["steps"])}))
    return [(version, sessions[version.version]) for version in found]
