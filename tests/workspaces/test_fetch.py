"""A git repository is cloned inside of a workspace that runs: whole or not at all, by a real git from a real server."""

import asyncio
import pathlib
import shutil
import subprocess
from collections.abc import AsyncIterator, Iterator, Sequence
from typing import Any, cast

import pytest

from codehub.db import Database
from codehub.runtimes.base import Container, ExecResult, Runtime
from codehub.workspaces import fetch_runner
from codehub.workspaces.fetch_runner import Wanted
from codehub.workspaces.model import FetchCause
from tests.contracts.harness import until
from tests.places import a_place
from tests.virtual_time import ManualClock
from tests.workspaces.fetch_house import House, open_house
from tests.workspaces.git_server import GitServer, git_server

LEFT_ASIDE = "ls -A | grep -c codehub-fetch || true"


@pytest.fixture(scope="module")
def server() -> Iterator[GitServer]:
    with a_place() as folder, git_server(folder / "git") as started:
        yield started


@pytest.fixture
async def house(database: Database, clock: ManualClock, server: GitServer) -> AsyncIterator[House]:
    server.broken = False
    server.held.set()
    async with open_house(database, clock) as opened:
        yield opened


async def test_it_is_there_whole_and_its_user_owns_it(house: House, server: GitServer) -> None:
    await house.workspace(server)
    await house.ask(server.hello)
    await house.settle()
    assert await house.outcome() == ("DONE", None)
    assert await house.sh("cat hello/README hello/src/a.py; git -C hello status --porcelain") == "hello\n1\n"
    assert await house.sh("find hello ! -user $(id -u) | wc -l") == "0\n"
    assert await house.sh(LEFT_ASIDE) == "0\n"
    assert [code for code, _ in await house.history()] == ["fetch_requested", "fetched"]
    assert (await house.history())[-1][1] == {"url": server.hello, "folder": "hello"}


async def test_a_branch_is_fetched_by_its_name(house: House, server: GitServer) -> None:
    await house.workspace(server)
    await house.ask(server.hello, "week/2")
    await house.settle()
    assert await house.sh("cat hello/README; git -C hello branch --show-current") == "week 2\nweek/2\n"


async def test_what_cannot_work_is_said_at_once_with_gits_own_words(house: House, server: GitServer) -> None:
    await house.workspace(server)
    for url, branch, cause, said in (
        (f"{server.url}/nothing.git", None, "not_found", "not found"),
        (server.hello, "no-such", "branch", "Remote branch no-such not found"),
        (f"{server.url}/private/x.git", None, "login", "could not read Username"),
    ):
        await house.ask(url, branch)
        await house.settle()
        row = await house.row()
        assert (row["status"], row["cause"], row["attempts"]) == ("FAILED", cause, 1), row
        assert said in row["said"]
        code, data = (await house.history())[-1]
        assert (code, data["cause"], data["url"]) == ("fetch_failed", cause, url)
        assert await house.sh(f"ls; {LEFT_ASIDE}") == "0\n"


@pytest.mark.parametrize("made", ["mkdir hello", "mkdir hello && echo mine > hello/README", "ln -s /nowhere hello"])
async def test_what_is_in_the_home_is_never_touched(house: House, server: GitServer, made: str) -> None:
    await house.workspace(server)
    await house.sh(made)
    before = await house.sh("ls -lR --time-style=full-iso")
    asked = len(server.requests)
    await house.ask(server.hello)
    await house.settle()
    assert await house.outcome() == ("FAILED", "taken")
    assert await house.sh("ls -lR --time-style=full-iso") == before
    assert len(server.requests) == asked


async def test_a_folder_that_a_person_makes_meanwhile_stays_theirs(house: House, server: GitServer) -> None:
    server.held.clear()
    await house.workspace(server)
    await house.ask(f"{server.url}/slow/hello.git")
    await house.loop.tick()
    await until(lambda: _asked(server, "/slow"))
    await house.sh("mkdir hello && echo mine > hello/README")
    server.held.set()
    await asyncio.gather(*house.working())
    assert await house.outcome() == ("FAILED", "taken")
    assert await house.sh(f"cat hello/README; ls -A hello; {LEFT_ASIDE}") == "mine\nREADME\n0\n"


async def _asked(server: GitServer, path: str) -> bool:
    return any(asked.startswith(path) for asked in server.requests)


async def test_without_a_network_nothing_is_tried(house: House, server: GitServer) -> None:
    asked = len(server.requests)
    await house.workspace(server, template="shut")
    await house.ask(server.hello)
    await house.settle()
    assert await house.outcome() == ("FAILED", "no_network")
    assert len(server.requests) == asked


async def test_a_server_that_fails_is_asked_again_after_pauses_and_then_given_up(
    house: House, server: GitServer, clock: ManualClock
) -> None:
    server.broken = True
    await house.workspace(server)
    await house.ask(server.hello)
    await house.settle()
    assert await house.outcome() == ("WAITING", "git")
    await house.settle()
    assert (await house.row())["attempts"] == 1  # its time has not come
    await clock.advance(5)
    await house.settle()
    assert (await house.row())["attempts"] == 2
    await clock.advance(30)
    await house.settle()
    assert await house.outcome() == ("FAILED", "git")
    assert [code for code, _ in await house.history()] == ["fetch_requested", "fetch_failed"]
    assert "500" in (await house.row())["said"]


async def test_a_server_that_comes_back_is_enough(house: House, server: GitServer, clock: ManualClock) -> None:
    server.broken = True
    await house.workspace(server)
    await house.ask(server.hello)
    await house.settle()
    server.broken = False
    await clock.advance(5)
    await house.settle()
    assert await house.outcome() == ("DONE", None)


async def test_a_server_that_says_nothing_is_left_and_nothing_of_it_stays(house: House, server: GitServer) -> None:
    server.held.clear()
    await house.lead(seconds=2)
    await house.workspace(server)
    await house.ask(f"{server.url}/slow/hello.git")
    await house.settle()
    assert await house.outcome() == ("FAILED", "time")
    assert await house.sh(f"ls; {LEFT_ASIDE}; pgrep -c git || true") == "0\n0\n"


async def test_it_waits_until_the_workspace_runs(house: House, server: GitServer) -> None:
    await house.workspace(server, status="STANDBY")
    await house.ask(server.hello)
    await house.settle()
    assert await house.outcome() == ("WAITING", None)
    await house.start("w1", server)
    async with house.database.connection() as c:
        await c.execute("UPDATE workspaces SET observed_status = 'RUNNING'")
    await house.settle()
    assert await house.outcome() == ("DONE", None)


async def test_a_workspace_that_stops_in_the_middle_gets_it_when_it_runs_again(house: House, server: GitServer) -> None:
    server.held.clear()
    await house.workspace(server)
    await house.ask(f"{server.url}/slow/hello.git")
    await house.loop.tick()
    server.requests.clear()
    await until(lambda: _asked(server, "/slow"))
    await house.runtime.stop("w1", 0)
    await asyncio.gather(*house.working())
    assert await house.outcome() == ("WAITING", "interrupted")
    server.held.set()
    await house.start("w1", server)
    await house.settle()
    assert await house.outcome() == ("DONE", None)
    assert await house.sh(LEFT_ASIDE) == "0\n"


async def test_of_two_leaders_one_is_believed_and_it_is_there_once(house: House, server: GitServer) -> None:
    server.held.clear()
    await house.workspace(server)
    await house.ask(f"{server.url}/slow/hello.git")
    await house.loop.tick()
    server.requests.clear()
    await until(lambda: _asked(server, "/slow"))
    first, left_over = house.loop, house.working()
    await house.lead()
    await house.loop.tick()
    server.held.set()
    await asyncio.gather(*house.working(), *left_over, return_exceptions=True)
    await first.close()
    await house.settle()
    assert await house.outcome() == ("DONE", None)
    assert [code for code, _ in await house.history()] == ["fetch_requested", "fetched"]
    assert await house.sh(f"cat hello/README; git -C hello fsck 2>&1; {LEFT_ASIDE}") == "hello\n0\n"


async def test_of_one_person_one_at_a_time_and_of_others_meanwhile(house: House, server: GitServer) -> None:
    server.held.clear()
    for id_, owner in (("w1", "alice"), ("w2", "alice"), ("w3", "bora")):
        await house.workspace(server, id_, owner=owner)
        await house.ask(f"{server.url}/slow/hello.git", of=id_)
    assert (await house.loop.tick()).stats["begun"] == 2
    assert [(await house.row(id_))["status"] for id_ in ("w1", "w2", "w3")] == ["RUNNING", "WAITING", "RUNNING"]
    server.held.set()
    await asyncio.gather(*house.working())
    await house.settle()
    assert [await house.outcome(id_) for id_ in ("w1", "w2", "w3")] == [("DONE", None)] * 3


# --- without git ----------------------------------------------------------------------------------------------------


class Plain:
    """Runs commands in a folder, with a few programs alone: what a small image has."""

    def __init__(self, home: pathlib.Path, path: pathlib.Path) -> None:
        self._env = {"HOME": str(home), "PATH": str(path)}

    async def exec(self, _id: str, command: Sequence[str], **_: Any) -> ExecResult:
        done = subprocess.run(command, env=self._env, capture_output=True, check=False)
        return ExecResult(done.returncode, done.stdout + done.stderr)

    async def container(self, _id: str) -> Container | None:
        return cast("Container", object())


async def test_where_there_is_no_git_it_is_said(tmp_path: pathlib.Path) -> None:
    programs = tmp_path / "bin"
    programs.mkdir()
    (tmp_path / "home").mkdir()
    for name in ("sh", "rm", "cat", "mv"):
        (programs / name).symlink_to(shutil.which(name) or "")
    runtime = cast("Runtime", Plain(tmp_path / "home", programs))
    result = await fetch_runner.fetch(runtime, Wanted("w", "f", "https://example.org/x.git", None, "x", 1))
    assert result.cause is FetchCause.NO_GIT
