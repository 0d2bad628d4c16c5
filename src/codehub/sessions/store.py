"""SQL about plans, sessions and runs; rows become frozen dataclasses here. Called by the services of this folder."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

import asyncpg

from codehub.db import Connection, Queries, Row
from codehub.events.model import Event
from codehub.sessions.model import (
    EndReason,
    Keyed,
    Plan,
    Run,
    RunStatus,
    Session,
    SessionStatus,
    Snapshot,
    StartView,
    StoredAnswer,
    Tries,
)

sql = Queries("codehub.sessions")
After = tuple[datetime, str]
SESSION_FIELDS = (
    *("id", "plan_id", "position", "key", "title", "scheduled_for_date", "blueprint_hash", "changed_at"),
    *("run_id", "view_hash"),
)
RUNNING_FIELDS = (
    *("id", "step_index", "fence", "blueprint_hash", "predecessor_id", "workspace_id", "started_at"),
    *("last_activity_at", "snapshot", "inherits_from", "first_step", "snapshot_bytes"),
)


@dataclass(frozen=True)
class Key:
    """An idempotency key of a request: whose, and which request it stands for."""

    principal: str
    key: str
    fingerprint: bytes
    lock: int  # of the advisory lock


@dataclass(frozen=True)
class Owned:
    """A session, and whose it is."""

    session: Session
    owner: str
    owner_id: str


def _session(record: Row) -> Session:
    fields = {name: record[name] for name in SESSION_FIELDS}
    return Session(**fields, status=SessionStatus(record["status"]))


def _run(record: Row) -> Run:
    reason = record["end_reason"]
    fields = {name: value for name, value in record.items() if name != "saved"}
    words = {"status": RunStatus(record["status"]), "end_reason": EndReason(reason) if reason else None}
    return Run(**{**fields, **words})


def _said(events: Sequence[Event]) -> list[dict[str, Any]]:
    """Not by `asdict`, which copies what is in them: a tenth of what a step costs this process."""
    return [{"audience": e.audience, "kind": e.kind, "subject": e.subject, "data": e.data} for e in events]


# --- plans and sessions


async def add_blueprint(c: Connection, hash_: str, body: str, view_hash: str, now: datetime) -> None:
    await c.execute(sql.add_blueprint, hash_, body, view_hash, now)


async def blueprint(c: Connection, hash_: str) -> tuple[str, str]:
    """Its body, and the hash of what learners see of it."""
    found = await c.fetchrow(sql.blueprint, hash_)
    assert found  # noqa: S101 (none is ever removed)
    return found["body"], found["view_hash"]


async def add_sessions(c: Connection, plan_id: str, now: datetime, sessions: Sequence[Session]) -> None:
    names = ("id", "position", "key", "title", "scheduled_for_date", "blueprint_hash")
    await c.execute(sql.add_sessions, plan_id, now, *([getattr(s, name) for s in sessions] for name in names))


async def _with_progress(c: Connection, records: Sequence[Row]) -> list[Plan]:
    counts = {record["id"]: dict.fromkeys(SessionStatus, 0) for record in records}
    for row in await c.fetch(sql.progress, list(counts)):
        counts[row["plan_id"]][SessionStatus(row["status"])] = row["sessions"]
    return [Plan(**record, progress=counts[record["id"]]) for record in records]


async def find_plan(c: Connection, id_: str) -> Plan | None:
    """With its sessions."""
    record = await c.fetchrow(sql.plan, id_)
    if record is None:
        return None
    (plan,) = await _with_progress(c, [record])
    return replace(plan, sessions=tuple(_session(row) for row in await c.fetch(sql.sessions_of, id_)))


async def page_plans(c: Connection, owner: str | None, after: After, limit: int) -> list[Plan]:
    return await _with_progress(c, await c.fetch(sql.page_plans, owner, *after, limit))


async def find_session(c: Connection, id_: str) -> Owned | None:
    record = await c.fetchrow(sql.session, id_)
    return None if record is None else Owned(_session(record), record["owner"], record["owner_id"])


async def close_session(
    c: Connection, id_: str, to: SessionStatus, now: datetime, why: EndReason, events: Sequence[Event]
) -> None:
    await c.execute(sql.close_session, id_, to, now, why, _said(events))


# --- starting


async def start_view(
    c: Connection, session_id: str, resume_from: str | None, key: Key | None, live_since: datetime, most_keys: int
) -> tuple[Keyed, StartView | None]:
    """What is stored for the key, and the session with what a start depends on; None: there is none.

    `live_since`: keys from before stand for nothing any more; `most_keys`: more are not counted.
    """
    found = await c.fetchrow(sql.start_view, session_id, *_key(key)[:2], live_since, most_keys)
    assert found  # noqa: S101 (always one row)
    answer = None
    if found["fingerprint"] is not None:
        answer = StoredAnswer(found["fingerprint"], found["answer_status"], found["body"], found["answered_at"])
    keyed = Keyed(answer, found["live_keys"])
    if found["id"] is None:
        return keyed, None
    view = StartView(
        _session(found),
        found["owner"],
        found["owner_id"],
        running=_running(found),
        resumable=await _resumable(c, session_id, resume_from) if resume_from else None,
        latest_id=found["latest_id"],
    )
    return keyed, view


async def _resumable(c: Connection, session_id: str, id_: str) -> Run | None:
    """Where it is the running one, it is resumed in one's turn, in which it does not change."""
    found = await find_run(c, id_)
    return found[0] if found and found[0].session_id == session_id else None


def _running(found: Row) -> Run | None:
    if found["run_id"] is None:
        return None
    return Run(
        **{name: found[f"run_{name}"] for name in RUNNING_FIELDS},
        status=RunStatus.RUNNING,
        session_id=found["id"],
        plan_id=found["plan_id"],
        owner=found["owner"],
        owner_id=found["owner_id"],
        ended_at=None,
        end_reason=None,
        end_note=None,
    )


def _key(key: Key | None) -> tuple[str, str, bytes]:
    """Never null: with nulls the server would plan each of these statements anew, which takes longer than to run it."""
    return (key.principal, key.key, key.fingerprint) if key else ("", "", b"")


async def create_run(c: Connection, run: Run, key: Key | None, body: str, events: Sequence[Event], wait: str) -> bool:
    """False: something is not as it was read."""
    fields = (run.started_at, run.session_id, run.blueprint_hash, run.id, run.step_index, run.predecessor_id)
    rest = (run.workspace_id, run.inherits_from, *_key(key), body, _said(events), run.snapshot_bytes)
    return await _at_once(c, sql.create_run, wait, key and key.lock, *fields, *rest)


async def recover_run(
    c: Connection, read: Run, now: datetime, key: Key | None, body: str, events: Sequence[Event], wait: str
) -> bool:
    """False: the run is not as it was read."""
    fields = (now, read.id, read.fence, read.step_index, read.workspace_id)
    return await _at_once(c, sql.recover_run, wait, key and key.lock, *fields, *_key(key), body, _said(events))


async def _at_once(c: Connection, statement: str, *args: Any) -> bool:
    """False also where two are at it at once, and the database lets one in.

    That is a running run of the session, or the key, which another transaction has written and this one could not see.
    """
    try:
        return bool(await c.fetchval(statement, *args))
    except (asyncpg.UniqueViolationError, asyncpg.DeadlockDetectedError):
        return False


async def wait_in_turn(c: Connection, session_id: str, key: Key | None, wait: str) -> None:
    """Holds the key, the session and its running run until the end of the transaction."""
    await c.execute(sql.wait_for_key, wait, key and key.lock)
    await c.execute(sql.lock_session, session_id)
    await c.execute(sql.lock_running, session_id)


async def key_is_free(c: Connection, key: Key) -> bool:
    return bool(await c.fetchval(sql.key_is_free, key.lock))


async def drop_expired_key(c: Connection, key: Key, before: datetime) -> None:
    await c.execute(sql.drop_expired_key, key.principal, key.key, before)


async def prune_keys(c: Connection, before: datetime, limit: int) -> int:
    return int((await c.execute(sql.prune_keys, before, limit)).rsplit(" ", 1)[-1])


# --- runs


async def find_run(c: Connection, id_: str, step: int = -1) -> tuple[Run, bytes | None] | None:
    """With the digest of what was saved for one of its steps."""
    record = await c.fetchrow(sql.run, id_, step)
    if record is None:
        return None
    run, saved = _run(record), record["saved"]
    if 0 <= step < run.first_step:
        saved = await c.fetchval(sql.inherited_digest, id_, step)
    return run, saved


async def page_runs(c: Connection, session_id: str, after: str, limit: int) -> list[Run]:
    """Without their snapshots. `after`: a run's id, or nothing."""
    return [_run(record) for record in await c.fetch(sql.page_runs, session_id, after, limit)]


async def last_runs(c: Connection, session_id: str, limit: int) -> list[Run]:
    """Those that began last, without their snapshots; the very last one at the end."""
    return [_run(record) for record in reversed(await c.fetch(sql.last_runs, session_id, limit))]


async def page_snapshots(
    c: Connection, run_id: str, after: int, limit: int, most_bytes: int
) -> tuple[list[Snapshot], int]:
    """With inherited ones; and how many of them have no more than these bytes together: at most one has not."""
    found = await c.fetch(sql.snapshots, run_id, after, limit, most_bytes)
    snapshots = [Snapshot(record["step_index"], record["state"], record["at"]) for record in found]
    return snapshots, sum(record["fits"] for record in found)


async def save_step(c: Connection, read: Run, saved: Run, state: str, digest: bytes, events: Sequence[Event]) -> bool:
    """The step and its snapshot, both or neither. False: the run is not as it was read."""
    row = (saved.last_activity_at, state, digest, _said(events), saved.snapshot_bytes)
    fields = (read.id, read.fence, read.step_index, *row)
    if saved.status is RunStatus.COMPLETED:
        return bool(await c.fetchval(sql.save_last_step, *fields, read.session_id))
    return bool(await c.fetchval(sql.save_step, *fields))


async def note_try(c: Connection, run: Run, now: datetime, result: Mapping[str, Any], events: Sequence[Event]) -> bool:
    """False: the run is not as it was read, and this try counts for nothing."""
    return bool(await c.fetchval(sql.note_try, run.id, run.fence, run.step_index, now, result, _said(events)))


async def tries(c: Connection, run_id: str) -> list[Tries]:
    found = await c.fetch(sql.tries, run_id)
    return [Tries(r["step_index"], r["tries"], r["last_at"], r["last_result"]) for r in found]


async def note_activity(c: Connection, read: Run, at: datetime) -> datetime | None:
    """None: the run is not as it was read."""
    moved: datetime | None = await c.fetchval(sql.note_activity, read.id, read.fence, at, read.step_index)
    return moved


async def abandon_run(c: Connection, read: Run, ended: Run, *, until: datetime, events: Sequence[Event]) -> bool:
    """False: the run is not as it was read, or was active after `until`."""
    how = (ended.ended_at, ended.end_reason, ended.end_note)
    found = (read.fence, until, _said(events), read.step_index)
    return bool(await c.fetchval(sql.abandon_run, read.session_id, read.id, *how, *found))


async def inactive(c: Connection, before: datetime, limit: int) -> list[Run]:
    return [_run(record) for record in await c.fetch(sql.inactive, before, limit)]
