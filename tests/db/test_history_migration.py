"""Histories that were written as prose become codes with data; what is not recognised is kept as it was."""

import json
from collections.abc import AsyncIterator, Mapping
from typing import Any

import asyncpg
import pytest

from codehub.db import migrate
from codehub.retention.rules import Rule
from codehub.workspaces import history, rules
from tests import databases
from tests.servers import TestServers

ADD = """
INSERT INTO workspace_history (workspace_id, at, actor, event, from_state, to_state, reason, took_seconds, detail)
VALUES ('w', '2026-03-02 00:10:00+00', $1, $2, $3, $4, $5, $6, $7)
"""
OP = {"op_id": "op1"}
IDLE = {"idle_since": "2026-03-01T23:00:00+00:00", "seconds": 600}
ASLEEP = {"asleep_since": "2026-03-01T23:00:00+00:00", "seconds": 600}
ORPHAN = {"bytes": 7, "orphan_since": "2026-03-01T23:00:00+00:00"}
COLLECTED = {"reason": "it was never finished", **ORPHAN}
# actor, event, to_state, reason, detail → code, data
LINES: list[tuple[str, str, str | None, str, Mapping[str, Any], str, Mapping[str, Any]]] = [
    ("mina", "created", "PENDING", "created, to be RUNNING", {}, "created", {"desired_state": "RUNNING"}),
    ("mina", "wish", "RUNNING", "asked by user", {}, "start_requested", {"by": "user"}),
    ("boss", "wish", "STANDBY", "asked by admin", {}, "sleep_requested", {"by": "admin"}),
    ("mina", "wish", "ARCHIVED", "asked by user", {}, "archive_requested", {"by": "user"}),
    ("mina", "wish", "RUNNING", "asked by wake", {}, "woken", {}),
    ("ttl", "wish", "STANDBY", "idle for longer than 600 s", IDLE, "idle_sleep", IDLE),
    ("ttl", "wish", "ARCHIVED", "asleep for longer than 600 s", ASLEEP, "idle_archive", ASLEEP),
    ("boss", "wish", "STANDBY", "its owner was deactivated", {}, "owner_deactivated", {}),
    ("mina", "delete", None, "asked for", {}, "delete_requested", {}),
    ("mina", "purge", None, "asked for", {}, "purge_requested", {}),
    ("mina", "undelete", "STANDBY", "asked for", {}, "undelete_requested", {}),
    ("mina", "recover", "STANDBY", "asked for", {}, "recover_requested", {}),
    (
        *("mina", "restore", "STANDBY", "to the restore point of 2026-02-28 09:05 UTC", {}),
        *("restore_requested", {"created_at": "2026-02-28T09:05:00+00:00"}),
    ),
    (
        *("mina", "restore", "STANDBY", "to the restore point that it was archived to", {}),
        *("archive_restore_requested", {}),
    ),
    ("mina", "shared", None, "with jun-2", {}, "shared", {"user": "jun-2"}),
    ("mina", "unshared", None, "from jun-2", {}, "unshared", {"user": "jun-2"}),
    ("boss", "unshared", None, "deactivated: from jun-2", {}, "guest_deactivated", {"user": "jun-2"}),
    ("workspace", "hold", None, "asked for from inside", {}, "held", {"purpose": None}),
    ("workspace", "hold", None, "my training, take 2", {}, "held", {"purpose": "my training, take 2"}),
    (
        *("ttl", "kept awake", "STANDBY", "somebody was at work at 00:09:58", {}),
        *("work_resumed", {"active_at": "2026-03-02T00:09:58+00:00"}),
    ),
    (
        *("ttl", "kept awake", "STANDBY", "somebody was at work at 23:59:58", {}),
        *("work_resumed", {"active_at": "2026-03-01T23:59:58+00:00"}),
    ),
    *(
        (
            *("controller", f"{plan.operation} begins", None, plan.when, OP),
            *("operation_begun", {**OP, "operation": plan.operation, "plan": plan.code}),
        )
        for plan in rules.PLANS
        if plan.operation != "NONE"
    ),
    *(
        ("controller", operation, "STANDBY", "observed to be done", OP, kind.code, OP)
        for operation, kind in history.COMPLETED.items()
    ),
    (
        *("controller", "STARTING will be tried again", "STANDBY", "StartFailed: it ended: with 3\nand more", {}),
        *(
            "operation_retried",
            {"operation": "STARTING", "reason": "StartFailed", "message": "it ended: with 3\nand more"},
        ),
    ),
    (
        *("controller", "ARCHIVING given up", "ERROR", "Timeout: took longer than 5 s", {}),
        *("operation_given_up", {"operation": "ARCHIVING", "reason": "Timeout", "message": "took longer than 5 s"}),
    ),
    ("controller", "IDE ended", "STANDBY", "the IDE is gone", {}, "ide_gone", {}),
    (
        *("controller", "IDE ended", "STANDBY", "the IDE ended by itself (exit code -9). Killed\nfor memory", {}),
        *("ide_ended", {"exit_code": -9, "log_tail": "Killed\nfor memory"}),
    ),
    (
        *("controller", "IDE ended", "STANDBY", "the IDE ended by itself (exit code unknown).", {}),
        *("ide_ended", {"exit_code": None, "log_tail": ""}),
    ),
    (
        *("controller", "DataLost", "ERROR", "its files vanished although nobody of ours removed them", {}),
        *("problem_found", {"reason": "DataLost"}),
    ),
    ("controller", "observed", "STANDBY", "found so, outside of any operation", {}, "observed", {}),
    ("trash", "emptied", None, "purged", {}, "purged", {}),
    ("trash", "emptied", None, "its time in the trash is over", {}, "trash_expired", {}),
    (
        *("gc", "archive collected", None, "it was never finished", COLLECTED),
        *("archive_collected", {**ORPHAN, "rule": "unfinished"}),
    ),
    (
        *("gc", "volume collected", None, "there are 3 newer restore points", COLLECTED),
        *("volume_collected", {**ORPHAN, "rule": "newer_points"}),
    ),
    ("mina", "wish", "RUNNING", "because", {"x": 1}, "note", {"event": "wish", "text": "because", "x": 1}),
    ("gc", "cleaned", None, "who knows", {}, "note", {"event": "cleaned", "text": "who knows"}),
]


@pytest.fixture
async def before(servers: TestServers) -> AsyncIterator[str]:
    """A database as it was before there were codes."""
    async with databases.without_tables(servers) as url:
        await migrate.migrate(url, up_to=_version() - 1)
        yield url


def _version() -> int:
    return next(m.version for m in migrate.available() if m.name == "history")


async def test_every_line_that_was_written_as_prose_becomes_its_code(before: str) -> None:
    c = await asyncpg.connect(before)
    await c.execute("INSERT INTO users (name, role, created_at) VALUES ('mina', 'learner', now())")
    await c.execute(
        "INSERT INTO workspaces (id, name, template, owner, created_at, updated_at, phase_changed_at, last_access_at,"
        " desired_state, desired_by, desired_at)"
        " VALUES ('w', 'w', 't', 'mina', now(), now(), now(), now(), 'STANDBY', 'user', now())"
    )
    for actor, event, to_state, reason, detail, _, _ in LINES:
        await c.execute(ADD, actor, event, "RUNNING", to_state, reason, 1.5, json.dumps(detail))
    await migrate.migrate(before, up_to=_version())
    found = await c.fetch("SELECT * FROM workspace_history ORDER BY id")
    for row, (actor, event, to_state, _, _, code, data) in zip(found, LINES, strict=True):
        assert (row["code"], json.loads(row["data"])) == (code, data)
        others = (row["actor"], row["from_state"], row["to_state"], row["took_seconds"])
        assert others == (actor, "RUNNING", to_state, 1.5)
        assert history.event(row["code"], json.loads(row["data"])) == event
    await c.close()


async def test_audit_and_orphans_keep_what_they_said(before: str) -> None:
    c = await asyncpg.connect(before)
    add = "INSERT INTO audit_log (at, actor, action, subject, detail) VALUES (now(), 'a', $1, 's', $2)"
    for action, detail in (
        ("user.create", {"role": "admin"}),
        ("archive.collect", COLLECTED),
        ("workspace.destroy", {"reason": "purged"}),
        ("workspace.destroy", {"reason": "for fun"}),
    ):
        await c.execute(add, action, json.dumps(detail))
    await c.execute(
        "INSERT INTO orphans (kind, name, workspace_id, reason, bytes, seen_at)"
        " VALUES ('archive', 'n', 'w', 'its workspace was purged', 1, now())"
    )
    await migrate.migrate(before, up_to=_version())
    found = [(r["code"], json.loads(r["data"])) for r in await c.fetch("SELECT code, data FROM audit_log ORDER BY id")]
    assert found == [
        ("user.create", {"role": "admin"}),
        ("archive.collect", {**ORPHAN, "rule": "unfinished"}),
        ("workspace.destroy", {"why": "purged"}),
        ("workspace.destroy", {"reason": "for fun"}),
    ]
    assert Rule(await c.fetchval("SELECT rule FROM orphans")) is Rule.WORKSPACE_PURGED
    await c.close()
