"""Templates that may be started soon are kept ready: which, and that the runtime is asked for them."""

import asyncio
import pathlib
from typing import Any

import pytest

from codehub.clock import SystemClock
from codehub.coordinator.leader import Lease
from codehub.db import Listener
from codehub.reconciler import warming, warming_rules
from codehub.reconciler.warming import Warming
from codehub.reconciler.warming_rules import Soon, Why
from codehub.runtimes.base import Runtime, RuntimeFailureError
from codehub.runtimes.process import ProcessRuntime
from codehub.settings import RuntimeConfig, ScheduleConfig
from codehub.templates.loader import Templates
from codehub.templates.model import ProcessSpec, Template
from codehub.web.services import Services
from tests.auth.helpers import log_in
from tests.classes.conftest import Enrol, admin, kim, lee, mina, person, site
from tests.classes.test_classes import a_class
from tests.null_runtime import NullRuntime
from tests.schedules.lessons import a_workspace, added, elect
from tests.sessions.learning import Learner
from tests.virtual_time import ManualClock
from tests.web.server import Site

__all__ = ["admin", "kim", "lee", "mina", "person", "site"]


def template(name: str, *, warm: bool = True) -> Template:
    return Template(name, name, process=ProcessSpec(("true",), warm=warm))


def soon(*found: tuple[str, Why, int]) -> list[Soon]:
    return [Soon(*one) for one in found]


A, B, COLD = template("a"), template("b"), template("cold", warm=False)
NO_PROCESS = Template("image", "image")


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        ([], []),
        (soon(("a", Why.HERE, 1)), ["a"]),
        (soon(("cold", Why.OFFERED, 9), ("image", Why.OFFERED, 9)), []),  # cannot be kept ready
        (soon(("gone", Why.OFFERED, 9)), []),  # a template that was removed
        (soon(("a", Why.HERE, 0)), []),
        (soon(("a", Why.STARTED, 9), ("b", Why.HERE, 1)), ["b", "a"]),  # the surer one first
        (soon(("a", Why.HERE, 9), ("b", Why.LESSON, 1)), ["b", "a"]),
        (soon(("a", Why.LESSON, 9), ("b", Why.OFFERED, 1)), ["b", "a"]),
        (soon(("a", Why.HERE, 1), ("b", Why.HERE, 2)), ["b", "a"]),  # then the one of more people
        (soon(("b", Why.HERE, 1), ("a", Why.HERE, 1)), ["a", "b"]),
        (soon(("a", Why.HERE, 1), ("b", Why.HERE, 1), ("b", Why.STARTED, 1)), ["b", "a"]),
    ],
)
def test_which_templates_are_kept_ready(found: list[Soon], expected: list[str]) -> None:
    assert [one.name for one in warming_rules.which(found, [A, B, COLD, NO_PROCESS])] == expected


def test_no_more_are_kept_ready_than_fit() -> None:
    many = [template(f"t{n:02}") for n in range(30)]
    found = warming_rules.which([Soon(one.name, Why.HERE, 1) for one in many], many)
    assert [one.name for one in found] == [f"t{n:02}" for n in range(warming_rules.AT_MOST)]


async def loop_of(services: Services, runtime: Runtime, **warm: Template) -> Warming:
    lease: Lease = await elect(services.database)
    templates = Templates(warm, services.settings.storage.data_dir)
    return Warming(lease, runtime, templates, services.clock, ScheduleConfig())


async def asked(services: Services) -> list[Any]:
    """Of a runtime that notes what it is asked: `terminal` can be kept ready."""
    runtime = NullRuntime()
    await (await loop_of(services, runtime, terminal=template("terminal"))).tick()
    return [call for call in runtime.calls if call[0] == "warm_up"]


TERMINAL = [("warm_up", "terminal")]


async def test_a_person_who_logs_in_has_what_they_used_last_made_ready_for_ten_minutes(
    mina: Learner, site: Site, clock: ManualClock
) -> None:
    await a_workspace(mina)
    assert await asked(site.services) == []
    await log_in(site.services, "mina")
    assert await asked(site.services) == TERMINAL
    await clock.advance(601)
    assert await asked(site.services) == []


async def test_what_was_started_lately_is_kept_ready(mina: Learner, site: Site, clock: ManualClock) -> None:
    id_ = await a_workspace(mina)
    assert (await mina.request("PATCH", f"/workspaces/{id_}", {"desired_state": "RUNNING"})).status == 202
    assert await asked(site.services) == TERMINAL
    await clock.advance(601)
    assert await asked(site.services) == []


async def test_a_lesson_is_made_ready_for_a_quarter_of_an_hour_before_its_first_start(
    kim: Learner, mina: Learner, person: Enrol, site: Site, clock: ManualClock
) -> None:
    await person("jun")
    found = await a_class(kim, "mina", "jun")
    await a_workspace(mina)
    await added(kim, found, learners=["jun"])
    await clock.advance(35 * 60)
    assert await asked(site.services) == []  # jun has no workspace, and mina is not meant
    await added(kim, found)
    assert await asked(site.services) == TERMINAL


async def test_a_person_to_whom_a_place_is_offered_finds_it_ready(
    mina: Learner, site: Site, clock: ManualClock
) -> None:
    await a_workspace(mina)
    async with site.services.database.connection() as c:
        await c.execute(
            "INSERT INTO waiting_places (event_id, pid, person, state, offer_id, offered_at, changed_at)"
            " SELECT 'lab', 'p', id, 'offered', 1, $1, $1 FROM users WHERE name = 'mina'",
            clock.now(),
        )
    assert await asked(site.services) == TERMINAL


async def test_one_that_fails_leaves_the_others_alone(mina: Learner, person: Enrol, site: Site) -> None:
    class Failing(NullRuntime):
        async def warm_up(self, template: Template) -> None:
            await super().warm_up(template)
            if template.name == "terminal":
                raise RuntimeFailureError("no memory")

    await person("jun")
    await a_workspace(mina)
    await log_in(site.services, "mina")
    async with site.services.database.connection() as c:
        await c.execute(
            "INSERT INTO workspaces (id, name, template, owner_id, created_at, updated_at, phase_changed_at,"
            " last_access_at, desired_state, desired_by, desired_at)"
            " SELECT 'w2', 'w', 'other', id, $1, $1, $1, $1, 'RUNNING', 'user', $1 FROM users WHERE name = 'jun'",
            site.services.clock.now(),
        )
    runtime = Failing()
    both = {"terminal": template("terminal"), "other": template("other")}
    tick = await (await loop_of(site.services, runtime, **both)).tick()
    assert tick.stats == {"wanted": 2, "failed": 1}
    assert [name for _, name in runtime.calls] == ["terminal", "other"]


async def test_a_login_is_announced_to_the_coordinator(mina: Learner, site: Site, database_url: str) -> None:
    heard, listener = asyncio.Event(), Listener(database_url, SystemClock())
    listener.subscribe(warming.CHANNEL, heard.set)
    listener.start()
    try:
        await listener.connected()
        heard.clear()
        await log_in(site.services, "mina")
        async with asyncio.timeout(60):
            await heard.wait()
    finally:
        await listener.stop()


async def test_the_real_runtime_is_asked_and_nothing_breaks(mina: Learner, site: Site, data_dir: pathlib.Path) -> None:
    await a_workspace(mina)
    await log_in(site.services, "mina")
    runtime = ProcessRuntime(data_dir, RuntimeConfig(), None, SystemClock())
    try:
        loop = await loop_of(site.services, runtime, terminal=template("terminal"))
        for _ in range(2):
            assert (await loop.tick()).stats == {"wanted": 1, "failed": 0}
    finally:
        await runtime.close()
