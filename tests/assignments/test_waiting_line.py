"""Who of a class waits in the lab's line is seen by its teachers, on the board too, and by no other."""

from codehub.policy.model import ALL_SCOPES, Principal, Role
from codehub.waiting_room.model import LAB
from tests.assignments.given import a_taught_class
from tests.sessions.learning import Learner
from tests.web.server import Site


async def test_a_teacher_sees_who_of_their_learners_waits(kim: Learner, mina: Learner, site: Site) -> None:
    found, _ = await a_taught_class(kim, "mina")
    services = site.services
    async with services.database.connection() as c:
        id_ = await c.fetchval("SELECT id FROM users WHERE name = 'mina'")
    waits = Principal("mina", Role.LEARNER, ALL_SCOPES, id=id_)
    teacher = Principal("kim", Role.TEACHER, ALL_SCOPES, teaches=frozenset({"mina"}))
    stranger = Principal("lee", Role.TEACHER, ALL_SCOPES)
    assert await services.waiting_events.places_of(teacher, ["mina"]) == {}
    await services.waiting_room.join(waits, LAB)
    assert await services.waiting_events.places_of(teacher, ["mina", "nobody"]) == {"mina": 1}
    assert await services.waiting_events.places_of(stranger, ["mina"]) == {}
    async with site.browser("kim") as browser, browser.get(f"/classes/{found['id']}/board") as answer:
        assert answer.status == 200
        assert "no. 1 in line" in await answer.text()


async def test_the_board_is_for_the_teachers_of_the_class(
    kim: Learner, lee: Learner, mina: Learner, site: Site
) -> None:
    found, _ = await a_taught_class(kim, "mina")
    (plan,) = (await mina.get("/plans"))["items"]
    session = (await mina.get(f"/plans/{plan['id']}"))["sessions"][0]["id"]
    for path in (f"/classes/{found['id']}/board", f"/classes/{found['id']}/board/{session}"):
        for name, status in (("kim", 200), ("lee", 404), ("mina", 403)):
            async with site.browser(name) as browser, browser.get(path) as answer:
                assert answer.status == status, (name, path)
    async with site.browser("kim") as browser:
        for path in ("/classes/nothing/board", f"/classes/{found['id']}/board/nothing"):
            async with browser.get(path) as answer:
                assert answer.status == 404
        async with browser.get(f"/classes/{found['id']}/board?course=nothing") as answer:
            assert answer.status == 404


async def test_courses_are_given_and_ended_by_the_boards_forms(kim: Learner, mina: Learner, site: Site) -> None:
    found, written = await a_taught_class(kim, "mina")
    path = f"/classes/{found['id']}"
    (given,) = (await kim.get(f"{path}/assignments"))["items"]
    async with site.browser("kim") as browser:
        origin = {"Origin": site.url}

        async def post(to: str, **form: str) -> tuple[int, str]:
            async with browser.post(f"/do{path}/{to}", data=form, headers=origin, allow_redirects=False) as answer:
                return answer.status, answer.headers.get("Location", "")

        assert await post(f"assignments/{given['id']}/end") == (400, "")
        assert await post(f"assignments/{given['id']}/end", sure="yes") == (303, f"{path}/board")
        _, to = await post(f"assignments/{given['id']}/end", sure="yes")
        assert to.endswith("problem=ASSIGNMENT_NOT_FOUND")
        _, to = await post("assign", course_id=written["id"], starts_on="someday")
        assert "problem=STARTS_ON&" in to
        assert to.endswith(f"course_id={written['id']}&starts_on=someday")  # what was chosen is there again
        given_again = (303, f"{path}/board?done=given")
        assert await post("assign", course_id=written["id"], starts_on="2026-03-02") == given_again
        assert "problem=COURSE_NOT_FOUND&" in (await post("assign", course_id="nothing"))[1]
    assert len((await kim.get(f"{path}/assignments"))["items"]) == 1
