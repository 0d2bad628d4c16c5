"""A home whose owner does not want it to be packed: at every moment that hurts, and as fast as a program can."""

import contextlib
import io
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from codehub.archives import download, model, pack, process
from codehub.archives.pack import OutputError, Packed, Packer
from tests.archives import trees

ROUNDS = 25
CHURNER = Path(__file__).with_name("churner.py")


def packed(home: Path) -> tuple[bytes, Packed]:
    output = io.BytesIO()
    done = Packer(output.write, live=True).run(os.open(home, trees.DIRECTORY))
    return output.getvalue(), done


def comes_back(stream: bytes, folder: Path) -> Path:
    """By our own unpacker, to its end; and tar reads it, too."""
    into = Path(tempfile.mkdtemp(dir=folder))
    trees.unpack(trees.squeeze(stream), into)
    with tarfile.open(fileobj=io.BytesIO(stream)) as tar:
        assert tar.getmembers()
    return into


@contextlib.contextmanager
def just_before(
    monkeypatch: pytest.MonkeyPatch, name: str, happens: Callable[[], object], *, nth: int = 1
) -> Iterator[None]:
    """Something happens right before the n-th call of this function of `os`."""
    real, calls = getattr(os, name), 0

    def called(*arguments: Any, **named: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls == nth:
            happens()
        return real(*arguments, **named)

    with monkeypatch.context() as patched:
        patched.setattr(os, name, called)
        yield


def become_a_file(path: Path) -> None:
    path.unlink()
    path.write_text("a file by now")


def test_a_link_that_is_a_file_by_now_is_left_out_and_named(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "home").mkdir()
    (folder / "home" / "link").symlink_to("there")
    (folder / "home" / "note").write_text("kept")
    with just_before(monkeypatch, "readlink", lambda: become_a_file(folder / "home" / "link")):
        stream, done = packed(folder / "home")
    assert sorted(path.name for path in comes_back(stream, folder).iterdir()) == ["note"]
    assert (done.moved_count, done.moved) == (2, ["link: Invalid argument", "./: changed"])


def test_a_folder_that_is_removed_after_it_was_opened_ends_nothing(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "home" / "sub").mkdir(parents=True)
    (folder / "home" / "note").write_text("kept")
    with just_before(monkeypatch, "scandir", (folder / "home" / "sub").rmdir, nth=2):
        stream, done = packed(folder / "home")
    assert (comes_back(stream, folder) / "note").read_text() == "kept"
    assert "./: changed" in done.moved


@pytest.mark.parametrize("how", ["moved", "removed"])
def test_a_tree_that_goes_while_we_are_at_its_bottom_takes_nothing_else_along(
    folder: Path, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    """Deeper than the way back is kept open."""
    home, levels = folder / "home", 100
    home.joinpath("a", *["d"] * levels).mkdir(parents=True)
    (home / "z").mkdir()
    (home / "z" / "note").write_text("kept")

    def go() -> None:
        if how == "moved":
            (home / "a" / "d" / "d").rename(folder / "away")
        else:
            shutil.rmtree(home / "a" / "d" / "d")

    with just_before(monkeypatch, "scandir", go, nth=levels + 2):
        stream, done = packed(home)
    back = comes_back(stream, folder)
    assert (back / "z" / "note").read_text() == "kept"
    assert "a/d/: changed" in done.moved


def test_a_second_name_of_a_file_that_vanished_is_a_file_itself(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = folder / "home"
    home.mkdir()
    (home / "a").write_text("content")
    os.link(home / "a", home / "b")

    def fail() -> None:
        raise PermissionError(1, "not now")

    with just_before(monkeypatch, "listxattr", fail, nth=2):  # of the first name, after the folder's
        stream, done = packed(home)
    assert (comes_back(stream, folder) / "b").read_text() == "content"
    assert done.moved_count == 1


def test_a_file_with_holes_that_is_cut_short_is_as_long_as_it_was(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = folder / "home"
    home.mkdir()
    with (home / "holes").open("wb") as file:
        file.write(b"begin")
        file.seek(8_000_000)
        file.write(b"end")
    for nth in range(1, 5):  # at each look for its holes
        with just_before(monkeypatch, "lseek", lambda: os.truncate(home / "holes", 3), nth=nth + 1):
            stream, _ = packed(home)
        size = (comes_back(stream, folder) / "holes").stat().st_size
        assert size in {3, 8_000_003}
        os.truncate(home / "holes", 8_000_003)


def test_moving_what_was_packed_to_where_we_come_next_keeps_us_no_longer_than_a_while(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home, real, rounds = folder / "home", os.scandir, 0
    (home / "next").mkdir(parents=True)
    (home / "next" / "big").write_bytes(bytes(1_000_000))
    monkeypatch.setattr(pack, "_most", lambda _root: (20_000_000, 1000))

    def scandir(fd: int) -> Any:
        nonlocal rounds
        rounds += 1
        assert rounds < 5000, "without end"
        listed = list(real(fd))
        if rounds > 1:  # there is always one more below
            os.mkdir("next", dir_fd=fd)
            os.link(home / "next" / "big", "big", dst_dir_fd=fd) if rounds > 2 else None
            listed = list(real(fd))
        return contextlib.nullcontext(listed)

    monkeypatch.setattr(os, "scandir", scandir)
    stream, done = packed(home)
    monkeypatch.undo()
    assert rounds < 1100
    assert len(stream) < 40_000_000
    assert any("has no end" in line for line in done.moved)


def test_names_cannot_speak_to_the_terminal_they_are_shown_on(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "home").mkdir()
    path = folder / "home" / "\x1b[2J\u202egone"
    path.symlink_to("there")
    with just_before(monkeypatch, "readlink", lambda: become_a_file(path)):
        _, done = packed(folder / "home")
    assert done.moved[0] == "\\x1b[2J\\x202egone: Invalid argument"


def test_an_output_that_fails_is_not_taken_for_the_homes_doing(folder: Path) -> None:
    (folder / "home").mkdir()
    (folder / "home" / "note").write_text("x")

    def write(_chunk: bytes) -> None:
        raise FileNotFoundError(2, "the target's, not the home's")

    with pytest.raises(OutputError):
        Packer(write, live=True).run(os.open(folder / "home", trees.DIRECTORY))


@contextlib.contextmanager
def churned(home: Path) -> Iterator[None]:
    with subprocess.Popen([sys.executable, str(CHURNER), str(home)], stdout=subprocess.PIPE) as churner:
        try:
            assert churner.stdout
            assert churner.stdout.readline() == b"ready\n"
            yield
        finally:
            churner.kill()


async def test_a_home_that_is_changed_as_fast_as_can_be_is_packed_every_time_and_comes_back(folder: Path) -> None:
    folder.chmod(0o755)
    (folder / "home").mkdir()
    moved = []
    with churned(folder / "home"):
        for _ in range(ROUNDS):
            stream, done = packed(folder / "home")
            trees.fell(comes_back(stream, folder))
            moved.append(done.moved_count)
        chunks = [
            chunk
            async for chunk in download.of_home(
                process.packing(folder / "home", model.no_progress, live=True, gzip=False)
            )
        ]
    assert b"".join(chunks)
    assert any(moved)
