"""Classes by the API: who makes them, who is in them, and what that lets teachers do."""

import asyncio
from typing import Any

import pytest

from codehub.policy.model import Role
from tests.classes.conftest import Enrol
from tests.sessions.learning import Learner
from tests.web.server import Site


async def a_class(teacher: Learner, *learners: str, title: str = "Python, Mondays") -> Any:
    status, made = await teacher.ask("POST", "/classes", {"title": title})
    assert status == 201, made
    for name in learners:
        assert (await teacher.ask("POST", f"/classes/{made['id']}/members", {"name": name}))[0] == 201
    return made


async def test_who_makes_a_class_teaches_it_and_its_learners_see_no_others(
    kim: Learner, mina: Learner, person: Enrol
) -> None:
    jun = await person("jun")
    made = await a_class(kim, "mina", "jun")
    assert (made["title"], made["teachers"], made["learners"]) == ("Python, Mondays", ["kim"], 0)
    found = await kim.get(f"/classes/{made['id']}/members")
    shown = [(m["name"], m["role"], m["came"]) for m in found["items"]]
    assert shown == [("kim", "teacher", "added"), ("jun", "learner", "added"), ("mina", "learner", "added")]
    (seen,) = (await mina.get("/classes"))["items"]
    assert (seen["title"], seen["teachers"]) == ("Python, Mondays", ["kim"])
    status, problem = await mina.ask("GET", f"/classes/{made['id']}/members")
    assert (status, problem["code"]) == (403, "FORBIDDEN")
    assert (await jun.ask("PATCH", f"/classes/{made['id']}", {"title": "Mine"}))[0] == 403


async def test_another_class_is_not_there_for_learners_and_other_teachers(
    kim: Learner, lee: Learner, mina: Learner, admin: Learner
) -> None:
    made = await a_class(kim)
    for who in (lee, mina):
        for path in (f"/classes/{made['id']}", f"/classes/{made['id']}/members", "/classes/nowhere", "/classes/N%00"):
            status, problem = await who.ask("GET", path)
            assert status in {400, 404}, problem
        status, problem = await who.ask("DELETE", f"/classes/{made['id']}")
        assert (status, problem["code"]) == (404, "CLASS_NOT_FOUND")
        assert (await who.get("/classes"))["items"] == []
    assert (await admin.get(f"/classes/{made['id']}"))["teachers"] == ["kim"]
    assert (await admin.get("/classes"))["items"] == []
    assert [k["id"] for k in (await admin.get("/classes?all=true"))["items"]] == [made["id"]]
    assert (await kim.ask("GET", "/classes?all=true"))[0] == 403


async def test_learners_make_no_classes_and_only_learners_attend_one(
    kim: Learner, lee: Learner, mina: Learner, admin: Learner
) -> None:
    assert (await mina.ask("POST", "/classes", {"title": "Mine"}))[0] == 403
    path = f"/classes/{(await a_class(kim))['id']}/members"
    for name in ("admin", "lee"):
        status, problem = await kim.ask("POST", path, {"name": name})
        assert (status, problem["code"]) == (409, "NOT_A_LEARNER")
    status, problem = await kim.ask("POST", path, {"name": "mina", "role": "teacher"})
    assert (status, problem["code"]) == (409, "NOT_A_TEACHER")
    assert (await kim.ask("POST", path, {"name": "nobody-here"}))[0] == 404
    assert (await kim.ask("POST", path, {"name": "lee", "role": "teacher"}))[0] == 201
    assert (await lee.ask("POST", path, {"name": "mina"}))[0] == 201
    assert (await lee.ask("POST", path, {"name": "mina"}))[0] == 201  # once more changes nothing
    assert len((await kim.get(path))["items"]) == 3


async def test_a_class_keeps_one_teacher_and_its_members_can_be_taken_out(kim: Learner, mina: Learner) -> None:
    made = await a_class(kim, "mina")
    path = f"/classes/{made['id']}/members"
    status, problem = await kim.ask("DELETE", f"{path}/kim")
    assert (status, problem["code"]) == (409, "LAST_TEACHER")
    assert (await kim.request("DELETE", f"{path}/mina")).status == 204
    assert (await kim.ask("DELETE", f"{path}/mina"))[0] == 404
    assert (await mina.get("/classes"))["items"] == []


async def test_teachers_read_what_their_learners_learn_and_only_theirs(
    kim: Learner, lee: Learner, mina: Learner
) -> None:
    plan = await mina.plan()
    assert (await kim.ask("GET", f"/plans/{plan['id']}"))[0] == 404
    made = await a_class(kim, "mina")
    assert (await kim.get(f"/plans/{plan['id']}"))["id"] == plan["id"]
    assert (await lee.ask("GET", f"/plans/{plan['id']}"))[0] == 404
    session = plan["sessions"][0]["id"]
    status, problem = await kim.ask("POST", f"/sessions/{session}/runs")
    assert (status, problem["code"]) == (403, "FORBIDDEN")
    await kim.ask("PATCH", f"/classes/{made['id']}", {"archived": True})
    assert (await kim.ask("GET", f"/plans/{plan['id']}"))[0] == 404
    await kim.ask("PATCH", f"/classes/{made['id']}", {"archived": False})
    assert (await kim.ask("GET", f"/plans/{plan['id']}"))[0] == 200
    assert (await kim.request("DELETE", f"/classes/{made['id']}")).status == 204
    assert (await kim.ask("GET", f"/plans/{plan['id']}"))[0] == 404


async def test_who_is_no_teacher_any_more_sees_nothing_of_the_class(
    kim: Learner, mina: Learner, admin: Learner
) -> None:
    plan, made = await mina.plan(), await a_class(kim, "mina")
    assert (await kim.ask("GET", f"/plans/{plan['id']}"))[0] == 200
    assert (await admin.ask("PATCH", "/users/kim", {"role": "learner"}))[0] == 200
    assert (await kim.ask("GET", f"/plans/{plan['id']}"))[0] == 404
    assert (await kim.ask("GET", f"/classes/{made['id']}/members"))[0] == 403


async def test_a_learner_who_became_an_admin_is_nobodys_to_look_into(
    kim: Learner, mina: Learner, admin: Learner
) -> None:
    plan = await mina.plan()
    await a_class(kim, "mina")
    assert (await kim.ask("GET", f"/plans/{plan['id']}"))[0] == 200
    assert (await admin.ask("PATCH", "/users/mina", {"role": "admin"}))[0] == 200
    assert (await kim.ask("GET", f"/plans/{plan['id']}"))[0] == 404


async def test_an_archived_class_takes_nobody_in(kim: Learner, mina: Learner) -> None:
    made = await a_class(kim)
    status, archived = await kim.ask("PATCH", f"/classes/{made['id']}", {"archived": True})
    assert status == 200
    assert archived["archived_at"]
    status, problem = await kim.ask("POST", f"/classes/{made['id']}/members", {"name": "mina"})
    assert (status, problem["code"]) == (409, "CLASS_ARCHIVED")
    assert (await kim.get("/classes"))["items"] == []
    assert len((await kim.get("/classes?archived=true"))["items"]) == 1


@pytest.mark.parametrize("body", [{}, {"title": ""}, {"title": "x" * 101}, {"title": 7}, {"title": "a\u202eb"}])
async def test_a_wrong_title_is_refused_by_its_field(kim: Learner, body: Any) -> None:
    status, problem = await kim.ask("POST", "/classes", body)
    assert (status, problem["code"]) == (400, "INVALID_REQUEST")
    assert problem["errors"][0]["field"] == "title"


async def test_twenty_who_add_the_same_learner_at_once_add_them_once(kim: Learner, mina: Learner, site: Site) -> None:
    made = await a_class(kim)
    path = f"/classes/{made['id']}/members"
    answers = await asyncio.gather(*[kim.ask("POST", path, {"name": "mina"}) for _ in range(20)])
    assert {status for status, _ in answers} == {201}
    assert (await kim.get(f"/classes/{made['id']}"))["learners"] == 1


async def test_a_full_class_says_so(site: Site, kim: Learner, mina: Learner) -> None:
    made = await a_class(kim)
    async with site.services.database.transaction() as c:
        await c.execute(
            "WITH people AS (INSERT INTO users (name, role, created_at) SELECT 'p' || n, 'learner', now() "
            "FROM generate_series(1, 999) n RETURNING id) "
            "INSERT INTO class_members (class_id, user_id, role, came, joined_at) "
            "SELECT $1, id, 'learner', 'added', now() FROM people",
            made["id"],
        )
    status, problem = await kim.ask("POST", f"/classes/{made['id']}/members", {"name": "mina"})
    assert (status, problem["code"]) == (429, "MEMBER_LIMIT")


async def test_a_page_of_members_goes_on_where_the_last_ended(kim: Learner, person: Enrol) -> None:
    names = ["ann", "bea", "cleo"]
    for name in names:
        await person(name, Role.LEARNER)
    path = f"/classes/{(await a_class(kim, *names))['id']}/members?limit=2"
    first = await kim.get(path)
    second = await kim.get(f"{path}&cursor={first['next_cursor']}")
    assert [m["name"] for m in first["items"] + second["items"]] == ["kim", *names]
    assert second["next_cursor"] is None
