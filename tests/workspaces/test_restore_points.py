"""Restore points, tick by tick on the real database: which there are, and what going back to one does first."""

from datetime import timedelta

import pytest

from codehub.errors import NotFoundError
from codehub.policy.model import ALL_SCOPES, Principal, Role
from codehub.runtimes.base import RuntimeFailureError
from codehub.workspaces.admission import admitted
from codehub.workspaces.errors import DataLostError, OperationInProgressError, RunningLimitError, WorkspaceDeletedError
from codehub.workspaces.model import Desired, Health, Phase, RestorePoint
from tests.reconciler.test_controller import MINA, House, house

__all__ = ["house"]
JUN = Principal("jun", Role.LEARNER, ALL_SCOPES)


async def points(house: House, id_: str, keep: int = 3) -> list[RestorePoint]:
    return await house.service.restore_points(MINA, id_, keep=keep, before=None, limit=50)


async def archived(house: House, id_: str, times: int = 1) -> list[str]:
    """Sent to the archive and back, over and over; the keys, oldest first."""
    keys = []
    for _ in range(times):
        admitted(await house.service.request(MINA, id_, Desired.ARCHIVED))
        w = await house.until(id_, Phase.ARCHIVED)
        assert w.archive_key
        keys.append(w.archive_key)
        admitted(await house.service.request(MINA, id_, Desired.STANDBY))
        await house.until(id_, Phase.STANDBY)
    return keys


async def test_every_verified_archive_is_a_restore_point_and_the_last_ones_are_shown(house: House) -> None:
    id_ = await house.create()
    await house.until(id_, Phase.RUNNING)
    keys = await archived(house, id_, 4)
    assert {p.archive_key for p in await points(house, id_, keep=10)} == set(keys)
    assert len(await points(house, id_, keep=1)) in {1, 2}  # the newest, and the one the home came from
    with pytest.raises(NotFoundError):
        await house.service.restore_points(JUN, id_, keep=3, before=None, limit=50)


async def test_going_back_archives_what_is_there_first_and_then_runs_again(house: House) -> None:
    id_ = await house.create()
    await house.until(id_, Phase.RUNNING)
    first, second = await archived(house, id_, 2)
    admitted(await house.service.request(MINA, id_, Desired.RUNNING))
    await house.until(id_, Phase.RUNNING)
    house.runtime.calls.clear()
    asked = admitted(await house.service.restore(MINA, id_, first))
    assert (asked.restore_from, asked.desired_state) == (first, Desired.RUNNING)
    await house.tick()
    w = await house.until(id_, Phase.RUNNING, ticks=12)
    assert [verb for verb, _ in house.runtime.calls] == [
        "stop",
        "park_volume",
        "delete_volume",
        "unpack",
        "start",
    ]
    assert (w.archive_key, w.restore_from) == (first, None)
    assert house.runtime.homes[id_].restored_from == first
    kept = {p.archive_key for p in await points(house, id_, keep=10)}
    assert kept > {first, second}  # and what was there before we went back


async def test_an_archived_one_comes_back_asleep_from_the_point_that_was_chosen(house: House) -> None:
    id_ = await house.create()
    await house.until(id_, Phase.RUNNING)
    first, _ = await archived(house, id_, 2)
    admitted(await house.service.request(MINA, id_, Desired.ARCHIVED))
    await house.until(id_, Phase.ARCHIVED)
    admitted(await house.service.restore(MINA, id_, first))
    await house.tick()
    w = await house.until(id_, Phase.STANDBY)
    assert (w.archive_key, w.desired_state) == (first, Desired.STANDBY)


async def test_what_may_not_be_gone_back_to_is_refused(house: House) -> None:
    id_, other = await house.create(), await house.create()
    await house.until(id_, Phase.RUNNING, ticks=20)
    await house.until(other, Phase.RUNNING)
    (key,), (others,) = await archived(house, id_), await archived(house, other)
    for wrong in ("no-such-key", others, f"{id_}/../{other}"):
        with pytest.raises(NotFoundError):
            admitted(await house.service.restore(MINA, id_, wrong))
    with pytest.raises(NotFoundError):
        admitted(await house.service.restore(JUN, id_, key))
    admitted(await house.service.request(MINA, id_, Desired.RUNNING))
    house.runtime.fail["start"] = RuntimeFailureError("not now")  # so that the start is still under way
    await house.tick()
    with pytest.raises(OperationInProgressError):
        admitted(await house.service.restore(MINA, id_, key))
    del house.runtime.fail["start"]
    await house.clock.advance(60)  # and is tried again
    await house.until(id_, Phase.RUNNING)
    await house.service.delete(MINA, id_, purge=False)
    with pytest.raises(WorkspaceDeletedError):
        admitted(await house.service.restore(MINA, id_, key))


async def test_files_that_were_lost_are_told_with_the_age_of_what_is_left(house: House) -> None:
    id_ = await house.create()
    await house.until(id_, Phase.RUNNING)
    old, newest = await archived(house, id_, 2)
    del house.runtime.homes[id_]
    w = await house.until(id_, Phase.ERROR)
    assert w.error_info
    assert w.error_info["reason"] == "DataLost"
    await house.clock.advance(timedelta(days=3).total_seconds())
    with pytest.raises(DataLostError, match="3 days old") as refused:
        admitted(await house.service.recover(MINA, id_))
    assert refused.value.extra["archive_key"] == newest
    admitted(await house.service.restore(MINA, id_, old))  # the person chose another one: that is accepting the loss
    await house.tick()
    w = await house.until(id_, Phase.STANDBY)
    assert (w.archive_key, w.health_status) == (old, Health.OK)


async def test_going_back_out_of_an_error_passes_the_running_limit(house: House) -> None:
    id_ = await house.create()
    await house.until(id_, Phase.RUNNING)
    (key,) = await archived(house, id_)
    admitted(await house.service.request(MINA, id_, Desired.RUNNING))
    await house.until(id_, Phase.RUNNING)
    del house.runtime.homes[id_]
    house.runtime.running.clear()
    await house.until(id_, Phase.ERROR)
    for _ in range(2):  # others take the two places
        await house.until(await house.create(), Phase.RUNNING)
    with pytest.raises(RunningLimitError):
        admitted(await house.service.restore(MINA, id_, key))
