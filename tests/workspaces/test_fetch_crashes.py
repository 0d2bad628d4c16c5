"""A leader killed at any line of the loop that fetches repositories: the next one carries on, and it is there once."""

import asyncio
import pathlib
import signal
import sys
from collections.abc import AsyncIterator, Iterator

import pytest

from codehub.db import Database
from tests.contracts.harness import KINDS, until
from tests.places import a_place
from tests.workspaces.fetch_house import House, open_house
from tests.workspaces.git_server import GitServer, git_server


@pytest.fixture
def server() -> Iterator[GitServer]:
    with a_place() as folder, git_server(folder / "git") as started:
        yield started


@pytest.fixture
async def house(database: Database, server: GitServer) -> AsyncIterator[House]:
    async with open_house(database) as opened:
        await opened.workspace(server)
        yield opened


async def leader(url: str, folder: pathlib.Path, die_at: str) -> "asyncio.subprocess.Process":
    arguments = ("-m", "tests.workspaces.dying_fetch", url, str(folder), KINDS[-1], die_at)
    return await asyncio.create_subprocess_exec(sys.executable, *arguments, stdout=asyncio.subprocess.PIPE)


async def lines_of(process: "asyncio.subprocess.Process") -> list[str]:
    output, _ = await asyncio.wait_for(process.communicate(), 60)
    return output.decode().split()


async def is_there(house: House) -> None:
    await house.lead()
    await house.settle()
    assert await house.outcome() == ("DONE", None)
    assert await house.sh("cat hello/README; git -C hello fsck 2>&1; ls -A | grep codehub-fetch; true") == "hello\n"
    assert [code for code, _ in await house.history()][-2:] == ["fetch_requested", "fetched"]


async def campaign(house: House, server: GitServer, url: str, every: int) -> int:
    await house.ask(server.hello)
    lines = await lines_of(await leader(url, house.folder, "--list"))
    await is_there(house)
    assert len(lines) > 40
    for place in lines[::every]:
        await house.sh("rm -rf hello")
        await house.ask(server.hello)
        process = await leader(url, house.folder, place)
        await lines_of(process)
        assert process.returncode == -signal.SIGKILL, place
        await is_there(house)
    return len(lines[::every])


async def test_a_leader_killed_is_followed_by_one_that_carries_on(
    house: House, server: GitServer, database_url: str
) -> None:
    assert await campaign(house, server, database_url, every=16) >= 3


async def test_a_leader_killed_while_git_works_takes_git_with_it(
    house: House, server: GitServer, database_url: str
) -> None:
    server.held.clear()
    await house.ask(f"{server.url}/slow/hello.git")
    process = await leader(database_url, house.folder, "never")

    async def asked() -> bool:
        return bool(server.requests)

    await until(asked)
    process.kill()
    await process.wait()

    async def ended() -> bool:
        return await house.sh("pgrep -c git || true") == "0\n"

    await until(ended)
    assert (await house.row())["status"] == "RUNNING"
    server.held.set()
    await is_there(house)


@pytest.mark.soak
async def test_a_leader_killed_at_every_line_loses_nothing(
    house: House, server: GitServer, database_url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    deaths = await campaign(house, server, database_url, every=1)
    with capsys.disabled():
        print(f"\nfetch loop killed at each of {deaths} lines: the repository was there, once and whole")
