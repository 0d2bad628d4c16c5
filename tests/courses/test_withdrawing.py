"""A course is withdrawn and offered again: who may, what stops, what goes on."""

import asyncio

from codehub.courses import installation
from tests.courses.writing import course, made, session, taken
from tests.sessions.learning import Learner
from tests.web.server import Site


async def listed(who: Learner) -> list[str]:
    return [c["id"] for c in (await who.get("/courses"))["items"]]


async def test_what_is_withdrawn_is_not_taken_up_and_plans_of_it_go_on(
    site: Site, kim: Learner, mina: Learner, jun: Learner, admin: Learner
) -> None:
    id_ = (await made(kim, course(session("one"), session("two"))))["id"]
    plan = await taken(mina, id_)
    status, done = await kim.ask("POST", f"/courses/{id_}/withdraw")
    assert (status, done["withdrawn_at"] is not None) == (200, True)
    for who, body in ((jun, {}), (admin, {"owner": "jun"})):
        status, problem = await who.ask("POST", f"/courses/{id_}/plans", body)
        assert (status, problem["code"]) == (409, "COURSE_WITHDRAWN")
        assert "ask kim" in problem["detail"]
    assert [await listed(who) for who in (jun, mina, kim, admin)] == [[], [], [id_], [id_]]
    status, same = await mina.ask("POST", f"/courses/{id_}/plans")
    assert (status, same["id"]) == (200, plan["id"])  # a second click still leads to the plan that is there
    run = await mina.started(plan["sessions"][0]["id"])
    for index in (0, 1):
        assert (await mina.complete(run, index))[0] == 200
    assert (await kim.ask("PUT", f"/courses/{id_}", course(session("one"), session("two", title="Better"))))[0] == 200
    assert (await mina.get(f"/plans/{plan['id']}"))["sessions"][1]["title"] == "Better"
    status, done = await kim.ask("POST", f"/courses/{id_}/offer")
    assert (status, done["withdrawn_at"], done["version"]) == (200, None, 2)
    assert await listed(jun) == [id_]
    await taken(jun, id_)


async def test_its_owner_and_admins_withdraw_it_and_others_do_not(
    site: Site, kim: Learner, mina: Learner, admin: Learner
) -> None:
    await installation.run(site.services.courses)
    shipped = (await listed(mina))[0]
    own = (await made(kim))["id"]
    for verb in ("withdraw", "offer"):
        for id_, who, expected in (
            (own, mina, 403),
            (own, admin, 200),
            (own, kim, 200),
            (shipped, kim, 403),
            (shipped, admin, 200),
            ("nowhere", admin, 404),
        ):
            assert (await who.ask("POST", f"/courses/{id_}/{verb}"))[0] == expected, (verb, id_)


async def test_a_shipped_course_stays_withdrawn_after_another_start(site: Site, mina: Learner, admin: Learner) -> None:
    await installation.run(site.services.courses)
    id_ = (await listed(mina))[0]
    await admin.ask("POST", f"/courses/{id_}/withdraw")
    await installation.run(site.services.courses)
    assert id_ not in await listed(mina)


async def test_twice_is_once_and_the_audit_log_says_who_did_it(kim: Learner, admin: Learner) -> None:
    id_ = (await made(kim))["id"]
    for verb in ("withdraw", "withdraw", "offer", "offer"):
        assert (await kim.ask("POST", f"/courses/{id_}/{verb}"))[0] == 200
    entries = (await admin.get(f"/admin/audit?subject={id_}"))["items"]
    assert [(e["code"], e["data"]) for e in entries][:2] == [
        ("course.offer", {"title": "Python"}),
        ("course.withdraw", {"title": "Python"}),
    ]
    assert len(entries) == 3
    assert entries[1]["sentence"] == f"kim withdrew the course Python ({id_})"


async def test_who_takes_it_up_at_that_moment_was_first_or_is_refused(kim: Learner, mina: Learner) -> None:
    for _ in range(5):
        id_ = (await made(kim))["id"]
        (status, answer), _ = await asyncio.gather(
            mina.ask("POST", f"/courses/{id_}/plans"), kim.ask("POST", f"/courses/{id_}/withdraw")
        )
        assert status == 201 or answer["code"] == "COURSE_WITHDRAWN"


async def test_a_key_is_never_the_id_of_a_course(kim: Learner, admin: Learner) -> None:
    """A command names a course by either."""
    id_ = (await made(admin))["id"]
    own = (await made(kim, course(key="mine")))["id"]
    for method, path in (("POST", "/courses"), ("PUT", f"/courses/{own}")):
        status, problem = await kim.ask(method, path, course(key=id_))
        assert (status, problem["errors"][0]["field"]) == (400, "key")
        assert "is the id of a course" in problem["detail"]
