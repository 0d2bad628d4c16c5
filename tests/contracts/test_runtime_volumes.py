"""What every runtime must do with volumes: made, swapped in, parked, destroyed, measured, written to; by generation."""

import os
import pathlib
from collections.abc import AsyncGenerator

import pytest

from codehub.archives.model import ArchiveCorruptedError, Quota, QuotaExceededError
from codehub.errors import CodeHubError
from codehub.runtimes.base import DiskItem, Runtime, RuntimeFailureError, Source, Volume
from codehub.runtimes.process import ProcessRuntime
from codehub.templates.model import StarterFile
from tests.contracts import harness
from tests.contracts.harness import answering, archive_of, home, running, source
from tests.contracts.workloads import server, workload


async def test_a_volume_is_made_once_and_keeps_its_generation(runtime: Runtime) -> None:
    await runtime.create_volume("w1", "g1")
    ((await home(runtime)) / "note").write_text("kept")
    await runtime.create_volume("w1", "g1")
    await runtime.create_volume("w1", "g2")
    assert await runtime.volumes(["w1", "w2"]) == {"w1": Volume("w1", "g1")}
    assert ((await home(runtime)) / "note").read_text() == "kept"


async def test_a_new_home_begins_with_its_starter_files_which_are_its_users(runtime: Runtime) -> None:
    files = (
        StarterFile("lesson/one/main.py", b"print()"),
        StarterFile("run", b"#!/bin/sh\necho ran\n", executable=True),
    )
    await runtime.create_volume("w1", "g1", files)
    await runtime.start(workload(server()))
    await answering(runtime, "w1")
    shown = await runtime.exec(
        "w1", ["sh", "-c", "stat -c '%U %a' lesson lesson/one/main.py run && ./run && rm -r lesson"]
    )
    assert shown.output.decode().splitlines() == ["alice 755", "alice 644", "alice 755", "ran"]
    assert ((await home(runtime)).stat().st_mode & 0o777) == 0o700
    await runtime.create_volume("w1", "g1", files)
    assert not ((await home(runtime)) / "lesson").exists()


async def test_only_the_generation_that_is_meant_is_destroyed(runtime: Runtime) -> None:
    await runtime.create_volume("w1", "g2")
    await runtime.delete_volume("w1", "g1")
    assert await runtime.volumes(["w1"]) == {"w1": Volume("w1", "g2")}
    for _ in range(2):
        await runtime.delete_volume("w1", "g2")
        assert await runtime.volumes(["w1"]) == {}


async def test_nothing_is_left_of_a_destroyed_workspace(runtime: Runtime, folder: pathlib.Path) -> None:
    await running(runtime, workload(server()))
    await runtime.stop("w1", 10)
    await runtime.delete_volume("w1", "g1")
    assert await harness.left(runtime, folder) == []


async def test_a_running_workspace_keeps_its_volume(runtime: Runtime) -> None:
    await running(runtime, workload(server()))
    for verb in (runtime.delete_volume("w1", "g1"), runtime.park_volume("w1", "g1")):
        with pytest.raises(RuntimeFailureError, match="running"):
            await verb
    assert (await runtime.volumes(["w1"]))["w1"] == Volume("w1", "g1")


async def test_a_restored_volume_is_swapped_in_whole_and_remembers_where_it_came_from(runtime: Runtime) -> None:
    for _ in range(2):
        await runtime.unpack("w1", "g7", archive_of({"project/main.py": "print()"}), source("w1/op/1/home.tar.zst"))
        assert await runtime.volumes(["w1"]) == {"w1": Volume("w1", "g7", "w1/op/1/home.tar.zst")}
    await runtime.start(workload(server()))
    owners = await runtime.exec(
        "w1", ["sh", "-c", "echo more >> project/main.py && stat -c %U . project project/main.py"]
    )
    assert owners.output.split() == [b"alice"] * 3


async def test_what_is_packed_is_what_is_unpacked_and_only_the_generation_that_is_meant(
    runtime: Runtime,
) -> None:
    await running(runtime, workload(server()))
    await runtime.put("w1", {"a/b": b"one", "c": b"two"})
    for still in (False, True):  # in use, and parked
        if still:
            await runtime.stop("w1", 10)
            await runtime.park_volume("w1", "g1")
        async with runtime.pack("w1", "g1") as packing:
            pieces = [bytes(piece) async for piece in packing.output()]
            assert (await packing.result())["bytes"] >= 6
        name = f"copy-{still}".lower()
        await runtime.unpack(name, "g9", _replayed(pieces), source())
        async with runtime.pack(name, "g9") as again:
            assert b"".join([bytes(piece) async for piece in again.output()])
        copied = await home(runtime, name)
        assert ((copied / "a" / "b").read_bytes(), (copied / "c").read_bytes()) == (b"one", b"two")
    with pytest.raises(RuntimeFailureError, match="no volume of generation g2"):
        async with runtime.pack("w1", "g2"):
            pass


async def _replayed(pieces: list[bytes], error: Exception | None = None) -> AsyncGenerator[bytes, None]:
    for piece in pieces:
        yield piece
    if error:
        raise error


async def test_a_stream_that_breaks_off_or_lies_leaves_nothing_behind(runtime: Runtime) -> None:
    whole = [piece async for piece in archive_of({"file": "x" * 100_000})]
    for pieces, error in ((whole, ArchiveCorruptedError("not what its meta says")), ([b"no archive"], None)):
        with pytest.raises(CodeHubError):
            await runtime.unpack("w1", "g1", _replayed(pieces, error), source())
        assert await runtime.volumes(["w1"]) == {}
        assert [piece.kind for piece in await runtime.disk_items(["w1"]) if piece.kind != "rest"] == []
    with pytest.raises(QuotaExceededError):
        await runtime.unpack("w1", "g1", _replayed(whole), Source("key", Quota(1000, 10)))
    assert await runtime.volumes(["w1"]) == {}


async def test_a_volume_is_never_replaced_by_a_restore(runtime: Runtime) -> None:
    await runtime.create_volume("w1", "g1")
    with pytest.raises(RuntimeFailureError, match="generation g1"):
        await runtime.unpack("w1", "g2", archive_of({"file": "x"}), source())
    assert await runtime.volumes(["w1"]) == {"w1": Volume("w1", "g1")}
    assert await runtime.disk_items(["w1"]) == [DiskItem("w1", "g1", "volume")]


async def test_what_an_earlier_restore_left_is_not_mixed_in(
    processes: ProcessRuntime, processes_folder: pathlib.Path
) -> None:
    for left in ("staging-g1", "placing-g1/home"):  # killed while it unpacked, and between its two renames
        path = processes_folder / "workspaces" / "homes" / "w1" / left
        path.mkdir(parents=True)
        (path / "half").write_text("half")
    await processes.unpack("w1", "g1", archive_of({"whole": "whole"}), source())
    assert [path.name for path in processes._layout.of("w1").home.iterdir()] == ["whole"]


async def test_a_volume_half_made_by_a_killed_call_is_in_nobodys_way(
    processes: ProcessRuntime, processes_folder: pathlib.Path
) -> None:
    left = processes_folder / "workspaces" / "homes" / "w1" / "new-0123"
    left.mkdir(parents=True)
    assert await processes.volumes(["w1"]) == {}
    await processes.create_volume("w1", "g1")
    assert not left.exists()


async def test_a_parked_volume_is_kept_and_not_startable_until_it_is_taken_back(runtime: Runtime) -> None:
    await runtime.create_volume("w1", "g1")
    ((await home(runtime)) / "note").write_text("kept")
    await runtime.park_volume("w1", "g0")
    assert not (await runtime.volumes(["w1"]))["w1"].parked
    for _ in range(2):
        await runtime.park_volume("w1", "g1")
        assert await runtime.volumes(["w1"]) == {"w1": Volume("w1", "g1", parked=True)}
    with pytest.raises(RuntimeFailureError):
        await runtime.start(workload(server()))
    assert (await home(runtime) / "note").read_text() == "kept"
    await runtime.unpark_volume("w1", "g0", "g2")
    assert (await runtime.volumes(["w1"]))["w1"].parked
    for _ in range(2):
        await runtime.unpark_volume("w1", "g1", "g2")
        assert await runtime.volumes(["w1"]) == {"w1": Volume("w1", "g2")}
    await runtime.park_volume("w1", "g1")  # somebody who comes late
    await runtime.delete_volume("w1", "g1")
    assert await runtime.volumes(["w1"]) == {"w1": Volume("w1", "g2")}
    assert ((await home(runtime)) / "note").read_text() == "kept"


async def test_a_parked_volume_is_destroyed_by_its_generation(runtime: Runtime) -> None:
    await runtime.create_volume("w1", "g1")
    await runtime.park_volume("w1", "g1")
    await runtime.delete_volume("w1", "g1")
    assert await runtime.volumes(["w1"]) == {}


async def test_a_home_deeper_than_any_path_can_be_measured_and_destroyed(runtime: Runtime) -> None:
    await running(runtime, workload(server()))
    dig = "import os\nfor _ in range(3000): os.mkdir('deep-deep-deep'); os.chdir('deep-deep-deep')"
    assert (await runtime.exec("w1", ["python3", "-c", dig])).exit_code == 0
    assert await runtime.disk_usage("w1") > 3000 * 1024
    await runtime.stop("w1", 10)
    await runtime.delete_volume("w1", "g1")
    assert await runtime.volumes(["w1"]) == {}


async def test_disk_use_is_what_is_really_taken(runtime: Runtime) -> None:
    await runtime.create_volume("w1", "g1")
    empty = await runtime.disk_usage("w1")
    await runtime.put("w1", {"big": os.urandom(3 << 20)})
    with ((await home(runtime)) / "sparse").open("wb") as sparse:
        sparse.truncate(1 << 40)
    used = await runtime.disk_usage("w1") - empty
    assert 3 << 20 <= used < 4 << 20


async def test_files_are_put_into_the_home_whether_it_runs_or_not(runtime: Runtime) -> None:
    await runtime.create_volume("w1", "g1")
    await runtime.put("w1", {"a/b/c.txt": b"one", "top": b""})
    await running(runtime, workload(server()))
    await runtime.put("w1", {"a/b/c.txt": b"two"})
    shown = await runtime.exec("w1", ["sh", "-c", "cat a/b/c.txt; stat -c ' %U %a' a a/b/c.txt top"])
    assert shown.output.split() == [b"two", *(b"alice 755 alice 644 alice 644".split())]


async def test_a_put_keeps_a_files_mode(runtime: Runtime) -> None:
    await running(runtime, workload(server()))
    await runtime.exec("w1", ["sh", "-c", "touch run.sh; chmod 700 run.sh"])
    await runtime.put("w1", {"run.sh": b"#!/bin/sh\necho ran\n"})
    assert (await runtime.exec("w1", ["./run.sh"])).output == b"ran\n"


@pytest.mark.parametrize("path", ["/etc/passwd", "../out", "a/../../out", "", "a//b", ".", "a\0b"])
async def test_a_path_outside_the_home_is_refused(runtime: Runtime, path: str) -> None:
    await runtime.create_volume("w1", "g1")
    with pytest.raises(RuntimeFailureError):
        await runtime.put("w1", {path: b"x"})


async def test_links_in_a_home_lead_nothing_out_of_it(runtime: Runtime, tmp_path: pathlib.Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret").write_text("untouched")
    outside.chmod(0o777)
    (outside / "secret").chmod(0o666)
    await runtime.create_volume("w1", "g1")
    files = await home(runtime)
    (files / "way").symlink_to(outside)
    (files / "file").symlink_to(outside / "secret")
    (files / "up").symlink_to("..")
    for path in ("way/secret", "way/new/file", "up/meta.json"):
        with pytest.raises(RuntimeFailureError, match="link"):
            await runtime.put("w1", {path: b"changed"})
    await runtime.put("w1", {"file": b"changed"})
    assert (outside / "secret").read_text() == "untouched"
    assert [path.name for path in outside.iterdir()] == ["secret"]
    assert (files / "file").read_text() == "changed"
    assert (await runtime.volumes(["w1"]))["w1"].generation == "g1"


async def test_a_volume_that_cannot_be_read_is_told_apart_and_can_be_destroyed(
    processes: ProcessRuntime, processes_folder: pathlib.Path
) -> None:
    await processes.create_volume("w1", "g1")
    await processes.create_volume("w2", "g2")
    (processes_folder / "workspaces" / "homes" / "w1" / "volume" / "meta.json").write_text("{")
    found = await processes.volumes(["w1", "w2", "w3"])
    assert found == {"w2": Volume("w2", "g2")}
    assert list(found.unreadable) == ["w1"]
    assert "meta.json" in found.unreadable["w1"]
    assert set(await processes.disk_items()) == {DiskItem("w1", "", "unreadable"), DiskItem("w2", "g2", "volume")}
    await processes.delete_volume("w1", "g1")  # which it may be, or not
    assert list((await processes.volumes(["w1"])).unreadable) == ["w1"]
    await processes.delete_volume("w1", "")
    assert set(await processes.disk_items()) == {DiskItem("w2", "g2", "volume")}


async def test_whatever_is_wrong_with_what_a_volume_says_of_itself_it_cannot_be_read_and_nothing_else(
    processes: ProcessRuntime, processes_folder: pathlib.Path
) -> None:
    await processes.create_volume("w1", "g1")
    await processes.create_volume("w2", "g2")
    meta = processes_folder / "workspaces" / "homes" / "w1" / "volume" / "meta.json"
    kept = meta.read_bytes()

    async def is_unreadable() -> bool:
        found = await processes.volumes(["w1", "w2"])
        return (list(found), list(found.unreadable)) == (["w2"], ["w1"])

    for damage in (
        *(b"", b"null", b"[]", b"{}", b"\xff\xfe{}", b"[" * 100_000, kept + b" " * 100_000, b"9" * 5_000),
        b'{"generation": 1e999}',
        b'{"generation": NaN}',
        b'{"generation": Infinity}',
        b'{"generation": null}',
        b'{"generation": ""}',
        b'{"generation": "a\\u0000b"}',
        b'{"generation": "a\\ud800"}',
        b'{"generation": ["g1"]}',
        b'{"generation": "g1", "uid": 1e999}',
        b'{"generation": "g1", "uid": "0"}',
        b'{"generation": "g1", "uid": true}',
        b'{"generation": "g1", "uid": 0}',
        b'{"generation": "g1", "uid": -1}',
        b'{"generation": "g1", "uid": 99999999999999999999}',
        b'{"generation": "g1", "restored_from": 1}',
    ):
        meta.write_bytes(damage)
        assert await is_unreadable(), damage[:100]
    meta.unlink()
    os.mkfifo(meta)
    assert await is_unreadable()
    meta.unlink()
    meta.mkdir()
    assert await is_unreadable()
    meta.rmdir()
    meta.write_bytes(kept)
    assert set(await processes.volumes(["w1", "w2"])) == {"w1", "w2"}


async def test_what_is_wrong_with_how_it_ended_is_told_as_unknown(processes: ProcessRuntime) -> None:
    await processes.create_volume("w1", "g1")
    exit_file = processes._layout.of("w1").exit_file
    for damage in (b'{"code": 1e999, "at": 1}', b'{"code": "0", "at": 1}', b'{"code": 0, "at": 1e300}', b"{}", b"7"):
        exit_file.write_bytes(damage)
        assert await processes.last_exit("w1") is None
    exit_file.write_bytes(b'{"code": 3, "at": 1.5}')
    ended = await processes.last_exit("w1")
    assert ended
    assert ended.code == 3


async def test_everything_that_takes_disk_is_listed_and_destroyed_by_its_generation(
    processes: ProcessRuntime, processes_folder: pathlib.Path
) -> None:
    await processes.create_volume("w1", "g1")
    await processes.create_volume("w2", "g2")
    await processes.park_volume("w2", "g2")
    for left in ("w1/staging-g3", "w3/staging-g4"):  # restores that died
        (processes_folder / "workspaces" / "homes" / left).mkdir(parents=True)
    listed = {
        DiskItem("w1", "g1", "volume"),
        DiskItem("w1", "g3", "unpacked"),
        DiskItem("w2", "g2", "parked"),
        DiskItem("w3", "g4", "unpacked"),
    }
    assert set(await processes.disk_items()) == listed
    assert set(await processes.disk_items(["w2"])) == {DiskItem("w2", "g2", "parked")}
    await processes.delete_volume("w1", "g2")  # another one's generation
    assert set(await processes.disk_items()) == listed
    for piece in sorted(listed, key=str):
        for _ in range(2):
            await processes.delete_volume(piece.workspace_id, piece.generation)
        listed.discard(piece)
        assert set(await processes.disk_items()) == listed
    assert [path for path in processes_folder.rglob("*") if path.name in {"w1", "w2", "w3"}] == []
