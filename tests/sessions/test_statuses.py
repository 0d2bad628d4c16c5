"""The table of a session's statuses through HTTP: what a person asks of it in each, and what becomes of its run."""

import pytest

from tests.sessions.learning import Learner
from tests.virtual_time import ManualClock


async def brought_to(mina: Learner, status: str) -> str:
    """A session in this status; where it has a running run, at its first step."""
    id_ = await mina.session()
    match status:
        case "IN_PROGRESS":
            await mina.started(id_)
        case "COMPLETED":
            await mina.finish(await mina.started(id_), [{}, {}])
        case "SKIPPED":
            await mina.ask("POST", f"/sessions/{id_}/skip")
        case "CANCELED":
            await mina.ask("POST", f"/sessions/{id_}/cancel")
    assert (await mina.get(f"/sessions/{id_}"))["status"] == status
    return id_


@pytest.mark.parametrize(("verb", "becomes"), [("skip", "SKIPPED"), ("cancel", "CANCELED")])
@pytest.mark.parametrize("status", ["SCHEDULED", "IN_PROGRESS"])
async def test_a_session_that_has_not_ended_is_skipped_or_canceled(
    mina: Learner, status: str, verb: str, becomes: str
) -> None:
    id_ = await brought_to(mina, status)
    code, session = await mina.ask("POST", f"/sessions/{id_}/{verb}")
    assert (code, session["status"], session["run_id"]) == (200, becomes, None)
    assert await mina.get(f"/sessions/{id_}") == session
    runs = (await mina.get(f"/sessions/{id_}/runs"))["items"]
    ends = [(run["status"], run["end_reason"]) for run in runs]
    expected = {"skip": "session_skipped", "cancel": "session_canceled"}[verb]
    assert ends == ([("ABANDONED", expected)] if status == "IN_PROGRESS" else [])


@pytest.mark.parametrize("verb", ["skip", "cancel"])
@pytest.mark.parametrize("status", ["COMPLETED", "SKIPPED", "CANCELED"])
async def test_from_an_ended_status_there_is_no_way(mina: Learner, status: str, verb: str) -> None:
    id_ = await brought_to(mina, status)
    before = await mina.get(f"/sessions/{id_}")
    code, problem = await mina.ask("POST", f"/sessions/{id_}/{verb}")
    assert (code, problem["code"], problem["status_now"]) == (409, "INVALID_TRANSITION", status)
    assert await mina.get(f"/sessions/{id_}") == before


async def test_an_abandoned_run_lets_its_session_be_started_again(mina: Learner, clock: ManualClock) -> None:
    id_ = await mina.session()
    run = await mina.started(id_)
    await clock.advance(60)
    code, ended = await mina.abandon(run, reason="다음에")
    assert (code, ended["status"], ended["end_reason"], ended["end_note"]) == (200, "ABANDONED", "by_learner", "다음에")
    assert (ended["completed_at"], ended["ended_at"]) == (None, clock.now().isoformat().replace("+00:00", "Z"))
    session = await mina.get(f"/sessions/{id_}")
    assert (session["status"], session["run_id"]) == ("SCHEDULED", None)
    code, again = await mina.start(id_)
    assert (code, again["predecessor_id"]) == (201, run["id"])


async def test_never_delete_runs_the_trail_has_every_one_in_order(mina: Learner, clock: ManualClock) -> None:
    id_ = await mina.session()
    ids = []
    for _ in range(3):
        run = await mina.started(id_)
        ids.append(run["id"])
        await mina.abandon(run)
        await clock.advance(1)
    await mina.finish(await mina.started(id_), [{}, {}])
    first = await mina.get(f"/sessions/{id_}/runs?limit=3")
    assert [run["id"] for run in first["items"]] == ids
    rest = await mina.get(f"/sessions/{id_}/runs?limit=3&cursor={first['next_cursor']}")
    assert [run["predecessor_id"] for run in rest["items"]] == ids[-1:]
    assert rest["next_cursor"] is None
    said = [run["ended"] for run in first["items"] + rest["items"]]
    assert said == ["Abandoned by the learner"] * 3 + ["Completed"]
    _, korean = await mina.ask("GET", f"/sessions/{id_}/runs", **{"Accept-Language": "ko"})
    assert korean["items"][0]["ended"] == "학습자가 중단했습니다"
    assert (await mina.ask("DELETE", f"/runs/{ids[0]}"))[0] == 405
    assert (await mina.ask("DELETE", f"/sessions/{id_}"))[0] == 405
