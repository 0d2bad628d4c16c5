"""What only the Docker runtime has: its relay, its volumes' entries, an engine that others use as well."""

import asyncio
import contextlib
import dataclasses
import os
import pathlib
import socket
from collections.abc import AsyncIterator
from typing import Any

import pytest

from codehub.runtimes import connect
from codehub.runtimes.base import (
    DiskItem,
    ImageNotFoundError,
    IsolationUnavailableError,
    RuntimeFailureError,
    StartFailedError,
    UnreadableError,
    Volume,
)
from codehub.runtimes.containers.homes import PARKED, VOLUME
from codehub.runtimes.docker import names, networks
from codehub.runtimes.docker.engine import Engine, EngineUnreachableError, labelled
from codehub.runtimes.docker.runtime import DockerRuntime
from codehub.templates.model import ContainerSpec, Network, ResourceLimits, Template
from tests import docker_engine
from tests.contracts import workloads
from tests.contracts.harness import answering, archive_of, ended, running, source, until
from tests.contracts.workloads import python, server, workload

pytestmark = [pytest.mark.docker, pytest.mark.usefixtures("docker_engine")]


@pytest.fixture
async def runtime() -> AsyncIterator[DockerRuntime]:
    async with docker_engine.fresh_runtime() as (opened, _):
        yield opened


async def inspect(runtime: DockerRuntime, name: str) -> Any:
    return await runtime.engine.call("GET", f"/containers/{name}/json")


def container_of(template: Template, **changes: Any) -> Template:
    assert template.container
    return dataclasses.replace(template, container=dataclasses.replace(template.container, **changes))


# --- the relay


async def test_a_relay_that_is_killed_comes_back_and_the_ide_does_not_notice(runtime: DockerRuntime) -> None:
    before = await running(runtime, workload(server()))
    relay = runtime.names.relay("w1")
    os.kill((await inspect(runtime, relay))["State"]["Pid"], 9)

    async def other() -> bool:
        found = await runtime.container("w1")
        return bool(found and found.answers) and (await inspect(runtime, relay))["RestartCount"] == 1

    await until(other)
    assert await runtime.container("w1") == before


async def test_a_relay_that_was_removed_is_made_again_by_a_start(runtime: DockerRuntime) -> None:
    before = await running(runtime, workload(server()))
    await runtime.engine.call("DELETE", f"/containers/{runtime.names.relay('w1')}", force="1")
    await runtime.start(workload(server()))
    assert await answering(runtime, "w1") == before


async def test_a_relay_does_not_outlive_its_ide(runtime: DockerRuntime) -> None:
    await running(runtime, workload(server()))
    await runtime.engine.call("POST", f"/containers/{runtime.names.ide('w1')}/kill")

    async def gone() -> bool:
        assert await runtime.containers() == {}
        return await docker_engine.roles(runtime) == [names.IDE]  # which tells how it ended

    await ended(runtime, "w1")
    await until(gone)


async def test_a_link_in_the_place_of_the_ides_socket_leads_nowhere(runtime: DockerRuntime) -> None:
    """Not even back to the relay's own door, which would be a ring."""
    container = await running(runtime, workload(server()))
    for target in ("/run/door/sock", "/etc/passwd", "/run/ide/other"):
        await runtime.exec("w1", ["sh", "-c", 'rm -f /run/ide/sock && ln -s "$0" /run/ide/sock', target])
        with pytest.raises((OSError, ValueError)):
            await connect.status_of(container.address, "/")
    assert await runtime.container("w1") == container


async def test_the_door_of_a_relay_is_not_in_the_workspace(runtime: DockerRuntime) -> None:
    container = await running(runtime, workload(server()))
    assert container.address.socket
    found = await runtime.exec("w1", ["sh", "-c", "ls /run/door /run; find / -xdev -name '*.sock' 2>/dev/null"])
    assert b"door" not in found.output.replace(b"cannot access '/run/door'", b"")
    with socket.socket(socket.AF_UNIX) as ours:
        ours.connect(container.address.socket)  # as root; who else may is in the isolation suite


# --- walls


async def test_the_engine_is_told_of_every_wall_and_limit(runtime: DockerRuntime) -> None:
    limits = ResourceLimits(memory_mb=200, processes=50, cpus=0.5, open_files=512, disk_mb=100)
    await running(runtime, workload(server(limits=limits)))
    ide, relay = await inspect(runtime, runtime.names.ide("w1")), await inspect(runtime, runtime.names.relay("w1"))
    host = ide["HostConfig"]
    assert (host["Memory"], host["MemorySwap"]) == (200 << 20, 200 << 20)
    assert (host["PidsLimit"], host["NanoCpus"]) == (50, 500_000_000)
    assert {one["Name"]: one["Hard"] for one in host["Ulimits"]} == {"nofile": 512, "fsize": 100 << 20}
    for each in (ide, relay):
        own = each["HostConfig"]
        assert (own["CapDrop"], own["CapAdd"], own["Privileged"]) == (["ALL"], None, False)
        assert own["SecurityOpt"] == ["no-new-privileges"]  # and the engine's own filter of system calls
        assert own["ReadonlyRootfs"]
        assert not each["Config"]["User"].startswith("0")
        assert not [mount for mount in each["Mounts"] if "docker.sock" in mount["Source"]]
    assert host["NetworkMode"] == "none"
    assert relay["HostConfig"]["NetworkMode"] == f"container:{ide['Id']}"
    status = await runtime.exec("w1", ["cat", "/proc/1/status"])
    assert b"Seccomp:\t2" in status.output


async def test_a_network_that_cannot_be_kept_is_refused_at_the_start(runtime: DockerRuntime) -> None:
    await runtime.create_volume("w1", "g1")
    for network in (Network.INTERNET, Network.HOST, Network.ALLOWLIST):
        with pytest.raises(IsolationUnavailableError, match=r"CODEHUB_(DOCKER_)?NETWORK"):
            await runtime.start(workload(container_of(server(), network=network)))
    assert await docker_engine.containers(runtime.engine, runtime.names.ours) == []


@pytest.mark.parametrize(
    ("made", "words"),
    [
        (None, "no network codehub-test"),
        ({}, "reach each other"),
        # What is closed and open in one with it, `test_docker_network` tries.
        ({networks.BETWEEN_CONTAINERS: "false"}, "no firewall around codehub-test: scripts/docker-network"),
    ],
)
async def test_a_network_that_does_not_keep_workspaces_apart_is_refused(
    made: dict[str, str] | None, words: str
) -> None:
    async with docker_engine.fresh_runtime(network="internet", docker_network="codehub-test") as (runtime, _):
        await runtime.create_volume("w1", "g1")
        if made is not None:
            body = {"Name": "codehub-test", "Driver": "bridge", "Options": made}
            await runtime.engine.call("POST", "/networks/create", body)
        try:
            with pytest.raises(IsolationUnavailableError, match=words):
                await runtime.start(workload(server()))
        finally:
            await runtime.engine.call("DELETE", "/networks/codehub-test", missing=True)


async def test_an_images_own_user_gets_the_home(runtime: DockerRuntime) -> None:
    await runtime.create_volume("w1", "g1")
    await runtime.put("w1", {"before": b"x"})
    await runtime.start(workload(container_of(server(), user="4711")))
    await answering(runtime, "w1")
    await runtime.put("w1", {"during": b"x"})
    shown = await runtime.exec("w1", ["sh", "-c", "id -u; stat -c %u . before during; touch after"])
    assert (shown.output.split(), shown.exit_code) == ([b"4711"] * 4, 0)


async def test_an_image_with_a_command_of_its_own_and_a_port(runtime: DockerRuntime) -> None:
    """As any other's image: the command is the image's, and it listens where the template says."""
    spec = ContainerSpec(workloads.IMAGE, port=8765, writable_root=True)
    assert spec.command == ()
    await runtime.create_volume("w1", "g1")
    await runtime.start(workload(Template("own", "Own", container=spec)))
    await ended(runtime, "w1")  # its command is a shell, which has nobody to talk to
    last = await runtime.last_exit("w1")
    assert last
    assert last.code == 0


async def test_what_courses_and_repositories_need_is_in_the_images_of_workspaces(runtime: DockerRuntime) -> None:
    await running(runtime, workload(server()))
    commit = """
        set -e; git init -q trip; cd trip; git config user.name Alice; git config user.email alice@example.org
        echo boots > packing; git add packing; git commit -qm 'The first thing'; git log --format=%s; git var GIT_EDITOR
        command -v less; command -v nano
    """
    done = await runtime.exec("w1", ["sh", "-c", commit])
    expected = ["The first thing", "editor", "/usr/bin/less", "/usr/bin/nano"]
    assert (done.output.decode().splitlines(), done.exit_code) == (expected, 0)


async def test_a_program_that_is_not_in_the_image_is_told_in_its_log(runtime: DockerRuntime) -> None:
    await runtime.create_volume("w1", "g1")
    await runtime.start(workload(container_of(server(), command=("no-such-ide", "{socket}"))))
    await ended(runtime, "w1")
    last = await runtime.last_exit("w1")
    assert last
    assert (last.code, "no-such-ide" in last.log_tail) == (127, True)


async def test_without_the_platforms_image_it_is_said_how_to_get_it() -> None:
    async with docker_engine.fresh_runtime(platform_image="no-such-platform") as (runtime, _):
        with pytest.raises(ImageNotFoundError, match="make images"):
            await runtime.create_volume("w1", "g1")
        assert await docker_engine.left(runtime) == []


async def test_an_engine_that_does_not_answer_is_said(tmp_path: pathlib.Path) -> None:
    runtime = docker_engine.open_runtime(tmp_path / "data", docker_socket=str(tmp_path / "nothing.sock"))
    for verb in (runtime.containers(), runtime.create_volume("w1", "g1"), runtime.volumes(["w1"])):
        with pytest.raises(EngineUnreachableError, match="CODEHUB_DOCKER_SOCKET"):
            await verb


# --- disk


async def test_a_home_beyond_its_limit_ends_says_why_and_can_be_emptied(runtime: DockerRuntime) -> None:
    limited = workload(server(limits=ResourceLimits(disk_mb=64)))
    await running(runtime, limited)
    assert (await runtime.exec("w1", ["sh", "-c", "head -c 50M /dev/zero > one"])).exit_code == 0
    await runtime.disk_guard.look()
    assert "w1" in await runtime.containers()
    async with runtime.disk_guard.watching():
        await runtime.exec("w1", ["sh", "-c", "head -c 50M /dev/zero > two"])
        await ended(runtime, "w1")
        last = await runtime.last_exit("w1")
        assert last
        assert "the home is full (100 of 64 MB)" in last.log_tail
        await runtime.start(limited)
        await answering(runtime, "w1")
        large = await runtime.exec("w1", ["sh", "-c", "head -c 40M /dev/zero > three; stat -c %s three; rm three"])
        assert large.output.split()[-1] == str(32 << 20).encode()  # one file
        for _ in range(2):
            await runtime.disk_guard.measure((await runtime.disk_guard._running())[0])
        assert (await runtime.exec("w1", ["rm", "one"])).exit_code == 0
        await runtime.exec("w1", ["sh", "-c", "for n in 4 5 6; do head -c 30M /dev/zero > $n; done"])
        await ended(runtime, "w1")


async def test_where_the_disk_runs_full_the_one_that_writes_most_ends(runtime: DockerRuntime) -> None:
    """That it does is not tried here, where others need the disk; only who it would be."""
    await running(runtime, workload(server()))
    await running(runtime, workload(server(), "w2", "bob"))
    guard = runtime.disk_guard
    for _ in range(3):  # nobody writes, and nobody ends
        await guard.compare(await guard._running(), end=True)
    assert set(await runtime.containers()) == {"w1", "w2"}
    # By processes that have ended before anybody can ask what they wrote.
    writing = asyncio.create_task(
        runtime.exec("w2", ["sh", "-c", "for n in $(seq 100); do head -c 5M /dev/zero > f$n; sleep 0.2; done"])
    )

    async def ended_one() -> bool:
        await guard.compare(await guard._running(), end=True)
        return set(await runtime.containers()) != {"w1", "w2"}

    await until(ended_one)
    assert set(await runtime.containers()) == {"w1"}
    with contextlib.suppress(RuntimeFailureError):
        await writing
    last = await runtime.last_exit("w2")
    assert last
    assert "nearly full" in last.log_tail


# --- two platforms, and volumes


async def test_two_platforms_on_one_engine_do_not_touch_each_others_things(runtime: DockerRuntime) -> None:
    await running(runtime, workload(server()))
    async with docker_engine.fresh_runtime() as (other, _):
        assert await other.containers() == {}
        assert await other.volumes(["w1"]) == {}
        assert await other.disk_items() == []
        await other.stop("w1", 0)
        await other.delete_volume("w1", "g1")
        await other.create_volume("w1", "g1")
        assert len(await other.volumes(["w1"])) == 1
    found = await runtime.container("w1")
    assert found
    assert found.answers
    assert await runtime.volumes(["w1"]) == {"w1": Volume("w1", "g1")}


async def test_everything_that_takes_disk_is_listed_and_destroyed_by_its_generation(runtime: DockerRuntime) -> None:
    await runtime.create_volume("w1", "g1")
    await runtime.create_volume("w2", "g2")
    await runtime.park_volume("w2", "g2")
    for id_, generation in (("w1", "g3"), ("w3", "g4")):  # restores that died
        await runtime._volumes.make_home(id_, generation, 4711)
    listed = {
        DiskItem("w1", "g1", "volume"),
        DiskItem("w1", "g3", "unpacked"),
        DiskItem("w2", "g2", "parked"),
        DiskItem("w3", "g4", "unpacked"),
    }
    assert set(await runtime.disk_items()) == listed
    assert set(await runtime.disk_items(["w2"])) == {DiskItem("w2", "g2", "parked")}
    await runtime.delete_volume("w1", "g2")  # another one's generation
    assert set(await runtime.disk_items()) == listed
    for piece in sorted(listed, key=str):
        for _ in range(2):
            await runtime.delete_volume(piece.workspace_id, piece.generation)
        listed.discard(piece)
        assert set(await runtime.disk_items()) == listed
    assert await docker_engine.left(runtime) == []


async def test_what_an_earlier_restore_left_is_not_mixed_in(runtime: DockerRuntime) -> None:
    for generation in ("g1", "g0"):
        await runtime._volumes.make_home("w1", generation, 4711)
    await runtime.unpack("w1", "g1", archive_of({"whole": "whole"}), source())
    assert [path.name for path in (await docker_engine.home(runtime, "w1")).iterdir()] == ["whole"]
    assert await runtime.disk_items() == [DiskItem("w1", "g1", "volume")]


async def test_a_volume_that_cannot_be_read_is_told_apart_and_keeps_its_home(runtime: DockerRuntime) -> None:
    await runtime.create_volume("w1", "g1")
    entry = runtime.names.entry("w1", VOLUME)
    await runtime.engine.call("DELETE", f"/volumes/{entry}")
    labels = runtime.names.labels("w1", names.ENTRY)
    await runtime.engine.call("POST", "/volumes/create", {"Name": entry, "Labels": labels})
    found = await runtime.volumes(["w1"])
    assert (found, list(found.unreadable)) == ({}, ["w1"])
    assert await runtime.disk_items() == [DiskItem("w1", "", "unreadable")]
    await runtime.delete_volume("w1", "g1")  # which it may be, or not
    with pytest.raises(UnreadableError):
        await runtime.create_volume("w1", "g2")
    with pytest.raises(UnreadableError):
        await runtime.unpack("w1", "g2", archive_of({"file": "x"}), source())
    assert list((await runtime.volumes(["w1"])).unreadable) == ["w1"]
    await runtime.delete_volume("w1", "")
    assert await runtime.disk_items() == [DiskItem("w1", "g1", "unpacked")]  # for the garbage collection


async def test_a_volume_that_somebody_removed_is_lost_and_never_an_empty_one(runtime: DockerRuntime) -> None:
    await runtime.create_volume("w1", "g1")
    home = (await runtime._volumes.require("w1")).home
    await runtime.engine.call("DELETE", f"/volumes/{home.name}")
    assert await runtime.volumes(["w1"]) == {}
    with pytest.raises(RuntimeFailureError, match="no volume"):
        await runtime.start(workload(server()))
    await runtime.unpack("w1", "g1b", archive_of({"file": "x"}), source())  # as who recovers it does
    assert (await runtime.volumes(["w1"]))["w1"].generation == "g1b"
    # Removed while a start is under way: the engine makes an empty one of that name for the container.
    entry = await runtime._volumes.require("w1")
    await runtime.engine.call("DELETE", f"/volumes/{entry.home.name}")
    link = await runtime._volumes.make_link("w1", entry.home.uid)
    with pytest.raises(RuntimeFailureError, match="has just gone"):
        await runtime._lifecycle.start(workload(server()), entry, entry.home.uid, link, runtime._is_still_in_place)
    assert await runtime.containers() == {}
    assert await docker_engine.containers(runtime.engine, runtime.names.ours) == []


async def test_parking_that_was_cut_short_is_finished_or_undone(runtime: DockerRuntime) -> None:
    await runtime.create_volume("w1", "g1")
    entry = await runtime._volumes.require("w1")
    await runtime._volumes.enter("w1", PARKED, entry)  # and ended here
    assert await runtime.volumes(["w1"]) == {"w1": Volume("w1", "g1")}
    await runtime.park_volume("w1", "g1")
    assert await runtime.volumes(["w1"]) == {"w1": Volume("w1", "g1", parked=True)}
    await runtime._volumes.enter("w1", VOLUME, dataclasses.replace(entry, generation="g2"))  # taking back, ended here
    assert await runtime.volumes(["w1"]) == {"w1": Volume("w1", "g2")}
    await runtime.delete_volume("w1", "g1")  # somebody who comes late
    assert await runtime.volumes(["w1"]) == {"w1": Volume("w1", "g2")}
    await runtime.park_volume("w1", "g2")
    assert await runtime.volumes(["w1"]) == {"w1": Volume("w1", "g2", parked=True)}


async def test_work_on_a_home_ends_with_the_one_who_asked_for_it(runtime: DockerRuntime) -> None:
    await runtime.create_volume("w1", "g1")
    await runtime.put("w1", {"large": os.urandom(8 << 20)})
    async with runtime.pack("w1", "g1") as packing:
        async for _ in packing.output():
            break
    assert await docker_engine.roles(runtime) == []
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(0.3):
            await runtime.disk_usage("w1")

    async def none() -> bool:
        return await docker_engine.roles(runtime) == []

    await until(none)


async def test_one_look_at_all_is_one_call(runtime: DockerRuntime, monkeypatch: pytest.MonkeyPatch) -> None:
    await running(runtime, workload(server()))
    await running(runtime, workload(server(), "w2", "bob"))
    calls: list[str] = []
    real = Engine.call

    async def counted(self: Engine, method: str, where: str, *arguments: Any, **options: Any) -> Any:
        calls.append(where)
        return await real(self, method, where, *arguments, **options)

    monkeypatch.setattr(Engine, "call", counted)
    assert set(await runtime.containers()) == {"w1", "w2"}
    assert calls == ["/containers/json"]


async def test_a_disk_that_is_nearly_full_stops_a_start() -> None:
    async with docker_engine.fresh_runtime() as (small, _):
        await small.create_volume("w1", "g1")
    async with docker_engine.fresh_runtime(disk_reserve_mb=1 << 40) as (runtime, _):
        await runtime.create_volume("w1", "g1")
        found = os.statvfs("/")
        if found.f_bavail * 10 > found.f_blocks:  # a tenth of the disk is the most that is kept
            await runtime._lifecycle.require_space()
        with pytest.raises(StartFailedError, match="nearly full"):
            await runtime._lifecycle.require_space(found.f_blocks * found.f_frsize)


async def test_an_archive_comes_back_byte_for_byte_with_what_belongs_to_each_file(runtime: DockerRuntime) -> None:
    await running(runtime, workload(python(workloads.SERVER, "{socket}")))
    make = """
        mkdir -p a/b && printf x > a/b/run && chmod 4751 a/b/run && ln a/b/run hard && ln -s a/b/run soft &&
        mkfifo pipe && printf '' > empty && touch -d '2001-02-03 04:05:06.789' empty && chmod 000 empty &&
        truncate -s 10M sparse && mkdir closed && printf y > closed/in && chmod 500 closed && chmod 750 .
    """
    assert (await runtime.exec("w1", ["sh", "-c", make])).exit_code == 0
    await runtime.stop("w1", 10)
    look = "find . -printf '%p %y %m %s %T@ %n %l\\n' | grep -v '^\\. ' | sort; cat hard"

    async def seen() -> bytes:
        await runtime.start(workload(server()))
        await answering(runtime, "w1")
        result = await runtime.exec("w1", ["sh", "-c", look])
        await runtime.stop("w1", 10)
        assert result.exit_code == 0, result.output
        return result.output

    before = await seen()
    await runtime.park_volume("w1", "g1")
    async with runtime.pack("w1", "g1") as packing:
        pieces = [bytes(piece) async for piece in packing.output()]
    await runtime.delete_volume("w1", "g1")
    assert await docker_engine.left(runtime) == []

    async def again() -> Any:
        for piece in pieces:
            yield piece

    await runtime.unpack("w1", "g2", again(), source())
    after = await seen()
    assert [line for line in after.splitlines() if b" p " not in line] == [
        line for line in before.splitlines() if b" p " not in line
    ]


async def test_labels_say_whose_everything_is(runtime: DockerRuntime) -> None:
    await running(runtime, workload(server()))
    ours = labelled(runtime.names.ours, f"{names.WORKSPACE}=w1")
    listed = await runtime.engine.call("GET", "/containers/json", filters=ours)
    kept = await runtime.engine.call("GET", "/volumes", filters=ours)
    assert sorted(one["Labels"][names.ROLE] for one in listed) == [names.IDE, names.RELAY]
    assert sorted(one["Labels"][names.ROLE] for one in kept["Volumes"]) == [names.ENTRY, names.HOME, names.LINK]
