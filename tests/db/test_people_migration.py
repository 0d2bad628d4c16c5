"""What a database of before knows by people's names stands on their ids afterwards, and nothing of it is lost."""

import json
from collections.abc import AsyncIterator
from typing import Any

import asyncpg
import pytest

from codehub.db import migrate
from tests import databases
from tests.servers import TestServers

NOW = "2026-01-01T09:00:00Z"
BEFORE = f"""
INSERT INTO users (name, role, created_at) VALUES ('mina', 'learner', '{NOW}'), ('jun', 'learner', '{NOW}'),
    ('ttl', 'learner', '{NOW}');
INSERT INTO browser_sessions (id, user_name, generation, confirmed, created_at, rotated_at, confirmed_at, seen_at,
                              expires_at, user_agent)
VALUES ('s1', 'mina', 1, 1, '{NOW}', '{NOW}', '{NOW}', '{NOW}', '{NOW}', 'Firefox');
INSERT INTO access_tokens (id, user_name, label, secret_hash, scopes, created_at, created_by, expires_at)
VALUES ('t1', 'jun', '', 'x', ARRAY['read'], '{NOW}', 'mina', '{NOW}');
INSERT INTO workspaces (id, name, template, owner, created_at, updated_at, phase_changed_at, last_access_at,
                        desired_state, desired_by, desired_at)
VALUES ('w1', 'lab', 'terminal', 'mina', '{NOW}', '{NOW}', '{NOW}', '{NOW}', 'STANDBY', 'user', '{NOW}');
INSERT INTO workspace_shares (workspace_id, user_name, created_at)
VALUES ('w1', 'jun', '{NOW}'), ('w1', 'late', '{NOW}');
INSERT INTO workspace_history (workspace_id, at, actor, code, data)
VALUES ('w1', '{NOW}', 'mina', 'shared', '{{"user": "jun"}}'), ('w1', '{NOW}', 'ttl', 'idle_sleep', '{{}}'),
    ('w1', '{NOW}', 'cli:root', 'shared', '{{"user": "late"}}');
INSERT INTO audit_log (at, actor, code, subject, data) VALUES
    ('{NOW}', 'admin-who-left', 'user.create', 'mina', '{{"role": "learner"}}'),
    ('{NOW}', 'jun', 'workspace.download', 'w1', '{{"owner": "mina", "archive_key": null}}');
"""


@pytest.fixture
async def before(servers: TestServers) -> AsyncIterator[str]:
    """A database as it was before people had ids, but with history in codes."""
    version = next(m.version for m in migrate.available() if m.name == "people_ids")
    async with databases.without_tables(servers) as url:
        await migrate.migrate(url, up_to=version - 1)
        yield url


async def test_everything_stands_on_ids_and_is_read_by_names(before: str) -> None:
    c: Any = await asyncpg.connect(before)
    await c.execute(BEFORE)
    await migrate.migrate(before)
    ids = {row["name"]: row["id"] for row in await c.fetch("SELECT name, id FROM users")}
    assert len(set(ids.values())) == 3
    assert await c.fetchval("SELECT user_id FROM browser_sessions") == ids["mina"]
    assert tuple(await c.fetchrow("SELECT user_id, created_by FROM access_tokens")) == (ids["jun"], ids["mina"])
    assert await c.fetchval("SELECT owner_id FROM workspaces") == ids["mina"]
    shares = {row["user_name"]: row["user_id"] for row in await c.fetch("SELECT * FROM workspace_shares")}
    assert shares == {"jun": ids["jun"], "late": None}
    history = [
        (r["actor"], json.loads(r["data"])) for r in await c.fetch("SELECT * FROM workspace_history ORDER BY id")
    ]
    assert history == [(ids["mina"], {"user": ids["jun"]}), ("ttl", {}), ("cli:root", {"user": "late"})]
    audit = [
        (r["actor"], r["subject"], json.loads(r["data"])) for r in await c.fetch("SELECT * FROM audit_log ORDER BY id")
    ]
    assert audit == [
        ("admin-who-left", ids["mina"], {"role": "learner"}),
        (ids["jun"], "w1", {"owner": ids["mina"], "archive_key": None}),
    ]
    await c.close()
