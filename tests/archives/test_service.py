"""Archiving and restoring as the controller does it, on a directory and on a real S3 server."""

import asyncio
import hashlib
import json
import os
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
import uvloop

from codehub.archives import model, process, service
from codehub.archives.model import (
    ArchiveCorruptedError,
    ArchiveError,
    ArchiveNotFoundError,
    Meta,
    ObjectStoreError,
    Quota,
    QuotaExceededError,
    SourceChangedError,
    key_base,
)
from codehub.archives.objects import AlreadyStoredError, ObjectStore, open_store
from tests.archives import trees
from tests.archives.conftest import NOW

BASE = key_base("w1", "op1", 7)
KEY = f"{BASE}/home.tar.zst"


async def stored_keys(store: ObjectStore, prefix: str = "w1") -> list[str]:
    return sorted([stored.key async for stored in store.list(prefix)])


async def test_a_home_comes_back_as_it_was(store: ObjectStore, home: Path, staging: Path) -> None:
    archived = await service.archive(process.from_folder(home), store, BASE, now=NOW)
    assert archived.key == KEY
    assert await stored_keys(store) == [KEY, f"{KEY}.meta"]
    meta = await service.restore(store, KEY, process.into_folder(staging, None, trees.PLENTY), trees.PLENTY)
    assert meta == archived.meta
    assert trees.picture(staging) == trees.picture(home)


async def test_what_the_store_did_not_keep_is_never_committed(tmp_path: Path, home: Path) -> None:
    """Not even for a moment: a crash in between would leave an archive that passes for a sound one."""
    store = open_store(f"file://{tmp_path}/objects")
    metas = []

    def spoil(step: str) -> None:
        metas.append((tmp_path / "objects" / f"{KEY}.meta").exists())
        if step == "data stored":
            with (tmp_path / "objects" / KEY).open("r+b") as file:
                file.seek(20)
                file.write(b"else")

    with pytest.raises(ObjectStoreError, match="did not keep"):
        await service.archive(process.from_folder(home), store, BASE, now=NOW, step=spoil)
    assert await stored_keys(store) == []
    assert not any(metas)


async def test_a_home_of_many_parts_comes_back(store: ObjectStore, large_home: Path, staging: Path) -> None:
    await service.archive(process.from_folder(large_home), store, BASE, now=NOW)
    await service.restore(store, KEY, process.into_folder(staging, None, trees.PLENTY), trees.PLENTY)
    assert trees.picture(staging) == trees.picture(large_home)


async def test_the_meta_says_what_is_stored(store: ObjectStore, home: Path) -> None:
    archived = await service.archive(process.from_folder(home), store, BASE, now=NOW)
    data = b"".join([bytes(chunk) async for chunk in store.stream(KEY)])
    assert json.loads(await store.get(f"{KEY}.meta")) == {
        "sha256": hashlib.sha256(data).hexdigest(),
        "size": len(data),
        "bytes": archived.meta.content_bytes,
        "files": len(trees.picture(home)),
        "created_at": "2026-01-02T03:04:05+00:00",
        "format": "tar+zstd/1",
    }


async def test_what_an_operation_has_committed_is_adopted_by_the_next_leader(store: ObjectStore, home: Path) -> None:
    first = await service.archive(process.from_folder(home), store, BASE, now=NOW)
    (home / "notes.txt").unlink()
    again = await service.archive(process.from_folder(home), store, key_base("w1", "op1", 8), now=NOW)
    assert (again.key, again.meta) == (first.key, first.meta)
    other = await service.archive(process.from_folder(home), store, key_base("w1", "op2", 8), now=NOW)
    assert other.key != first.key
    assert other.meta.files < first.meta.files


async def test_data_without_meta_is_not_committed_and_is_replaced(store: ObjectStore, home: Path) -> None:
    await store.put(KEY, b"half of something")
    assert await service.committed(store, "w1", "op1") is None
    assert await service.points(store, "w1") == []
    await service.archive(process.from_folder(home), store, BASE, now=NOW)
    await service.verify(store, KEY)


async def test_meta_without_its_data_is_not_committed(store: ObjectStore, home: Path) -> None:
    await service.archive(process.from_folder(home), store, BASE, now=NOW)
    await store.delete(KEY)
    assert await service.committed(store, "w1", "op1") is None
    await store.put(KEY, b"shorter")
    assert await service.committed(store, "w1", "op1") is None


async def test_of_two_writers_one_succeeds(store: ObjectStore) -> None:
    outcomes = await asyncio.gather(*(store.put("w1/x/1/y", b"%d" % n) for n in range(2)), return_exceptions=True)
    assert [type(outcome) for outcome in outcomes if outcome is not None] == [AlreadyStoredError]
    kept = await store.get("w1/x/1/y")
    with pytest.raises(AlreadyStoredError):
        await store.put("w1/x/1/y", b"later")
    assert await store.get("w1/x/1/y") == kept


async def test_restore_points_come_newest_first(store: ObjectStore, home: Path) -> None:
    for number in (1, 3, 2):
        moment = NOW + timedelta(hours=number)
        await service.archive(process.from_folder(home), store, key_base("w1", f"op{number}", 1), now=moment)
    await service.archive(process.from_folder(home), store, key_base("w10", "op9", 1), now=NOW)
    assert [point.key.split("/")[1] for point in await service.points(store, "w1")] == ["op3", "op2", "op1"]
    assert await service.points(store, "w2") == []


async def test_a_deleted_archive_is_gone_and_deleting_it_again_is_fine(store: ObjectStore, home: Path) -> None:
    await service.archive(process.from_folder(home), store, BASE, now=NOW)
    await service.delete(store, KEY)
    await service.delete(store, KEY)
    assert await stored_keys(store) == []
    with pytest.raises(ArchiveNotFoundError):
        await service.restore(store, KEY, process.into_folder(home, None, trees.PLENTY), trees.PLENTY)


async def test_an_archive_loses_its_meta_before_its_data(store: ObjectStore, home: Path) -> None:
    await service.archive(process.from_folder(home), store, BASE, now=NOW)
    deleted: list[str] = []
    really_delete = store.delete

    async def watched(key: str) -> None:
        deleted.append(key)
        await really_delete(key)

    store.delete = watched  # type: ignore[method-assign]
    await service.delete(store, KEY)
    assert deleted == [f"{KEY}.meta", KEY]


async def test_a_changed_archive_is_corrupted_and_nothing_is_deleted(
    store: ObjectStore, home: Path, staging: Path
) -> None:
    archived = await service.archive(process.from_folder(home), store, BASE, now=NOW)
    data = bytearray(b"".join([bytes(chunk) async for chunk in store.stream(KEY)]))
    data[-1] ^= 1
    await store.delete(KEY)
    await store.put(KEY, bytes(data))
    with pytest.raises(ArchiveCorruptedError):
        await service.verify(store, KEY)
    with pytest.raises(ArchiveCorruptedError):
        await service.restore(store, KEY, process.into_folder(staging, None, trees.PLENTY), trees.PLENTY)
    assert await store.head(KEY) == archived.meta.size


async def put_as_archive(store: ObjectStore, data: bytes) -> None:
    await store.put(KEY, data)
    meta = Meta(hashlib.sha256(data).hexdigest(), len(data), 1, 1, NOW)
    await store.put(f"{KEY}.meta", meta.to_json())


async def test_trailing_bytes_do_not_pass_unless_the_checksum_knows_them(folder: Path, staging: Path) -> None:
    store = open_store(f"file://{folder}/objects")
    await put_as_archive(store, b"this is no archive" * 1000)
    with pytest.raises(ArchiveCorruptedError):
        await service.restore(store, KEY, process.into_folder(staging, None, trees.PLENTY), trees.PLENTY)


async def test_a_meta_that_cannot_be_read_is_corrupted(folder: Path, staging: Path) -> None:
    store = open_store(f"file://{folder}/objects")
    for number, content in enumerate([b"", b"{", b"[]", b"{}", b'{"sha256": 1}', b"\xff", b"null"]):
        await store.put(f"w1/op{number}/1/home.tar.zst", b"x")
        await store.put(f"w1/op{number}/1/home.tar.zst.meta", content)
        with pytest.raises(ArchiveCorruptedError):
            await service.restore(
                store, f"w1/op{number}/1/home.tar.zst", process.into_folder(staging, None, trees.PLENTY), trees.PLENTY
            )
    assert await service.points(store, "w1") == []


async def test_an_archive_beyond_the_quota_is_not_even_begun(folder: Path, home: Path, staging: Path) -> None:
    store = open_store(f"file://{folder}/objects")
    await service.archive(process.from_folder(home), store, BASE, now=NOW)
    for quota in (Quota(10, 10**6), Quota(10**12, 3)):
        with pytest.raises(QuotaExceededError):
            await service.restore(store, KEY, process.into_folder(staging, None, quota), quota)
    assert list(staging.iterdir()) == []


async def test_a_meta_that_lies_about_the_size_does_not_get_around_the_quota(
    folder: Path, large_home: Path, staging: Path
) -> None:
    store = open_store(f"file://{folder}/objects")
    archived = await service.archive(process.from_folder(large_home), store, BASE, now=NOW)
    await store.delete(f"{KEY}.meta")
    await store.put(f"{KEY}.meta", replace(archived.meta, content_bytes=1, files=1).to_json())
    with pytest.raises(QuotaExceededError):
        await service.restore(
            store, KEY, process.into_folder(staging, None, Quota(1_000_000, 100)), Quota(1_000_000, 100)
        )


async def test_nothing_is_unpacked_over_something(folder: Path, home: Path) -> None:
    store = open_store(f"file://{folder}/objects")
    await service.archive(process.from_folder(home), store, BASE, now=NOW)
    before = trees.picture(home)
    with pytest.raises(ArchiveError, match="not empty"):
        await service.restore(store, KEY, process.into_folder(home, None, trees.PLENTY), trees.PLENTY)
    assert trees.picture(home) == before


async def test_a_home_that_is_not_there_is_an_error_and_not_an_empty_archive(folder: Path) -> None:
    store = open_store(f"file://{folder}/objects")
    with pytest.raises(ArchiveError):
        await service.archive(process.from_folder(folder / "nowhere"), store, BASE, now=NOW)
    assert await stored_keys(store) == []


async def test_a_home_that_changes_is_not_archived_and_can_be_tried_again(folder: Path, large_home: Path) -> None:
    writing = (large_home / "noise").open("r+b")

    def grow(name: str) -> None:
        if name.startswith("wrote some"):
            writing.seek(0, os.SEEK_END)
            writing.write(b"more")
            writing.flush()

    store = open_store(f"file://{folder}/objects", step=grow)
    with writing, pytest.raises(SourceChangedError):
        await service.archive(process.from_folder(large_home), store, BASE, now=NOW)
    assert await stored_keys(store) == []
    await service.archive(process.from_folder(large_home), open_store(f"file://{folder}/objects"), BASE, now=NOW)


async def test_progress_grows_to_its_total(folder: Path, large_home: Path, staging: Path) -> None:
    store = open_store(f"file://{folder}/objects")
    for directions in (
        lambda seen: service.archive(process.from_folder(large_home), store, BASE, seen, now=NOW),
        lambda seen: service.restore(store, KEY, process.into_folder(staging, None, trees.PLENTY), trees.PLENTY, seen),
    ):
        seen: list[tuple[int, int]] = []
        await directions(lambda done, total, seen=seen: seen.append((done, total)))
        size = (large_home / "noise").stat().st_size
        assert seen == sorted(seen, key=lambda pair: pair[0])
        assert seen[-1] == (size, size)
        assert all(total in {0, size} for _, total in seen)


async def test_a_worker_that_is_killed_is_an_error_that_can_be_tried_again(folder: Path, large_home: Path) -> None:
    async with process.packing(large_home, model.no_progress) as worker:
        output = worker.output()
        await anext(output)
        os.kill(worker.pid, 9)
        with pytest.raises(ArchiveError, match="-9"):
            async for _ in output:
                pass


async def test_a_worker_has_no_credentials(folder: Path, large_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "hidden")
    async with process.packing(large_home, model.no_progress) as worker:
        await anext(worker.output())
        assert b"hidden" not in Path(f"/proc/{worker.pid}/environ").read_bytes()


def test_the_platforms_own_event_loop_carries_it_too(folder: Path, large_home: Path, staging: Path) -> None:
    async def there_and_back() -> None:
        store = open_store(f"file://{folder}/objects")
        await service.archive(process.from_folder(large_home), store, BASE, now=NOW)
        await service.restore(store, KEY, process.into_folder(staging, None, trees.PLENTY), trees.PLENTY)

    uvloop.run(there_and_back())
    assert trees.picture(staging) == trees.picture(large_home)
