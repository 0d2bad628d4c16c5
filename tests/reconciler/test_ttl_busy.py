"""Workspaces that compute although nobody types: they stay awake, and their history says why."""

from codehub.activity import keys
from tests.reconciler.test_controller import MINA, house
from tests.reconciler.test_ttl import clock, falls_asleep, late, stays_awake
from tests.reconciler.ttl_house import STANDBY, Evening

__all__ = ["clock", "house", "late"]


async def test_a_kernel_that_computes_silently_is_asked_first(late: Evening) -> None:
    id_ = await late.ws("j")
    late.busy.add(id_)
    late.pass_time(STANDBY + 1)
    w = await stays_awake(late, id_)
    assert late.since(w.last_access_at) < 5
    assert await late.redis.hget(keys.details(id_), "busy") == b"1"
    late.busy.clear()
    late.pass_time(STANDBY + 1)
    await falls_asleep(late, id_)


async def test_history_says_once_for_a_stretch_that_computing_kept_it_awake(late: Evening) -> None:
    async def kept() -> list[tuple[str, int]]:
        found = await late.service.history(MINA, id_, before=2**62, limit=50)
        return [(e.data["work"], e.data["seconds"]) for e in reversed(found) if e.code == "kept_awake"]

    id_ = await late.ws("j")
    late.busy.add(id_)
    for _ in range(3):  # looked at again and again, found to compute each time
        late.pass_time(STANDBY + 1)
        await stays_awake(late, id_)
    (line,) = await kept()
    assert line[0] == "kernel"
    assert 3 * STANDBY < line[1] < 4 * STANDBY
    late.pass_time(60)
    (await late.proxy()).visit(id_)  # and then its user works again
    await late.all_flush()
    late.pass_time(STANDBY + 60)
    await late.all_flush()
    await stays_awake(late, id_)
    assert [work for work, _ in await kept()] == ["kernel", "kernel"]
    late.busy.clear()
    late.pass_time(STANDBY + 1)
    await late.all_flush()
    await falls_asleep(late, id_)
