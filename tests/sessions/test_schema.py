"""The database itself: runs and what hangs on them are never removed, what has ended is never changed, one runs."""

from datetime import UTC, date, datetime

import asyncpg
import pytest

NOW = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)
HASH = "0" * 64
SETUP = f"""
INSERT INTO users (id, name, role, created_at) VALUES ('u1', 'mina', 'learner', now());
INSERT INTO workspaces (id, name, template, owner_id, created_at, updated_at, phase_changed_at, last_access_at,
                        desired_state, desired_by, desired_at)
    VALUES ('w1', 'w', 't', 'u1', now(), now(), now(), now(), 'STANDBY', 'user', now());
INSERT INTO blueprints (hash, body, created_at, view_hash) VALUES ('{HASH}', '{{}}', now(), '{HASH}');
INSERT INTO plans (id, owner_id, title, created_by, created_at) VALUES ('p1', 'u1', 'Plan', 'u1', now());
INSERT INTO sessions (id, plan_id, position, key, title, scheduled_for_date, blueprint_hash, changed_at)
    VALUES ('s1', 'p1', 0, '1', 'One', '2026-03-02', '{HASH}', now());
INSERT INTO session_runs (id, session_id, blueprint_hash, workspace_id, started_at, last_activity_at)
    VALUES ('r1', 's1', '{HASH}', 'w1', now(), now());
INSERT INTO run_snapshots (run_id, step_index, state, digest, at) VALUES ('r1', 0, '{{}}', '\\x00', now());
INSERT INTO run_tries (run_id, step_index, tries, last_at, last_result) VALUES ('r1', 1, 1, now(), '{{}}');
"""
END = "UPDATE session_runs SET status = 'ABANDONED', ended_at = now(), end_reason = 'inactive' WHERE id = 'r1'"


async def filled(url: str) -> asyncpg.Connection:
    connection = await asyncpg.connect(url)
    await connection.execute(SETUP)
    return connection


@pytest.mark.parametrize(
    "statement",
    [
        "DELETE FROM session_runs",
        "TRUNCATE session_runs CASCADE",
        "DELETE FROM run_snapshots",
        "TRUNCATE run_snapshots",
        "UPDATE run_snapshots SET state = '[]'",
        "DELETE FROM sessions",
        "DELETE FROM plans",
        "DELETE FROM blueprints",
        "DELETE FROM users",
        "DELETE FROM workspaces",
        "TRUNCATE users CASCADE",
    ],
)
async def test_never_delete_runs_nor_what_they_hang_on(database_url: str, statement: str) -> None:
    connection = await filled(database_url)
    with pytest.raises((asyncpg.RestrictViolationError, asyncpg.ForeignKeyViolationError)):
        await connection.execute(statement)
    assert await connection.fetchval("SELECT count(*) FROM session_runs JOIN run_snapshots ON run_id = id") == 1
    await connection.close()


async def test_never_allow_multiple_running_runs_by_the_database_alone(database_url: str) -> None:
    connection = await filled(database_url)
    add = (
        "INSERT INTO session_runs (id, session_id, blueprint_hash, started_at, last_activity_at) "
        "VALUES ($1, 's1', $2, $3, $3)"
    )
    with pytest.raises(asyncpg.UniqueViolationError, match="idx_running_run_per_session"):
        await connection.execute(add, "r2", HASH, NOW)
    await connection.execute(END)
    await connection.execute(add, "r2", HASH, NOW)
    await connection.close()


@pytest.mark.parametrize(
    "change", ["status = 'RUNNING', ended_at = NULL, end_reason = NULL", "step_index = 3", "fence = 9"]
)
async def test_an_ended_run_is_never_changed_by_any_statement(database_url: str, change: str) -> None:
    connection = await filled(database_url)
    await connection.execute(END)
    with pytest.raises(asyncpg.RestrictViolationError):
        await connection.execute(f"UPDATE session_runs SET {change}")
    await connection.close()


@pytest.mark.parametrize("ended", ["COMPLETED", "SKIPPED", "CANCELED"])
async def test_a_session_that_has_ended_stays_so_by_the_database_alone(database_url: str, ended: str) -> None:
    connection = await filled(database_url)
    await connection.execute("UPDATE sessions SET status = $1", ended)
    for other in {"SCHEDULED", "IN_PROGRESS", "COMPLETED", "SKIPPED", "CANCELED"} - {ended}:
        with pytest.raises(asyncpg.RestrictViolationError):
            await connection.execute("UPDATE sessions SET status = $1", other)
    await connection.execute("UPDATE sessions SET scheduled_for_date = $1", date(2026, 4, 1))
    await connection.close()


@pytest.mark.parametrize(
    "row",
    [
        "('r2', 's1', 'COMPLETED', NULL::timestamptz, 'completed')",
        "('r2', 's1', 'COMPLETED', now(), NULL)",
        "('r2', 's1', 'COMPLETED', now(), 'inactive')",
        "('r2', 's1', 'ABANDONED', now(), 'completed')",
        "('r2', 's1', 'PAUSED', NULL::timestamptz, NULL)",
    ],
)
async def test_a_run_says_when_and_why_it_ended_or_does_neither(database_url: str, row: str) -> None:
    connection = await filled(database_url)
    with pytest.raises(asyncpg.CheckViolationError):
        await connection.execute(
            "INSERT INTO session_runs (id, session_id, status, ended_at, end_reason, blueprint_hash, started_at, "
            f"last_activity_at) SELECT v.*, '{HASH}', now(), now() FROM (VALUES {row}) AS v"
        )
    await connection.close()
