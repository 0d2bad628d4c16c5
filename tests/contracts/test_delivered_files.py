"""Files that are delivered into a home: what a person changed there stays, and no link leads anything out of it.

Starter files of sessions come so (`sessions.practice_runner`).
"""

import asyncio
import contextlib
import hashlib
import os
import pathlib

import pytest

from codehub.archives.model import Quota
from codehub.runtimes.base import HomeFullError, Runtime, RuntimeFailureError
from codehub.runtimes.process import ProcessRuntime
from codehub.templates.model import ResourceLimits
from tests.contracts import harness, workloads
from tests.contracts.harness import running, until
from tests.contracts.workloads import python, server, workload

# ruff: noqa: PTH208 (names are what is looked at)
# Puts a folder, a link out of the home and a link to another file where the platform is about to write, in turns.
SWAPPER = """
import os, sys
outside = sys.argv[1]
os.makedirs("real", exist_ok=True)
while True:
    for made in (lambda: os.symlink(outside, "lesson"), lambda: os.symlink("../..", "lesson"),
                 lambda: os.mkdir("lesson"), lambda: os.symlink(outside + "/secret", "main.py"),
                 lambda: os.symlink("/etc/passwd", "lesson/main.py")):
        try: made()
        except OSError: pass
        for name in ("lesson", "main.py", "lesson/main.py"):
            try: os.unlink(name)
            except OSError: pass
        try: os.rmdir("lesson")
        except OSError: pass
"""


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


async def deliver(runtime: Runtime, data: bytes, *before: bytes, path: str = "main.py") -> tuple[str, str]:
    known = {path: [digest(one) for one in before]}
    [put] = await runtime.put("w1", {path: data}, delivered=known)
    assert put.path == path
    return put.outcome.value, put.name


@pytest.fixture
async def home(runtime: Runtime) -> pathlib.Path:
    await runtime.create_volume("w1", "g1")
    return await harness.home(runtime)


async def test_what_is_not_there_is_written_and_what_is_there_already_left_alone(
    runtime: Runtime, home: pathlib.Path
) -> None:
    assert await deliver(runtime, b"one", path="a/b/main.py") == ("written", "a/b/main.py")
    assert await deliver(runtime, b"one", path="a/b/main.py") == ("unchanged", "a/b/main.py")
    assert (home / "a/b/main.py").read_bytes() == b"one"


async def test_what_we_delivered_is_replaced_and_keeps_its_mode(runtime: Runtime, home: pathlib.Path) -> None:
    await deliver(runtime, b"one")
    (home / "main.py").chmod(0o755)
    assert await deliver(runtime, b"two", b"one") == ("written", "main.py")
    assert (home / "main.py").read_bytes() == b"two"
    assert (home / "main.py").stat().st_mode & 0o777 == 0o755
    assert os.listdir(home) == ["main.py"]


async def test_what_a_person_changed_stays_and_what_is_new_is_put_beside_it(
    runtime: Runtime, home: pathlib.Path
) -> None:
    (home / "main.py").write_bytes(b"my own")
    for _ in range(2):
        assert await deliver(runtime, b"two", b"one") == ("beside", "main.new.py")
    (home / "main.new.py").write_bytes(b"mine as well")
    assert await deliver(runtime, b"two", b"one") == ("beside", "main.new2.py")
    assert await deliver(runtime, b"three", b"one", b"two") == ("beside", "main.new2.py")
    assert {path.name: path.read_bytes() for path in home.iterdir()} == {
        "main.py": b"my own",
        "main.new.py": b"mine as well",
        "main.new2.py": b"three",
    }


async def test_what_was_delivered_and_worked_on_since_is_let_be(runtime: Runtime, home: pathlib.Path) -> None:
    """Else opening a workspace again would put the beginning beside what a learner has made of it."""
    await deliver(runtime, b"one")
    (home / "main.py").write_bytes(b"one, and what I made of it")
    assert await deliver(runtime, b"one", b"one") == ("unchanged", "main.py")
    assert os.listdir(home) == ["main.py"]
    (home / "main.py").unlink()
    assert await deliver(runtime, b"one", b"one") == ("written", "main.py")


@pytest.mark.parametrize("kind_of_file", ["link", "dangling", "folder", "pipe", "large", "closed"])
async def test_whatever_stands_in_its_place_stays(
    runtime: Runtime, home: pathlib.Path, tmp_path: pathlib.Path, kind_of_file: str
) -> None:
    place, outside = home / "main.py", tmp_path / "secret"
    outside.write_bytes(b"one")
    outside.chmod(0o666)
    match kind_of_file:
        case "link":
            place.symlink_to(outside)
        case "dangling":
            place.symlink_to(tmp_path / "not-there-yet")
        case "folder":
            place.mkdir()
        case "pipe":
            os.mkfifo(place)
        case "large":
            with place.open("wb") as file:
                file.truncate(1 << 40)
        case "closed":
            place.write_bytes(b"one")
            place.chmod(0)
    before = place.lstat()
    assert await deliver(runtime, b"two", b"one") == ("beside", "main.new.py")
    assert place.lstat() == before
    assert [path.name for path in tmp_path.iterdir() if path.name in {"secret", "not-there-yet"}] == ["secret"]
    assert outside.read_bytes() == b"one"


async def test_links_that_are_swapped_meanwhile_lead_nothing_out_of_the_home(
    runtime: Runtime, tmp_path: pathlib.Path
) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret").write_text("untouched")
    outside.chmod(0o777)
    (outside / "secret").chmod(0o666)
    await running(runtime, workload(server()))
    swapping = asyncio.create_task(runtime.exec("w1", ["python3", "-c", SWAPPER, str(outside)], contained=True))

    async def begun() -> bool:
        return ((await harness.home(runtime)) / "real").exists()

    await until(begun)
    files = {"lesson/main.py": b"new", "main.py": b"new", "lesson/deep/x": b"new"}
    for _ in range(25):
        with contextlib.suppress(RuntimeFailureError):  # when a link stands in its way
            await runtime.put("w1", files, delivered={})
    swapping.cancel()
    await asyncio.gather(swapping, return_exceptions=True)
    assert (outside / "secret").read_text() == "untouched"
    assert os.listdir(outside) == ["secret"]
    above = (await harness.home(runtime)).parent
    for folder in (above, above.parent):
        assert not [name for name in os.listdir(folder) if name.startswith(("main", ".codehub"))]
    assert set(os.listdir(above)) <= {"home", "meta.json", "_data", "opts.json"}


async def test_a_full_home_is_said_and_nothing_is_written(runtime: Runtime) -> None:
    limited = workload(python(workloads.SERVER, "{socket}", limits=ResourceLimits(disk_mb=4)))
    await running(runtime, limited)
    await runtime.exec("w1", ["sh", "-c", "head -c 3900000 /dev/zero > large"])

    async def measured() -> bool:
        if not isinstance(runtime, ProcessRuntime):
            return True  # it is, at each delivery
        usage = runtime._layout.of("w1").usage_file
        return usage.exists() and '"bytes": 39' in usage.read_text()

    await until(measured)
    with pytest.raises(HomeFullError, match="delete what is not needed"):
        await runtime.put("w1", {"main.py": b"x" * 400_000}, delivered={}, quota=Quota(4 << 20, 1000))
    assert os.listdir(await harness.home(runtime)) == ["large"]
    [put] = await runtime.put("w1", {"main.py": b"x"}, delivered={}, quota=Quota(4 << 20, 1000))
    assert put.outcome.value == "written"
