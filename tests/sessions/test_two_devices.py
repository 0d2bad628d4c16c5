"""A run belongs to one page at a time: each recovery gives it to the client that asked, and the other is told."""

import asyncio

from tests.sessions.learning import CHECK, RIGHT, Learner


async def test_the_other_pages_next_write_is_refused_and_it_can_take_the_run_back(mina: Learner) -> None:
    id_ = await mina.session(CHECK)
    laptop = await mina.started(id_)
    phone = await mina.started(id_)
    assert (phone["id"], phone["fence"]) == (laptop["id"], laptop["fence"] + 1)
    writes: list[tuple[str, dict[str, object]]] = [
        ("steps/0/complete", {"state": {"by": "laptop"}}),
        ("activity", {}),
        ("abandon", {"reason": "enough"}),
    ]
    for path, body in writes:
        status, problem = await mina.ask("POST", f"/runs/{laptop['id']}/{path}", {"fence": laptop["fence"], **body})
        assert (status, problem["code"], problem["fence"]) == (409, "RUN_TAKEN_OVER", phone["fence"])
    assert (await mina.complete(phone, 0, {"by": "phone"}))[0] == 200
    back = await mina.started(id_)
    assert (back["fence"], back["snapshot"]) == (3, {"by": "phone"})
    assert (await mina.complete(phone, 1, RIGHT))[1]["code"] == "RUN_TAKEN_OVER"
    assert (await mina.complete(back, 1, RIGHT))[0] == 200


async def test_a_replay_by_key_does_not_take_the_run(mina: Learner) -> None:
    id_ = await mina.session(CHECK)
    _, laptop = await mina.start(id_, key="laptop")
    _, phone = await mina.start(id_, key="phone")
    assert await mina.start(id_, key="laptop") == (201, laptop)
    assert (await mina.complete(phone, 0))[0] == 200
    assert (await mina.complete(laptop, 1, RIGHT))[1]["code"] == "RUN_TAKEN_OVER"


async def test_a_step_that_was_saved_is_no_replay_with_an_older_fence(mina: Learner) -> None:
    id_ = await mina.session(CHECK)
    laptop = await mina.started(id_)
    await mina.complete(laptop, 0, {"n": 1})
    await mina.started(id_)
    status, problem = await mina.complete(laptop, 0, {"n": 1})
    assert (status, problem["code"]) == (409, "RUN_TAKEN_OVER")


async def test_two_pages_that_save_different_things_at_once_never_overwrite_each_other(mina: Learner) -> None:
    for _ in range(10):
        run = await mina.started(await mina.session(CHECK))
        answers = await asyncio.gather(*(mina.complete(run, 0, {"by": n}) for n in range(6)))
        (winner,) = [n for n, (status, _) in enumerate(answers) if status == 200]
        assert {problem["code"] for status, problem in answers if status != 200} == {"STEP_OUT_OF_ORDER"}
        assert (await mina.get(f"/runs/{run['id']}"))["snapshot"] == {"by": winner}


async def test_the_same_step_sent_many_times_at_once_is_saved_once_and_answered_alike(mina: Learner) -> None:
    run = await mina.started(await mina.session(CHECK))
    answers = await asyncio.gather(*(mina.complete(run, 0, {"n": 1}) for _ in range(20)))
    assert {status for status, _ in answers} == {200}
    assert {after["step_index"] for _, after in answers} == {1}
