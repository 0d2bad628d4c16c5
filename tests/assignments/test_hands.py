"""A learner asks for help in a run; the teachers of their classes see it, and one answers."""

import asyncio
from typing import Any

from codehub.command import operator
from codehub.events import outbox
from codehub.events.model import Event
from codehub.policy.model import Role
from tests.assignments.given import a_taught_class, the_plan
from tests.auth.helpers import entries, eventually
from tests.classes.conftest import Enrol
from tests.classes.test_classes import a_class
from tests.sessions.learning import LEARN, Learner
from tests.virtual_time import ManualClock
from tests.web.server import Site
from tests.web.test_live import listening


async def a_run(learner: Learner) -> Any:
    return await learner.started((await the_plan(learner))["sessions"][0]["id"])


async def asked(learner: Learner, run: Any, message: str = "My loop never ends.") -> Any:
    status, hand = await learner.ask("POST", f"/runs/{run['id']}/help", {"message": message})
    assert status == 201, hand
    return hand


async def test_a_hand_goes_up_is_shown_first_and_is_answered(
    kim: Learner, mina: Learner, person: Enrol, site: Site
) -> None:
    await person("ara")
    found, _ = await a_taught_class(kim, "mina", "ara")
    run = await a_run(mina)
    hand = await asked(mina, run)
    (listed,) = (await kim.get(f"/classes/{found['id']}/hands"))["items"]
    assert (listed["owner"], listed["message"], listed["ended_at"]) == ("mina", "My loop never ends.", None)
    progress = await kim.get(f"/classes/{found['id']}/progress")
    hands = {one["name"]: one["cells"][0]["hand_id"] for one in progress["learners"]}
    assert hands == {"ara": None, "mina": hand["id"]}
    path = f"/classes/{found['id']}/hands/{hand['id']}/answer"
    status, answered = await kim.ask("POST", path, {"message": "Look at line 3."})
    assert (status, answered["answered_by"], answered["answer"]) == (200, "kim", "Look at line 3.")
    assert (await kim.get(f"/classes/{found['id']}/hands"))["items"] == []
    seen = await mina.get(f"/runs/{run['id']}/help")
    assert (seen["answer"], seen["answered_by"]) == ("Look at line 3.", "kim")
    assert len(await entries(site.services, "hand.raise")) == 1
    (entry,) = await entries(site.services, "hand.answer")
    assert (entry.actor, entry.data["user"]) == ("kim", "mina")
    status, problem = await kim.ask("POST", path, {})
    assert (status, problem["code"]) == (409, "HAND_ENDED")


async def test_there_is_one_open_hand_for_a_run_and_it_can_be_taken_back(kim: Learner, mina: Learner) -> None:
    found, _ = await a_taught_class(kim, "mina")
    run = await a_run(mina)
    answers = await asyncio.gather(*(mina.ask("POST", f"/runs/{run['id']}/help", {"message": "x"}) for _ in range(5)))
    assert sorted(status for status, _ in answers) == [200] * 4 + [201]
    assert len({hand["id"] for _, hand in answers}) == 1
    for _ in range(2):
        assert (await mina.request("DELETE", f"/runs/{run['id']}/help")).status == 204
    assert (await kim.get(f"/classes/{found['id']}/hands"))["items"] == []
    again = await asked(mina, run, "")
    assert again["id"] != answers[0][1]["id"]


async def test_the_newest_answer_is_shown_whatever_the_clock_says(
    kim: Learner, mina: Learner, clock: ManualClock
) -> None:
    """It stands still, and is set back."""
    found, _ = await a_taught_class(kim, "mina")
    run = await a_run(mina)
    for n in range(8):
        if n == 4:
            clock.set_back(3600)
        hand = await asked(mina, run)
        await kim.ask("POST", f"/classes/{found['id']}/hands/{hand['id']}/answer", {"message": f"Answer {n}"})
        assert (await mina.get(f"/runs/{run['id']}/help"))["answer"] == f"Answer {n}"


async def test_a_hand_stays_on_the_page_of_a_session_that_was_completed_and_so_does_its_answer(
    kim: Learner, site: Site
) -> None:
    """A learner who went on alone takes it back, or reads what the teacher says later."""
    await site.services.people.create_user(operator(), "ara", Role.LEARNER)
    assert (await kim.ask("PATCH", "/users/kim", {"display_name": "김 선생님"}))[0] == 200
    async with site.browser("ara") as browser:
        ara = Learner(browser)
        found = await a_class(kim, "ara")
        one = (await ara.plan(LEARN, LEARN))["sessions"]
        pages = []
        for session in one:
            run = await ara.started(session["id"])
            await asked(ara, run)
            for index in (0, 1):
                assert (await ara.complete(run, index))[0] == 200
            async with browser.get(f"/sessions/{session['id']}") as answer:
                pages.append(await answer.text())
        assert all("Your teacher has been asked" in page and 'id="help-ask"' not in page for page in pages)
        form = {"run": run["id"], "fence": "0"}
        async with browser.post(f"/do/sessions/{one[1]['id']}/help/lower", data=form) as answer:
            assert "Your teacher has been asked" not in await answer.text()
        (left,) = (await kim.get(f"/classes/{found['id']}/hands"))["items"]
        path = f"/classes/{found['id']}/hands/{left['id']}/answer"
        assert (await kim.ask("POST", path, {"message": "Look at line 3."}))[0] == 200
        async with browser.get(f"/sessions/{one[0]['id']}") as answer:
            page = await answer.text()
        assert "Look at line 3." in page
        assert "김 선생님 (kim) answered" in page


async def test_what_cannot_be_asked_is_said(kim: Learner, mina: Learner, site: Site) -> None:
    alone = await mina.started(await mina.session())
    status, problem = await mina.ask("POST", f"/runs/{alone['id']}/help", {"message": "x"})
    assert (status, problem["code"]) == (409, "NO_TEACHER")
    await a_class(kim, "mina")
    path = f"/runs/{alone['id']}/help"
    for body in ({"message": "x" * 501}, {"message": "a\x07b"}, {"fence": "1"}, {"other": 1}):
        status, problem = await mina.ask("POST", path, body)
        assert (status, problem["code"]) == (400, "INVALID_REQUEST")
    status, problem = await mina.ask("POST", path, {"fence": 7})
    assert (status, problem["code"]) == (409, "RUN_TAKEN_OVER")
    assert (await kim.ask("POST", path, {}))[0] == 403
    assert (await mina.ask("POST", path, {"fence": alone["fence"]}))[0] == 201
    assert (await mina.abandon(alone))[0] == 200
    await mina.request("DELETE", path)
    status, problem = await mina.ask("POST", path, {})
    assert (status, problem["code"]) == (409, "RUN_NOT_RUNNING")


async def test_only_teachers_of_the_learners_class_answer(kim: Learner, lee: Learner, mina: Learner) -> None:
    found, _ = await a_taught_class(kim, "mina")
    others = await a_class(lee)
    hand = await asked(mina, await a_run(mina))
    for who, class_id, expected in ((lee, found["id"], 404), (mina, found["id"], 403), (lee, others["id"], 404)):
        status, _ = await who.ask("POST", f"/classes/{class_id}/hands/{hand['id']}/answer", {})
        assert status == expected
    assert (await kim.ask("POST", f"/classes/{found['id']}/hands/nothing/answer", {}))[0] == 404


async def test_a_hand_ends_with_a_run_that_is_given_up(kim: Learner, mina: Learner) -> None:
    found, _ = await a_taught_class(kim, "mina")
    run = await a_run(mina)
    hand = await asked(mina, run)
    assert (await mina.ask("POST", f"/runs/{run['id']}/abandon", {"fence": run["fence"]}))[0] == 200
    assert (await kim.get(f"/classes/{found['id']}/hands"))["items"] == []
    status, problem = await kim.ask("POST", f"/classes/{found['id']}/hands/{hand['id']}/answer", {})
    assert (status, problem["code"]) == (409, "HAND_ENDED")
    assert (await mina.get(f"/runs/{run['id']}/help"))["ended_at"]


async def test_teachers_of_a_class_that_is_over_neither_read_nor_answer_what_is_asked(
    kim: Learner, lee: Learner, mina: Learner
) -> None:
    await a_taught_class(kim, "mina")
    over = await a_class(lee, "mina")
    hand = await asked(mina, await a_run(mina))
    assert len((await lee.get(f"/classes/{over['id']}/hands"))["items"]) == 1
    await lee.ask("PATCH", f"/classes/{over['id']}", {"archived": True})
    assert (await lee.get(f"/classes/{over['id']}/hands"))["items"] == []
    status, problem = await lee.ask("POST", f"/classes/{over['id']}/hands/{hand['id']}/answer", {})
    assert (status, problem["code"]) == (409, "CLASS_ARCHIVED")


async def test_two_teachers_who_answer_at_once_give_one_answer(kim: Learner, lee: Learner, mina: Learner) -> None:
    found, _ = await a_taught_class(kim, "mina")
    await kim.ask("POST", f"/classes/{found['id']}/members", {"name": "lee", "role": "teacher"})
    hand = await asked(mina, await a_run(mina))
    path = f"/classes/{found['id']}/hands/{hand['id']}/answer"
    said = await asyncio.gather(*(who.ask("POST", path, {"message": "x"}) for who in (kim, lee, kim, lee)))
    assert sorted(status for status, _ in said) == [200, 409, 409, 409]


async def test_what_was_asked_and_answered_does_not_name_a_person_who_was_removed(
    kim: Learner, mina: Learner, admin: Learner
) -> None:
    found, _ = await a_taught_class(kim, "mina")
    run = await a_run(mina)
    hand = await asked(mina, run, "It is mina: help!")
    await kim.ask("POST", f"/classes/{found['id']}/hands/{hand['id']}/answer", {"message": "Look at line 3, mina."})
    assert (await admin.request("DELETE", "/users/mina")).status == 204
    kept = await admin.get(f"/runs/{run['id']}/help")
    assert "mina" not in kept["message"] + kept["answer"] + kept["owner"]
    assert "Look at line 3" in kept["answer"]


async def test_a_learners_changes_reach_the_teachers_of_their_classes_once_each(
    kim: Learner, lee: Learner, mina: Learner, site: Site
) -> None:
    found, _ = await a_taught_class(kim, "mina")
    other = await a_class(lee, "mina")
    async with site.services.database.connection() as c:
        await c.execute("DELETE FROM events")
    run = await a_run(mina)

    async def told() -> list[tuple[str, str]]:
        async with site.services.database.connection() as c:
            rows = await c.fetch("SELECT audience, kind, data FROM events WHERE audience LIKE 'class:%'")
        assert all(row["data"]["learner"] == "mina" for row in rows)
        return sorted((row["audience"], row["kind"]) for row in rows)

    both = sorted((f"class:{id_}", "progress_updated") for id_ in (found["id"], other["id"]))

    async def both_are_told() -> bool:
        return await told() == both

    await eventually(both_are_told, 10)
    await asked(mina, run)
    assert await told() == sorted(both + [(f"class:{id_}", "hand_updated") for id_ in (found["id"], other["id"])])


async def test_a_stream_follows_the_classes_that_its_teacher_has(
    kim: Learner, lee: Learner, mina: Learner, site: Site
) -> None:
    """One is added while the stream is open, and one archived."""
    first, _ = await a_taught_class(kim, "mina")
    run = await a_run(mina)
    site.services.hub.start()
    site.services.listener.subscribe("codehub_events", site.services.hub.wake)
    async with lee.client.get("/api/v1/events") as stream:

        async def heard(kind: str) -> None:
            async with asyncio.timeout(15):
                async for line in stream.content:
                    if line == f"event: {kind}\n".encode():
                        return

        await heard("heartbeat")
        await kim.ask("POST", f"/classes/{first['id']}/members", {"name": "lee", "role": "teacher"})
        await heard("class_joined")
        await asked(mina, run)
        await heard("hand_updated")
        await site.services.classes.change(operator(), first["id"], archived=True)
        await heard("class_left")
    await site.services.hub.stop()


async def test_a_stream_of_one_who_teaches_no_more_hears_nothing_of_the_class(
    kim: Learner, lee: Learner, mina: Learner, site: Site
) -> None:
    """Taken out of it, or a learner now who is still in its list; also when the class comes out of the archive."""
    found, _ = await a_taught_class(kim, "mina")
    run = await a_run(mina)
    for name in ("lee", "han"):
        if name == "han":
            await site.services.people.create_user(operator(), name, Role.TEACHER)
        await kim.ask("POST", f"/classes/{found['id']}/members", {"name": name, "role": "teacher"})
    await site.services.people.change_user(operator(), "han", role=Role.LEARNER, active=None)
    site.services.hub.start()
    site.services.listener.subscribe("codehub_events", site.services.hub.wake)
    async with listening(site, "lee") as left, listening(site, "han") as demoted:
        await kim.request("DELETE", f"/classes/{found['id']}/members/lee")
        for archived in (True, False):
            await kim.ask("PATCH", f"/classes/{found['id']}", {"archived": archived})
        await asked(mina, run)
        for name, stream in (("lee", left), ("han", demoted)):
            async with site.services.database.transaction() as c:
                owner = await c.fetchval("SELECT id FROM users WHERE name = $1", name)
                last = Event(f"user:{owner}", "plan_updated", "the-end", {})
                await outbox.write(c, site.services.clock.now(), [last])
            await stream.until("plan_updated")
            heard = {kind for kind, _ in stream.seen}
            assert not heard & {"hand_updated", "class_joined", "class_updated", "progress_updated"}, name
    await site.services.hub.stop()
