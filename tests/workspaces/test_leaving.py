"""Somebody is deactivated: what of theirs runs goes to sleep and stays so, and what others shared with them is over."""

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from codehub.command import operator
from codehub.errors import CodeHubError, DeactivatedError, NotFoundError
from codehub.policy.model import ALL_SCOPES, Principal, Role
from codehub.web.services import Services
from codehub.workspaces import idle_store
from codehub.workspaces.admission import admitted
from codehub.workspaces.model import Desired, DesiredBy, Workspace
from codehub.workspaces.service import NewWorkspace
from tests.auth.helpers import add, deactivate

MINA = Principal("mina", Role.LEARNER, ALL_SCOPES)
JUN = Principal("jun", Role.LEARNER, ALL_SCOPES)


@pytest.fixture(autouse=True)
async def people(services: Services) -> None:
    await add(services, "mina")
    await add(services, "jun")


async def activate(services: Services, name: str) -> None:
    await services.people.change_user(operator(), name, role=None, active=True)


async def made(services: Services, caller: Principal, **columns: Any) -> str:
    """As the controller would have left it."""
    w = admitted(await services.workspaces.create(caller, NewWorkspace("lab", "terminal", Desired.STANDBY)))
    settings = ", ".join(f"{name} = ${place}" for place, name in enumerate(columns, 2))
    async with services.database.connection() as c:
        if settings:
            await c.execute(f"UPDATE workspaces SET {settings} WHERE id = $1", w.id, *columns.values())
    return w.id


UNDER_WAY = {"op_id": "a", "op_started_at": datetime(2026, 3, 2, 9, tzinfo=UTC)}
RUNNING = {"observed_status": "RUNNING", "desired_state": "RUNNING", "op_id": "run"}
AWAKE: list[dict[str, Any]] = [
    RUNNING,
    {"observed_status": "STANDBY", "desired_state": "RUNNING", "operation": "STARTING", **UNDER_WAY},
    {"observed_status": "PENDING", "desired_state": "RUNNING"},
    {**RUNNING, "health_status": "ERROR"},
]


async def get(services: Services, id_: str) -> Workspace:
    return await services.workspaces.get(operator(), id_)


@pytest.mark.parametrize("columns", AWAKE)
async def test_what_runs_or_is_to_run_is_put_to_sleep_with_the_reason(
    services: Services, columns: dict[str, Any]
) -> None:
    mine, other = await made(services, MINA, **columns), await made(services, JUN, **columns)
    await deactivate(services, "mina")
    w = await get(services, mine)
    assert (w.desired_state, w.desired_by) == (Desired.STANDBY, DesiredBy.OPERATOR)
    assert w.operation == columns.get("operation", "NONE")  # what is under way is carried on
    newest = (await services.workspaces.history(operator(), mine, before=2**62, limit=1))[0]
    assert (newest.code, newest.actor, newest.to_state) == ("owner_deactivated", operator().name, "STANDBY")
    assert (await get(services, other)).desired_state is Desired.RUNNING


async def test_a_workspace_cannot_hold_itself_awake_for_somebody_who_is_deactivated(services: Services) -> None:
    id_, now = await made(services, MINA, **RUNNING), services.clock.now()
    for expected in (True, False):
        async with services.database.transaction() as c:
            held = await idle_store.keep_awake(c, id_, "run", now + timedelta(hours=8), "mining", now)
        assert (held is not None) is expected
        await deactivate(services, "mina")
    w = await get(services, id_)
    assert (w.keep_awake_until, w.keep_awake_reason) == (None, None)


async def test_a_timers_request_that_activity_would_withdraw_stands(services: Services) -> None:
    id_ = await made(services, MINA, **{**RUNNING, "desired_state": "STANDBY", "desired_by": "ttl"})
    await deactivate(services, "mina")
    async with services.database.transaction() as c:
        assert await idle_store.withdraw(c, id_, services.clock.now(), services.clock.now()) is None
    assert (await get(services, id_)).desired_state is Desired.STANDBY


async def test_nobody_wakes_it_until_its_owner_is_active_again(services: Services) -> None:
    id_ = await made(services, MINA, **RUNNING)
    await services.sharing.share(MINA, id_, "jun")
    await deactivate(services, "mina")
    async with services.database.connection() as c:
        await c.execute("UPDATE workspaces SET observed_status = 'STANDBY' WHERE id = $1", id_)
    with pytest.raises(NotFoundError):
        await services.access.visit(JUN, id_)
    assert await services.sharing.shared_with(JUN, after=(services.clock.now() - timedelta(days=1), ""), limit=5) == []
    for caller in (MINA, operator()):
        with pytest.raises(DeactivatedError, match="activate them first"):
            admitted(await services.workspaces.request(caller, id_, Desired.RUNNING))
    with pytest.raises(DeactivatedError):
        admitted(await services.workspaces.create(MINA, NewWorkspace("more", "terminal")))
    await activate(services, "mina")
    woken = await services.access.wake(JUN, await services.access.visit(JUN, id_))
    assert admitted(woken).desired_state is Desired.RUNNING


async def test_what_others_shared_with_them_is_over_and_the_owners_history_says_so(services: Services) -> None:
    id_, other = await made(services, JUN), await made(services, JUN)
    await services.sharing.share(JUN, id_, "mina")
    await add(services, "sora")
    sora = Principal("sora", Role.LEARNER, ALL_SCOPES)
    await services.sharing.share(JUN, other, "sora")
    await deactivate(services, "mina")
    await activate(services, "mina")
    with pytest.raises(NotFoundError):
        await services.access.visit(MINA, id_)
    assert (await services.access.visit(sora, other)).workspace.id == other
    newest = (await services.workspaces.history(JUN, id_, before=2**62, limit=1))[0]
    assert (newest.code, newest.data) == ("guest_deactivated", {"user": "mina"})


async def test_whatever_is_asked_for_in_the_same_moment_nothing_is_left_awake(services: Services) -> None:
    sleeping_ones = [await made(services, MINA, observed_status="STANDBY") for _ in range(6)]

    async def ask(id_: str | None) -> None:
        try:
            if id_ is None:
                admitted(await services.workspaces.create(MINA, NewWorkspace("new", "terminal")))
            else:
                admitted(await services.workspaces.request(MINA, id_, Desired.RUNNING))
        except CodeHubError as e:
            assert e.code in {"USER_DEACTIVATED", "RUNNING_LIMIT"}  # noqa: PT017

    for _ in range(5):
        asked = [ask(id_) for id_ in (*sleeping_ones[:3], None)], [ask(id_) for id_ in (*sleeping_ones[3:], None)]
        await asyncio.gather(*asked[0], deactivate(services, "mina"), *asked[1])
        async with services.database.connection() as c:
            assert await c.fetchval("SELECT count(*) FROM workspaces WHERE desired_state = 'RUNNING'") == 0
        await activate(services, "mina")
