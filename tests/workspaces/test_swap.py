"""Swaps: putting one's own workspace to sleep to open another one keeps the place, and no limit is ever passed.

On the real database, with ticks sent by hand; the controller's part is played by rows as it would leave them.
"""

import asyncio
from collections.abc import Sequence

import pytest

from codehub.coordinator.leader import Lease
from codehub.db import Database
from codehub.errors import ForbiddenError, InvalidRequestError, NotFoundError
from codehub.settings import LimitsConfig
from codehub.waiting_room.model import LAB
from codehub.workspaces import admission
from codehub.workspaces.admission import NoPlace, OwnLimit, Refused, admitted
from codehub.workspaces.model import Desired, Workspace
from codehub.workspaces.service import NewWorkspace
from codehub.workspaces.swaps import Swaps
from tests.waiting_room.hall import Hall

import redis.asyncio  # isort: skip
from tests.virtual_time import ManualClock  # isort: skip

ONE = LimitsConfig(max_running_global=2, max_running_per_user=1)


@pytest.fixture
async def hall(database: Database, redis_client: redis.asyncio.Redis, clock: ManualClock) -> Hall:
    return Hall(database, redis_client, clock, limits=ONE)


@pytest.fixture
async def swaps(hall: Hall) -> Swaps:
    async with hall.database.connection() as c:
        await c.execute(
            "INSERT INTO system_locks (name, holder, epoch, expires_at) VALUES ('coordinator', 'test', 1, 'infinity')"
        )
    return Swaps(Lease(hall.database, "test", 1), hall.clock)


async def running(hall: Hall, name: str) -> Workspace:
    """Observed to run."""
    made = admitted(await hall.workspaces.create(await hall.person(name), NewWorkspace("old", "t")))
    await observe(hall, made.id, "RUNNING")
    return made


async def asleep(hall: Hall, name: str) -> Workspace:
    made = admitted(await hall.workspaces.create(await hall.person(name), NewWorkspace("new", "t", Desired.STANDBY)))
    await observe(hall, made.id, "STANDBY")
    return made


async def observe(hall: Hall, id_: str, observed: str) -> None:
    """As the controller would have left it."""
    async with hall.database.connection() as c:
        await c.execute(
            "UPDATE workspaces SET observed_status = $2, volume_generation = 'g', operation = 'NONE' WHERE id = $1",
            *(id_, observed),
        )


async def swap(hall: Hall, name: str, to: Workspace, from_: Workspace) -> Workspace | Refused:
    return await hall.workspaces.swap(await hall.person(name), to.id, from_.id)


async def wanted(hall: Hall, *of: Workspace) -> list[Desired]:
    found = [await hall.workspaces.get(await hall.person(w.owner), w.id) for w in of]
    return [w.desired_state for w in found]


async def count(hall: Hall) -> int:
    async with hall.database.connection() as c:
        return await admission.running(c)


async def codes(hall: Hall, w: Workspace) -> list[str]:
    found = await hall.workspaces.history(await hall.person(w.owner), w.id, before=2**62, limit=20)
    return [entry.code for entry in reversed(found)]


async def test_15_between_the_sleep_of_one_and_the_start_of_the_other_the_place_is_neither_free_nor_offered(
    hall: Hall, swaps: Swaps
) -> None:
    """In two steps, the place was gone in between: the waiting room had offered it to the line."""
    old, new = await running(hall, "mina"), await asleep(hall, "mina")
    await running(hall, "other")
    waiting = await hall.join("jun", LAB)
    assert isinstance(await swap(hall, "mina", new, old), Workspace)
    assert await wanted(hall, old, new) == [Desired.STANDBY, Desired.STANDBY]
    assert await count(hall) == 2
    await swaps.tick()
    assert await wanted(hall, new) == [Desired.STANDBY]  # the old one runs still
    await observe(hall, old.id, "STANDBY")
    await hall.tick(2)
    assert await count(hall) == 2
    assert not await hall.ready(waiting)
    assert await hall.places(event=LAB) == []
    start = await hall.workspaces.create(await hall.person("max"), NewWorkspace("w", "t"))
    assert isinstance(start, NoPlace)
    await swaps.tick()
    assert await wanted(hall, old, new) == [Desired.STANDBY, Desired.RUNNING]
    assert await count(hall) == 2
    assert (await codes(hall, new))[-2:] == ["swap_requested", "start_requested"]
    assert (await codes(hall, old))[-1] == "sleep_requested"


async def test_a_place_that_was_swapped_counts_for_its_owner_as_well(hall: Hall, swaps: Swaps) -> None:
    old, new, third = await running(hall, "mina"), await asleep(hall, "mina"), await asleep(hall, "mina")
    await swap(hall, "mina", new, old)
    await observe(hall, old.id, "STANDBY")
    person = await hall.person("mina")
    assert isinstance(await hall.workspaces.request(person, third.id, Desired.RUNNING), OwnLimit)
    await swaps.tick()
    assert isinstance(await hall.workspaces.request(person, third.id, Desired.RUNNING), OwnLimit)


async def test_who_comes_to_the_new_one_meanwhile_is_not_refused_and_starts_it_when_the_place_is_there(
    hall: Hall, swaps: Swaps
) -> None:
    old, new = await running(hall, "mina"), await asleep(hall, "mina")
    await swap(hall, "mina", new, old)
    person = await hall.person("mina")
    assert await hall.workspaces.swap_of(new.id)
    woken = await hall.workspaces.wake(person, new.id)
    assert isinstance(woken, Workspace)
    assert woken.desired_state is Desired.STANDBY
    await hall.join("jun", LAB)  # a line changes nothing about it
    await observe(hall, old.id, "STANDBY")
    woken = await hall.workspaces.wake(person, new.id)
    assert isinstance(woken, Workspace)
    assert woken.desired_state is Desired.RUNNING
    assert (await swaps.tick()).stats == {"due": 0, "done": 0}
    assert await count(hall) == 1


async def test_waking_the_old_one_again_ends_the_swap(hall: Hall, swaps: Swaps) -> None:
    old, new = await running(hall, "mina"), await asleep(hall, "mina")
    await swap(hall, "mina", new, old)
    await observe(hall, old.id, "STANDBY")
    await hall.join("jun", LAB)
    woken = await hall.workspaces.wake(await hall.person("mina"), old.id)
    assert isinstance(woken, Workspace)
    assert woken.desired_state is Desired.RUNNING
    await swaps.tick()
    assert await wanted(hall, old, new) == [Desired.RUNNING, Desired.STANDBY]
    assert await count(hall) == 1


async def test_one_that_does_not_sleep_in_time_ends_the_swap_and_history_says_so(hall: Hall, swaps: Swaps) -> None:
    old, new = await running(hall, "mina"), await asleep(hall, "mina")
    await swap(hall, "mina", new, old)
    await hall.clock.advance(299)
    assert (await swaps.tick()).stats["done"] == 0
    await hall.clock.advance(1)
    assert (await swaps.tick()).stats["done"] == 1
    assert (await codes(hall, new))[-1] == "swap_expired"
    assert await hall.workspaces.swap_failed_lately(new.id)
    await observe(hall, old.id, "STANDBY")
    await swaps.tick()
    assert await wanted(hall, new) == [Desired.STANDBY]
    assert await count(hall) == 0


async def test_one_that_had_not_begun_to_run_makes_room_at_once(hall: Hall, swaps: Swaps) -> None:
    old = admitted(await hall.workspaces.create(await hall.person("mina"), NewWorkspace("old", "t")))
    new = await asleep(hall, "mina")
    outcome = await swap(hall, "mina", new, old)
    assert isinstance(outcome, Workspace)
    assert outcome.desired_state is Desired.RUNNING
    assert await count(hall) == 1
    assert (await swaps.tick()).stats["due"] == 0


async def test_what_runs_already_or_sleeps_already_needs_no_swap(hall: Hall) -> None:
    old, new = await asleep(hall, "mina"), await asleep(hall, "mina")
    for _ in range(2):
        outcome = await swap(hall, "mina", new, old)
        assert isinstance(outcome, Workspace)
        assert outcome.desired_state is Desired.RUNNING
    assert await wanted(hall, old) == [Desired.STANDBY]


async def test_a_lowered_limit_is_not_passed_by_swapping(hall: Hall) -> None:
    roomy = hall.another(limits=LimitsConfig(max_running_global=9, max_running_per_user=3))
    first, second, new = await running(roomy, "mina"), await running(roomy, "mina"), await asleep(roomy, "mina")
    assert isinstance(await swap(hall, "mina", new, first), OwnLimit)
    assert await wanted(hall, first, second) == [Desired.RUNNING, Desired.RUNNING]


async def test_only_ones_own_two_workspaces_are_swapped(hall: Hall) -> None:
    mine, theirs = await running(hall, "mina"), await asleep(hall, "jun")
    for who, to, from_ in (("mina", theirs, mine), ("jun", theirs, mine), ("jun", mine, theirs)):
        with pytest.raises((NotFoundError, ForbiddenError)):
            await swap(hall, who, to, from_)
    with pytest.raises(InvalidRequestError):
        await swap(hall, "mina", mine, mine)
    from codehub.policy.model import Role  # noqa: PLC0415

    await hall.person("boss", Role.ADMIN)
    with pytest.raises(InvalidRequestError):
        await swap(hall, "boss", theirs, mine)


async def test_one_place_has_one_successor_the_last_that_was_asked_for(hall: Hall, swaps: Swaps) -> None:
    old, first, second = await running(hall, "mina"), await asleep(hall, "mina"), await asleep(hall, "mina")
    await swap(hall, "mina", first, old)
    await swap(hall, "mina", second, old)
    await observe(hall, old.id, "STANDBY")
    await swaps.tick()
    assert await wanted(hall, first, second) == [Desired.STANDBY, Desired.RUNNING]
    assert await count(hall) == 1


@pytest.mark.parametrize("ended", ["the new one is deleted", "its owner is deactivated"])
async def test_a_swap_whose_new_one_cannot_start_any_more_gives_the_place_up(
    hall: Hall, swaps: Swaps, ended: str
) -> None:
    old, new = await running(hall, "mina"), await asleep(hall, "mina")
    await swap(hall, "mina", new, old)
    if ended == "the new one is deleted":
        await hall.workspaces.delete(await hall.person("mina"), new.id, purge=False)
    else:
        async with hall.database.connection() as c:
            await c.execute("UPDATE users SET deactivated_at = now() WHERE name = 'mina'")
    await observe(hall, old.id, "STANDBY")
    await swaps.tick()
    assert await count(hall) == 0


async def test_two_leaders_and_a_visitor_at_once_start_it_once(hall: Hall, swaps: Swaps) -> None:
    old, new = await running(hall, "mina"), await asleep(hall, "mina")
    await swap(hall, "mina", new, old)
    await observe(hall, old.id, "STANDBY")
    person = await hall.person("mina")
    await asyncio.gather(swaps.tick(), swaps.tick(), hall.workspaces.wake(person, new.id), swaps.tick())
    starts: Sequence[str] = [code for code in await codes(hall, new) if code in {"start_requested", "woken"}]
    assert len(starts) == 1
    assert await count(hall) == 1


async def test_a_coordinator_that_ends_before_its_step_leaves_it_to_the_next_one(hall: Hall, swaps: Swaps) -> None:
    """Everything between is one transaction: there is no half of it."""
    old, new = await running(hall, "mina"), await asleep(hall, "mina")
    await swap(hall, "mina", new, old)
    await observe(hall, old.id, "STANDBY")
    late = Swaps(Lease(hall.database, "gone", 0), hall.clock)
    with pytest.raises(Exception, match="another coordinator leads"):
        await late.tick()
    assert await count(hall) == 1
    await swaps.tick()
    assert await wanted(hall, new) == [Desired.RUNNING]
