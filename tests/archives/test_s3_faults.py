"""A real S3 server behind a bad wire: refused, slow, cut in the middle. Nothing counts that is not whole."""

import asyncio
import json
import urllib.request
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from codehub.archives import process, service
from codehub.archives.model import ArchiveNotFoundError, ObjectStoreError, key_base
from codehub.archives.objects import ObjectStore, open_store
from tests.archives import s3, trees
from tests.archives.conftest import IMPATIENT, NOW, point_at, workers_on
from tests.archives.test_service import KEY, stored_keys

BASE = key_base("w1", "op1", 7)
MEGABYTE = 1024 * 1024


@pytest.fixture
async def wire(s3_server: s3.S3Server) -> AsyncIterator[s3.Wire]:
    async with s3.wire_to(s3_server) as made:
        yield made


@pytest.fixture
def far_store(s3_server: s3.S3Server, wire: s3.Wire, s3_url: str, monkeypatch: pytest.MonkeyPatch) -> ObjectStore:
    """The store, seen through the wire."""
    point_at(monkeypatch, s3_server.environment(port=wire.port))
    return open_store(s3_url, IMPATIENT)


@pytest.fixture
def patient(far_store: ObjectStore, s3_url: str) -> ObjectStore:
    """The same, with the time that it takes."""
    return open_store(s3_url)


@pytest.mark.parametrize(
    ("fault", "after"),
    [
        pytest.param("cut", 0, id="cut at once"),
        pytest.param("cut", 5 * MEGABYTE, id="cut in a part"),
        pytest.param("cut", 30 * MEGABYTE, id="cut between parts"),
        pytest.param("hang", 0, id="hangs at once"),
        pytest.param("hang", 5 * MEGABYTE, id="hangs in a part", marks=pytest.mark.soak),
        pytest.param("hang", 30 * MEGABYTE, id="hangs between parts", marks=pytest.mark.soak),
    ],
)
async def test_an_upload_that_fails_commits_nothing_and_works_when_the_wire_is_mended(
    far_store: ObjectStore, patient: ObjectStore, wire: s3.Wire, large_home: Path, fault: str, after: int
) -> None:
    wire.after(after, fault)
    with pytest.raises(ObjectStoreError):
        await service.archive(process.from_folder(large_home), far_store, BASE, now=NOW)
    assert workers_on(large_home) == []
    wire.mend()
    assert await service.committed(patient, "w1", "op1") is None
    archived = await service.archive(process.from_folder(large_home), patient, BASE, now=NOW)
    assert await service.verify(patient, KEY) == archived.meta


@pytest.mark.parametrize("fault", ["cut", "hang"])
async def test_a_download_that_fails_is_not_taken_for_a_broken_archive(
    far_store: ObjectStore, patient: ObjectStore, wire: s3.Wire, large_home: Path, staging: Path, fault: str
) -> None:
    await service.archive(process.from_folder(large_home), patient, BASE, now=NOW)
    wire.after(15 * MEGABYTE, fault)
    with pytest.raises(ObjectStoreError):
        await service.restore(far_store, KEY, process.into_folder(staging, None, trees.PLENTY), trees.PLENTY)
    assert workers_on(staging) == []
    wire.mend()
    for left in staging.iterdir():
        left.unlink()
    await service.restore(patient, KEY, process.into_folder(staging, None, trees.PLENTY), trees.PLENTY)
    assert trees.picture(staging) == trees.picture(large_home)


async def test_a_cancelled_upload_leaves_no_hidden_parts(s3_server: s3.S3Server, s3_url: str, large_home: Path) -> None:
    store = open_store(s3_url)
    begun = hidden_uploads(s3_server)
    task = asyncio.create_task(service.archive(process.from_folder(large_home), store, BASE, now=NOW))
    while hidden_uploads(s3_server) == begun:
        assert not task.done()
        await asyncio.sleep(0.01)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert hidden_uploads(s3_server) == begun
    assert await stored_keys(store) == []
    assert workers_on(large_home) == []
    await service.archive(process.from_folder(large_home), store, BASE, now=NOW)
    await service.verify(store, KEY)


def hidden_uploads(server: s3.S3Server) -> set[str]:
    """Uploads in parts that are neither complete nor given up, as the server's own file listing shows them."""
    request = urllib.request.Request(
        f"http://127.0.0.1:{server.filer_port}/buckets/{s3.BUCKET}/.uploads/?limit=1000",
        headers={"Accept": "application/json"},
    )
    try:
        with urllib.request.urlopen(request, timeout=10) as answer:  # noqa: S310
            listed = json.load(answer)["Entries"] or []
    except urllib.error.HTTPError:
        return set()
    return {Path(item["FullPath"]).name for item in listed}


async def test_a_server_that_is_not_there_is_unreachable(
    s3_server: s3.S3Server, s3_url: str, large_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (unused,) = s3.free_ports(1)
    point_at(monkeypatch, s3_server.environment(port=unused))
    store = open_store(s3_url, IMPATIENT)
    for attempt in (
        service.archive(process.from_folder(large_home), store, BASE, now=NOW),
        service.verify(store, KEY),
        service.points(store, "w1"),
        service.delete(store, KEY),
        store.put("w1/a/1/b", b"x"),
    ):
        with pytest.raises(ObjectStoreError) as raised:
            await attempt
        assert raised.value.code == "Unreachable"


async def test_wrong_credentials_are_not_a_missing_archive(
    s3_server: s3.S3Server, s3_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    point_at(monkeypatch, s3_server.environment(secret="wrong"))
    store = open_store(s3_url, IMPATIENT)
    for attempt in (store.put("w1/a/1/b", b"x"), service.verify(store, KEY), service.points(store, "w1")):
        with pytest.raises(ObjectStoreError):
            await attempt


async def test_a_bucket_that_is_not_there_is_not_a_missing_archive(s3_url: str) -> None:
    store = open_store("s3://no-such-bucket/x", IMPATIENT)
    with pytest.raises(ObjectStoreError):
        await service.verify(store, KEY)
    with pytest.raises(ArchiveNotFoundError):
        await service.verify(open_store(s3_url), KEY)
