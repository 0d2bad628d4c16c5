"""SQL about schedules, their lessons and starts; rows become frozen dataclasses here. Called in this folder."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from codehub.db import Connection, Queries, Row, rows
from codehub.schedules.model import (
    Calendar,
    DueStart,
    LastUsed,
    Learner,
    Lesson,
    Schedule,
    Start,
    StartOutcome,
    Weekday,
)
from codehub.workspaces.model import Phase

sql = Queries("codehub.schedules")
CHANNEL = "codehub_schedules"  # for the coordinator: a schedule was made or changed
After = tuple[datetime, str]
CALENDAR = ("local_time", "time_zone", "first_day", "last_day")


def _schedule(record: Row) -> Schedule:
    days = tuple(Weekday(day) for day in record["weekdays"])
    calendar = Calendar(days, **{name: record[name] for name in CALENDAR})
    plain = {name: value for name, value in record.items() if name not in {*CALENDAR, "weekdays"}}
    return Schedule(calendar=calendar, **plain)


def _learner(record: Row) -> Learner:
    used = None
    if record["workspace_id"] is not None:
        names = record["workspace_id"], record["workspace_name"], record["template"]
        used = LastUsed(*names, Phase(record["phase"]))
    person = {name: record[name] for name in ("user_id", "name", "display_name", "active", "attends")}
    return Learner(**person, workspace=used)


async def add(
    c: Connection, id_: str, class_id: str, calendar: Calendar, *, for_all: bool, by: str, at: datetime
) -> None:
    days = [str(day) for day in calendar.weekdays]
    when = [getattr(calendar, name) for name in CALENDAR]
    await c.execute(sql.add, id_, class_id, days, *when, for_all, by, at)


async def find(c: Connection, id_: str) -> Schedule | None:
    found = await c.fetchrow(sql.find, id_)
    return _schedule(found) if found else None


async def lock(c: Connection, id_: str) -> Schedule | None:
    found = await c.fetchrow(sql.lock, id_)
    return _schedule(found) if found else None


async def page(c: Connection, class_id: str, after: After, limit: int) -> list[Schedule]:
    return [_schedule(record) for record in await c.fetch(sql.page, class_id, *after, limit)]


async def save(c: Connection, schedule: Schedule) -> None:
    s = schedule
    await c.execute(sql.save, s.id, s.paused_at, s.done_through, s.skipped_through, s.due_at)


async def learner_ids(c: Connection, class_id: str, names: Sequence[str]) -> dict[str, str]:
    """By name; those who are no learners of the class are not in it."""
    return {record["name"]: record["id"] for record in await c.fetch(sql.learner_ids, class_id, list(names))}


async def learners(c: Connection, id_: str) -> list[Learner]:
    return [_learner(record) for record in await c.fetch(sql.learners, id_, None)]


async def learner(c: Connection, id_: str, user_id: str) -> Learner:
    found = await c.fetchrow(sql.learners, id_, user_id)
    assert found  # noqa: S101 (a start's row refers to the person's)
    return _learner(found)


async def due(c: Connection, now: datetime, limit: int) -> list[str]:
    return [record["id"] for record in await c.fetch(sql.due, now, limit)]


async def due_starts(c: Connection, now: datetime, limit: int) -> list[DueStart]:
    return rows(DueStart, await c.fetch(sql.due_starts, now, limit))


async def add_starts(
    c: Connection, id_: str, begins_at: datetime, user_ids: Sequence[str], times: Sequence[datetime]
) -> None:
    await c.execute(sql.add_starts, id_, begins_at, user_ids, times)


async def last_lesson(c: Connection, id_: str) -> Lesson | None:
    found = await c.fetchrow(sql.last_lesson, id_)
    if found is None:
        return None
    starts = rows(Start, await c.fetch(sql.starts, id_, found["begins_at"]))
    read = [replace(s, outcome=StartOutcome(s.outcome) if s.outcome else None) for s in starts]
    return Lesson(found["begins_at"], found["missed"], read)


async def prune(c: Connection, before: datetime, limit: int) -> int:
    """Remove lessons past their time; called by housekeeping, a bounded number at a time."""
    return int((await c.execute(sql.prune, before, limit)).split()[-1])
