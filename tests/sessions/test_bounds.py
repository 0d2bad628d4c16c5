"""How much one person can make the platform keep: runs, snapshots and the answers of keys are bounded."""

import dataclasses
from collections.abc import AsyncIterator

import asyncpg
import pytest

from codehub.sessions import rules
from codehub.settings import Settings
from codehub.wiring.api import open_services
from tests.sessions.learning import Learner, learner
from tests.virtual_time import ManualClock
from tests.web.server import Site, serving

STEPS = {"steps": [*["LEARN"] * 9, "COMPLETE"], "learningContent": ["# Hello"], "encouragement": "Well done"}


async def test_resumed_runs_read_what_was_saved_before_them_and_copy_nothing(mina: Learner, database_url: str) -> None:
    """The third has saved nothing itself; the fourth goes on from it."""
    id_ = await mina.session(STEPS)
    run = await mina.started(id_)
    for index in range(3):
        assert (await mina.complete(run, index, {"n": index}))[0] == 200
    await mina.abandon(run)
    run = second = await mina.started(id_, resume_from=run["id"])
    assert (await mina.complete(run, 3, {"n": 3}))[0] == 200
    for _ in range(3):
        await mina.abandon(run)
        run = await mina.started(id_, resume_from=run["id"])
        assert (run["step_index"], run["snapshot"]) == (4, {"n": 3})
    assert (await mina.complete(run, 4, {"n": 4}))[0] == 200
    connection = await asyncpg.connect(database_url)
    assert await connection.fetchval("SELECT count(*) FROM run_snapshots") == 5
    assert await connection.fetchval("SELECT inherits_from FROM session_runs WHERE id = $1", run["id"]) == second["id"]
    await connection.close()
    for path in ("?limit=50", "?limit=3", "?limit=3&cursor=2"):
        listed = await mina.get(f"/runs/{run['id']}/snapshots{path}")
        first = 3 if "cursor" in path else 0
        last = min(5, first + int(path[7:].partition("&")[0]))
        assert [s["state"]["n"] for s in listed["items"]] == list(range(first, last))


async def test_an_inherited_step_that_is_sent_again_is_a_replay_and_another_is_out_of_order(mina: Learner) -> None:
    id_ = await mina.session(STEPS)
    run = await mina.started(id_)
    for index in range(3):
        await mina.complete(run, index, {"n": index})
        await mina.abandon(run)
        run = await mina.started(id_, resume_from=run["id"])
    for index in range(3):
        status, told = await mina.complete(run, index, {"n": index})
        assert (status, told["step_index"], told["snapshot"]) == (200, 3, {"n": 2})
        status, problem = await mina.complete(run, index, {"n": "another"})
        assert (status, problem["code"]) == (409, "STEP_OUT_OF_ORDER")


async def test_a_branch_has_what_was_saved_before_it_and_not_what_came_after(mina: Learner) -> None:
    id_ = await mina.session(STEPS)
    run = await mina.started(id_)
    await mina.complete(run, 0, {"n": 0})
    await mina.abandon(run)
    for branch in ("a", "b"):
        new = await mina.started(id_, resume_from=run["id"])
        await mina.complete(new, 1, {"n": branch})
        listed = await mina.get(f"/runs/{new['id']}/snapshots")
        assert [s["state"]["n"] for s in listed["items"]] == [0, branch]
        await mina.abandon(new)


async def test_what_a_run_saves_in_all_is_bounded_what_it_inherits_included(
    mina: Learner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rules, "MOST_SNAPSHOT_BYTES", 2 * len('{"a":"x"}') + 1)
    id_ = await mina.session(STEPS)
    run = await mina.started(id_)
    assert (await mina.complete(run, 0, {"a": "x"}))[0] == 200
    await mina.abandon(run)
    run = await mina.started(id_, resume_from=run["id"])
    assert (await mina.complete(run, 1, {"a": "x"}))[0] == 200
    status, problem = await mina.complete(run, 2, {})
    assert (status, problem["code"]) == (413, "SNAPSHOT_LIMIT")
    assert (await mina.complete(run, 1, {"a": "x"}))[0] == 200, "a replay saves nothing"
    await mina.abandon(run)
    assert (await mina.complete(await mina.started(id_), 0, {"a": "x"}))[0] == 200


@pytest.fixture
async def narrow(settings: Settings, clock: ManualClock) -> AsyncIterator[Site]:
    sessions = dataclasses.replace(settings.sessions, max_idempotency_keys_per_user=2)
    async with open_services(dataclasses.replace(settings, sessions=sessions), clock) as services:
        await services.people.ensure_first_admin()
        async with serving(services) as site:
            yield site


async def test_keys_that_stand_for_an_answer_are_bounded_for_each_person(narrow: Site, clock: ManualClock) -> None:
    async with learner(narrow) as mina:
        id_ = await mina.session(STEPS)
        for key in ("a", "b"):
            assert (await mina.start(id_, key=key))[0] in {200, 201}
        status, problem = await mina.start(id_, key="c")
        assert (status, problem["code"], problem["keys"]) == (429, "IDEMPOTENCY_KEY_LIMIT", 2)
        assert (await mina.start(id_, key="a"))[0] == 201, "the answer of a key that is there"
        assert (await mina.start(id_))[0] == 200, "without a key"
        await clock.advance(24 * 3600 + 1)
        assert (await mina.start(id_, key="c"))[0] == 201, "those before stand for nothing any more"
        assert (await mina.start(id_, key="d"))[0] == 200
        assert (await mina.start(id_, key="a"))[0] == 429, "one that stood for an answer counts anew"
