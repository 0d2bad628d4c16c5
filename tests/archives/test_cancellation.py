"""Giving up in the middle: nothing is committed, no worker is left behind, and the next attempt succeeds."""

import asyncio
from pathlib import Path

import pytest

from codehub.archives import process, service
from codehub.archives.objects import open_store
from tests.archives import trees
from tests.archives.conftest import NOW, workers_on
from tests.archives.test_service import BASE, KEY, stored_keys


@pytest.mark.parametrize("when", ["packing", "wrote some of home.tar.zst", "data stored", "data verified"])
async def test_a_cancelled_archive_leaves_nothing_committed_and_no_worker_behind(
    folder: Path, large_home: Path, when: str
) -> None:
    reached = asyncio.Event()

    def step(name: str) -> None:
        if name == when:
            reached.set()

    store = open_store(f"file://{folder}/objects", step=step)
    task = asyncio.create_task(service.archive(process.from_folder(large_home), store, BASE, now=NOW, step=step))
    await reached.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert workers_on(large_home) == []
    assert await service.committed(store, "w1", "op1") is None
    assert set(await stored_keys(store)) <= {KEY}
    await service.archive(process.from_folder(large_home), store, BASE, now=NOW)
    await service.verify(store, KEY)


async def test_a_cancelled_restore_leaves_no_worker_behind(folder: Path, large_home: Path, staging: Path) -> None:
    store = open_store(f"file://{folder}/objects")
    await service.archive(process.from_folder(large_home), store, BASE, now=NOW)
    reached = asyncio.Event()
    task = asyncio.create_task(
        service.restore(
            store, KEY, process.into_folder(staging, None, trees.PLENTY), trees.PLENTY, step=lambda _name: reached.set()
        )
    )
    await reached.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert workers_on(staging) == []
