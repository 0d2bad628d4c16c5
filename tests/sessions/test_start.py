"""Create or recover, through HTTP: every row of the table of starts, and what the session says afterwards."""

import asyncio

from codehub.policy.model import Role
from tests.sessions.learning import CHECK, RIGHT, Learner, learner
from tests.virtual_time import ManualClock
from tests.web.server import Site

DAY = 86400.0
RUN_FIELDS = {
    *("id", "session_id", "status", "step_index", "step", "snapshot", "fence", "is_recovery", "predecessor_id"),
    *("blueprint_hash", "workspace_id", "started_at", "last_activity_at", "completed_at"),
}


async def status_of(who: Learner, session_id: str) -> str:
    return str((await who.get(f"/sessions/{session_id}"))["status"])


async def test_the_first_start_creates_a_run_and_the_session_is_in_progress(mina: Learner) -> None:
    id_ = await mina.session()
    assert await status_of(mina, id_) == "SCHEDULED"
    status, run = await mina.start(id_)
    assert status == 201
    assert set(run) >= RUN_FIELDS
    assert (run["session_id"], run["status"], run["step_index"], run["step"]) == (id_, "RUNNING", 0, "LEARN")
    assert (run["snapshot"], run["is_recovery"], run["predecessor_id"]) == (None, False, None)
    assert (run["fence"], run["workspace_id"], run["completed_at"]) == (1, None, None)
    session = await mina.get(f"/sessions/{id_}")
    assert (session["status"], session["run_id"]) == ("IN_PROGRESS", run["id"])
    assert await mina.get(f"/runs/{run['id']}") == run


async def test_a_running_run_is_recovered_at_its_last_saved_step(mina: Learner, clock: ManualClock) -> None:
    id_ = await mina.session(CHECK)
    run = await mina.started(id_)
    await mina.complete(run, 0, {"read": True})
    await clock.advance(DAY)  # exactly a day is still within it
    status, again = await mina.start(id_)
    assert status == 200
    assert (again["id"], again["step_index"], again["step"]) == (run["id"], 1, "CHECK")
    assert (again["snapshot"], again["is_recovery"], again["fence"]) == ({"read": True}, True, 2)
    assert again["last_activity_at"] > run["last_activity_at"]


async def test_an_older_run_is_abandoned_and_a_new_one_names_it(mina: Learner, clock: ManualClock) -> None:
    id_ = await mina.session(CHECK)
    run = await mina.started(id_)
    await mina.complete(run, 0, {"read": True})
    await clock.advance(DAY + 1)
    status, new = await mina.start(id_)
    assert status == 201
    assert new["id"] != run["id"]
    assert (new["predecessor_id"], new["step_index"], new["snapshot"], new["fence"]) == (run["id"], 0, None, 1)
    old = await mina.get(f"/runs/{run['id']}")
    assert (old["status"], old["end_reason"], old["step_index"]) == ("ABANDONED", "inactive", 1)
    assert await status_of(mina, id_) == "IN_PROGRESS"


async def test_an_older_run_can_be_resumed_from_with_its_snapshot(mina: Learner, clock: ManualClock) -> None:
    id_ = await mina.session(CHECK)
    run = await mina.started(id_)
    await mina.complete(run, 0, {"read": True})
    await mina.complete(run, 1, RIGHT)
    await clock.advance(DAY + 1)
    status, new = await mina.start(id_, resume_from=run["id"])
    assert status == 201
    assert (new["predecessor_id"], new["step_index"], new["step"]) == (run["id"], 2, "COMPLETE")
    assert new["snapshot"] == RIGHT
    saved = await mina.get(f"/runs/{new['id']}/snapshots")
    assert [s["state"] for s in saved["items"]] == [{"read": True}, RIGHT]
    status, done = await mina.complete(new, 2)
    assert (status, done["status"]) == (200, "COMPLETED")


async def test_an_abandoned_run_can_be_resumed_from_later_and_the_next_start_names_the_last_one(mina: Learner) -> None:
    id_ = await mina.session(CHECK)
    first = await mina.started(id_)
    await mina.complete(first, 0, {"n": 1})
    await mina.abandon(first)
    second = await mina.started(id_)
    assert (second["predecessor_id"], second["step_index"]) == (first["id"], 0)
    await mina.abandon(second)
    third = await mina.started(id_, resume_from=first["id"])
    assert (third["predecessor_id"], third["step_index"], third["snapshot"]) == (first["id"], 1, {"n": 1})


async def test_what_cannot_be_resumed_from_is_refused_and_changes_nothing(mina: Learner, clock: ManualClock) -> None:
    id_, other = await mina.session(CHECK), await mina.session(CHECK)
    strange = await mina.started(other)
    run = await mina.started(id_)
    await clock.advance(DAY + 1)
    for wanted in (strange["id"], "nothing", "no/run"):
        status, problem = await mina.start(id_, resume_from=wanted)
        assert (status, problem["code"], problem["errors"][0]["field"]) == (400, "INVALID_REQUEST", "resume_from")
    assert (await mina.get(f"/runs/{run['id']}"))["status"] == "RUNNING"


async def test_to_resume_from_an_empty_name_is_refused_also_where_its_key_has_an_answer(mina: Learner) -> None:
    id_ = await mina.session()
    for expected in (201, 200):
        status, problem = await mina.start(id_, key="k", resume_from="")
        assert (status, problem["errors"][0]["field"]) == (400, "resume_from")
        assert (await mina.start(id_, key="k" if expected == 201 else None))[0] == expected


async def test_a_running_run_within_its_day_is_recovered_whatever_is_to_be_resumed(mina: Learner) -> None:
    id_ = await mina.session(CHECK)
    run = await mina.started(id_)
    status, again = await mina.start(id_, resume_from="nothing")
    assert (status, again["id"]) == (200, run["id"])


async def test_always_validate_session_status_a_completed_one_is_not_started(mina: Learner) -> None:
    id_ = await mina.session()
    await mina.finish(await mina.started(id_), [{}, {}])
    status, problem = await mina.start(id_)
    assert (status, problem["code"]) == (409, "SESSION_ALREADY_COMPLETED")


async def test_always_validate_session_status_a_skipped_or_canceled_one_is_not_started(mina: Learner) -> None:
    for end in ("skip", "cancel"):
        id_ = await mina.session()
        assert (await mina.ask("POST", f"/sessions/{id_}/{end}"))[0] == 200
        status, problem = await mina.start(id_)
        assert (status, problem["code"]) == (400, "INVALID_REQUEST")


async def test_always_check_ownership_anothers_session_is_not_there(mina: Learner, site: Site) -> None:
    id_ = await mina.session()
    async with learner(site, "jun") as jun, learner(site, "kim", Role.TEACHER) as kim:
        for who in (jun, kim):
            for wanted in (id_, "nothing", "No.Label", "x" * 64):
                status, problem = await who.start(wanted)
                assert (status, problem["code"]) == (404, "SESSION_NOT_FOUND")
    assert await status_of(mina, id_) == "SCHEDULED"
    assert (await mina.get(f"/sessions/{id_}/runs"))["items"] == []


async def test_never_allow_multiple_running_runs_when_many_start_at_once(mina: Learner) -> None:
    id_ = await mina.session()
    answers = await asyncio.gather(*(mina.start(id_) for _ in range(30)))
    assert sorted(status for status, _ in answers) == [200] * 29 + [201]
    assert len({run["id"] for _, run in answers}) == 1
    assert sorted(run["fence"] for _, run in answers) == list(range(1, 31))  # each got the run, one after the other
    assert len((await mina.get(f"/sessions/{id_}/runs"))["items"]) == 1


async def test_a_session_may_be_started_before_and_after_its_date(mina: Learner, clock: ManualClock) -> None:
    plan = await mina.plan({**CHECK}, {**CHECK})
    assert [s["scheduled_for_date"] for s in plan["sessions"]] == ["2026-03-01", "2026-03-02"]
    assert clock.now().date().isoformat() == "2026-03-02"
    for session in plan["sessions"]:
        assert (await mina.start(session["id"]))[0] == 201


async def test_the_newest_run_is_the_one_that_began_last_whatever_the_clock_says(
    mina: Learner, clock: ManualClock
) -> None:
    """It stands still, and is set back."""
    id_, began = await mina.session(), list[str]()
    for n in range(8):
        if n == 4:
            clock.set_back(3600)
        run = await mina.started(id_)
        assert run["predecessor_id"] == (began[-1] if began else None)
        began.append(run["id"])
        if n < 7:
            assert (await mina.abandon(run))[0] == 200
    assert [run["id"] for run in (await mina.get(f"/sessions/{id_}/runs"))["items"]] == began
    page = await mina.get(f"/sessions/{id_}/runs?limit=3")
    rest = await mina.get(f"/sessions/{id_}/runs?cursor={page['next_cursor']}")
    assert [run["id"] for run in [*page["items"], *rest["items"]]] == began
