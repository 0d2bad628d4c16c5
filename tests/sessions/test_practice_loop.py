"""The coordinator's practice loop, tick by tick, on real workspaces: what runs, in which order, and who may save it."""

import asyncio
import os
import pathlib
from collections.abc import AsyncIterator

import pytest

from codehub.db import Database
from codehub.errors import LeaseLostError
from tests.contracts.harness import processes_of, until
from tests.sessions.practice_house import House, open_house


@pytest.fixture
async def house(database: Database) -> AsyncIterator[House]:
    async with open_house(database) as opened:
        yield opened


async def test_checks_run_as_the_learner_in_their_home_and_say_what_they_printed(house: House) -> None:
    await house.workspace()
    task = await house.check("whoami; pwd; echo to stderr >&2", "exit 3", "sleep 100", "printf '\\0\\377'", seconds=0.5)
    await house.settle()
    found = await house.result(task)
    assert found["outcome"] == "done"
    first, second, third, fourth = found["checks"]
    assert first == {
        "id": "c0",
        "exit_code": 0,
        "output": "alice\n/home/alice\nto stderr\n",
        "timed_out": False,
        "left_out": 0,
    }
    assert second["exit_code"] == 3
    assert third["timed_out"]
    assert fourth["output"] == "\ufffd\ufffd"


async def test_a_task_that_has_ended_has_no_commands_any_more_and_goes_after_a_while(house: House) -> None:
    await house.workspace()
    task = await house.check("echo the answer is 42")
    await house.settle()
    assert (await house.row(task))["request"] == {}
    async with house.database.connection() as c:
        await c.execute("UPDATE practice_tasks SET ended_at = now() - interval '1 hour'")
    await house.loop.tick()
    assert await house.row(task) == {}


async def test_much_output_is_cut_and_much_time_is_shared(database: Database) -> None:
    async with open_house(database, seconds=3) as house:
        await house.workspace()
        task = await house.check("yes | head -c 100000; echo the end", "sleep 100", "sleep 100", "true", seconds=60)
        await house.settle()
        cut, late, *rest = (await house.result(task))["checks"]
    assert (len(cut["output"]), cut["left_out"], cut["exit_code"]) == (16384, 100000 + 8 - 16384, 0)
    assert cut["output"].endswith("y\nthe end\n")
    assert late["timed_out"]
    assert all(one["timed_out"] and "3 s together" in one["output"] for one in rest)


async def test_a_workspace_that_does_not_run_is_said_so(house: House) -> None:
    await house.workspace()
    await house.runtime.stop("w1", 5)
    checks, files = await house.check("true"), await house.put({"a": "b"})
    await house.settle()
    assert [await house.result(task) for task in (checks, files)] == [{"outcome": "not_running"}] * 2


async def test_a_workspace_that_ends_during_a_check_is_said_so(house: House) -> None:
    await house.workspace()
    task = await house.check("echo begun; sleep 1000", "true", seconds=60)
    await house.loop.tick()

    async def sleeping() -> bool:
        return "sleep 1000" in await house.sh("cat /proc/[0-9]*/cmdline | tr '\\0' ' '")

    await until(sleeping)
    await house.runtime.stop("w1", 0)
    await house.settle()
    assert await house.result(task) == {"outcome": "not_running"}


async def test_the_same_asked_again_is_joined_until_its_result_was_taken(house: House) -> None:
    await house.workspace()
    first = await house.check("true")
    assert await house.check("true") == first
    await house.loop.tick()
    assert await house.check("true") == first
    await house.settle()
    assert await house.check("true") == first  # its result has not been taken yet
    await house.result(first)
    assert await house.check("true") != first


async def test_of_each_person_one_runs_at_a_time_and_the_oldest_first(database: Database) -> None:
    """One learner who asks for much is served as often as others who ask for little."""
    async with open_house(database, checks_at_once=2) as house:
        await house.workspace("w1", "alice")
        await house.workspace("w2", "bob")
        for n in range(5):
            await house.run(f"more{n}", "alice", "w1")
        order = "date +%s%N >> order"
        hers = [await house.check(order, of=f"more{n}", workspace="w1") for n in range(5)]
        his = await house.check(order, of="w2")
        await house.loop.tick()
        running = {task for task in (*hers, his) if (await house.row(task))["status"] == "RUNNING"}
        assert running == {hers[0], his}
        await asyncio.gather(*house.working())
        await house.loop.tick()
        assert (await house.row(hers[1]))["status"] == "RUNNING"
        assert (await house.row(hers[2]))["status"] == "WAITING"
        await asyncio.gather(*house.working())
        await house.settle()
        ended = [(await house.row(task))["ended_at"] for task in hers]
    assert ended == sorted(ended)


async def test_no_more_run_at_a_time_than_may_and_files_need_not_wait_for_checks(database: Database) -> None:
    async with open_house(database, checks_at_once=1) as house:
        await house.workspace("w1", "alice")
        await house.workspace("w2", "bob")
        await house.workspace("w3", "carol")
        long, next_, files = (
            await house.check("sleep 1000", seconds=60, of="w1"),
            await house.check("true", of="w2"),
            await house.put({"main.py": "print()"}, of="w3"),
        )
        for _ in range(2):
            await house.loop.tick()
        assert [(await house.row(task))["status"] for task in (long, next_)] == ["RUNNING", "WAITING"]

        async def put() -> bool:
            return bool((await house.row(files))["status"] == "DONE")

        await until(put)


async def test_a_leader_that_was_cut_off_saves_nothing_and_its_successor_runs_it_again(house: House) -> None:
    await house.workspace()
    task = await house.check("echo $$ >> runs; until [ -e go ]; do sleep 0.05; done", seconds=60)
    old = house.loop
    await old.tick()

    async def begun(times: int) -> bool:
        return len((await house.sh("cat runs 2>/dev/null || true")).split()) == times

    await until(lambda: begun(1))
    new = await house.lead()
    await new.tick()
    await until(lambda: begun(2))
    [stale] = old._under_way.tasks().values()
    await house.sh("touch go")
    with pytest.raises(LeaseLostError):
        await stale
    await asyncio.gather(*house.working())
    row = await house.row(task)
    assert (row["status"], row["epoch"], row["attempts"]) == ("DONE", house.lease.epoch, 2)
    with pytest.raises(LeaseLostError):
        await old.tick()


async def test_what_a_leader_was_running_when_it_stops_is_ended_and_left_to_the_next(house: House) -> None:
    await house.workspace()
    mark = f"marker=stopped-{os.getpid()}"
    task = await house.check(f"env {mark} sleep 1000", seconds=60)
    await house.loop.tick()

    async def sleeping() -> bool:
        return bool(processes_of(mark))

    await until(sleeping)
    await house.loop.close()

    async def gone() -> bool:
        return not processes_of(mark)

    await until(gone)
    assert (await house.row(task))["status"] == "RUNNING"
    await house.lead()
    assert (await house.loop.tick()).stats["put_back"] == 1


async def test_what_ends_its_leader_every_time_is_given_up(house: House) -> None:
    await house.workspace()
    task = await house.check("sleep 1000", seconds=60)
    for _ in range(3):
        await house.loop.tick()
        await house.loop.close()
        await house.lead()
    await house.loop.tick()
    found = await house.result(task)
    assert found["outcome"] == "failed"
    assert not house.working()


async def test_starter_files_are_put_once_and_never_over_what_a_learner_made(house: House) -> None:
    await house.workspace()

    async def put(text: str) -> tuple[str, str]:
        task = await house.put({"lesson/main.py": text})
        await house.settle()
        [file] = (await house.result(task))["files"]
        return file["put"], file["as"]

    assert await put("one") == ("written", "lesson/main.py")
    assert await put("two") == ("written", "lesson/main.py")
    await house.sh("echo mine >> lesson/main.py")
    assert await put("two") == ("unchanged", "lesson/main.py")
    assert await put("three") == ("beside", "lesson/main.new.py")
    assert await put("three") == ("unchanged", "lesson/main.py")
    assert await house.sh("cat lesson/main.py lesson/main.new.py; ls lesson") == "twomine\nthreemain.new.py\nmain.py\n"


async def hold_still(usage: pathlib.Path) -> None:
    """The shepherd measures the home again and again, and would write what it found: now it cannot."""
    while True:
        try:
            usage.with_name(f"{usage.name}.new").mkdir()
        except FileExistsError:  # it is at it this moment
            await asyncio.sleep(0.01)
        else:
            return


async def test_a_home_that_is_full_or_in_the_way_is_said_so(house: House) -> None:
    await house.workspace()
    usage = house.runtime._layout.of("w1").usage_file
    await hold_still(usage)
    usage.write_text('{"bytes": 4194000, "files": 3}')
    full = await house.put({"main.py": "x" * 1000})
    await house.settle()
    assert (await house.result(full))["outcome"] == "home_full"
    usage.write_text('{"bytes": 40, "files": 3}')
    await house.sh("ln -s /etc lesson")
    blocked = await house.put({"lesson/main.py": "x"})
    await house.settle()
    found = await house.result(blocked)
    assert found["outcome"] == "refused"
    assert "link" in found["detail"]
