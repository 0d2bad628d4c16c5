"""Two at once, made to happen: what the database refuses or holds back turns into recovery."""

import asyncio
from typing import Any

import asyncpg
import pytest

from codehub.sessions import store
from codehub.sessions.model import Run
from codehub.web.services import Services
from tests.sessions.learning import CHECK, LEARN, RIGHT, Learner
from tests.sessions.test_events import told
from tests.sessions.test_idempotency import waiting
from tests.virtual_time import ManualClock

DAY = 86400.0
INSERT = (
    "INSERT INTO session_runs (id, session_id, blueprint_hash, started_at, last_activity_at) "
    "SELECT 'another', id, blueprint_hash, $2, $2 FROM sessions WHERE id = $1"
)


async def test_a_unique_violation_turns_into_recovery(mina: Learner, database_url: str, clock: ManualClock) -> None:
    """Another transaction has inserted a running run that ours cannot see, and commits while ours waits for it."""
    id_ = await mina.session()
    other = await asyncpg.connect(database_url)
    async with other.transaction():
        await other.execute(INSERT, id_, clock.now())
        start = asyncio.create_task(mina.start(id_, key="k"))
        await waiting(database_url, 1)
        assert not start.done()
    status, run = await start
    assert (status, run["id"], run["fence"]) == (200, "another", 2)
    assert await mina.start(id_, key="k") == (200, run)
    await other.close()


async def test_what_the_other_transaction_takes_back_is_created_instead(
    mina: Learner, database_url: str, clock: ManualClock
) -> None:
    id_ = await mina.session()
    other = await asyncpg.connect(database_url)
    transaction = other.transaction()
    await transaction.start()
    await other.execute(INSERT, id_, clock.now())
    start = asyncio.create_task(mina.start(id_))
    await waiting(database_url, 1)
    await transaction.rollback()
    status, run = await start
    assert (status, run["fence"]) == (201, 1)
    await other.close()


@pytest.mark.parametrize("end", ["skip", "cancel"])
async def test_a_session_that_ends_while_it_is_started_has_no_running_run(mina: Learner, end: str) -> None:
    for _ in range(10):
        id_ = await mina.session()
        answers = await asyncio.gather(*(mina.start(id_) for _ in range(3)), mina.ask("POST", f"/sessions/{id_}/{end}"))
        assert answers[-1][0] == 200
        assert {status for status, _ in answers[:-1]} <= {200, 201, 400}
        runs = (await mina.get(f"/sessions/{id_}/runs"))["items"]
        assert [run for run in runs if run["status"] == "RUNNING"] == []


async def test_a_session_that_ends_while_its_last_step_is_saved_is_one_or_the_other(mina: Learner) -> None:
    for _ in range(10):
        id_ = await mina.session()
        run = await mina.started(id_)
        await mina.complete(run, 0)
        (saved, _), (skipped, _) = await asyncio.gather(
            mina.complete(run, 1), mina.ask("POST", f"/sessions/{id_}/skip")
        )
        assert (saved, skipped) in {(200, 409), (409, 200)}
        session = await mina.get(f"/sessions/{id_}")
        ended = await mina.get(f"/runs/{run['id']}")
        expected = ("COMPLETED", "COMPLETED") if saved == 200 else ("SKIPPED", "ABANDONED")
        assert (session["status"], ended["status"]) == expected


async def test_many_who_start_after_a_day_get_one_new_run(mina: Learner, clock: ManualClock) -> None:
    id_ = await mina.session(CHECK)
    old = await mina.started(id_)
    await mina.complete(old, 0, {"n": 1})
    await clock.advance(DAY + 1)
    answers = await asyncio.gather(*(mina.start(id_, resume_from=old["id"]) for _ in range(12)))
    assert sorted(status for status, _ in answers) == [200] * 11 + [201]
    assert {(run["predecessor_id"], run["step_index"]) for _, run in answers} == {(old["id"], 1)}
    runs = (await mina.get(f"/sessions/{id_}/runs"))["items"]
    assert [run["status"] for run in runs] == ["ABANDONED", "RUNNING"]


async def test_a_run_that_is_completed_while_it_is_to_be_resumed_from_has_completed_the_session(
    mina: Learner, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between the look at the session and the look at the run."""
    id_ = await mina.session(CHECK)
    run = await mina.started(id_)
    await mina.complete(run, 0)
    await mina.complete(run, 1, RIGHT)
    await clock.advance(DAY + 1)
    look = store._resumable
    answers: list[tuple[int, Any]] = []

    async def complete_first(*args: Any) -> Run | None:
        if not answers:
            answers.append(await mina.complete(run, 2))
        return await look(*args)

    monkeypatch.setattr(store, "_resumable", complete_first)
    status, refused = await mina.start(id_, resume_from=run["id"])
    assert [answer[0] for answer in answers] == [200]
    assert (status, refused["code"]) == (409, "SESSION_ALREADY_COMPLETED")


async def test_a_step_is_saved_while_others_start_the_session_or_its_page_is_told(mina: Learner) -> None:
    for _ in range(5):
        id_ = await mina.session(CHECK)
        run = await mina.started(id_)
        answers = await asyncio.gather(mina.complete(run, 0, {"n": 1}), *(mina.start(id_) for _ in range(5)))
        status, said = answers[0]
        now = await mina.get(f"/runs/{run['id']}")
        assert (status, now["step_index"]) in {(200, 1), (409, 0)}
        assert status == 200 or said["code"] == "RUN_TAKEN_OVER"
        for status, recovered in answers[1:]:
            assert status == 200
            assert recovered["snapshot"] == ({"n": 1} if recovered["step_index"] else None)
        assert now["fence"] == 6


async def test_one_person_has_many_sessions_at_once(mina: Learner) -> None:
    plan = await mina.plan(*[LEARN] * 9)
    answers = await asyncio.gather(*(mina.start(s["id"], key=f"k{s['position']}") for s in plan["sessions"]))
    assert {status for status, _ in answers} == {201}
    saved = await asyncio.gather(*(mina.complete(run, 0, RIGHT) for _, run in answers))
    assert {status for status, _ in saved} == {200}


@pytest.mark.parametrize("path", ["abandon", "activity"])
async def test_a_step_that_is_saved_at_the_same_moment_is_in_the_answer(
    mina: Learner, database_url: str, path: str
) -> None:
    """What else was asked of the run waits for the step, and then tells the run as it is."""
    run = await mina.started(await mina.session(CHECK))
    other = await asyncpg.connect(database_url)
    async with other.transaction():
        await other.execute("UPDATE session_runs SET step_index = 1 WHERE id = $1", run["id"])
        await other.execute("INSERT INTO run_snapshots VALUES ($1, 0, '{\"n\": 1}', '', now())", run["id"])
        asking = asyncio.create_task(mina.ask("POST", f"/runs/{run['id']}/{path}", {"fence": 1}))
        await waiting(database_url, 1)
    status, told = await asking
    assert (status, told["step_index"], told["step"], told["snapshot"]) == (200, 1, "CHECK", {"n": 1})
    assert told == await mina.get(f"/runs/{run['id']}")
    await other.close()


@pytest.mark.parametrize("end", ["skip", "cancel"])
async def test_a_session_that_ends_while_a_step_is_saved_tells_the_step_after_it(
    mina: Learner, database_url: str, services: Services, end: str
) -> None:
    id_ = await mina.session(CHECK)
    run = await mina.started(id_)
    await told(services)
    other = await asyncpg.connect(database_url)
    async with other.transaction():
        await other.execute("UPDATE session_runs SET step_index = 1 WHERE id = $1", run["id"])
        await other.execute("INSERT INTO run_snapshots VALUES ($1, 0, '{\"n\": 1}', '', now())", run["id"])
        asking = asyncio.create_task(mina.ask("POST", f"/sessions/{id_}/{end}"))
        await waiting(database_url, 1)
    status, _ = await asking
    assert status == 200
    (data,) = [data for kind, _, data in await told(services) if kind == "run_updated"]
    assert (data["status"], data["step_index"]) == ("ABANDONED", 1)
    await other.close()
