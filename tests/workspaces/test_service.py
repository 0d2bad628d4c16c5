"""The use cases on the real database: exact limits, requests that are recorded, others' things that are not there."""

import asyncio
from collections import Counter
from datetime import timedelta
from typing import Any

import pytest

from codehub.db import Database
from codehub.errors import CodeHubError, ForbiddenError, InvalidRequestError, NotFoundError
from codehub.policy.model import ALL_SCOPES, Principal, Role, operator
from codehub.settings import LimitsConfig
from codehub.templates.model import Template
from codehub.workspaces.admission import Refused, admitted
from codehub.workspaces.errors import (
    DataLostError,
    InErrorError,
    NotInErrorError,
    OperationInProgressError,
    RunningLimitError,
    WorkspaceDeletedError,
)
from codehub.workspaces.model import Desired, DesiredBy, Workspace
from codehub.workspaces.service import Details, Filters, NewWorkspace, Workspaces
from tests.virtual_time import ManualClock
from tests.waiting_room.admission import a_line

MINA = Principal("mina", Role.LEARNER, ALL_SCOPES)
JOON = Principal("joon", Role.LEARNER, ALL_SCOPES)
ADMIN = Principal("admin", Role.ADMIN, ALL_SCOPES)


class AnyTemplate:
    def find(self, name: str) -> Template:
        return Template(name, name)

    require = find


async def service(database: Database, clock: ManualClock, **limits: int) -> Workspaces:
    async with database.connection() as c:
        people = [f"p{n}" for n in range(200)] + ["mina", "joon", "admin"]
        await c.execute(
            "INSERT INTO users (name, role, created_at) SELECT unnest($1::text[]), 'learner', now()",
            people,
        )
    return Workspaces(database, clock, LimitsConfig(**limits), AnyTemplate(), a_line(clock))  # type: ignore[arg-type]


async def set_row(database: Database, id_: str, **columns: Any) -> None:
    """As the controller would have left it."""
    async with database.connection() as c:
        for name, value in columns.items():
            await c.execute(f"UPDATE workspaces SET {name} = $2 WHERE id = $1", id_, value)


def new(name: str = "lab", desired: Desired = Desired.RUNNING) -> NewWorkspace:
    return NewWorkspace(name, "t", desired)


async def outcomes(*calls: Any) -> Counter[str]:
    results = await asyncio.gather(*calls, return_exceptions=True)
    refused = (BaseException, Refused)
    return Counter(type(r).__name__ if isinstance(r, refused) else "ok" for r in results)


async def test_two_hundred_starts_at_limit_one_hundred_give_exactly_one_hundred(
    database: Database, clock: ManualClock
) -> None:
    s = await service(database, clock, max_running_global=100, max_running_per_user=0)
    callers = [Principal(f"p{n}", Role.LEARNER, ALL_SCOPES) for n in range(200)]
    made = [admitted(await s.create(caller, new(desired=Desired.STANDBY))) for caller in callers]
    pairs = zip(callers, made, strict=True)
    counts = await outcomes(*(s.request(caller, w.id, Desired.RUNNING) for caller, w in pairs))
    assert counts == {"ok": 100, "NoPlace": 100}


async def test_the_limit_of_one_person_is_exact_over_create_start_recover(
    database: Database, clock: ManualClock
) -> None:
    s = await service(database, clock, max_running_per_user=3)
    asleep = [admitted(await s.create(MINA, new(desired=Desired.STANDBY))) for _ in range(10)]
    broken = [admitted(await s.create(MINA, new(desired=Desired.STANDBY))) for _ in range(10)]
    for w in broken:
        await set_row(database, w.id, desired_state="RUNNING", health_status="ERROR", error_info={"reason": "Timeout"})
    counts = await outcomes(
        *(s.create(MINA, new()) for _ in range(10)),
        *(s.request(MINA, w.id, Desired.RUNNING) for w in asleep),
        *(s.recover(MINA, w.id) for w in broken),
    )
    assert counts == {"ok": 3, "OwnLimit": 27}


async def test_what_is_refused_creates_nothing_and_says_what_runs(database: Database, clock: ManualClock) -> None:
    s = await service(database, clock, max_running_per_user=1)
    first = admitted(await s.create(MINA, new("first")))
    with pytest.raises(RunningLimitError) as caught:
        admitted(await s.create(MINA, new("second")))
    assert caught.value.extra["running"] == [{"id": first.id, "name": "first"}]
    assert len(await s.page(MINA, Filters(), after=(clock.now() - timedelta(days=1), ""), limit=10)) == 1


async def test_zero_means_no_limit(database: Database, clock: ManualClock) -> None:
    s = await service(database, clock, max_running_per_user=0, max_running_global=0)
    assert await outcomes(*(s.create(MINA, new()) for _ in range(20))) == {"ok": 20}


async def test_one_that_runs_may_be_asked_to_run_at_the_limit(database: Database, clock: ManualClock) -> None:
    s = await service(database, clock, max_running_per_user=1)
    w = admitted(await s.create(MINA, new()))
    await set_row(database, w.id, observed_status="RUNNING")
    changed, status = admitted(await s.request(MINA, w.id, Desired.RUNNING))
    assert (status, changed.desired_by) == (200, DesiredBy.USER)


async def test_a_request_that_is_already_so_is_still_recorded(database: Database, clock: ManualClock) -> None:
    s = await service(database, clock)
    w = admitted(await s.create(MINA, new()))
    await set_row(database, w.id, observed_status="RUNNING", desired_state="STANDBY", desired_by="ttl")
    await clock.advance(60)
    changed, status = admitted(await s.request(MINA, w.id, Desired.RUNNING))
    assert status == 200
    assert (changed.desired_state, changed.desired_by) == (Desired.RUNNING, DesiredBy.USER)
    assert changed.desired_at == clock.now()


async def test_an_operation_under_way_is_not_interrupted(database: Database, clock: ManualClock) -> None:
    s = await service(database, clock)
    w = admitted(await s.create(MINA, new(desired=Desired.STANDBY)))
    await set_row(database, w.id, op_id="x", operation="PROVISIONING")
    for call in (s.request(MINA, w.id, Desired.ARCHIVED), s.delete(MINA, w.id, purge=False)):
        with pytest.raises(OperationInProgressError, match="provisioning is under way"):
            await call


async def test_in_error_only_recovering_and_deleting_are_possible(database: Database, clock: ManualClock) -> None:
    s = await service(database, clock)
    w = admitted(await s.create(MINA, new(desired=Desired.STANDBY)))
    with pytest.raises(NotInErrorError):
        admitted(await s.recover(MINA, w.id))
    await set_row(database, w.id, health_status="ERROR", error_info={"reason": "Timeout"})
    with pytest.raises(InErrorError, match="stopped by Timeout"):
        admitted(await s.request(MINA, w.id, Desired.RUNNING))
    assert (admitted(await s.recover(MINA, w.id))).error_info is None
    await set_row(database, w.id, health_status="ERROR", error_info={"reason": "Timeout"})
    assert (await s.delete(MINA, w.id, purge=False)).deleted_at


async def test_one_that_is_being_deleted_cannot_be_recovered(database: Database, clock: ManualClock) -> None:
    s = await service(database, clock)
    w = admitted(await s.create(MINA, new(desired=Desired.STANDBY)))
    await set_row(database, w.id, health_status="ERROR", observed_status="RUNNING", op_id="op", operation="DELETING")
    with pytest.raises(OperationInProgressError):
        admitted(await s.recover(MINA, w.id))


async def test_deleting_again_tries_a_deletion_again_that_failed(database: Database, clock: ManualClock) -> None:
    s = await service(database, clock)
    w = admitted(await s.create(MINA, new(desired=Desired.STANDBY)))
    await s.delete(MINA, w.id, purge=False)
    await set_row(database, w.id, health_status="ERROR", error_info={"reason": "Timeout"}, attention_at=None)
    assert (await s.delete(MINA, w.id, purge=False)).attention_at == clock.now()


async def test_lost_data_is_recovered_only_by_somebody_who_knows(database: Database, clock: ManualClock) -> None:
    s = await service(database, clock)
    w = admitted(await s.create(MINA, new(desired=Desired.STANDBY)))
    await set_row(database, w.id, health_status="ERROR", error_info={"reason": "DataLost"}, archive_key="k")
    with pytest.raises(DataLostError, match="without what was done since"):
        admitted(await s.recover(MINA, w.id))
    assert (admitted(await s.recover(MINA, w.id, accept_loss=True))).archive_key == "k"


async def test_deleting_again_is_fine_and_a_deleted_one_takes_no_requests(
    database: Database, clock: ManualClock
) -> None:
    s = await service(database, clock)
    w = admitted(await s.create(MINA, new()))
    first = await s.delete(MINA, w.id, purge=False)
    assert (await s.delete(MINA, w.id, purge=False)).deleted_at == first.deleted_at
    with pytest.raises(WorkspaceDeletedError):
        admitted(await s.request(MINA, w.id, Desired.RUNNING))
    assert (await s.get(MINA, w.id)).deleted_at  # still readable
    after = (clock.now() - timedelta(days=1), "")
    assert [x.id for x in await s.page(MINA, Filters(deleted=True), after=after, limit=5)] == [w.id]
    assert await s.page(MINA, Filters(), after=after, limit=5) == []
    assert (await s.undelete(MINA, w.id)).deleted_at is None
    await s.delete(MINA, w.id, purge=True)
    with pytest.raises(NotFoundError, match="purged"):
        await s.undelete(MINA, w.id)


async def test_somebody_elses_workspace_is_not_there_and_an_admin_sees_it(
    database: Database, clock: ManualClock
) -> None:
    s = await service(database, clock)
    w = admitted(await s.create(MINA, new()))
    calls = (
        lambda c: s.get(c, w.id),
        lambda c: s.request(c, w.id, Desired.RUNNING),
        lambda c: s.change(c, w.id, Details(name="mine")),
        lambda c: s.delete(c, w.id, purge=True),
        lambda c: s.undelete(c, w.id),
        lambda c: s.recover(c, w.id),
        lambda c: s.history(c, w.id, before=2**62, limit=5),
    )
    for call in calls:
        with pytest.raises(NotFoundError):
            await call(JOON)
    assert (await s.get(ADMIN, w.id)).owner == "mina"
    after = (clock.now() - timedelta(days=1), "")
    assert await s.page(JOON, Filters(owner="mina"), after=after, limit=5) == []
    assert len(await s.page(ADMIN, Filters(owner="mina"), after=after, limit=5)) == 1


@pytest.mark.parametrize("id_", ["unknown", "Not-A-Label", "", "x" * 64, "a\0b", "../etc"])
async def test_a_malformed_id_is_like_an_unknown_one(database: Database, clock: ManualClock, id_: str) -> None:
    s = await service(database, clock)
    with pytest.raises(NotFoundError) as caught:
        await s.get(MINA, id_)
    assert isinstance(caught.value, CodeHubError)


async def test_only_what_is_named_changes(database: Database, clock: ManualClock) -> None:
    s = await service(database, clock)
    w = admitted(await s.create(MINA, NewWorkspace("lab", "t", Desired.STANDBY, 60, 120)))
    until = clock.now() + timedelta(hours=1)
    changed: Workspace = await s.change(MINA, w.id, Details(name="week 3", keep_awake_until=until))
    assert (changed.name, changed.standby_ttl_seconds, changed.keep_awake_until) == ("week 3", 60, until)
    changed = await s.change(MINA, w.id, Details(standby_ttl_seconds=None))
    assert (changed.name, changed.standby_ttl_seconds, changed.archive_ttl_seconds) == ("week 3", None, 120)


async def test_ones_own_sleep_time_stays_within_the_operators_bound(database: Database, clock: ManualClock) -> None:
    s = await service(database, clock, max_standby_seconds=3600)
    w = admitted(await s.create(MINA, NewWorkspace("lab", "t", Desired.STANDBY, 3600)))
    for seconds in (0, 3601):
        with pytest.raises(InvalidRequestError, match="from 1 to 3600 seconds"):
            await s.change(MINA, w.id, Details(standby_ttl_seconds=seconds))
        with pytest.raises(InvalidRequestError, match="from 1 to 3600 seconds"):
            await s.create(MINA, NewWorkspace("more", "t", Desired.STANDBY, seconds))
        assert (await s.change(ADMIN, w.id, Details(standby_ttl_seconds=seconds))).standby_ttl_seconds == seconds
    for allowed in (1, 3600, None):
        assert (await s.change(MINA, w.id, Details(standby_ttl_seconds=allowed))).standby_ttl_seconds == allowed


async def test_only_an_admin_creates_for_another_and_the_others_limit_of_running_ones_counts(
    database: Database, clock: ManualClock
) -> None:
    s = await service(database, clock, max_running_per_user=1)
    mine = NewWorkspace("lab", "t", Desired.RUNNING, owner="mina")
    with pytest.raises(ForbiddenError):
        await s.create(JOON, mine)
    made = admitted(await s.create(ADMIN, mine))
    assert (made.owner, made.desired_by) == ("mina", DesiredBy.ADMIN)
    assert [entry.actor for entry in await s.history(MINA, made.id, before=2**62, limit=5)] == ["admin"]
    assert isinstance(await s.create(ADMIN, mine), Refused)
    assert admitted(await s.create(MINA, NewWorkspace("own", "t", Desired.STANDBY, owner="mina"))).owner == "mina"
    with pytest.raises(InvalidRequestError, match="the person it is for"):
        await s.create(operator("root"), new())
    for nobody in ("no-such-person", "../users", ""):
        with pytest.raises(NotFoundError, match="no such user"):
            await s.create(ADMIN, NewWorkspace("lab", "t", Desired.STANDBY, owner=nobody or "-"))


async def test_workspaces_are_found_by_their_name(database: Database, clock: ManualClock) -> None:
    s = await service(database, clock)
    for caller, name in ((MINA, "실습"), (JOON, "실습"), (MINA, "lab")):
        await s.create(caller, new(name, Desired.STANDBY))
    start = (clock.now() - timedelta(days=1), "")

    async def owners(caller: Principal, name: str) -> list[str]:
        return sorted(w.owner for w in await s.page(caller, Filters(name=name), after=start, limit=9))

    assert await owners(ADMIN, "실습") == ["joon", "mina"]
    assert await owners(MINA, "실습") == ["mina"]
    assert await owners(JOON, "lab") == []
