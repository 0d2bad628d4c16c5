"""The garbage collection and the trash, tick by tick, on a real database and a real object store."""

import asyncio
import pathlib
from dataclasses import dataclass, replace
from datetime import timedelta

import pytest

from codehub.archives import model, ownership, process, service
from codehub.archives.objects import ObjectStore, open_store
from codehub.db import Database
from codehub.errors import LeaseLostError, NotFoundError
from codehub.policy.model import ALL_SCOPES, Principal, Role
from codehub.retention.gc import Collector, Finder
from codehub.retention.trash import Trash
from codehub.runtimes.base import Volume
from codehub.settings import ArchiveConfig, LimitsConfig
from codehub.workspaces.admission import admitted
from codehub.workspaces.model import Desired
from codehub.workspaces.service import Filters, NewWorkspace, Workspaces
from tests.leading import lead
from tests.null_runtime import NullRuntime
from tests.reconciler.test_controller import OneTemplate
from tests.virtual_time import ManualClock
from tests.waiting_room.admission import a_line

MINA = Principal("mina", Role.LEARNER, ALL_SCOPES)
HOUR = 3600.0


@dataclass
class Yard:
    database: Database
    clock: ManualClock
    runtime: NullRuntime
    objects: ObjectStore
    service: Workspaces
    finder: Finder
    collector: Collector
    trash: Trash
    home: pathlib.Path

    async def workspace(self) -> str:
        return (admitted(await self.service.create(MINA, NewWorkspace("lab", "t", Desired.STANDBY)))).id

    async def store(self, id_: str, op_id: str, *, epoch: int = 1, listed: bool = True) -> str:
        """A real archive, and its line among the restore points as the controller writes it."""
        base = model.key_base(id_, op_id, epoch)
        made = await service.archive(process.from_folder(self.home), self.objects, base, now=self.clock.now())
        meta = made.meta
        if listed:
            async with self.database.connection() as c:
                await c.execute(
                    "INSERT INTO restore_points VALUES ($1, $2, $3, $4, $5, $6, $7)",
                    *(made.key, id_, op_id, meta.created_at, meta.size, meta.content_bytes, meta.files),
                )
        await self.clock.advance(1)
        return made.key

    async def put(self, id_: str, **columns: object) -> None:
        names = ", ".join(f"{name} = ${number}" for number, name in enumerate(columns, 2))
        async with self.database.connection() as c:
            await c.execute(f"UPDATE workspaces SET {names} WHERE id = $1", id_, *columns.values())

    async def stored(self) -> set[str]:
        return {item.key async for item in self.objects.list("") if item.key.endswith("home.tar.zst")}

    async def points(self, id_: str) -> list[str]:
        found = await self.service.restore_points(MINA, id_, keep=100, before=None, limit=100)
        return [point.archive_key for point in found]

    async def deleted(self, id_: str, *, parked: bool = False) -> None:
        """As the controller leaves it in the trash."""
        await self.service.delete(MINA, id_, purge=False)
        if parked:
            self.runtime.homes[id_] = Volume(id_, "g1", parked=True)
        await self.put(id_, observed_status="DELETED", volume_parked=parked, volume_generation="g1" if parked else None)


@pytest.fixture
async def yard(database: Database, clock: ManualClock, tmp_path: pathlib.Path) -> Yard:
    async with database.connection() as c:
        await c.execute("INSERT INTO users (name, role, created_at) VALUES ('mina', 'learner', now())")
    lease, runtime = await lead(database), NullRuntime()
    objects = open_store(f"file://{tmp_path}/objects")
    finder = Finder(database, runtime, objects, ArchiveConfig())
    home = tmp_path / "home"
    home.mkdir()
    (home / "note").write_text("kept")
    templates = OneTemplate()
    people = Workspaces(database, clock, LimitsConfig(), templates, a_line(clock))  # type: ignore[arg-type]
    collector = Collector(lease, finder, clock)
    return Yard(database, clock, runtime, objects, people, finder, collector, Trash(lease, finder, clock), home)


async def test_older_archives_go_after_the_safety_delay_and_the_last_three_stay(yard: Yard) -> None:
    id_ = await yard.workspace()
    keys = [await yard.store(id_, f"op{number}") for number in range(5)]
    await yard.put(id_, archive_key=keys[4], op_id="op4")
    tick = await yard.collector.tick()
    assert (tick.stats["noted"], tick.stats["collected"]) == (2, 0)
    await yard.clock.advance(2 * HOUR - 60)
    assert (await yard.collector.tick()).stats["collected"] == 0
    assert await yard.stored() == set(keys)
    await yard.clock.advance(60)
    tick = await yard.collector.tick()
    assert (tick.stats["collected"], tick.stats["waiting"]) == (2, 0)
    assert await yard.stored() == set(keys[2:])
    assert await yard.points(id_) == [keys[4], keys[3], keys[2]]
    events = await yard.service.history(MINA, id_, before=2**62, limit=10)
    assert [(e.code, e.actor, e.data["rule"]) for e in events[:2]] == [("archive_collected", "gc", "newer_points")] * 2
    async with yard.database.connection() as c:
        audited = await c.fetch("SELECT subject FROM audit_log WHERE code = 'archive.collect'")
    assert {f"{row['subject']}/home.tar.zst" for row in audited} == set(keys[:2])


async def test_a_restart_does_not_forget_since_when_it_waits(yard: Yard) -> None:
    await yard.store("no-such", "op1", listed=False)
    await yard.collector.tick()
    await yard.clock.advance(2 * HOUR)
    another = Collector(yard.collector._lease, yard.finder, yard.clock)
    assert (await another.tick()).stats["collected"] == 1
    assert await yard.stored() == set()


async def test_what_somebody_needs_again_meanwhile_stays(yard: Yard) -> None:
    id_ = await yard.workspace()
    keys = [await yard.store(id_, f"op{number}") for number in range(4)]
    await yard.collector.tick()
    await yard.clock.advance(2 * HOUR)
    admitted(await yard.service.restore(MINA, id_, keys[0]))  # chosen at the last moment
    tick = await yard.collector.tick()
    assert (tick.stats["collected"], tick.stats["waiting"]) == (0, 0)
    assert await yard.stored() == set(keys)


async def test_what_is_condemned_cannot_be_chosen_any_more(yard: Yard) -> None:
    id_ = await yard.workspace()
    keys = [await yard.store(id_, f"op{number}") for number in range(4)]
    await yard.collector.tick()
    async with yard.database.connection() as c:  # as by a leader that died right after
        await c.execute("UPDATE orphans SET condemned_at = $1", yard.clock.now())
        await c.execute("DELETE FROM restore_points WHERE archive_key = $1", keys[0])
    with pytest.raises(NotFoundError):
        admitted(await yard.service.restore(MINA, id_, keys[0]))
    tick = await yard.collector.tick()  # not adopted again, and finished at once
    assert (tick.stats["adopted"], tick.stats["collected"]) == (0, 1)
    assert await yard.stored() == set(keys[1:])


async def test_half_finished_uploads_go_and_those_under_way_stay(yard: Yard) -> None:
    id_ = await yard.workspace()
    await yard.put(id_, op_id="now")
    for op_id in ("before", "now"):
        await yard.objects.put(f"{id_}/{op_id}/1/home.tar.zst", b"half")
    await yard.objects.put(f"{id_}/older/1/home.tar.zst.abc.partial", b"half")
    await yard.objects.put("somebody/elses/file.txt", b"not ours")
    assert (await yard.collector.tick()).stats["noted"] == 2
    await yard.clock.advance(2 * HOUR)
    assert (await yard.collector.tick()).stats["collected"] == 2
    left = {item.key async for item in yard.objects.list("")}
    assert left == {f"{id_}/now/1/home.tar.zst", "somebody/elses/file.txt", ownership.MARKER}


async def test_verified_archives_that_the_database_does_not_know_become_restore_points(yard: Yard) -> None:
    """After the database came back from last night's backup, today's archives are still there: they are kept."""
    id_ = await yard.workspace()
    old = await yard.store(id_, "op1")
    new = await yard.store(id_, "op2", listed=False)
    await yard.put(id_, archive_key=old, op_id="op1")
    assert (await yard.collector.tick()).stats["adopted"] == 1
    assert await yard.points(id_) == [new, old]
    twin = await yard.store(id_, "op2", epoch=2, listed=False)  # of a leader that came late: adopted what was there
    assert twin == new


async def test_an_archive_with_an_unreadable_meta_is_neither_offered_nor_destroyed(yard: Yard) -> None:
    id_ = await yard.workspace()
    await yard.objects.put(f"{id_}/op1/1/home.tar.zst", b"data")
    await yard.objects.put(f"{id_}/op1/1/home.tar.zst.meta", b"{")
    assert (await yard.collector.tick()).stats["adopted"] == 0
    await yard.clock.advance(3 * HOUR)
    assert (await yard.collector.tick()).stats["collected"] == 0
    assert len(await yard.stored()) == 1


async def test_files_of_no_workspace_go_by_their_generation(yard: Yard) -> None:
    yard.runtime.homes["stray"] = Volume("stray", "g1")
    id_ = await yard.workspace()
    yard.runtime.homes[id_] = Volume(id_, "g2")
    await yard.put(id_, volume_generation="g2")
    await yard.collector.tick()
    await yard.clock.advance(2 * HOUR)
    yard.runtime.homes["stray"] = Volume("stray", "g7")  # another one by now: its own two hours begin
    await yard.collector.tick()
    assert set(yard.runtime.homes) == {"stray", id_}
    await yard.clock.advance(2 * HOUR)
    await yard.collector.tick()
    assert set(yard.runtime.homes) == {id_}


async def test_a_store_that_another_platform_has_marked_is_left_alone(yard: Yard) -> None:
    await yard.objects.put(ownership.MARKER, b"another")
    await yard.store("theirs", "op1", listed=False)
    for _ in range(2):
        tick = await yard.collector.tick()
        await yard.clock.advance(3 * HOUR)
    assert (tick.stats["store_is_ours"], tick.stats["collected"]) == (False, 0)
    id_ = await yard.workspace()
    key = await yard.store(id_, "op1")
    await yard.deleted(id_)
    await yard.service.delete(MINA, id_, purge=True)
    assert (await yard.trash.tick()).stats["emptied"] == 1
    assert key in await yard.stored()  # the other platform may know it by the same name
    await ownership.take_over(yard.objects, await yard.finder.platform())
    await yard.collector.tick()
    await yard.clock.advance(3 * HOUR)
    assert (await yard.collector.tick()).stats["collected"] == 2


async def test_a_former_leader_collects_nothing(yard: Yard) -> None:
    await yard.store("no-such", "op1", listed=False)
    await yard.collector.tick()
    await yard.clock.advance(2 * HOUR)
    stale = Collector(replace(yard.collector._lease, epoch=0), yard.finder, yard.clock)
    with pytest.raises(LeaseLostError):
        await stale.tick()
    assert len(await yard.stored()) == 1


async def test_the_trash_gives_back_until_its_time_is_over_and_then_is_empty(yard: Yard) -> None:
    archived, parked, back = [await yard.workspace() for _ in range(3)]
    keys = {id_: await yard.store(id_, "op1") for id_ in (archived, back)}
    for id_, key in keys.items():
        await yard.put(id_, archive_key=key, op_id="op1")
        await yard.deleted(id_)
    await yard.deleted(parked, parked=True)
    await yard.clock.advance(timedelta(days=7).total_seconds() - 60)
    assert (await yard.trash.tick()).stats["emptied"] == 0
    await yard.service.undelete(MINA, back)
    await yard.clock.advance(60)
    assert (await yard.trash.tick()).stats["emptied"] == 2
    assert await yard.stored() == {keys[back]}
    assert yard.runtime.homes == {}
    for id_ in (archived, parked):
        with pytest.raises(NotFoundError, match="nothing is left"):
            await yard.service.undelete(MINA, id_)
        w = await yard.service.get(MINA, id_)
        assert (w.archive_key, w.volume_parked, w.emptied_at) == (None, False, yard.clock.now())
    shown = await yard.service.page(MINA, Filters(deleted=True), after=(yard.clock.now() - timedelta(9), ""), limit=9)
    assert shown == []
    assert (await yard.trash.tick()).stats["emptied"] == 0


async def test_a_purge_of_what_lies_in_the_trash_destroys_it_at_once(yard: Yard) -> None:
    id_ = await yard.workspace()
    key = await yard.store(id_, "op1")
    await yard.objects.put(f"{id_}/op2/1/home.tar.zst.abc.partial", b"half")
    await yard.put(id_, archive_key=key, op_id="op1")
    await yard.deleted(id_, parked=True)
    assert (await yard.trash.tick()).stats["emptied"] == 0
    await yard.service.delete(MINA, id_, purge=True)
    assert (await yard.trash.tick()).stats["emptied"] == 1
    assert [item.key async for item in yard.objects.list(id_)] == []
    assert yard.runtime.homes == {}


async def test_a_trash_that_died_in_the_middle_is_emptied_by_the_next(yard: Yard) -> None:
    id_ = await yard.workspace()
    key = await yard.store(id_, "op1")
    await yard.put(id_, archive_key=key, op_id="op1")
    await yard.deleted(id_)
    await yard.put(id_, purge=True)  # no way back, and nothing destroyed yet
    with pytest.raises(NotFoundError):
        await yard.service.undelete(MINA, id_)
    assert (await yard.trash.tick()).stats["emptied"] == 1
    assert await yard.stored() == set()


async def test_what_cannot_be_collected_is_set_aside_and_the_rest_goes(
    yard: Yard, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("codehub.retention.gc.AT_ONCE", 2)
    for number in range(5):
        yard.runtime.homes[f"w{number}"] = Volume(f"w{number}", "g1")  # of no workspace
    stuck = {"w0", "w1", "w2"}
    delete = yard.runtime.delete_volume

    async def stuck_delete(workspace_id: str, generation: str) -> None:
        if workspace_id in stuck:
            raise OSError(5, "the disk is broken there")
        await delete(workspace_id, generation)

    monkeypatch.setattr(yard.runtime, "delete_volume", stuck_delete)
    await yard.collector.tick()
    await yard.clock.advance(2 * HOUR)
    ticks = [await yard.collector.tick() for _ in range(3)]
    assert [tick.again_in for tick in ticks] == [1.0, 1.0, None]  # a full batch: go on at once, with others
    assert set(yard.runtime.homes) == stuck
    assert sum(tick.stats["failed"] for tick in ticks) == 3
    stuck.clear()
    await yard.clock.advance(600)
    while yard.runtime.homes:
        assert (await yard.collector.tick()).stats["failed"] == 0


async def test_a_trash_that_cannot_be_emptied_keeps_no_other_from_it(
    yard: Yard, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("codehub.retention.trash.PER_TICK", 1)
    first, second = await yard.workspace(), await yard.workspace()
    await yard.deleted(first, parked=True)
    await yard.clock.advance(1)
    await yard.deleted(second, parked=True)
    delete = yard.runtime.delete_volume

    async def stuck_delete(workspace_id: str, generation: str) -> None:
        if workspace_id == first:
            raise OSError(5, "the disk is broken there")
        await delete(workspace_id, generation)

    monkeypatch.setattr(yard.runtime, "delete_volume", stuck_delete)
    await yard.clock.advance(31 * 24 * HOUR)
    assert (await yard.trash.tick()).stats == {"emptied": 0, "failed": 1}
    assert (await yard.trash.tick()).stats == {"emptied": 1, "failed": 0}
    assert set(yard.runtime.homes) == {first}


async def test_two_collectors_at_once_take_everything_once(yard: Yard) -> None:
    for number in range(20):
        await yard.store("no-such", f"op{number}", listed=False)
    await yard.collector.tick()
    await yard.clock.advance(2 * HOUR)
    another = Collector(yard.collector._lease, yard.finder, yard.clock)
    await asyncio.gather(yard.collector.tick(), another.tick())
    assert await yard.stored() == set()
    async with yard.database.connection() as c:
        assert await c.fetchval("SELECT count(*) FROM audit_log WHERE code = 'archive.collect'") == 20
