"""A new version of a course: it reaches what no learner has started, and leaves everything else as it is."""

import asyncio
from typing import Any

from tests.courses.writing import course, made, session, shown, taken
from tests.sessions.learning import Learner
from tests.web.server import Site


async def changed(who: Learner, written: Any, *sessions: dict[str, Any], **more: Any) -> Any:
    status, found = await who.ask("PUT", f"/courses/{written['id']}", course(*sessions, **more))
    assert status == 200, found
    return found


async def test_title_day_and_content_reach_what_nobody_has_started(kim: Learner, mina: Learner) -> None:
    written = await made(kim, course(session("one"), session("two", 2)))
    plan = await taken(mina, written["id"], starts_on="2026-03-02")
    newer = await changed(kim, written, session("one"), session("two", 5, "Second", "# New"), title="Python 3")
    assert newer["version"] == 2
    after = await mina.get(f"/plans/{plan['id']}")
    assert (after["course_version"], after["title"]) == (2, "Python 3")
    assert shown(after) == [
        ("one", "One", "2026-03-02", "SCHEDULED"),
        ("two", "Second", "2026-03-06", "SCHEDULED"),
    ]
    view = await mina.get(f"/sessions/{after['sessions'][1]['id']}/blueprint")
    assert view["learningContent"] == ["# New"]


async def test_what_was_started_once_stays_as_it_is(kim: Learner, mina: Learner, jun: Learner) -> None:
    written = await made(kim, course(session("one"), session("two"), session("three")))
    plan = await taken(mina, written["id"])
    one, two, three = (s["id"] for s in plan["sessions"])
    await mina.started(one)
    run = await mina.started(two)
    assert (await mina.ask("POST", f"/runs/{run['id']}/abandon", {"fence": run["fence"]}))[0] == 200
    await mina.ask("POST", f"/sessions/{three}/skip")
    other = await taken(jun, written["id"])
    before = await mina.get(f"/plans/{plan['id']}")
    await changed(kim, written, *(session(key, 9, "Other", "# Other") for key in ("one", "two", "three")))
    after = await mina.get(f"/plans/{plan['id']}")
    assert after["sessions"] == before["sessions"]
    assert [s["title"] for s in (await jun.get(f"/plans/{other['id']}"))["sessions"]] == ["Other"] * 3


async def test_new_keys_are_added_and_keys_that_are_gone_are_canceled(kim: Learner, mina: Learner) -> None:
    written = await made(kim, course(session("one"), session("two", 2), session("three", 3)))
    plan = await taken(mina, written["id"], starts_on="2026-03-02")
    await mina.started(plan["sessions"][2]["id"])
    await changed(kim, written, session("zero"), session("one", 2), session("four", 4))
    after = await mina.get(f"/plans/{plan['id']}")
    assert shown(after) == [
        ("zero", "Zero", "2026-03-02", "SCHEDULED"),
        ("one", "One", "2026-03-03", "SCHEDULED"),
        ("four", "Four", "2026-03-05", "SCHEDULED"),
        ("two", "Two", "2026-03-03", "CANCELED"),
        ("three", "Three", "2026-03-04", "IN_PROGRESS"),
    ]
    assert [s["position"] for s in after["sessions"]] == [0, 1, 2, 3, 4]


async def test_another_order_is_followed_and_a_key_that_comes_back_stays_canceled(kim: Learner, mina: Learner) -> None:
    written = await made(kim, course(session("a"), session("b"), session("c")))
    plan = await taken(mina, written["id"])
    await changed(kim, written, session("c"), session("a"))
    await changed(kim, written, session("c"), session("b"), session("a"))
    after = await mina.get(f"/plans/{plan['id']}")
    assert [(s["key"], s["status"]) for s in after["sessions"]] == [
        ("c", "SCHEDULED"),
        ("b", "CANCELED"),
        ("a", "SCHEDULED"),
    ]


async def test_old_versions_stay_and_are_read(kim: Learner) -> None:
    written = await made(kim, course(session("one", content="# First")))
    await changed(kim, written, session("one", content="# Second"))
    for version, content in ((1, "# First"), (2, "# Second")):
        found = await kim.get(f"/courses/{written['id']}/source?version={version}")
        assert (found["version"], found["sessions"][0]["blueprint"]["learningContent"]) == (version, [content])


async def test_of_two_changes_at_once_none_is_lost(kim: Learner, admin: Learner) -> None:
    """Of those that were made on what they saw, one is refused; without a version each is kept as one."""
    written = await made(kim, course(session("one")))
    path = f"/courses/{written['id']}"
    answers = await asyncio.gather(
        *(
            who.ask("PUT", path, course(session("one", title=f"T{n}"), version=1))
            for n, who in enumerate([kim, admin] * 3)
        )
    )
    assert sorted(status for status, _ in answers) == [200] + [409] * 5
    assert {(p["code"], p["version"]) for status, p in answers if status == 409} == {("COURSE_CHANGED", 2)}
    answers = await asyncio.gather(*(kim.ask("PUT", path, course(session("one", title=f"U{n}"))) for n in range(4)))
    assert sorted(found["version"] for _, found in answers) == [3, 4, 5, 6]
    titles = {(await kim.get(f"{path}/source?version={v}"))["sessions"][0]["title"] for v in range(3, 7)}
    assert titles == {"U0", "U1", "U2", "U3"}


async def test_a_start_and_a_new_version_at_once_leave_one_of_both_worlds(kim: Learner, mina: Learner) -> None:
    """Either the session was started with the old content and keeps it, or it begins with the new."""
    for round_ in range(6):
        written = await made(kim, course(session("one", content="# Old"), title=f"Course {round_}"))
        plan = await taken(mina, written["id"])
        id_ = plan["sessions"][0]["id"]
        (_, run), _ = await asyncio.gather(mina.start(id_), changed(kim, written, session("one", content="# New")))
        found = await mina.get(f"/sessions/{id_}")
        assert found["status"] == "IN_PROGRESS"
        assert run["blueprint_hash"] == found["blueprint_hash"]


async def test_taking_up_and_changing_at_once_leaves_no_plan_behind(kim: Learner, mina: Learner, jun: Learner) -> None:
    for round_ in range(6):
        written = await made(kim, course(session("one", title="Old"), title=f"Course {round_}"))
        path = f"/courses/{written['id']}/plans"
        answers = await asyncio.gather(
            mina.ask("POST", path), changed(kim, written, session("one", title="New")), jun.ask("POST", path)
        )
        for who, answer in ((mina, answers[0]), (jun, answers[2])):
            found = await who.get(f"/plans/{answer[1]['id']}")
            assert (found["course_version"], found["sessions"][0]["title"]) == (2, "New")


async def test_learners_whose_plan_changed_are_told_and_others_are_not(
    site: Site, kim: Learner, mina: Learner, jun: Learner
) -> None:
    written = await made(kim, course(session("one"), session("two")))
    plan = await taken(mina, written["id"])
    other = await taken(jun, written["id"])
    await jun.started(other["sessions"][1]["id"])
    async with site.services.database.connection() as c:
        before = await c.fetchval("SELECT max(position) FROM events")
        await changed(kim, written, session("one"), session("two", title="New"))
        told = await c.fetch("SELECT subject FROM events WHERE kind = 'plan_updated' AND position > $1", before)
    assert [row["subject"] for row in told] == [plan["id"]]


async def test_a_course_has_so_many_versions(site: Site, kim: Learner) -> None:
    written = await made(kim, course(session("one")))
    async with site.services.database.connection() as c:
        await c.execute(
            "INSERT INTO course_versions SELECT course_id, 1000, title, description, author, digest,"
            " created_by, created_at FROM course_versions"
        )
        await c.execute("UPDATE courses SET version = 1000")
    status, problem = await kim.ask("PUT", f"/courses/{written['id']}", course(session("two")))
    assert (status, problem["code"]) == (429, "COURSE_LIMIT")
