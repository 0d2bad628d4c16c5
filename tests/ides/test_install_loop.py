"""An IDE is installed because an admin asked: once, by an unprivileged user, to its end or to a clear word about it."""

import asyncio
import os
import pathlib
import signal
import sys
from collections.abc import AsyncIterator

import pytest

from codehub.command import operator
from codehub.db import Database
from codehub.errors import ForbiddenError, NotFoundError
from codehub.ides.loop import LINE_LENGTH, LINES_KEPT, last_lines
from codehub.ides.model import Problem, Status
from codehub.policy.model import ALL_SCOPES, Principal, Role
from codehub.templates.loader import Templates
from tests.ides import small_packages
from tests.ides.house import VSCODE, House, open_house
from tests.places import a_place

AS_ROOT = os.geteuid() == 0


@pytest.fixture
async def house(database: Database, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[House]:
    with a_place(on_disk=True) as folder:
        for name, value in small_packages.make(folder).items():
            monkeypatch.setenv(name, value)
        async with open_house(database, folder) as opened:
            yield opened
        assert [pid for pid in opened.processes() if pid != os.getpid()] == []


async def test_it_is_installed_whole_and_offered_without_a_restart(house: House) -> None:
    templates = Templates.load(None, house.data_dir)
    assert templates.unavailable(VSCODE)
    await house.ask()
    assert (await house.get()).status is Status.WAITING
    found = await house.settle()
    assert (found.status, found.attempts, found.problem) == (Status.DONE, 1, None)
    assert templates.unavailable(VSCODE) is None
    codes = [step.code for step in found.steps]
    assert codes == ["node", "app", "vscode", "extensions", "building", "trim", "try"]
    assert found.steps[4].data == {"n": 1, "of": 1, "name": "argon2"}
    left = sorted(path.name for path in (house.data_dir / "ide").iterdir())
    assert left == [".lock", "code-server", "install.log"]


async def test_what_is_other_peoples_code_runs_as_a_user_who_has_nothing_and_finds_no_secret(house: House) -> None:
    await house.ask()
    await house.settle()
    ran = house.ran()
    assert {verb for verb, _, _ in ran} == {"install", "rebuild", "run"}
    assert {verb: config for verb, _, config in ran} == {"install": "config", "rebuild": "none", "run": "none"}
    users = {int(user) for _, user, _ in ran}
    assert len(users) == 1
    assert (0 in users) is False
    if AS_ROOT:
        tree = [house.data_dir / "ide" / VSCODE, *(house.data_dir / "ide" / VSCODE).rglob("*")]
        assert len(tree) > 10
        assert {path.lstat().st_uid for path in tree} == {0}
        assert [path for path in tree if not path.is_symlink() and path.stat().st_mode & 0o6022] == []


async def test_a_missing_compiler_is_told_before_anything_is_fetched(
    house: House, monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    await house.ask()
    found = await house.settle()
    assert (found.status, found.problem) == (Status.FAILED, Problem.TOOLS)
    assert found.problem_data == {"missing": ["g++", "make"]}
    assert house.ran() == []


async def test_a_step_that_fails_is_told_in_its_tools_words_and_the_next_try_goes_on_from_there(house: House) -> None:
    (house.control / "break-rebuild").touch()
    await house.ask()
    found = await house.settle()
    assert (found.status, found.problem) == (Status.FAILED, Problem.STEP)
    assert found.problem_data["said"] == "x.cc:1:1: fatal error: no.h: No such file"
    assert found.problem_data["step"]["code"] == "building"
    assert not await house.is_installed()
    (house.control / "break-rebuild").unlink()
    (house.control / "ran").unlink()
    await house.ask()
    found = await house.settle()
    assert found.status is Status.DONE
    assert [step.before for step in found.steps] == [True] * 4 + [False] * 3
    assert [verb for verb, _, _ in house.ran()] == ["rebuild", "run"]


async def test_an_admin_ends_it_with_all_its_processes(house: House) -> None:
    house.hold("rebuild")
    await house.ask()
    await house.loop.tick()
    await house.reached("rebuild")
    assert house.processes()
    ended = (await house.ides.cancel(operator(), VSCODE)).installation
    assert ended
    assert ended.cancelled
    found = await house.settle()
    assert (found.status, found.problem) == (Status.CANCELLED, None)
    assert [pid for pid in house.processes() if pid != os.getpid()] == []
    house.release("rebuild")
    await house.ask()
    assert (await house.settle()).status is Status.DONE


async def test_what_has_not_begun_ends_at_once_and_what_is_over_stays(house: House) -> None:
    await house.ask()
    ended = (await house.ides.cancel(operator(), VSCODE)).installation
    assert ended
    assert ended.status is Status.CANCELLED
    assert (await house.loop.tick()).stats["begun"] == 0
    again = (await house.ides.cancel(operator(), VSCODE)).installation
    assert again == ended


async def test_a_restart_in_the_middle_goes_on_where_it_was(house: House) -> None:
    house.hold("rebuild")
    await house.ask()
    await house.loop.tick()
    await house.reached("rebuild")
    await house.loop.close()
    assert [pid for pid in house.processes() if pid != os.getpid()] == []
    assert (await house.get()).status is Status.RUNNING
    house.release("rebuild")
    await house.lead()
    found = await house.settle()
    assert (found.status, found.attempts) == (Status.DONE, 2)
    assert [verb for verb, _, _ in house.ran()].count("install") == 3  # each of them once


async def test_a_leader_that_is_killed_takes_its_processes_along_and_the_next_one_goes_on(
    house: House, database_url: str
) -> None:
    house.hold("rebuild")
    await house.ask()
    arguments = ("-m", "tests.ides.dying_leader", database_url, str(house.folder))
    leader = await asyncio.create_subprocess_exec(sys.executable, *arguments)
    await house.reached("rebuild")
    leader.send_signal(signal.SIGKILL)
    await leader.wait()
    async with asyncio.timeout(60):
        while [pid for pid in house.processes() if pid != os.getpid()]:
            await asyncio.sleep(0.05)
    house.release("rebuild")
    await house.lead()
    assert (await house.settle()).status is Status.DONE


async def test_it_is_given_up_after_so_many_interruptions(house: House) -> None:
    house.hold("install")
    await house.ask()
    for _ in range(3):
        (house.control / "ran").unlink(missing_ok=True)
        await house.loop.tick()
        await house.reached("install")
        await house.loop.close()
        await house.lead()
    await house.loop.tick()
    found = await house.get()
    assert (found.status, found.problem, found.attempts) == (Status.FAILED, Problem.GAVE_UP, 3)


async def test_two_admins_who_click_at_once_have_it_installed_once(house: House) -> None:
    asked = await asyncio.gather(*(house.ides.install(operator(), VSCODE) for _ in range(5)))
    assert len({ide.installation.asked_at for ide in asked if ide.installation}) == 1
    async with house.database.connection() as c:
        assert await c.fetchval("SELECT count(*) FROM audit_log WHERE code = 'ide.install'") == 1


async def test_nobody_but_an_admin_asks_and_what_is_not_known_is_not_there(house: House) -> None:
    for role in (Role.LEARNER, Role.TEACHER):
        person = Principal("mina", role, ALL_SCOPES, id="mina")
        for asks in (house.ides.install, house.ides.cancel):
            with pytest.raises(ForbiddenError):
                await asks(person, VSCODE)
        with pytest.raises(ForbiddenError):
            await house.ides.all(person)
    with pytest.raises(NotFoundError):
        await house.ides.install(operator(), "emacs")
    with pytest.raises(NotFoundError):
        await house.ides.cancel(operator(), "../../etc")


def test_the_last_lines_are_few_short_and_without_what_moves_a_terminal(tmp_path: pathlib.Path) -> None:
    log = tmp_path / "log"
    assert last_lines(log) == []
    log.write_bytes(
        b"\n".join(b"line %d" % n for n in range(10_000)) + b"\n 10%\r 50%\r\x1b[32m100%\n" + b"x" * 5000 + b"\xff"
    )
    found = last_lines(log)
    assert len(found) == LINES_KEPT
    assert found[-2] == "[32m100%"
    assert max(map(len, found)) <= LINE_LENGTH
