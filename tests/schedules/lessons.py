"""What tests of schedules share: a class with a lesson this morning, and the coordinator's ticks, sent by hand."""

from datetime import timedelta
from typing import Any

from codehub.coordinator.leader import Lease
from codehub.db import Database
from codehub.schedules.loop import SchedulesLoop
from codehub.settings import LimitsConfig, ScheduleConfig
from codehub.waiting_room.lab import Lab
from codehub.waiting_room.tokens import Tokens
from codehub.web.services import Services
from codehub.workspaces.service import Workspaces
from tests.sessions.learning import Learner
from tests.virtual_time import ManualClock

# The tests' clock begins on Monday, 2 March 2026, 09:00 UTC.
TEN = {"weekdays": ["mon"], "time": "10:00", "time_zone": "UTC"}
BEGINS = "2026-03-02T10:00:00Z"
UNTIL_SPREAD = 50 * 60.0  # from then until the first start


async def elect(database: Database, epoch: int = 1) -> Lease:
    async with database.connection() as c:
        await c.execute(
            "INSERT INTO system_locks (name, holder, epoch, expires_at) VALUES ('coordinator', 'test', $1, 'infinity')"
            " ON CONFLICT (name) DO UPDATE SET epoch = excluded.epoch",
            epoch,
        )
    return Lease(database, "test", epoch)


def loop_on(lease: Lease, services: Services, limits: LimitsConfig | None = None) -> SchedulesLoop:
    """`limits`: other ones than the platform's."""
    clock = services.clock
    lab = Lab(clock, Tokens(services.settings.auth.secret_key or ""))
    workspaces = Workspaces(lease.database, clock, limits or services.settings.limits, services.templates, lab)
    return SchedulesLoop(lease, workspaces, services.ttl_policies, clock, ScheduleConfig())


async def loop_of(services: Services, limits: LimitsConfig | None = None) -> SchedulesLoop:
    return loop_on(await elect(services.database), services, limits)


async def added(teacher: Learner, class_: Any, **more: Any) -> Any:
    status, made = await teacher.ask("POST", f"/classes/{class_['id']}/schedules", {**TEN, **more})
    assert status == 201, made
    return made


async def a_workspace(owner: Learner, name: str = "lab") -> str:
    body = {"name": name, "template": "terminal", "desired_state": "STANDBY"}
    status, made = await owner.ask("POST", "/workspaces", body)
    assert status in {201, 202}, made
    return str(made["id"])


async def set_row(services: Services, id_: str, **columns: Any) -> None:
    """As if the controller had written it."""
    names = ", ".join(f"{name} = ${n}" for n, name in enumerate(columns, start=2))
    async with services.database.connection() as c:
        await c.execute(f"UPDATE workspaces SET {names} WHERE id = $1", id_, *columns.values())


async def until_the_lesson(clock: ManualClock, loop: SchedulesLoop, *, step: float = 60.0, minutes: int = 10) -> None:
    """Over the minutes before it, with a tick at each step."""
    for _ in range(int(minutes * 60 / step)):
        await loop.tick()
        await clock.advance(step)
    await loop.tick()


async def last(teacher: Learner, class_: Any, schedule: Any) -> dict[str, str | None]:
    """What became of the last lesson, by name."""
    found = await teacher.get(f"/classes/{class_['id']}/schedules/{schedule['id']}")
    return {start["name"]: start["outcome"] for start in (found["last"] or {"starts": []})["starts"]}


async def desired(services: Services, id_: str) -> tuple[str, str]:
    async with services.database.connection() as c:
        found = await c.fetchrow("SELECT desired_state, desired_by FROM workspaces WHERE id = $1", id_)
    assert found
    return found["desired_state"], found["desired_by"]


def minutes(n: float) -> timedelta:
    return timedelta(minutes=n)
