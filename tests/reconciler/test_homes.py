"""Homes into the object store and back, as operations use it: progress, quota, what is left behind."""

import asyncio
import contextlib
import pathlib
from collections.abc import AsyncGenerator, AsyncIterator
from dataclasses import replace

import pytest

from codehub.archives import process
from codehub.archives.model import Packing, Progress, QuotaExceededError, no_progress
from codehub.archives.objects import open_store
from codehub.clock import Clock
from codehub.db import Database
from codehub.reconciler.homes import Homes
from codehub.runtimes.base import Source
from codehub.settings import ShareConfig
from codehub.templates.model import ResourceLimits, Template
from codehub.workspaces.model import Desired, Operation, Phase
from codehub.workspaces.store import points, sql
from tests.null_runtime import NullRuntime
from tests.reconciler.test_controller import MINA, House, house
from tests.virtual_time import ManualClock

__all__ = ["house"]
SIZE = 300_000


class FolderRuntime(NullRuntime):
    """Volumes are dictionary entries as before, with real files behind them."""

    def __init__(self, root: pathlib.Path) -> None:
        super().__init__()
        self.root = root

    @contextlib.asynccontextmanager
    async def pack(
        self, workspace_id: str, generation: str, progress: Progress = no_progress, *, gzip: bool = False
    ) -> AsyncIterator[Packing]:
        async with process.packing(self.root / "home", progress) as packing:
            yield packing

    async def unpack(
        self, workspace_id: str, generation: str, chunks: AsyncGenerator[bytes | memoryview, None], source: Source
    ) -> None:
        (self.root / "back").mkdir()
        unpack = process.into_folder(self.root / "back", None, source.quota)
        await unpack(chunks, source.expected_bytes, source.progress)


class SmallTemplates:
    def find(self, name: str) -> Template:
        return Template(name, name, limits=ResourceLimits(disk_mb=1))


def _homes(tmp_path: pathlib.Path, clock: Clock, database: Database) -> Homes:
    return Homes(open_store(f"file://{tmp_path}/objects"), SmallTemplates(), clock, database, ShareConfig())  # type: ignore[arg-type]


@pytest.fixture
def runtime(tmp_path: pathlib.Path) -> FolderRuntime:
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "data").write_bytes(b"x" * SIZE)
    return FolderRuntime(tmp_path)


async def test_progress_ends_with_all_of_it_and_reaches_the_row(
    house: House, runtime: FolderRuntime, tmp_path: pathlib.Path
) -> None:
    homes = _homes(tmp_path, house.clock, house.database)
    id_ = await house.create(Desired.STANDBY)
    w = replace(await house.until(id_, Phase.STANDBY), op_id="op1")
    seen: list[tuple[int, int]] = []

    async def note(done: int, total: int) -> None:
        seen.append((done, total))

    made = await homes.store(w, "g1", 1, runtime, note)
    assert seen[-1] == (SIZE, SIZE)
    seen.clear()
    await homes.fetch(replace(w, archive_key=made.key), 1, runtime, note)
    assert seen[-1] == (SIZE, SIZE)

    async with house.database.connection() as c:
        await c.fetchrow(sql.begin, id_, Operation.STARTING, "op1", house.clock.now(), "here")
        before = await c.fetchval("SELECT count(*) FROM events")
    begun = await house.service.get(MINA, id_)
    await house.controller._transitions.note_progress(begun, 5, 10)
    assert (await house.service.get(MINA, id_)).progress == {"bytes": 5, "total": 10}
    async with house.database.connection() as c:
        assert await c.fetchval("SELECT count(*) FROM events") == before + 1  # subscribers hear of it


async def test_progress_is_saved_at_most_once_a_second(database: Database, tmp_path: pathlib.Path) -> None:
    clock = ManualClock()
    homes = _homes(tmp_path, clock, database)
    seen: list[int] = []

    async def save(done: int, _total: int) -> None:
        seen.append(done)

    async with homes._reported(save) as note:
        for done in range(100):
            note(done, 100)
            await asyncio.sleep(0)
        assert seen == [0]
        await clock.advance(1.0)
        assert seen == [0, 99]
        note(100, 100)
    assert seen == [0, 99, 100]


async def test_an_archive_beyond_the_templates_quota_leaves_nothing_behind(
    house: House, runtime: FolderRuntime, tmp_path: pathlib.Path
) -> None:
    homes = _homes(tmp_path, house.clock, house.database)
    (tmp_path / "home" / "more").write_bytes(b"y" * 1_000_000)
    id_ = await house.create(Desired.STANDBY)
    w = replace(await house.until(id_, Phase.STANDBY), op_id="op1")

    async def note(_done: int, _total: int) -> None: ...

    made = await homes.store(w, "g1", 1, runtime, note)
    with pytest.raises(QuotaExceededError):
        await homes.fetch(replace(w, archive_key=made.key), 1, runtime, note)
    assert not (tmp_path / "back").exists()
    async with house.database.connection() as c:  # unless it is known that so much went in
        figures = (made.meta.created_at, made.meta.size, made.meta.content_bytes, made.meta.files)
        await c.execute(points.note_point, made.key, id_, "op1", *figures)
    await homes.fetch(replace(w, archive_key=made.key), 1, runtime, note)
    assert (tmp_path / "back" / "more").stat().st_size == 1_000_000
