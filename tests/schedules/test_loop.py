"""Before a lesson each learner's workspace is started, by an ordinary start: once, and never in another one's place."""

import asyncio
import itertools
from datetime import datetime
from typing import Any

import pytest

from codehub.command import operator
from codehub.errors import LeaseLostError
from codehub.settings import LimitsConfig
from codehub.workspaces.model import Workspace
from codehub.workspaces.service import NewWorkspace
from tests.assignments.given import fill
from tests.classes.conftest import Enrol
from tests.classes.test_classes import a_class
from tests.schedules.lessons import (
    BEGINS,
    UNTIL_SPREAD,
    a_workspace,
    added,
    desired,
    elect,
    last,
    loop_of,
    loop_on,
    minutes,
    set_row,
    until_the_lesson,
)
from tests.sessions.learning import Learner
from tests.virtual_time import ManualClock
from tests.web.server import Site

ASLEEP = {"observed_status": "STANDBY", "volume_generation": "g"}
AWAKE = {"observed_status": "RUNNING", "volume_generation": "g", "desired_state": "RUNNING"}
BROKEN = {**ASLEEP, "health_status": "ERROR", "error_info": {"reason": "StartFailed"}}


async def said(learner: Learner, id_: str) -> list[str]:
    found = await learner.get(f"/workspaces/{id_}/history")
    return [line["reason"] for line in found["items"]]


async def test_the_workspace_that_was_used_last_is_started_in_the_minutes_before(
    kim: Learner, mina: Learner, site: Site, clock: ManualClock
) -> None:
    found = await a_class(kim, "mina", title="2-B")
    older = await a_workspace(mina, "older")
    await clock.advance(60)
    newer = await a_workspace(mina, "newer")
    made, loop = await added(kim, found), await loop_of(site.services)
    await clock.advance(UNTIL_SPREAD - 61)
    assert (await loop.tick()).stats["lessons"] == 0
    await clock.advance(1)
    assert (await loop.tick()).stats == {"lessons": 1, "started": 1, "settled": 1}
    assert await desired(site.services, newer) == ("RUNNING", "schedule")
    assert await desired(site.services, older) == ("STANDBY", "user")
    assert await last(kim, found, made) == {"mina": "started"}
    assert "Started for the class 2-B, Monday 10:00" in await said(mina, newer)
    answer = await mina.request("GET", f"/workspaces/{newer}/history", **{"Accept-Language": "ko"})
    assert "2-B 수업(월요일 10:00)에 맞춰 시작했습니다" in await answer.text()


async def test_a_class_is_started_evenly_over_the_spread(kim: Learner, site: Site, clock: ManualClock) -> None:
    found = await a_class(kim)
    await fill(site.services, found["id"], 30)
    await added(kim, found)
    await clock.advance(UNTIL_SPREAD)
    await (await loop_of(site.services)).tick()
    async with site.services.database.connection() as c:
        times = [r["due_at"] for r in await c.fetch("SELECT due_at FROM class_lesson_starts ORDER BY due_at")]
    gaps = {(b - a).total_seconds() for a, b in itertools.pairwise(times)}
    assert (len(times), gaps) == (30, {20.0})
    assert times[0] == clock.now()


ROWS: list[tuple[str, dict[str, Any] | None, str]] = [
    ("asleep", ASLEEP, "started"),
    ("never started", {}, "started"),
    ("stored away: restored ahead", {"archive_key": "a/b/c"}, "started"),
    ("running", AWAKE, "running"),
    ("in error", BROKEN, "in_error"),
    ("in the trash", {**ASLEEP, "deleted_at": datetime.fromisoformat("2026-03-01T00:00:00Z")}, "no_workspace"),
    ("no workspace", None, "no_workspace"),
]


@pytest.mark.parametrize(("columns", "expected"), [row[1:] for row in ROWS], ids=[row[0] for row in ROWS])
async def test_what_becomes_of_a_workspace_in_each_state(
    kim: Learner, mina: Learner, site: Site, clock: ManualClock, columns: dict[str, Any] | None, expected: str
) -> None:
    found = await a_class(kim, "mina")
    id_ = None
    if columns is not None:
        id_ = await a_workspace(mina)
        if columns:
            await set_row(site.services, id_, **columns)
    made, loop = await added(kim, found), await loop_of(site.services)
    await clock.advance(UNTIL_SPREAD)
    await until_the_lesson(clock, loop)
    assert await last(kim, found, made) == {"mina": expected}
    if id_:
        state, by = await desired(site.services, id_)
        assert (state, by) == (("RUNNING", "schedule") if expected in {"started", "running"} else ("STANDBY", "user"))
    if expected == "in_error":
        assert any("something is wrong with the workspace" in line for line in await said(mina, id_ or ""))


async def test_a_deactivated_person_and_one_who_left_are_left_out(
    kim: Learner, mina: Learner, person: Enrol, site: Site, clock: ManualClock, admin: Learner
) -> None:
    jun, ara = await person("jun"), await person("ara")
    found = await a_class(kim, "mina", "jun", "ara")
    ids = {name: await a_workspace(who) for name, who in (("mina", mina), ("jun", jun), ("ara", ara))}
    made, loop = await added(kim, found), await loop_of(site.services)
    assert (await admin.ask("PATCH", "/users/jun", {"active": False}))[0] == 200
    await clock.advance(UNTIL_SPREAD)
    await loop.tick()  # ara comes first
    assert (await kim.request("DELETE", f"/classes/{found['id']}/members/mina")).status == 204
    await until_the_lesson(clock, loop)
    assert await last(kim, found, made) == {"ara": "started", "jun": "inactive", "mina": "left"}
    assert await desired(site.services, ids["mina"]) == ("STANDBY", "user")


async def test_without_a_free_place_nothing_is_started_and_history_says_so(
    kim: Learner, mina: Learner, person: Enrol, site: Site, clock: ManualClock
) -> None:
    jun = await person("jun")
    found, hers, his = await a_class(kim, "mina", "jun"), await a_workspace(mina), await a_workspace(jun)
    made = await added(kim, found)
    loop = await loop_of(site.services, LimitsConfig(max_running_global=1))
    await clock.advance(UNTIL_SPREAD)
    await until_the_lesson(clock, loop)
    assert await last(kim, found, made) == {"jun": "started", "mina": "no_place"}
    assert await desired(site.services, hers) == ("STANDBY", "user")
    assert await desired(site.services, his) == ("RUNNING", "schedule")
    assert "Not started for the class Python, Mondays, Monday 10:00: no place was free" in await said(mina, hers)


async def test_nobody_who_waits_in_line_is_overtaken(
    kim: Learner, mina: Learner, site: Site, clock: ManualClock
) -> None:
    """A place is free, and live people wait for one."""
    found, id_ = await a_class(kim, "mina"), await a_workspace(mina)
    made, loop = await added(kim, found), await loop_of(site.services, LimitsConfig(max_running_global=5))
    await clock.advance(UNTIL_SPREAD)
    async with site.services.database.connection() as c:
        await c.execute(
            "UPDATE waiting_events SET has_live_waiters = true, waiters_seen_at = $1 WHERE id = 'lab'", clock.now()
        )
    await loop.tick()
    assert await last(kim, found, made) == {"mina": "no_place"}
    assert await desired(site.services, id_) == ("STANDBY", "user")


async def test_a_persons_own_limit_holds(kim: Learner, mina: Learner, site: Site, clock: ManualClock) -> None:
    found, other = await a_class(kim, "mina"), await a_workspace(mina, "other")
    await set_row(site.services, other, **AWAKE)
    await clock.advance(60)
    id_ = await a_workspace(mina)
    made = await added(kim, found)
    loop = await loop_of(site.services, LimitsConfig(max_running_per_user=1))
    await clock.advance(UNTIL_SPREAD)
    await loop.tick()
    assert await last(kim, found, made) == {"mina": "own_limit"}
    assert await desired(site.services, id_) == ("STANDBY", "user")


async def test_what_is_busy_is_asked_again_and_given_up_in_the_end(
    kim: Learner, mina: Learner, person: Enrol, site: Site, clock: ManualClock
) -> None:
    jun = await person("jun")
    found, hers, his = await a_class(kim, "mina", "jun"), await a_workspace(mina), await a_workspace(jun)
    for id_ in (hers, his):
        await set_row(site.services, id_, **ASLEEP, operation="ARCHIVING", op_id="o", op_started_at=clock.now())
    made, loop = await added(kim, found), await loop_of(site.services)
    await clock.advance(UNTIL_SPREAD)
    await until_the_lesson(clock, loop)
    assert await last(kim, found, made) == {"jun": None, "mina": None}
    await set_row(site.services, hers, operation="NONE", op_id=None, op_started_at=None)
    await until_the_lesson(clock, loop, step=5, minutes=15)
    assert await last(kim, found, made) == {"jun": "busy", "mina": "started"}
    assert any("something else was being done" in line for line in await said(jun, his))


async def test_its_time_without_activity_begins_with_the_lesson(
    kim: Learner, mina: Learner, person: Enrol, site: Site, clock: ManualClock
) -> None:
    jun = await person("jun")
    found, id_ = await a_class(kim, "mina", "jun"), await a_workspace(mina)
    held = await a_workspace(jun)
    later = datetime.fromisoformat("2026-03-02T23:00:00Z")
    await set_row(site.services, held, **AWAKE, keep_awake_until=later, keep_awake_reason="training")
    await added(kim, found)
    loop = await loop_of(site.services)
    await clock.advance(UNTIL_SPREAD)
    await until_the_lesson(clock, loop)
    w, kept = await mina.get(f"/workspaces/{id_}"), await jun.get(f"/workspaces/{held}")
    standby = site.services.settings.ttl.standby_seconds
    until = datetime.fromisoformat(BEGINS) + minutes(standby / 60)
    assert (datetime.fromisoformat(w["keep_awake_until"]), w["keep_awake_reason"]) == (until, "Python, Mondays")
    assert (datetime.fromisoformat(kept["keep_awake_until"]), kept["keep_awake_reason"]) == (later, "training")
    await set_row(site.services, id_, **AWAKE)
    w = await mina.get(f"/workspaces/{id_}")
    assert datetime.fromisoformat(w["sleeps_at"]) == until


@pytest.mark.parametrize(("late", "expected"), [(14, {"mina": "started"}), (16, {})])
async def test_a_lesson_is_not_made_up_for_when_it_began_long_ago(
    kim: Learner, mina: Learner, site: Site, clock: ManualClock, late: int, expected: dict[str, str]
) -> None:
    found, id_ = await a_class(kim, "mina"), await a_workspace(mina)
    made = await added(kim, found)
    await clock.advance(UNTIL_SPREAD + 600 + late * 60)
    loop = await loop_of(site.services)
    await loop.tick()
    assert await last(kim, found, made) == expected
    shown = await kim.get(f"/classes/{found['id']}/schedules/{made['id']}")
    assert (shown["last"]["begins_at"], shown["last"]["missed"]) == (BEGINS, not expected)
    assert shown["next_begins_at"] == "2026-03-09T10:00:00Z"
    assert (await desired(site.services, id_))[0] == ("RUNNING" if expected else "STANDBY")


async def test_starts_that_were_not_reached_in_time_are_not_made_up_for(
    kim: Learner, mina: Learner, person: Enrol, site: Site, clock: ManualClock
) -> None:
    """The coordinator prepared the lesson, and died for half an hour."""
    jun = await person("jun")
    found, hers, his = await a_class(kim, "mina", "jun"), await a_workspace(mina), await a_workspace(jun)
    made, loop = await added(kim, found), await loop_of(site.services)
    await clock.advance(UNTIL_SPREAD)
    await loop.tick()
    await clock.advance(30 * 60)
    await loop.tick()
    assert await last(kim, found, made) == {"jun": "started", "mina": "missed"}
    assert await desired(site.services, hers) == ("STANDBY", "user")
    assert await desired(site.services, his) == ("RUNNING", "schedule")


@pytest.mark.parametrize("how", ["pause", "skip", "delete", "archive"])
async def test_what_is_ended_in_the_minutes_before_starts_nobody_more(
    kim: Learner, mina: Learner, person: Enrol, site: Site, clock: ManualClock, how: str
) -> None:
    jun = await person("jun")
    found, hers, his = await a_class(kim, "mina", "jun"), await a_workspace(mina), await a_workspace(jun)
    made, loop = await added(kim, found), await loop_of(site.services)
    path = f"/classes/{found['id']}/schedules/{made['id']}"
    await clock.advance(UNTIL_SPREAD)
    await loop.tick()
    match how:
        case "pause":
            await kim.ask("PATCH", path, {"paused": True})
        case "skip":
            await kim.ask("POST", f"{path}/skip", {"begins_at": BEGINS})
        case "delete":
            await kim.request("DELETE", path)
        case _:
            await kim.ask("PATCH", f"/classes/{found['id']}", {"archived": True})
    await until_the_lesson(clock, loop)
    assert await desired(site.services, his) == ("RUNNING", "schedule")
    assert await desired(site.services, hers) == ("STANDBY", "user")


@pytest.mark.parametrize("how", ["pause", "skip", "archive"])
async def test_what_is_ended_long_before_prepares_nothing(
    kim: Learner, mina: Learner, site: Site, clock: ManualClock, how: str
) -> None:
    found, id_ = await a_class(kim, "mina"), await a_workspace(mina)
    made, loop = await added(kim, found), await loop_of(site.services)
    path = f"/classes/{found['id']}/schedules/{made['id']}"
    match how:
        case "pause":
            await kim.ask("PATCH", path, {"paused": True})
        case "skip":
            await kim.ask("POST", f"{path}/skip", {})
        case _:
            await kim.ask("PATCH", f"/classes/{found['id']}", {"archived": True})
    await clock.advance(UNTIL_SPREAD)
    await until_the_lesson(clock, loop)
    assert await last(kim, found, made) == {}
    assert await desired(site.services, id_) == ("STANDBY", "user")


async def test_every_week_again_and_those_who_come_later_too(
    kim: Learner, mina: Learner, person: Enrol, site: Site, clock: ManualClock
) -> None:
    found, _ = await a_class(kim, "mina"), await a_workspace(mina)
    made, loop = await added(kim, found), await loop_of(site.services)
    await clock.advance(UNTIL_SPREAD)
    await until_the_lesson(clock, loop)
    await a_workspace(await person("jun"))
    assert (await kim.ask("POST", f"/classes/{found['id']}/members", {"name": "jun"}))[0] == 201
    await clock.advance(7 * 86400 - 600)
    await until_the_lesson(clock, loop)
    assert await last(kim, found, made) == {"jun": "started", "mina": "started"}
    async with site.services.database.connection() as c:
        assert await c.fetchval("SELECT count(*) FROM class_lessons") == 2


async def test_two_coordinators_start_each_once_and_a_former_leader_nothing(
    kim: Learner, mina: Learner, person: Enrol, site: Site, clock: ManualClock
) -> None:
    people = {"mina": mina, "jun": await person("jun"), "ara": await person("ara")}
    found = await a_class(kim, *people)
    ids = [await a_workspace(who) for who in people.values()]
    await added(kim, found)
    old = await loop_of(site.services)
    await clock.advance(UNTIL_SPREAD + 600)
    twin = loop_on(await elect(site.services.database), site.services)
    await asyncio.gather(old.tick(), twin.tick(), old.tick())
    new = loop_on(await elect(site.services.database, 2), site.services)
    await new.tick()
    async with site.services.database.connection() as c:
        lines = await c.fetch("SELECT workspace_id FROM workspace_history WHERE code = 'started_for_lesson'")
        assert await c.fetchval("SELECT count(*) FROM class_lessons") == 1
    assert sorted(line["workspace_id"] for line in lines) == sorted(ids)
    await clock.advance(7 * 86400)
    with pytest.raises(LeaseLostError):
        await old.tick()


async def test_one_place_goes_to_a_scheduled_start_or_to_an_ordinary_one_and_never_to_both(
    kim: Learner, mina: Learner, person: Enrol, site: Site, clock: ManualClock
) -> None:
    await person("jun")
    found, id_ = await a_class(kim, "mina"), await a_workspace(mina)
    made = await added(kim, found)
    loop = await loop_of(site.services, LimitsConfig(max_running_global=1))
    await clock.advance(UNTIL_SPREAD)
    ordinary = loop._workspaces.create(operator(), NewWorkspace("lab", "terminal", owner="jun"))
    _, his = await asyncio.gather(loop.tick(), ordinary)
    outcome = (await last(kim, found, made))["mina"]
    assert outcome == ("no_place" if isinstance(his, Workspace) else "started")
    assert (await desired(site.services, id_))[0] == ("RUNNING" if outcome == "started" else "STANDBY")
