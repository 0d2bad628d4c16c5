"""What every runtime must do, verb by verb: running, misbehaving, being restarted. Volumes are in the file beside."""

import asyncio
import contextlib
import errno
import json
import os
import pathlib
import signal
import sys
from dataclasses import replace
from typing import Any

import pytest

from codehub.errors import NotFoundError
from codehub.runtimes import connect
from codehub.runtimes.base import ImageNotFoundError, Runtime, RuntimeFailureError, UnreadableError
from codehub.runtimes.cpu import OnThisMachine, cpu_seconds
from codehub.runtimes.process import ProcessRuntime
from codehub.templates.model import ContainerSpec, ProcessSpec, ResourceLimits, Template
from tests.contracts import workloads
from tests.contracts.harness import (
    answering,
    doors_of,
    ended,
    log_files,
    log_has,
    open_any,
    processes_of,
    running,
    until,
)
from tests.contracts.workloads import python, server, workload

STARTER = """
import asyncio, os, pathlib, signal, sys
from tests.contracts.harness import open_any
from tests.contracts.workloads import server, workload
async def main():
    runtime = open_any(pathlib.Path(sys.argv[1]), sys.argv[2])
    await runtime.create_volume("w1", "g1")
    await runtime.start(workload(server()))
    os.kill(os.getpid(), signal.SIGKILL)
asyncio.run(main())
"""


async def test_a_started_workspace_exists_answers_and_is_gone_after_a_stop(runtime: Runtime) -> None:
    container = await running(runtime, workload(server()))
    assert container.workspace_id == "w1"
    assert container.address.socket or container.address.key
    assert len(os.fsencode(container.address.socket or "")) <= 107
    await runtime.stop("w1", 10)
    assert await runtime.containers() == {}
    assert (await runtime.volumes(["w1"]))["w1"].generation == "g1"


async def test_starting_twice_leaves_the_first_one_alone(runtime: Runtime) -> None:
    first = await running(runtime, workload(server()))
    await runtime.start(workload(server()))
    assert (await runtime.containers())["w1"] == first


async def test_ten_starts_at_once_make_one_container(runtime: Runtime) -> None:
    await runtime.create_volume("w1", "g1")
    marked = workload(server(), marker="ten-at-once-" + str(os.getpid()))
    await asyncio.gather(*(runtime.start(marked) for _ in range(10)))
    await answering(runtime, "w1")
    assert len(await runtime.containers()) == 1
    ides = await runtime.exec("w1", ["sh", "-c", "grep -l 'serve_foreve[r]' /proc/[0-9]*/cmdline | wc -l"])
    assert int(ides.output) >= 1
    await runtime.stop("w1", 5)
    assert processes_of(marked.environment["marker"]) == []


async def test_stopping_twice_or_what_never_ran_is_fine(runtime: Runtime) -> None:
    await runtime.stop("w1", 1)
    await running(runtime, workload(server()))
    await runtime.stop("w1", 10)
    await runtime.stop("w1", 10)
    assert await runtime.containers() == {}


async def test_each_start_is_a_new_identity_on_the_same_home(runtime: Runtime) -> None:
    first = await running(runtime, workload(server()))
    await runtime.exec("w1", ["sh", "-c", "echo mine > note"])
    await runtime.stop("w1", 10)
    await runtime.start(workload(server()))
    second = await answering(runtime, "w1")
    assert second.identity != first.identity
    assert (await runtime.exec("w1", ["cat", "note"])).output == b"mine\n"


async def test_without_a_volume_nothing_starts(runtime: Runtime) -> None:
    with pytest.raises(RuntimeFailureError, match="no volume"):
        await runtime.start(workload(server()))
    assert await runtime.containers() == {}


async def test_a_malformed_id_is_like_an_unknown_one(runtime: Runtime) -> None:
    for verb in (runtime.stop("../w1", 1), runtime.create_volume("", "g"), runtime.last_exit("a/b")):
        with pytest.raises(NotFoundError):
            await verb


async def test_a_program_that_is_not_there_is_told_apart(runtime: Runtime) -> None:
    await runtime.create_volume("w1", "g1")
    process, image = ProcessSpec(("no-such-ide", "{socket}")), ContainerSpec("no-such-ide", ("ide", "{socket}"))
    template = Template("none", "None", process=process, container=image)
    with pytest.raises(ImageNotFoundError, match=r"no-such-ide is not installed|image:? \"?no-such-ide"):
        await runtime.start(workload(template))


async def test_a_template_for_another_runtime_is_told_apart(runtime: Runtime) -> None:
    await runtime.create_volume("w1", "g1")
    with pytest.raises(ImageNotFoundError):
        await runtime.start(workload(Template("image", "Image")))


@pytest.mark.parametrize("code", [0, 3])
async def test_an_ide_that_exits_at_once_leaves_its_code_and_its_last_words(runtime: Runtime, code: int) -> None:
    await runtime.create_volume("w1", "g1")
    await runtime.start(workload(python(f"import sys; print('no licence'); sys.exit({code})")))
    await ended(runtime, "w1")
    last = await runtime.last_exit("w1")
    assert last
    assert last.code == code
    assert last.at
    assert "no licence" in last.log_tail


async def test_an_ide_ended_by_a_signal_says_which(runtime: Runtime) -> None:
    await runtime.create_volume("w1", "g1")
    await runtime.start(workload(python("import os; os.kill(os.getpid(), 9)")))
    await ended(runtime, "w1")
    last = await runtime.last_exit("w1")
    assert last
    assert last.code == 128 + signal.SIGKILL


async def test_how_an_earlier_one_ended_is_forgotten_at_a_start(runtime: Runtime) -> None:
    await runtime.create_volume("w1", "g1")
    assert await runtime.last_exit("w1") is None
    await runtime.start(workload(python("import sys; sys.exit(7)")))
    await ended(runtime, "w1")
    await runtime.start(workload(server()))
    await answering(runtime, "w1")
    assert await runtime.last_exit("w1") is None


async def test_an_ide_that_hangs_exists_but_does_not_answer(runtime: Runtime) -> None:
    await runtime.create_volume("w1", "g1")
    await runtime.start(workload(python(workloads.HANGING)))
    await log_has(runtime, "w1", b"thinking")
    container = await runtime.container("w1")
    assert container
    assert container.answers is False
    await runtime.stop("w1", 5)


async def test_an_answer_of_500_or_above_is_none(runtime: Runtime) -> None:
    await runtime.create_volume("w1", "g1")
    await runtime.start(workload(replace(server(), ready="/sick")))
    address = (await runtime.containers())["w1"].address

    async def listens() -> bool:
        with contextlib.suppress(OSError):
            return await connect.status_of(address, "/w/w1/fine", doors_of(runtime)) == 200
        return False

    await until(listens)
    container = await runtime.container("w1")
    assert container
    assert container.answers is False


async def test_a_stop_asks_first(runtime: Runtime) -> None:
    polite = python("""
        import signal, sys, time
        signal.signal(15, lambda *_: (print("saved everything", flush=True), sys.exit(0)))
        print("ready", flush=True)
        time.sleep(10_000)
    """)
    await runtime.create_volume("w1", "g1")
    await runtime.start(workload(polite))
    await log_has(runtime, "w1", b"ready")
    await runtime.stop("w1", 30)
    last = await runtime.last_exit("w1")
    assert last
    assert (last.code, "saved everything" in last.log_tail) == (0, True)


async def test_an_ide_that_ignores_sigterm_is_ended_after_the_grace(runtime: Runtime) -> None:
    marked = workload(python(workloads.STUBBORN, "{socket}"), marker=f"stubborn-{os.getpid()}")
    await running(runtime, marked)
    await runtime.stop("w1", 0.3)
    assert await runtime.containers() == {}
    assert processes_of(marked.environment["marker"]) == []
    last = await runtime.last_exit("w1")
    assert last
    assert last.code == 128 + signal.SIGKILL


async def test_processes_that_forked_away_end_with_their_workspace(runtime: Runtime) -> None:
    marked = workload(python(workloads.FORKING, "{socket}"), marker=f"forking-{os.getpid()}")
    await running(runtime, marked)
    assert len(processes_of(marked.environment["marker"])) >= 6
    await runtime.stop("w1", 5)
    assert processes_of(marked.environment["marker"]) == []


async def test_an_ide_that_turns_itself_into_a_daemon_has_exited(runtime: Runtime) -> None:
    marked = workload(python(workloads.DAEMON), marker=f"daemon-{os.getpid()}")
    await runtime.create_volume("w1", "g1")
    await runtime.start(marked)
    await ended(runtime, "w1")
    assert processes_of(marked.environment["marker"]) == []


async def test_an_ide_killed_from_outside_is_gone_and_can_be_started_again(runtime: Runtime) -> None:
    marked = workload(server(), marker=f"killed-{os.getpid()}")
    await running(runtime, marked)
    os.kill(max(processes_of(marked.environment["marker"])), signal.SIGKILL)
    await ended(runtime, "w1")
    assert processes_of(marked.environment["marker"]) == []
    await runtime.start(marked)
    await answering(runtime, "w1")


def _size(path: pathlib.Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:  # renamed between listing and looking
        return 0


async def test_a_flood_of_log_stays_within_its_bound(runtime: Runtime, folder: pathlib.Path) -> None:
    """200 MB through a log of 1 MB: bounded on disk at every moment we look, and its end is there."""
    await runtime.create_volume("w1", "g1")
    await runtime.start(workload(python(workloads.FLOOD, limits=ResourceLimits(log_kb_per_second=0))))
    sizes = []

    async def flooded() -> bool:
        sizes.append(sum(_size(path) for path in await log_files(runtime, folder)))
        return b"the last line" in b"".join([piece async for piece in runtime.logs("w1", tail_bytes=1000)])

    await until(flooded, 120)
    assert max(sizes) <= 1 << 20
    assert "w1" in await runtime.containers()


async def test_following_a_log_gives_its_end_and_then_what_comes(runtime: Runtime) -> None:
    await runtime.create_volume("w1", "g1")
    counting = python("import time\nfor n in range(10_000): print('line', n, flush=True); time.sleep(0.02)")
    await runtime.start(workload(counting))
    await log_has(runtime, "w1", b"line 3\n")
    seen = b""
    async with asyncio.timeout(30):
        async for piece in runtime.logs("w1", tail_bytes=8, follow=True):
            seen += piece
            if seen.count(b"\n") > 20:
                break
    numbers = [int(line.split()[1]) for line in seen.split(b"\n")[1:-1]]
    assert numbers == list(range(numbers[0], numbers[0] + len(numbers)))


async def test_a_log_is_followed_through_its_rotation(runtime: Runtime) -> None:
    await runtime.create_volume("w1", "g1")
    # Slowly enough for a reader: a second of looking away may cost what was rotated twice, as it should.
    writing = python("""
        import os, time
        print(-1, flush=True)
        while not os.path.exists("go"): time.sleep(0.01)
        for n in range(300): print(n, 'x' * 9000, flush=True); time.sleep(0.01)
    """)
    await runtime.start(workload(writing))
    seen = b""
    async with asyncio.timeout(120), asyncio.TaskGroup() as beside:
        async for piece in runtime.logs("w1", tail_bytes=1 << 19, follow=True):
            if not seen:
                beside.create_task(runtime.put("w1", {"go": b""}))
            seen += piece
            if b"\n299 " in seen and seen.endswith(b"\n"):
                break
    assert [int(line.split()[0]) for line in seen.splitlines()] == list(range(-1, 300))


async def test_another_instance_finds_what_runs(runtime: Runtime, folder: pathlib.Path, kind: str) -> None:
    before = await running(runtime, workload(server()))
    await runtime.close()
    other = open_any(folder, kind)
    assert (await other.containers())["w1"] == before
    found = await other.container("w1")
    assert found == before
    assert found.answers
    await other.stop("w1", 10)
    await other.close()
    assert await runtime.containers() == {}


async def test_what_runs_survives_kill_9_of_whoever_started_it(
    runtime: Runtime, folder: pathlib.Path, kind: str
) -> None:
    starter = await asyncio.create_subprocess_exec(sys.executable, "-c", STARTER, str(folder), kind)
    assert await starter.wait() == -signal.SIGKILL
    container = await answering(runtime, "w1")
    await log_has(runtime, "w1", b"serving")
    assert (await runtime.exec("w1", ["cat", "/proc/1/stat"])).exit_code == 0
    assert (await runtime.containers())["w1"] == container
    await runtime.stop("w1", 10)
    assert await runtime.containers() == {}


async def test_one_record_that_cannot_be_read_hides_nobody_else(
    processes: ProcessRuntime, processes_folder: pathlib.Path
) -> None:
    await running(processes, workload(server()))
    await running(processes, replace(workload(server()), workspace_id="w2"))
    record = processes_folder / "workspaces" / "running" / "w1.json"
    kept = record.read_bytes()
    values = json.loads(kept)
    first = values["first"]
    wrong: tuple[dict[str, Any], ...] = (
        *({"started_at": at} for at in (1e300, "now", None, True)),
        *({"first": {**first, "pid": pid}} for pid in ("1\0", 0, -1, 2**31, True, 1.5, first["pid"] * 10**30)),
        {"first": {**first, "started": float("inf")}},
        {"address": {"socket": ["s"]}},
        {"address": {"socket": "a\0b"}},
        {"address": "s"},
        {"groups": "g"},
        {"rlimits": {"nofile": "many"}},
        {"uid": "root"},
        {"directory": None},
    )
    torn = (b"[" * 200_000, b"[]", b"null", b"", b"\xff\xfe", kept + b" " * 100_000, kept[: len(kept) // 2])
    for damage in (*torn, *(json.dumps({**values, **part}).encode() for part in wrong)):
        record.write_bytes(damage)
        found = await processes.containers()
        assert list(found) == ["w2"], damage[:500]
        assert list(found.unreadable) == ["w1"]
    record.unlink()
    record.mkdir()
    assert list((await processes.containers()).unreadable) == ["w1"]
    record.rmdir()
    record.write_bytes(b"{")
    for verb in (processes.container("w1"), processes.stop("w1", 1)):
        with pytest.raises(UnreadableError, match=r"w1\.json"):
            await verb
    record.write_bytes(kept)
    await processes.stop("w1", 10)
    record.write_bytes(b"{")  # nothing holds its lock: it is what is left of one that has ended
    found = await processes.containers()
    assert (list(found), found.unreadable) == (["w2"], {})
    await processes.start(workload(server()))
    await answering(processes, "w1")


async def test_a_look_at_all_that_runs_costs_by_what_runs(
    processes: ProcessRuntime, processes_folder: pathlib.Path
) -> None:
    for number in range(30):
        await processes.create_volume(f"sleeping-{number}", "g1")
    await running(processes, workload(server()))
    assert len(list((processes_folder / "workspaces" / "running").iterdir())) == 1
    assert list(await processes.containers()) == ["w1"]


async def test_a_command_runs_inside_as_its_user_in_its_home(runtime: Runtime) -> None:
    await running(runtime, workload(server()))
    result = await runtime.exec("w1", ["sh", "-c", 'cat; whoami; pwd; echo "$HOME"; exit 4'], stdin=b"given\n")
    assert result.exit_code == 4
    assert result.output.split() == [b"given", b"alice", b"/home/alice", b"/home/alice"]
    assert not result.truncated
    assert not result.timed_out


async def test_a_command_is_bounded_in_time_and_output(runtime: Runtime) -> None:
    await running(runtime, workload(server()))
    late = await runtime.exec("w1", ["sh", "-c", "echo begun; sleep 1000"], timeout_seconds=0.5)
    assert late.timed_out
    assert late.output == b"begun\n"
    much = await runtime.exec("w1", ["sh", "-c", "yes | head -c 5000000; echo the end"], max_output=1000)
    assert (len(much.output), much.truncated, much.exit_code) == (1000, True, 0)
    assert much.output.endswith(b"y\nthe end\n")
    assert much.left_out == 5_000_008 - 1000


async def test_a_command_that_leaves_something_running_comes_back(runtime: Runtime) -> None:
    await running(runtime, workload(server()))
    result = await runtime.exec("w1", ["sh", "-c", "sleep 1000 & echo started"])
    assert result.output == b"started\n"


async def test_a_command_that_is_not_there_or_not_runnable_has_its_shells_code(runtime: Runtime) -> None:
    await running(runtime, workload(server()))
    assert (await runtime.exec("w1", ["no-such-command"])).exit_code == 127
    assert (await runtime.exec("w1", ["/etc/passwd"])).exit_code == 126


async def test_no_command_runs_in_a_workspace_that_does_not(runtime: Runtime) -> None:
    await runtime.create_volume("w1", "g1")
    with pytest.raises(RuntimeFailureError, match="not running"):
        await runtime.exec("w1", ["true"])


async def test_memory_beyond_the_limit_is_refused_by_ending_the_hog(runtime: Runtime) -> None:
    """By control groups, or where there are none by the shepherd's own watch."""
    template = python(workloads.HOG, limits=ResourceLimits(memory_mb=64))
    await runtime.create_volume("w1", "g1")
    await runtime.start(workload(template))
    await ended(runtime, "w1")
    last = await runtime.last_exit("w1")
    assert last
    assert ("memory limit" in last.log_tail, last.code) == (True, 137)


async def test_a_fork_bomb_stops_at_the_limit(runtime: Runtime) -> None:
    marked = workload(python(workloads.BOMB, limits=ResourceLimits(processes=40)), marker=f"bomb-{os.getpid()}")
    await runtime.create_volume("w1", "g1")
    await runtime.start(marked)
    said = await log_has(runtime, "w1", f" {errno.EAGAIN}\n".encode())  # the end of its line
    assert int(said.split(b"stopped at")[1].split()[0]) < 40
    await runtime.stop("w1", 0)
    assert processes_of(marked.environment["marker"]) == []


async def test_how_much_its_processes_compute_is_seen_where_they_are_this_machines(runtime: Runtime) -> None:
    """Also of one that the IDE started: a job at work keeps its workspace awake (`activity.probes`)."""
    await running(runtime, workload(python(workloads.COMPUTING, "{socket}")))
    before = await cpu_seconds(runtime, "w1")
    assert (before is not None) is isinstance(runtime, OnThisMachine)

    async def more() -> bool:
        now = await cpu_seconds(runtime, "w1")
        return now is None or before is None or now > before + 0.3

    await until(more)
    await runtime.stop("w1", 0)
    assert await cpu_seconds(runtime, "w1") is None


async def test_groups_of_a_workspace_are_gone_after_its_end(processes: ProcessRuntime) -> None:
    await running(processes, workload(server()))
    parents = (await processes.limits()).parents.values()
    assert all((parent / "w1").is_dir() for parent in parents)
    await processes.stop("w1", 10)
    assert not any((parent / "w1").exists() for parent in parents)


async def test_a_program_that_needs_a_port_gets_one_and_a_relay(runtime: Runtime) -> None:
    script = workloads.SERVER.replace("ThreadingUnixStreamServer", "ThreadingTCPServer").replace(
        "Server(sys.argv[1]", 'Server(("127.0.0.1", int(sys.argv[1]))'
    )
    container = await running(runtime, workload(python(script, "{port}")))
    assert container.address.socket or container.address.key
    port = "import socket, sys; socket.create_connection(('127.0.0.1', 8080), 5)"
    assert (await runtime.exec("w1", ["python3", "-c", port])).exit_code == 0
    await runtime.stop("w1", 10)
    assert await runtime.containers() == {}
