"""SQL about how far learners are and who asks for help; rows become frozen dataclasses here. Called by the services."""

from datetime import datetime

from codehub.assignments import rules
from codehub.assignments.model import Cell, Hand, LearnerProgress
from codehub.db import Connection, Queries, Row, one, rows

sql = Queries("codehub.assignments", "progress.sql")
After = tuple[datetime, str]


async def learners(
    c: Connection, class_id: str, assignment_id: str | None = None, name: str | None = None
) -> list[LearnerProgress]:
    """By one statement, however many there are; or the one of this name."""
    people: dict[str, Row] = {}
    cells: dict[str, list[Cell]] = {}
    for record in await c.fetch(sql.progress, class_id, assignment_id, name):
        people[record["user_id"]] = record
        made = cells.setdefault(record["user_id"], [])
        if record["session_id"] is not None:
            made.append(_cell(record))
    return [
        rules.learner(record["user_id"], record["name"], record["display_name"], cells[record["user_id"]])
        for record in people.values()
    ]


def _cell(record: Row) -> Cell:
    tries = dict(zip(record["tried"], record["tries"], strict=True))
    running = record["run_status"] == "RUNNING"
    steps = record["steps"] or []
    index = record["step_index"] if running else None
    return Cell(
        **{name: record[name] for name in ("assignment_id", "key", "title", "position", "plan_id", "session_id")},
        **{name: record[name] for name in ("run_id", "workspace_id", "hand_id", "last_activity_at")},
        state=rules.state(record["status"], failed=running and record["step_index"] in tries),
        step_index=index,
        step=steps[index] if index is not None and index < len(steps) else None,
        steps=len(steps) or None,
        tries=tries.get(record["step_index"], 0) if running else 0,
        check_tries=rules.tries_of(steps, tries, "CHECK"),
        practice_tries=rules.tries_of(steps, tries, "PRACTICE"),
    )


async def hand(c: Connection, id_: str) -> Hand | None:
    return one(Hand, await c.fetchrow(sql.hand, id_))


async def last_hand(c: Connection, run_id: str) -> Hand | None:
    """The newest of a run, also one that has ended."""
    return one(Hand, await c.fetchrow(sql.last_hand, run_id))


async def hands(c: Connection, class_id: str, after: After, limit: int) -> list[Hand]:
    return rows(Hand, await c.fetch(sql.hands_of_class, class_id, *after, limit))


async def classes_of(c: Connection, learner_id: str) -> list[str]:
    return [record["class_id"] for record in await c.fetch(sql.classes_of_learner, learner_id)]
