"""The database itself: phase by its one function, dated when it changes, and only combinations that exist."""

import itertools
from datetime import UTC, datetime, timedelta

import asyncpg
import pytest

from codehub.workspaces import rules
from codehub.workspaces.model import Health, Observed, Operation

NOW = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)
INSERT = """
INSERT INTO workspaces (id, name, template, owner_id, created_at, updated_at, phase_changed_at, last_access_at,
                        desired_state, desired_by, desired_at, observed_status, health_status, operation,
                        archive_key, op_id)
VALUES ($1, 'w', 't', codehub_user_id('mina'), $2, $2, $2, $2, 'STANDBY', 'user', $2, $3, $4, $5, $6, 'op')
"""


async def connect(url: str) -> asyncpg.Connection:
    connection = await asyncpg.connect(url)
    await connection.execute("INSERT INTO users (name, role, created_at) VALUES ('mina', 'learner', now())")
    return connection


async def test_the_database_computes_the_same_phase_as_the_rules(database_url: str) -> None:
    connection = await connect(database_url)
    for observed, health, key in itertools.product(Observed, Health, (None, "k")):
        phase = await connection.fetchval("SELECT codehub_phase($1, $2, $3)", observed, health, key)
        assert phase == rules.phase(observed, health, key)
    await connection.close()


async def test_the_database_holds_exactly_the_combinations_that_exist(database_url: str) -> None:
    connection = await connect(database_url)
    for number, (observed, health, op, key) in enumerate(itertools.product(Observed, Health, Operation, (None, "k"))):
        exists = (observed, health, op) in rules.COMBINATIONS and not (op is Operation.RESTORING and key is None)
        try:
            await connection.execute(INSERT, f"w{number}", NOW, observed, health, op, key)
            accepted = True
        except asyncpg.CheckViolationError:
            accepted = False
        assert accepted == exists, (observed, health, op, key)
    await connection.close()


async def test_the_date_of_the_phase_moves_exactly_when_the_phase_does(database_url: str) -> None:
    connection = await connect(database_url)
    await connection.execute(INSERT, "w", NOW, "STANDBY", "OK", "NONE", None)
    later = NOW + timedelta(hours=1)
    changes = [
        ("operation = 'STARTING'", False),
        ("name = 'x'", False),
        ("operation = 'NONE', observed_status = 'RUNNING'", True),
    ]
    changes += [("archive_key = 'k'", False), ("health_status = 'ERROR'", True), ("observed_status = 'STANDBY'", False)]
    expected = NOW
    for change, moves in changes:
        later += timedelta(minutes=1)
        await connection.execute(f"UPDATE workspaces SET {change}, updated_at = $1, phase_changed_at = now()", later)
        expected = later if moves else expected
        assert await connection.fetchval("SELECT phase_changed_at FROM workspaces") == expected, change
    await connection.close()


async def test_phase_cannot_be_assigned(database_url: str) -> None:
    connection = await connect(database_url)
    await connection.execute(INSERT, "w", NOW, "STANDBY", "OK", "NONE", None)
    with pytest.raises(asyncpg.GeneratedAlwaysError):
        await connection.execute("UPDATE workspaces SET phase = 'RUNNING'")
    await connection.close()
