"""Steps of a run through HTTP: saved in order with their snapshots, graded, replayed, refused; and how a run ends."""

import itertools
import json
from typing import Any

import pytest

from tests.sessions.learning import CHECK, FULL, LEARN, RIGHT, Learner
from tests.virtual_time import ManualClock

TWICE = {
    **CHECK,
    "steps": ["CHECK", "LEARN", "CHECK", "COMPLETE"],
    "checkQuestions": [
        {"id": "one", "kind": "text", "prompt": "1?", "answer": "eins"},
        {"id": "two", "kind": "text", "prompt": "2?", "answer": "zwei"},
    ],
}


async def saved(who: Learner, run: Any) -> list[Any]:
    return [(s["step_index"], s["state"]) for s in (await who.get(f"/runs/{run['id']}/snapshots"))["items"]]


async def test_always_save_snapshot_with_each_step_until_run_and_session_are_completed(
    mina: Learner, clock: ManualClock
) -> None:
    id_ = await mina.session(CHECK)
    run = await mina.started(id_)
    states = [{"read": True}, {**RIGHT, "note": "안녕"}, {}]
    for index, state in enumerate(states):
        await clock.advance(60)
        status, run = await mina.complete(run, index, state)
        assert status == 200
        assert (run["step_index"], run["snapshot"]) == (index + 1, state)
        assert run["last_activity_at"] == clock.now().isoformat().replace("+00:00", "Z")
        assert await mina.get(f"/runs/{run['id']}") == run
    assert (run["status"], run["step"], run["completed_at"]) == ("COMPLETED", None, run["last_activity_at"])
    assert (run["ended_at"], run["end_reason"]) == (run["completed_at"], "completed")
    session = await mina.get(f"/sessions/{id_}")
    assert (session["status"], session["run_id"]) == ("COMPLETED", None)
    assert await saved(mina, run) == list(enumerate(states))


async def test_the_same_step_with_the_same_body_is_a_replay_and_another_body_is_not(mina: Learner) -> None:
    run = await mina.started(await mina.session(CHECK))
    _, once = await mina.complete(run, 0, {"a": 1, "b": [1, {"c": None}]})
    assert await mina.complete(run, 0, {"b": [1, {"c": None}], "a": 1}) == (200, once)
    status, problem = await mina.complete(run, 0, {"a": 2})
    assert (status, problem["code"], problem["step_index"]) == (409, "STEP_OUT_OF_ORDER", 1)
    _, further = await mina.complete(run, 1, RIGHT)
    assert await mina.complete(run, 0, {"a": 1, "b": [1, {"c": None}]}) == (200, further)  # an earlier one, too


async def test_steps_go_forward_only_one_by_one(mina: Learner) -> None:
    run = await mina.started(await mina.session(FULL))
    for index in (1, 2, 3, 4, 1999):
        status, problem = await mina.complete(run, index)
        assert (status, problem["code"]) == (409, "STEP_OUT_OF_ORDER")
    for malformed in ("-1", "2000", "x", "1.5"):
        status, problem = await mina.ask("POST", f"/runs/{run['id']}/steps/{malformed}/complete", {"fence": 1})
        assert (status, problem["code"]) == (400, "INVALID_REQUEST")
    assert await saved(mina, run) == []


async def test_a_check_with_wrong_answers_says_which_counts_as_a_try_and_is_not_completed(
    mina: Learner, clock: ManualClock
) -> None:
    run = await mina.started(await mina.session(CHECK))
    await mina.complete(run, 0)
    await clock.advance(60)
    for answers in ({"loop-count": "a"}, {}, None, "b", {"loop-count": ["b"]}):
        status, problem = await mina.complete(run, 1, {"answers": answers})
        assert (status, problem["code"], problem["wrong"]) == (422, "CHECK_FAILED", ["loop-count"])
        expected = {"loop-count": "It begins at 0."} if answers == {"loop-count": "a"} else {}
        assert problem["feedback"] == expected
    now = await mina.get(f"/runs/{run['id']}")
    assert now["step_index"] == 1
    assert now["last_activity_at"] == clock.now().isoformat().replace("+00:00", "Z")  # a try is activity
    assert (await mina.complete(run, 1, RIGHT))[0] == 200


async def test_each_check_of_several_asks_its_own_share_of_the_questions(mina: Learner) -> None:
    run = await mina.started(await mina.session(TWICE))
    status, problem = await mina.complete(run, 0, {"answers": {"two": "zwei"}})
    assert (status, problem["wrong"]) == (422, ["one"])
    await mina.finish(run, [{"answers": {"one": " EINS "}}, {}, {"answers": {"two": "zwei"}}, {}])


async def test_a_practice_without_a_workspace_is_not_completed(mina: Learner) -> None:
    run = await mina.started(await mina.session(FULL))
    await mina.complete(run, 0)
    await mina.complete(run, 1, RIGHT)
    status, problem = await mina.complete(run, 2)
    assert (status, problem["code"]) == (409, "WORKSPACE_NOT_RUNNING")
    assert len(await saved(mina, run)) == 2


async def test_a_practice_that_checks_nothing_is_completed_like_any_step(mina: Learner) -> None:
    reading = {**LEARN, "steps": ["PRACTICE", "COMPLETE"], "practiceActivity": {"instructions": "Look around."}}
    done = await mina.finish(await mina.started(await mina.session(reading)), [{}, {}])
    assert (done["status"], done["step_index"]) == ("COMPLETED", 2)


@pytest.mark.parametrize("end", ["complete", "abandon", "skip", "cancel"])
async def test_an_ended_run_takes_no_write_but_the_replay_of_what_it_saved(mina: Learner, end: str) -> None:
    id_ = await mina.session()
    run = await mina.started(id_)
    _, last = await mina.complete(run, 0, {"n": 1})
    if end == "complete":
        _, last = await mina.complete(run, 1, {"n": 2})
    elif end == "abandon":
        await mina.abandon(run)
    else:
        await mina.ask("POST", f"/sessions/{id_}/{end}")
    writes = [
        ("steps/1/complete", {"fence": 1, "state": {"n": 3}}),
        ("steps/0/complete", {"fence": 1, "state": {"n": 3}}),
        ("steps/0/complete", {"fence": 2, "state": {"n": 1}}),
        ("activity", {"fence": 1}),
        ("abandon", {"fence": 1, "reason": "again"}),
    ]
    before = await mina.get(f"/runs/{run['id']}")
    for path, body in writes:
        status, problem = await mina.ask("POST", f"/runs/{run['id']}/{path}", body)
        assert (status, problem["code"]) == (409, "RUN_NOT_RUNNING"), path
    assert await mina.complete(run, 0, {"n": 1}) == (200, before)
    assert await mina.get(f"/runs/{run['id']}") == before
    if end == "complete":
        assert await mina.complete(run, 1, {"n": 2}) == (200, last)


def nested(levels: int, inmost: object = 1) -> dict[str, Any]:
    """Lists in an object."""
    for _ in range(levels - 1):
        inmost = [inmost]
    return {"a": inmost}


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"state": {}}, "fence"),
        ({"fence": "1"}, "fence"),
        ({"fence": True}, "fence"),
        ({"fence": 0}, "fence"),
        ({"fence": 1, "state": []}, "state"),
        ({"fence": 1, "state": None}, "state"),
        ({"fence": 1, "state": {"text": "x" * 65_536}}, "state"),
        ({"fence": 1, "state": {"text": "\x00"}}, "state"),
        ({"fence": 1, "state": {"\x00": 1}}, "state"),
        ({"fence": 1, "state": {"text": "\ud800"}}, "state"),
        ({"fence": 1, "state": nested(33)}, "state"),
        ({"fence": 1, "state": nested(500, "\x00")}, "state"),
        ({"fence": 1, "more": 1}, "more"),
    ],
)
async def test_what_cannot_be_saved_is_refused_by_its_field(mina: Learner, body: Any, field: str) -> None:
    run = await mina.started(await mina.session())
    status, problem = await mina.ask("POST", f"/runs/{run['id']}/steps/0/complete", body)
    assert (status, problem["code"]) == (400, "INVALID_REQUEST")
    assert problem["errors"][0]["field"].split(".")[0] == field


async def test_a_state_of_exactly_64_kb_and_odd_texts_come_back_as_they_were(mina: Learner) -> None:
    run = await mina.started(await mina.session(CHECK))
    room = 65_536 - len('{"text":""}')
    for index, state in enumerate([{"text": "x" * room}, {**RIGHT, "odd": ["\\u0000", "\u2028", "😀", -0.5, 10**30]}]):
        status, after = await mina.complete(run, index, state)
        assert (status, after["snapshot"]) == (200, state)
        assert (await mina.get(f"/runs/{run['id']}"))["snapshot"] == state
    korean = {"text": "가" * 20_000}  # as JSON with every character escaped, twice the bytes
    assert (await mina.complete(run, 2, korean))[0] == 200


async def test_numbers_and_levels_come_back_as_they_were_and_no_larger(mina: Learner) -> None:
    run = await mina.started(await mina.session({**LEARN, "steps": ["LEARN"] * 3 + ["COMPLETE"]}))
    states = [{"a": [1e308] * 8_000}, {"a": [-0.0, 1e300, 5e-324, 0.1, 2**64, 1e16]}, nested(32)]
    for index, state in enumerate(states):
        assert (await mina.complete(run, index, state))[0] == 200
        after = f"&cursor={index - 1}" if index else ""
        for path in (f"/runs/{run['id']}", f"/runs/{run['id']}/snapshots?limit=1{after}"):
            answer = await mina.request("GET", path)
            text = await answer.text()
            assert (answer.status, len(text) < 66_000) == (200, True)
            found = json.loads(text)
            assert repr(found["items"][0]["state"] if "items" in found else found["snapshot"]) == repr(state)


async def test_snapshots_come_in_pages_of_one_megabyte_and_none_is_missing(mina: Learner) -> None:
    steps = 35
    run = await mina.started(await mina.session({**LEARN, "steps": ["LEARN"] * steps + ["COMPLETE"]}))
    await mina.finish(run, [{"n": n, "text": "x" * 65_000} for n in range(steps)])
    path, seen = f"/runs/{run['id']}/snapshots?limit=200", []
    cursor: str | None = ""
    while cursor is not None:
        answer = await mina.request("GET", f"{path}{cursor and f'&cursor={cursor}'}")
        assert len(await answer.text()) < 1.1 * 2**20
        page = await answer.json()
        seen.append([item["state"]["n"] for item in page["items"]])
        cursor = page["next_cursor"]
    assert [len(numbers) for numbers in seen] == [16, 16, 3]
    assert list(itertools.chain(*seen)) == list(range(steps))


async def test_activity_moves_the_time_and_nothing_else(mina: Learner, clock: ManualClock) -> None:
    run = await mina.started(await mina.session())
    await clock.advance(120)
    status, after = await mina.ask("POST", f"/runs/{run['id']}/activity", {"fence": 1})
    moved = clock.now().isoformat().replace("+00:00", "Z")
    assert (status, after) == (200, {**run, "last_activity_at": moved})
    await clock.advance(86400 - 60)
    assert (await mina.start(run["session_id"]))[0] == 200  # within a day of the heartbeat, not of the start
