"""A home that is in use while it is packed, for a download or a backup: the tar is sound all the same."""

import gzip
import io
import os
import tarfile
from collections.abc import AsyncGenerator, Callable
from pathlib import Path

import pytest

from codehub.archives import download, model, process, service
from codehub.archives.model import ArchiveCorruptedError, ArchiveNotFoundError, key_base
from codehub.archives.objects import ObjectStore
from codehub.archives.pack import Packer
from tests.archives import trees
from tests.archives.conftest import NOW, workers_on
from tests.archives.trees import File, Folder

Change = Callable[[Path], object]


def shorten(path: Path) -> None:
    os.truncate(path, 2_000_000)


def become_a_pipe(home: Path) -> None:
    (home / "b").unlink()
    os.mkfifo(home / "b")


@pytest.mark.parametrize(
    ("change", "there"),
    [
        pytest.param(lambda home: (home / "b").unlink(), {"a", "sub/c"}, id="a file vanishes"),
        pytest.param(lambda home: (home / "new").write_text("x"), {"a", "b", "sub/c"}, id="a file appears"),
        pytest.param(lambda home: (home / "a").write_bytes(b"longer" * 1_000_000), {"a", "b", "sub/c"}, id="grows"),
        pytest.param(lambda home: shorten(home / "a"), {"a", "b", "sub/c"}, id="shrinks"),
        pytest.param(lambda home: (home / "sub").rename(home.parent / "moved"), {"a", "b"}, id="moved away"),
        pytest.param(
            lambda home: ((home / "b").unlink(), (home / "b").symlink_to("/etc/passwd")),
            {"a", "sub/c"},
            id="becomes a link",
        ),
        pytest.param(become_a_pipe, {"a", "sub/c"}, id="becomes a pipe"),
    ],
)
def test_a_home_that_changes_is_packed_soundly_all_the_same(folder: Path, change: Change, there: set[str]) -> None:
    content = os.urandom(4 * 1024 * 1024)
    trees.grow(folder / "home", Folder({b"a": File(content), b"b": File(b"x"), b"sub": Folder({b"c": File(b"y")})}))
    output, changed = io.BytesIO(), False

    def write(chunk: bytes) -> None:
        nonlocal changed
        output.write(chunk)
        if not changed:
            changed = True
            change(folder / "home")

    Packer(write, live=True).run(os.open(folder / "home", trees.DIRECTORY))
    output.seek(0)
    with tarfile.open(fileobj=output) as tar:
        found = {info.name: tar.extractfile(info).read() for info in tar if info.isfile()}  # type: ignore[union-attr]
    assert set(found) == there
    assert len(found["a"]) == len(content)
    assert found["a"][:1_000_000] == content[:1_000_000]


def test_a_home_at_rest_gives_the_very_bytes_of_an_archive(folder: Path, home: Path) -> None:
    output = io.BytesIO()
    Packer(output.write, live=True).run(os.open(home, trees.DIRECTORY))
    assert output.getvalue() == trees.pack(home)[0]


async def collected(chunks: AsyncGenerator[bytes, None]) -> bytes:
    return b"".join([chunk async for chunk in chunks])


async def test_all_ways_to_download_give_the_same_tar(store: ObjectStore, home: Path) -> None:
    made = await service.archive(process.from_folder(home), store, key_base("w", "op", 1), now=NOW)
    stored = await collected(download.of_archive(store, made.key, gzip=False))
    assert stored == await collected(download.of_home(process.packing(home, model.no_progress, live=True, gzip=False)))
    zipped = await collected(download.of_archive(store, made.key, gzip=True))
    assert gzip.decompress(zipped) == gzip.decompress(
        await collected(download.of_home(process.packing(home, model.no_progress, live=True, gzip=True)))
    )
    assert gzip.decompress(zipped) == trees.pack(home)[0]


@pytest.mark.parametrize("gzipped", [False, True])
async def test_a_damaged_archive_does_not_come_to_its_end(store: ObjectStore, large_home: Path, gzipped: bool) -> None:
    made = await service.archive(process.from_folder(large_home), store, key_base("w", "op", 1), now=NOW)
    whole = await collected(download.of_archive(store, made.key, gzip=False))
    await store.delete(made.key)
    await store.put(made.key, whole[:-3] + b"xyz")
    with pytest.raises(ArchiveCorruptedError):
        await collected(download.of_archive(store, made.key, gzip=gzipped))
    await service.delete(store, made.key)
    with pytest.raises(ArchiveNotFoundError):
        await collected(download.of_archive(store, made.key, gzip=gzipped))


async def test_no_worker_goes_on_after_its_reader_has_left(store: ObjectStore, large_home: Path) -> None:
    chunks = download.of_home(process.packing(large_home, model.no_progress, live=True, gzip=True))
    await anext(chunks)
    assert workers_on(large_home)
    await chunks.aclose()
    assert not workers_on(large_home)
    made = await service.archive(process.from_folder(large_home), store, key_base("w", "op", 1), now=NOW)
    chunks = download.of_archive(store, made.key, gzip=True)
    await anext(chunks)
    await chunks.aclose()
