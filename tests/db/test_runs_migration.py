"""Runs of a database of before are numbered in the order in which they began; what has ended stays as it was."""

import contextlib
from collections.abc import AsyncIterator
from typing import Any

import asyncpg
import pytest

from codehub.db import migrate
from tests import databases
from tests.servers import TestServers

NOW = "2026-01-01T09:00:00Z"
HASH = "0" * 64
BEFORE = f"""
INSERT INTO users (id, name, role, created_at) VALUES ('u1', 'mina', 'learner', '{NOW}');
INSERT INTO blueprints (hash, view_hash, body, created_at) VALUES ('{HASH}', '{HASH}', '{{}}', '{NOW}');
INSERT INTO plans (id, owner_id, title, created_by, created_at) VALUES ('p1', 'u1', 'Plan', 'u1', '{NOW}');
INSERT INTO sessions (id, plan_id, position, key, title, scheduled_for_date, blueprint_hash, status, changed_at)
VALUES ('s1', 'p1', 0, 'one', 'One', '2026-01-01', '{HASH}', 'IN_PROGRESS', '{NOW}');
INSERT INTO session_runs (id, session_id, status, blueprint_hash, started_at, last_activity_at, ended_at, end_reason)
VALUES ('a', 's1', 'RUNNING', '{HASH}', '2026-01-03', '2026-01-03', NULL, NULL),
    ('b', 's1', 'ABANDONED', '{HASH}', '2026-01-02', '2026-01-02', '2026-01-03', 'inactive'),
    ('c', 's1', 'ABANDONED', '{HASH}', '2026-01-01', '2026-01-01', '2026-01-02', 'by_learner');
"""


@contextlib.asynccontextmanager
async def connected(url: str) -> AsyncIterator[Any]:
    c = await asyncpg.connect(url)
    try:
        yield c
    finally:
        await c.close()


async def test_runs_are_numbered_by_their_beginning_and_ended_ones_stay_closed(servers: TestServers) -> None:
    version = next(m.version for m in migrate.available() if m.name == "order_of_runs")
    async with databases.without_tables(servers) as url, connected(url) as c:
        await migrate.migrate(url, up_to=version - 1)
        await c.execute(BEFORE)
        await migrate.migrate(url)
        found = await c.fetch("SELECT id, number FROM session_runs ORDER BY number")
        assert [tuple(row) for row in found] == [("c", 1), ("b", 2), ("a", 3)]
        with pytest.raises(asyncpg.RestrictViolationError):
            await c.execute("UPDATE session_runs SET end_note = 'x' WHERE id = 'c'")
        await c.execute(
            "UPDATE session_runs SET status = 'ABANDONED', ended_at = now(), end_reason = 'inactive' WHERE id = 'a'"
        )
        add = f"""INSERT INTO session_runs (id, session_id, blueprint_hash, started_at, last_activity_at)
                 VALUES ('d', 's1', '{HASH}', '2025-01-01', '2025-01-01') RETURNING number"""
        assert await c.fetchval(add) == 4
