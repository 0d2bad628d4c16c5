"""A leader killed at any line of the practice loop: the next one runs what was left, once more and to its end."""

import asyncio
import pathlib
import signal
import sys
from collections.abc import AsyncIterator

import pytest

from codehub.db import Database
from tests.contracts.harness import KINDS
from tests.sessions.practice_house import House, open_house


@pytest.fixture
async def house(database: Database) -> AsyncIterator[House]:
    async with open_house(database) as opened:
        await opened.workspace()
        yield opened


async def leader(url: str, folder: pathlib.Path, die_at: str) -> tuple[int | None, list[str]]:
    arguments = ("-m", "tests.sessions.dying_practice", url, str(folder), KINDS[-1], die_at)
    process = await asyncio.create_subprocess_exec(sys.executable, *arguments, stdout=asyncio.subprocess.PIPE)
    output, _ = await asyncio.wait_for(process.communicate(), 60)
    return process.returncode, output.decode().split()


async def campaign(house: House, url: str, every: int) -> int:
    """Files are put and checks run, by a leader that dies; how many lines it did that at."""

    async def ask() -> tuple[str, str]:
        await house.sh("rm -rf lesson ran")
        return await house.put({"lesson/main.py": "print(1)"}), await house.check("echo ran >> ran", "exit 1")

    asked = await ask()
    _, lines = await leader(url, house.folder, "--list")
    for task in asked:
        await house.result(task)
    assert len(lines) > 60
    for place in lines[::every]:
        files, checks = await ask()
        assert (await leader(url, house.folder, place))[0] == -signal.SIGKILL, place
        await house.lead()
        await house.settle()
        put, ran = await house.result(files), await house.result(checks)
        assert [file["put"] for file in put["files"]] in (["written"], ["unchanged"]), place
        assert [check["exit_code"] for check in ran["checks"]] == [0, 1], place
        assert await house.sh("cat lesson/main.py; ls lesson") == "print(1)main.py\n", place
        assert (await house.sh("sort -u ran")) == "ran\n", place
    return len(lines[::every])


async def test_a_leader_killed_in_the_middle_is_followed_by_one_that_carries_on(
    house: House, database_url: str
) -> None:
    assert await campaign(house, database_url, every=20) >= 4


@pytest.mark.soak
async def test_a_leader_killed_at_every_line_loses_no_task(
    house: House, database_url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    deaths = await campaign(house, database_url, every=1)
    with capsys.disabled():
        print(f"\npractice loop killed at each of {deaths} lines: every task ended with its result")
