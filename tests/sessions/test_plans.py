"""Plans through HTTP: made whole or not at all, bounded, with progress by status; what is learnt, without answers."""

import dataclasses
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from codehub.policy.model import Role
from codehub.settings import Settings
from codehub.wiring.api import open_services
from tests.auth.helpers import entries
from tests.sessions.learning import CHECK, FULL, LEARN, RIGHT, Learner, learner
from tests.virtual_time import ManualClock
from tests.web.server import Site, serving

ONE = {"title": "Day 1", "scheduled_for_date": "2026-03-02", "blueprint": LEARN}
NO_DAYS = ("1234569600", "-123456960", "2026-1-001", "2026/03/02", "\uff12026-03-02", "")
SECRETS = ("It begins at 0.", "secret-place", "Look again.", '"answer"', '"feedback"', '"command"', '"hint"')


async def test_a_plan_has_its_sessions_in_order_and_counts_them_by_status(mina: Learner) -> None:
    plan = await mina.plan(LEARN, CHECK, FULL)
    assert (plan["owner"], plan["created_by"], plan["title"], plan["total"]) == ("mina", "mina", "Plan", 3)
    assert [(s["position"], s["key"], s["title"]) for s in plan["sessions"]] == [
        (n, str(n + 1), f"Day {n + 1}") for n in range(3)
    ]
    ids = [s["id"] for s in plan["sessions"]]
    await mina.finish(await mina.started(ids[0]), [{}, {}])
    await mina.started(ids[1])
    await mina.ask("POST", f"/sessions/{ids[2]}/skip")
    found = await mina.get(f"/plans/{plan['id']}")
    assert found["progress"] == {"SCHEDULED": 0, "IN_PROGRESS": 1, "COMPLETED": 1, "SKIPPED": 1, "CANCELED": 0}
    assert [s["status"] for s in found["sessions"]] == ["COMPLETED", "IN_PROGRESS", "SKIPPED"]
    (listed,) = (await mina.get("/plans"))["items"]
    assert listed == {name: value for name, value in found.items() if name != "sessions"}


async def test_plans_come_in_pages_each_persons_own_and_all_of_them_for_an_admin(mina: Learner, site: Site) -> None:
    mine = [(await mina.plan())["id"] for _ in range(3)]
    async with learner(site, "jun") as jun, site.admin() as boss:
        his = (await jun.plan())["id"]
        first = await mina.get("/plans?limit=2")
        rest = await mina.get(f"/plans?limit=2&cursor={first['next_cursor']}")
        assert {p["id"] for p in first["items"] + rest["items"]} == set(mine)
        assert {p["id"] for p in (await mina.get("/plans?owner=jun"))["items"]} == set(mine)
        everybodys = await Learner(boss).get("/plans")
        assert {p["id"] for p in everybodys["items"]} == {*mine, his}
        assert [p["id"] for p in (await Learner(boss).get("/plans?owner=jun"))["items"]] == [his]


async def test_an_admin_makes_a_plan_for_another_person_and_it_is_written_down(mina: Learner, site: Site) -> None:
    async with site.admin() as boss, learner(site, "kim", Role.TEACHER) as kim:
        made = await Learner(boss).plan(LEARN, owner="mina")
        assert (made["owner"], made["created_by"]) == ("mina", "admin")
        assert (await mina.start(made["sessions"][0]["id"]))[0] == 201
        for who, owner, expected in ((kim, "mina", 403), (mina, "kim", 403), (Learner(boss), "nobody-here", 404)):
            body = {"title": "Plan", "sessions": [ONE], "owner": owner}
            assert (await who.ask("POST", "/plans", body))[0] == expected
        assert (await mina.plan(LEARN, owner="mina"))["owner"] == "mina"
    line = (await entries(site.services, "plan.create"))[-1]
    assert (line.actor, line.subject, line.data) == ("admin", made["id"], {"owner": "mina"})


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"title": ""}, "title"),
        ({"title": "two\nlines"}, "title"),
        ({"sessions": []}, "sessions"),
        ({"sessions": [ONE] * 201}, "sessions"),
        ({"sessions": [ONE, {**ONE, "scheduled_for_date": "2026-02-30"}]}, "sessions.1.scheduled_for_date"),
        ({"sessions": [{**ONE, "scheduled_for_date": 20260302}]}, "sessions.0.scheduled_for_date"),
        ({"sessions": [{**ONE, "scheduled_for_date": "2026-03-02T00:00:00Z"}]}, "sessions.0.scheduled_for_date"),
        ({"sessions": [ONE, {**ONE, "blueprint": {**LEARN, "steps": ["LEARN"]}}]}, "sessions.1.blueprint.steps"),
        ({"sessions": [{**ONE, "blueprint": []}]}, "sessions.0.blueprint"),
        (
            {"sessions": [{**ONE, "blueprint": {**FULL, "practiceActivity": {"template": "x", "instructions": "i"}}}]},
            "sessions.0.blueprint.practiceActivity.template",
        ),
        *(({"sessions": [{**ONE, "scheduled_for_date": day}]}, "sessions.0.scheduled_for_date") for day in NO_DAYS),
        ({"owner": ""}, "owner"),
        ({"owner": "\x00"}, "owner"),
        ({"more": 1}, "more"),
    ],
)
async def test_a_plan_that_is_wrong_anywhere_is_not_made(mina: Learner, change: Any, field: str) -> None:
    status, problem = await mina.ask("POST", "/plans", {"title": "Plan", "sessions": [ONE], **change})
    assert (status, problem["code"]) == (400, "INVALID_REQUEST")
    assert field in [error["field"] for error in problem["errors"]]
    assert (await mina.get("/plans"))["items"] == []


async def test_an_unknown_template_is_refused_with_those_there_are(mina: Learner) -> None:
    practice = {**FULL, "practiceActivity": {"template": "nothing", "instructions": "i"}}
    body = {"title": "Plan", "sessions": [{**ONE, "blueprint": practice}]}
    _, problem = await mina.ask("POST", "/plans", body)
    assert "jupyterlab" in problem["detail"]


@pytest.fixture
async def narrow(settings: Settings, clock: ManualClock) -> AsyncIterator[Site]:
    sessions = dataclasses.replace(settings.sessions, max_plans_per_user=2, max_plan_bytes=100_000)
    async with open_services(dataclasses.replace(settings, sessions=sessions), clock) as services:
        await services.people.ensure_first_admin()
        async with serving(services) as site:
            yield site


async def test_plans_have_a_number_and_a_size(narrow: Site) -> None:
    async with learner(narrow) as mina, narrow.admin() as boss:
        long = {**LEARN, "learningContent": ["x" * 90_000]}  # more than other bodies may have
        await mina.plan(long)
        status, problem = await mina.ask("POST", "/plans", {"title": "x" * 100_000, "sessions": []})
        assert (status, problem["code"]) == (413, "TOO_LARGE")
        await mina.plan()
        status, problem = await mina.ask("POST", "/plans", {"title": "Plan", "sessions": [ONE]})
        assert (status, problem["code"], problem["plans"]) == (429, "PLAN_LIMIT", 2)
        await Learner(boss).plan(LEARN, owner="mina")  # which she did not make


async def test_what_is_learnt_comes_without_answers_and_with_an_etag(mina: Learner) -> None:
    id_ = await mina.session(FULL)
    session = await mina.get(f"/sessions/{id_}")
    answer = await mina.request("GET", f"/sessions/{id_}/blueprint")
    shown = await answer.json()
    assert shown["steps"] == FULL["steps"]
    assert shown["practiceActivity"]["checks"] == [{"id": "one", "title": "One"}]
    assert set(shown["checkQuestions"][0]) == {"id", "kind", "prompt", "choices"}
    assert session["blueprint_hash"] in answer.headers["ETag"]
    tag = answer.headers["ETag"]
    for sent in (tag, f'"x", {tag}', "*", tag.removeprefix("W/")):
        again = await mina.request("GET", f"/sessions/{id_}/blueprint", **{"If-None-Match": sent})
        assert (again.status, again.headers["ETag"], await again.text()) == (304, tag, "")
    other = await mina.request("GET", f"/sessions/{id_}/blueprint", **{"If-None-Match": '"x"'})
    assert other.status == 200
    assert (await mina.get(f"/sessions/{await mina.session(FULL)}"))["blueprint_hash"] == session["blueprint_hash"]


async def test_no_answer_of_any_route_holds_what_is_to_be_found_out(mina: Learner, site: Site) -> None:
    """Also not for an admin, nor for who posted it."""
    plan = await mina.plan(FULL)
    id_ = plan["sessions"][0]["id"]
    run = await mina.started(id_)
    said = [plan, run, (await mina.complete(run, 0))[1], (await mina.complete(run, 1, {"answers": {}}))[1]]
    said += [(await mina.complete(run, 1, RIGHT))[1], (await mina.complete(run, 2))[1]]
    async with site.admin() as boss:
        for who in (mina, Learner(boss)):
            said += [await who.get(path) for path in _paths(plan["id"], id_, run["id"])]
    text = json.dumps(said, ensure_ascii=False)
    assert [secret for secret in SECRETS if secret in text.replace('"feedback": {}', "")] == []


def _paths(plan_id: str, session_id: str, run_id: str) -> list[str]:
    sessions = [f"/sessions/{session_id}{rest}" for rest in ("", "/blueprint", "/runs")]
    return ["/plans", f"/plans/{plan_id}", *sessions, f"/runs/{run_id}", f"/runs/{run_id}/snapshots"]
