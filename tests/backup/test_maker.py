"""Backups that a page asks for, with the coordinator's ticks sent by hand: every way in which one can end."""

import asyncio
import dataclasses
import pathlib
from datetime import timedelta

import pytest

from codehub.archives.objects import open_store
from codehub.backup import archive, kept_files, rules
from codehub.backup.homes import Files
from codehub.backup.maker import Maker, Place
from codehub.backup.model import Kept, Manifest, State
from codehub.backup.requests import BackupSpaceError, BackupStateError
from codehub.command import operator
from codehub.coordinator.leader import Lease
from codehub.errors import LeaseLostError, NotFoundError
from codehub.web.services import Services
from tests.null_runtime import NullRuntime
from tests.virtual_time import ManualClock
from tests.workspaces.bulks import loop_of

ADMIN = operator()


@dataclasses.dataclass
class Room:
    """What the disk says is free."""

    free: int = 2**50


@dataclasses.dataclass
class Stage:
    services: Services
    place: Place
    room: Room
    epoch: int = 1
    keep: int = 3

    def maker(self) -> Maker:
        lease = Lease(self.services.database, "test", self.epoch)
        return Maker(lease, self.services.clock, self.place, self.keep, lambda: None)

    async def next_leader(self) -> Maker:
        self.epoch += 1
        async with self.services.database.connection() as c:
            await c.execute("UPDATE system_locks SET epoch = $1", self.epoch)
        return self.maker()

    async def rows(self) -> list[Kept]:
        return (await self.services.backups.overview(ADMIN)).backups

    async def row(self, id_: str) -> Kept:
        return next(kept for kept in await self.rows() if kept.id == id_)

    def names(self) -> list[str]:
        return sorted(path.name for path in self.place.folder.iterdir())

    async def made(self, maker: Maker) -> str:
        id_ = await self.services.backups.ask(ADMIN)
        await until_over(maker)
        assert (await self.row(id_)).state is State.DONE
        return id_


async def until_over(maker: Maker) -> None:
    async with asyncio.timeout(60):
        while True:
            stats = (await maker.tick()).stats
            if not stats["making"]:
                return
            await asyncio.sleep(0.01)


@pytest.fixture
async def stage(services: Services, tmp_path: pathlib.Path) -> Stage:
    await services.people.ensure_first_admin()
    await loop_of(services)  # somebody leads
    data, room = services.settings.storage.data_dir, Room()
    data.mkdir()
    files = Files(NullRuntime(), open_store(f"file://{tmp_path}/objects"))
    url = services.settings.storage.database_url
    assert url
    return Stage(services, Place(url, "a-key", files, data / "backups", lambda _: room.free), room)


async def test_one_click_makes_one_backup_and_a_second_click_none(stage: Stage, clock: ManualClock) -> None:
    maker = stage.maker()
    first, second = await asyncio.gather(*(stage.services.backups.ask(ADMIN) for _ in range(2)))
    assert first == second
    assert (await stage.row(first)).state is State.ASKED
    assert (await maker.tick()).again_in is not None
    assert (await stage.row(first)).state is State.RUNNING
    assert await stage.services.backups.ask(ADMIN) == first
    await until_over(maker)
    kept = await stage.row(first)
    (name,) = stage.names()
    manifest = archive.verify(stage.place.folder / name)
    assert kept.state is State.DONE
    assert kept.file_bytes == (stage.place.folder / name).stat().st_size
    assert kept.contents["rows"] == sum(table.rows for table in manifest.tables) > 0
    assert "backups" not in {table.name for table in manifest.tables}  # they are this machine's
    assert (stage.place.folder.stat().st_mode & 0o777, (stage.place.folder / name).stat().st_mode & 0o777) == (
        0o700,
        0o600,
    )
    await clock.advance(1)
    assert await stage.services.backups.ask(ADMIN) != first


async def test_what_a_killed_leader_left_is_removed_and_its_row_says_so(stage: Stage) -> None:
    """As the leader's process would leave it at each point: before the file has its name, and just after."""
    old = stage.maker()
    id_ = await stage.services.backups.ask(ADMIN)
    await old.tick()
    assert old._making
    old._making.task.cancel()  # what it does meanwhile is not to be seen: it is dead
    await asyncio.gather(old._making.task, return_exceptions=True)
    name = kept_files.name_of(id_, (await stage.row(id_)).asked_at)
    (stage.place.folder / f".{name}.xyz.part").write_bytes(b"half")
    new = await stage.next_leader()
    await new.tick()
    row = await stage.row(id_)
    assert (row.state, row.failure) == (State.FAILED, "interrupted")
    assert stage.names() == []
    with pytest.raises(LeaseLostError):  # and the old one, if it was only stopped, writes nothing more
        await old.tick()
    assert await stage.made(new) != id_


async def test_a_leader_killed_after_the_file_had_its_name_leaves_a_backup_that_is_done(stage: Stage) -> None:
    old = stage.maker()
    id_ = await stage.services.backups.ask(ADMIN)
    await old.tick()
    assert old._making
    await old._making.task
    assert (await stage.row(id_)).state is State.RUNNING
    await (await stage.next_leader()).tick()
    row = await stage.row(id_)
    assert (row.state, len(stage.names())) == (State.DONE, 1)
    assert row.file_bytes == (stage.place.folder / stage.names()[0]).stat().st_size


async def test_cancelling_leaves_nothing_however_far_it_was(stage: Stage, clock: ManualClock) -> None:
    backups, maker = stage.services.backups, stage.maker()
    before = await backups.ask(ADMIN)
    await backups.cancel(ADMIN, before)
    assert (await stage.row(before)).state is State.CANCELLED
    await clock.advance(1)
    id_ = await backups.ask(ADMIN)
    await maker.tick()
    await backups.cancel(ADMIN, id_)
    await backups.cancel(ADMIN, id_)  # twice is once
    assert (await stage.row(id_)).state is State.CANCELLING
    await until_over(maker)
    assert (await stage.row(id_)).state is State.CANCELLED
    assert stage.names() == []
    await clock.advance(1)
    await stage.made(maker)  # and the next one is made


async def test_a_cancel_that_comes_after_the_last_byte_leaves_a_backup_that_is_done(stage: Stage) -> None:
    maker = stage.maker()
    id_ = await stage.services.backups.ask(ADMIN)
    await maker.tick()
    assert maker._making
    await maker._making.task
    await stage.services.backups.cancel(ADMIN, id_)

    async def cancelled() -> Manifest:
        raise asyncio.CancelledError

    maker._making.task = asyncio.create_task(cancelled())  # as if it had come between the rename and the end
    await asyncio.gather(maker._making.task, return_exceptions=True)
    await until_over(maker)
    assert ((await stage.row(id_)).state, len(stage.names())) == (State.DONE, 1)


async def test_without_space_none_is_begun_and_one_under_way_is_given_up(stage: Stage) -> None:
    maker = stage.maker()
    id_ = await stage.services.backups.ask(ADMIN)
    stage.room.free = rules.RESERVE_BYTES
    await until_over(maker)
    row = await stage.row(id_)
    assert (row.state, row.failure) == (State.FAILED, "no_space")
    assert stage.names() == []
    async with stage.services.database.transaction() as c:  # a home larger than any disk
        await c.execute(
            "INSERT INTO workspaces (id, name, template, owner_id, created_at, updated_at, phase_changed_at,"
            " last_access_at, desired_state, desired_by, desired_at, observed_status, volume_generation, disk_bytes)"
            " SELECT 'w', 'lab', 't', id, now(), now(), now(), now(), 'STANDBY', 'user', now(), 'STANDBY', 'g', 2^60"
            " FROM users LIMIT 1"
        )
    with pytest.raises(BackupSpaceError):
        await stage.services.backups.ask(ADMIN)
    overview = await stage.services.backups.overview(ADMIN)
    assert overview.space
    assert overview.space.needed > 2**60


async def test_the_oldest_go_and_the_operators_own_files_stay(stage: Stage, clock: ManualClock) -> None:
    stage.keep = 2
    maker, made = stage.maker(), []
    for _ in range(3):
        made.append(await stage.made(maker))
        await clock.advance(60)
    (stage.place.folder / "mine.codehub").write_bytes(b"by hand")
    await maker.tick()
    assert [kept.id for kept in await stage.rows()] == [made[2], made[1]]
    assert len(stage.names()) == 3
    assert "mine.codehub" in stage.names()
    await stage.services.backups.delete(ADMIN, made[1])
    with pytest.raises(NotFoundError):
        await stage.services.backups.download(ADMIN, made[1])
    await stage.services.backups.delete(ADMIN, made[1])  # twice is once
    await maker.tick()
    assert [kept.id for kept in await stage.rows()] == [made[2]]
    entries = await stage.services.audit.page(ADMIN, before=None, actor=None, subject=None, limit=100)
    gone = [(e.actor, e.subject, e.data["why"]) for e in entries if e.code == "backup.delete"]
    assert gone == [(ADMIN.origin.actor, made[1], "asked"), ("codehub", made[0], "newer_backups")]


async def test_rows_follow_the_files_that_are_there(stage: Stage, clock: ManualClock) -> None:
    """A restore brings another database; a person removes a file by hand."""
    maker = stage.maker()
    id_ = await stage.made(maker)
    async with stage.services.database.connection() as c:
        await c.execute("DELETE FROM backups")
    await maker.tick()
    (row,) = await stage.rows()
    assert (row.id, row.asked_by, row.state) == (id_, "codehub", State.DONE)
    assert clock.now() - row.asked_at < timedelta(minutes=1)
    for name in stage.names():
        (stage.place.folder / name).unlink()
    await maker.tick()
    assert await stage.rows() == []


async def test_what_is_being_made_is_neither_deleted_nor_downloaded(stage: Stage) -> None:
    maker = stage.maker()
    id_ = await stage.services.backups.ask(ADMIN)
    with pytest.raises(BackupStateError):
        await stage.services.backups.delete(ADMIN, id_)
    for wrong in (id_, "unknown", "../etc"):
        with pytest.raises(NotFoundError):
            await stage.services.backups.download(ADMIN, wrong)
    await maker.tick()
    await maker.close()
    assert stage.names() == []  # a leader that stops in time leaves nothing


async def test_a_backup_that_fails_says_why_and_leaves_nothing(stage: Stage) -> None:
    stage.place = dataclasses.replace(stage.place, database_url="postgresql://nobody@127.0.0.1:1/none")
    maker = stage.maker()
    id_ = await stage.services.backups.ask(ADMIN)
    await until_over(maker)
    row = await stage.row(id_)
    assert (row.state, row.failure) == (State.FAILED, "other")
    assert row.detail
    assert "the database" in row.detail
    assert stage.names() == []
    await stage.services.backups.delete(ADMIN, id_)
    assert await stage.rows() == []
