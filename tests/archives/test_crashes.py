"""`kill -9` after every step of an archive and of a restore, then once more: it converges, and nothing false counts."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from codehub.archives import process, service
from codehub.archives.objects import ObjectStore, open_store
from tests.archives import trees
from tests.archives.conftest import workers_on

ROOT = Path(__file__).parents[2]
ARCHIVE_STEPS = [
    "packing",
    "wrote some of home.tar.zst",
    "synced home.tar.zst",
    "named home.tar.zst",
    "data stored",
    "data verified",
    "wrote some of home.tar.zst.meta",
    "synced home.tar.zst.meta",
    "named home.tar.zst.meta",
    "meta stored",
]
COMMITTED_BY = ARCHIVE_STEPS.index("named home.tar.zst.meta")
S3_STEPS = ["packing", "data stored", "data verified", "meta stored"]
RESTORE_STEPS = ["unpacking", "fed some", "unpacked"]


def run(job: str, url: str, path: Path, epoch: int = 1, at: int = 0, limit: int | None = None) -> tuple[int, list[str]]:
    command = [sys.executable, "-m", "tests.archives.dying", job, url, str(path), str(epoch), str(at)]
    command += [str(limit)] if limit else []
    done = subprocess.run(command, cwd=ROOT, check=False, capture_output=True, text=True)
    assert "Traceback" not in done.stderr, done.stderr
    return done.returncode, done.stdout.splitlines()


@pytest.fixture
def small_home(folder: Path) -> Path:
    trees.grow(folder / "home", trees.rich(with_xattrs=trees.has_xattrs(folder), levels=2))
    return folder / "home"


@pytest.fixture
def url(folder: Path) -> str:
    return f"file://{folder}/objects"


async def holds(store: ObjectStore, folder: Path, picture: object) -> None:
    """Exactly one archive counts, and it is this home."""
    (point,) = await service.points(store, "w1")
    await service.verify(store, point.key)
    back = folder / "back"
    back.mkdir()
    await service.restore(store, point.key, process.into_folder(back, None, trees.PLENTY), trees.PLENTY)
    assert trees.picture(back) == picture


def test_the_steps_are_all_enumerated(folder: Path, small_home: Path, url: str) -> None:
    assert run("archive", url, small_home) == (0, ARCHIVE_STEPS)
    (folder / "back").mkdir()
    assert run("restore", url, folder / "back") == (0, RESTORE_STEPS)


@pytest.mark.parametrize(
    "epoch", [pytest.param(1, id="the same leader", marks=pytest.mark.soak), pytest.param(2, id="the next leader")]
)
@pytest.mark.parametrize("at", range(len(ARCHIVE_STEPS)), ids=ARCHIVE_STEPS)
async def test_an_archive_converges_after_a_death(
    folder: Path, small_home: Path, url: str, at: int, epoch: int
) -> None:
    before = trees.picture(small_home)
    code, steps = run("archive", url, small_home, at=at + 1)
    assert (code, steps[-1]) == (-9, ARCHIVE_STEPS[at])
    store = open_store(url)
    found = await service.committed(store, "w1", "op1")
    assert (found is not None) == (at >= COMMITTED_BY)
    assert trees.picture(small_home) == before
    assert run("archive", url, small_home, epoch=epoch)[0] == 0
    await holds(store, folder, before)
    adopted = await service.committed(store, "w1", "op1")
    assert adopted is not None
    assert adopted.key == f"w1/op1/{1 if found else epoch}/home.tar.zst"


@pytest.mark.parametrize("at", range(len(S3_STEPS)), ids=S3_STEPS)
async def test_an_archive_on_s3_converges_after_a_death(folder: Path, small_home: Path, s3_url: str, at: int) -> None:
    before = trees.picture(small_home)
    code, steps = run("archive", s3_url, small_home, at=at + 1)
    assert (code, steps[-1]) == (-9, S3_STEPS[at])
    assert run("archive", s3_url, small_home, epoch=2)[0] == 0
    await holds(open_store(s3_url), folder, before)


@pytest.mark.parametrize("at", range(len(RESTORE_STEPS)), ids=RESTORE_STEPS)
def test_a_restore_converges_after_a_death(folder: Path, small_home: Path, url: str, at: int) -> None:
    before = trees.picture(small_home)
    assert run("archive", url, small_home)[0] == 0
    (folder / "back").mkdir()
    assert run("restore", url, folder / "back", at=at + 1)[0] == -9
    trees.fell(folder / "back")
    (folder / "back").mkdir()
    assert run("restore", url, folder / "back")[0] == 0
    assert trees.picture(folder / "back") == before


@pytest.mark.parametrize(("job", "at"), [("archive", 2), ("restore", 2)])
def test_workers_die_with_the_process_that_started_them(
    folder: Path, large_home: Path, url: str, job: str, at: int
) -> None:
    path = large_home
    if job == "restore":
        assert run("archive", url, large_home)[0] == 0
        path = folder / "back"
        path.mkdir()
    assert run(job, url, path, at=at)[0] == -9
    for _ in range(200):
        if not workers_on(path):
            return
        time.sleep(0.05)
    assert workers_on(path) == []


def test_a_deletion_that_was_interrupted_is_finished_by_the_next(folder: Path, small_home: Path, url: str) -> None:
    """Between the meta and the data there is data that counts for nothing, and can be deleted again."""
    assert run("archive", url, small_home)[0] == 0
    (folder / "objects" / "w1" / "op1" / "1" / "home.tar.zst.meta").unlink()
    assert run("archive", url, small_home, epoch=2)[0] == 0
    assert (folder / "objects" / "w1" / "op1" / "2" / "home.tar.zst.meta").exists()


@pytest.fixture(params=["limit", "tmpfs"] if os.geteuid() == 0 else ["limit"])
def little_space(request: pytest.FixtureRequest, folder: Path) -> object:
    """(a directory with room for 2 MB, the limit to run with)."""
    place = folder / "little"
    place.mkdir()
    if request.param == "limit":
        return place, 2_000_000
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(place)], check=True)
    request.addfinalizer(lambda: subprocess.run(["umount", str(place)], check=True))  # noqa: PT021 - only when mounted
    return place, None


async def test_a_full_disk_while_archiving_commits_nothing(
    large_home: Path, little_space: tuple[Path, int | None]
) -> None:
    place, limit = little_space
    before = trees.picture(large_home)
    code, said = run("archive", f"file://{place}/objects", large_home, limit=limit)
    assert code == 3
    assert said[-1].startswith("Unreachable: ")
    store = open_store(f"file://{place}/objects")
    assert await service.committed(store, "w1", "op1") is None
    assert [stored async for stored in store.list("w1")] == []  # the room is given back
    assert trees.picture(large_home) == before


async def test_a_full_disk_while_restoring_can_be_tried_again(
    large_home: Path, folder: Path, url: str, little_space: tuple[Path, int | None]
) -> None:
    assert run("archive", url, large_home)[0] == 0
    place, limit = little_space
    (place / "back").mkdir()
    code, said = run("restore", url, place / "back", limit=limit)
    assert code == 3
    assert said[-1].startswith("ActionFailed: the disk is full")
    await holds(open_store(url), folder, trees.picture(large_home))
