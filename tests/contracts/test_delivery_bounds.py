"""How much is read of a home that is made to take long, when files are delivered into it."""

import hashlib
import os
import pathlib
from collections.abc import Callable, Iterator

import pytest

from codehub.runtimes.base import Runtime, RuntimeFailureError
from codehub.runtimes.shepherd import place
from tests.contracts import harness

MIB = 1 << 20
OTHER_NAMES = ("", ".new", ".new2", ".new3")


@pytest.fixture
def folder(tmp_path: pathlib.Path) -> Iterator[int]:
    fd = os.open(tmp_path, os.O_RDONLY | os.O_DIRECTORY)
    yield fd
    os.close(fd)


def bytes_read(work: Callable[[], object]) -> int:
    """By this process, as the kernel counts them."""

    def so_far() -> int:
        return int(pathlib.Path("/proc/self/io").read_text().split()[1])

    before = so_far()
    work()
    return so_far() - before


def fill(place_: pathlib.Path, size: int, names: int) -> None:
    """One file under every name that would be tried."""
    large = place_ / "large"
    large.write_bytes(os.urandom(size))
    for number in range(names):
        for other in OTHER_NAMES:
            (place_ / f"f{number}{other}.txt").hardlink_to(large)


def deliver_all(folder: int, names: int, known: list[str]) -> int:
    reader, refused = place.Reader(), 0
    for number in range(names):
        try:
            place._write(folder, f"f{number}.txt", b"starter", known, reader)
        except FileExistsError:
            refused += 1
    return refused


def test_a_file_of_another_size_is_not_read(tmp_path: pathlib.Path, folder: int) -> None:
    fill(tmp_path, 4 * MIB, names=5)
    refused: list[int] = []
    assert bytes_read(lambda: refused.append(deliver_all(folder, 5, []))) < MIB
    assert refused == [5]


def test_what_may_be_ours_by_its_size_is_read_up_to_a_bound(tmp_path: pathlib.Path, folder: int) -> None:
    fill(tmp_path, place.LARGEST, names=30)
    known = [hashlib.sha256(b"an earlier one").hexdigest()]
    assert bytes_read(lambda: deliver_all(folder, 30, known)) < place.MOST_READ + MIB
    assert (tmp_path / "f29.txt").stat().st_size == place.LARGEST


async def test_what_is_in_the_way_is_found_before_anything_is_written(runtime: Runtime) -> None:
    await runtime.create_volume("w1", "g1")
    home = await harness.home(runtime)
    (home / "lesson").write_bytes(b"mine")
    with pytest.raises(RuntimeFailureError, match=r"lesson/main\.py: a link or a file stands where a folder should be"):
        await runtime.put("w1", {"a.py": b"x", "b/c.py": b"x", "lesson/main.py": b"x"}, delivered={})
    assert [path.name for path in home.iterdir()] == ["lesson"]
