"""Everybody's workspaces: every order and every count is served by an index, with twenty thousand rows there."""

import pytest

from codehub.command import operator
from codehub.db import Database
from codehub.policy.model import Role
from codehub.web.services import Services
from codehub.workspaces import finding
from codehub.workspaces.finding import Search, Shown, Sort

MANY = """
INSERT INTO workspaces (id, name, template, owner_id, created_at, updated_at, phase_changed_at, observed_status,
                        desired_state, desired_by, desired_at, last_access_at, volume_generation, disk_bytes)
SELECT 'w' || n, 'Lab ' || n, 'terminal', u.id, moment, moment, moment,
       CASE WHEN n % 50 = 0 THEN 'RUNNING' ELSE 'STANDBY' END, 'STANDBY', 'user', moment, moment, 'g', n * 1000
FROM generate_series(1, 20000) AS n, users u, LATERAL (SELECT now() - n * interval '1 minute' AS moment) AS made
WHERE u.name = 'mina'
"""


@pytest.fixture
async def many(services: Services) -> Database:
    await services.people.create_user(operator(), "mina", Role.LEARNER)
    async with services.database.connection() as c:
        await c.execute("ALTER TABLE workspaces DISABLE TRIGGER workspaces_announce_new")
        await c.execute(MANY)
        await c.execute("ANALYZE workspaces")
    return services.database


async def plan_of(database: Database, statement: str, args: list[object]) -> str:
    async with database.connection() as c:
        return "\n".join(record["QUERY PLAN"] for record in await c.fetch(f"EXPLAIN {statement}", *args))


@pytest.mark.parametrize("sort", list(Sort))
async def test_a_page_reads_the_index_of_its_order_and_sorts_nothing(many: Database, sort: Sort) -> None:
    places = {
        Sort.NEW: "1700000000000000.w9",
        Sort.CHANGED: "1700000000000000.w9",
        Sort.NAME: "Lab 5.w5",
        Sort.SIZE: "500.w5",
    }
    for cursor in (None, places[sort]):
        after = finding.place_of(cursor, sort)
        assert (after is None) == (cursor is None)
        plan = await plan_of(many, *finding.page_statement(Search(), sort, after, 49))
        assert "Index Scan" in plan, plan
        assert "Sort" not in plan, plan
        assert "Seq Scan on workspaces" not in plan, plan


async def test_a_phase_a_time_asleep_and_an_owner_are_found_by_an_index(many: Database, services: Services) -> None:
    now = services.clock.now()
    for search in (Search(shown=Shown.RUNNING), Search(shown=Shown.ERROR), Search(owner="nobody")):
        plan = await plan_of(many, *finding.page_statement(search, Sort.NEW, None, 49))
        assert "Seq Scan on workspaces" not in plan, plan
    plan = await plan_of(many, *finding.page_statement(Search(asleep_since=now), Sort.CHANGED, None, 49))
    assert "workspaces_listed_by_change" in plan, plan


async def test_the_numbers_are_right_among_many(many: Database, services: Services) -> None:
    totals = await services.all_workspaces.totals(operator(), Search(text="lab 19"))
    assert totals.all == len([n for n in range(1, 20001) if str(n).startswith("19")])
    assert (await services.all_workspaces.totals(operator(), Search())).of[Shown.RUNNING] == 400
