"""A child goes on as one of our roles, in a copy of this process: what it has, and what it must not have."""

import asyncio
import contextlib
import contextvars
import json
import os
import pathlib
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest

from codehub.embedded.datadir import DataDir
from codehub.system.forking import NOT_FOUND, Spec, spawn
from codehub.system.privileges import service_account

whose = contextvars.ContextVar("whose", default="nobody's")


def telling(path: pathlib.Path, look: Callable[[], Any]) -> Callable[[], None]:
    """A role that writes down what it sees, in a file that is there already."""
    path.touch()
    path.chmod(0o666)

    def tell() -> None:
        path.write_text(json.dumps(look()))

    return tell


def targets() -> dict[int, str]:
    found = {}
    for link in pathlib.Path("/proc/self/fd").iterdir():
        with contextlib.suppress(OSError):  # the listing's own is closed by now
            found[int(link.name)] = str(link.readlink())
    return found


async def test_a_role_has_the_files_it_was_given_and_none_of_ours(tmp_path: pathlib.Path) -> None:
    lock = DataDir(tmp_path / "data").lock()
    with socket.create_server(("127.0.0.1", 0)) as given, socket.create_server(("127.0.0.1", 0)) as ours:
        spec = Spec("role", telling(tmp_path / "seen", targets), None, pass_fds=(given.fileno(),))
        assert await spawn(spec).wait() == 0
        seen = {int(fd): target for fd, target in json.loads((tmp_path / "seen").read_text()).items()}
        opened = {fd: target for fd, target in seen.items() if target != "/dev/null" and fd > 2}
        written = str(tmp_path / "seen")
        assert {fd for fd, target in opened.items() if target not in {written, "/proc/self/fd"}} == {given.fileno()}
        assert seen[0] == "/dev/null"
        assert seen[lock] == "/dev/null"  # or a role that outlives us would hold the data directory
        assert ours.fileno() >= 0
    os.close(lock)


async def test_a_role_has_its_own_environment_session_name_and_no_context(tmp_path: pathlib.Path) -> None:
    def look() -> dict[str, Any]:
        return {
            "environment": dict(os.environ),
            "session": os.getsid(0) == os.getpid(),
            "directory": str(pathlib.Path.cwd()),
            "name": pathlib.Path("/proc/self/comm").read_text().strip(),
            "whose": whose.get(),
            "signals": [signal.getsignal(n) == signal.SIG_DFL for n in (signal.SIGTERM, signal.SIGHUP)],
            "blocked": sorted(signal.pthread_sigmask(signal.SIG_BLOCK, set())),
            "rights": os.getresuid(),
        }

    whose.set("ours")
    asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, lambda: None)
    place = tmp_path / "place"
    place.mkdir()
    program = telling(tmp_path / "seen", look)
    spec = Spec("front-door", program, None, environment={"ITS": "own"}, directory=place)
    assert await spawn(spec).wait() == 0
    asyncio.get_running_loop().remove_signal_handler(signal.SIGHUP)
    assert json.loads((tmp_path / "seen").read_text()) == {
        "environment": {"ITS": "own"},
        "session": True,
        "directory": str(place),
        "name": "codehub-front-d",  # as long as the kernel keeps it
        "whose": "nobody's",
        "signals": [True, True],
        "blocked": [],
        "rights": list(os.getresuid()),
    }
    assert "ITS" not in os.environ


async def test_a_role_runs_an_event_loop_of_its_own(tmp_path: pathlib.Path) -> None:
    async def work() -> str:
        await asyncio.sleep(0.01)
        return "done"

    program = telling(tmp_path / "seen", lambda: asyncio.run(work()))
    assert await spawn(Spec("role", program, None)).wait() == 0
    assert (tmp_path / "seen").read_text() == '"done"'


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
async def test_a_signal_for_a_newborn_does_not_reach_us(number: signal.Signals) -> None:
    """Both have our loop's socket for a moment: what is written into it by the child would be heard here."""
    heard = []
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(number, lambda: heard.append(number))
    try:
        children = [spawn(Spec("role", signal.pause, None)) for _ in range(20)]
        for child in children:
            child.send_signal(number)
        async with asyncio.timeout(20):
            codes = {await child.wait() for child in children}
        await asyncio.sleep(0.05)
    finally:
        loop.remove_signal_handler(number)
    assert codes <= {-number, 1}  # Ctrl-C is an exception, whatever was going on
    assert heard == []


@pytest.mark.parametrize(
    ("program", "code"),
    [
        (lambda: None, 0),
        (lambda: sys.exit(3), 3),
        (lambda: sys.exit(None), 0),
        (lambda: sys.exit("words"), 1),
        (lambda: 1 / 0, 1),
        (lambda: os.kill(os.getpid(), signal.SIGKILL), -9),
        (("/bin/false",), 1),
        (("/nonexistent",), NOT_FOUND),
    ],
)
async def test_the_end_of_a_child_is_seen_as_it_was(program: Any, code: int, tmp_path: pathlib.Path) -> None:
    child = spawn(Spec("child", program, None, log_file=tmp_path / "log"))
    assert await child.wait() == code == child.returncode
    child.send_signal(signal.SIGTERM)  # to whoever has its number now: nobody is hit


@pytest.mark.parametrize(
    ("program", "words"),
    [
        (lambda: 1 / 0, "ZeroDivisionError"),
        (("/nonexistent",), "could not be started"),
        (("/etc",), "Permission denied"),
        (lambda: pathlib.Path("/nonexistent").stat(), "Traceback"),
    ],
)
async def test_what_went_wrong_is_said_in_its_log(program: Any, words: str, tmp_path: pathlib.Path) -> None:
    await spawn(Spec("child", program, None, log_file=tmp_path / "log")).wait()
    assert words in (tmp_path / "log").read_text()


async def test_the_memory_of_a_role_is_closed_to_others_of_the_account_it_was_given(tmp_path: pathlib.Path) -> None:
    """An ordinary user has no other account to give: there everything is the same person's, and open to them."""
    account = service_account(None)
    child = spawn(Spec("role", signal.pause, account))
    async with asyncio.timeout(20):
        while pathlib.Path(f"/proc/{child.pid}/comm").read_text() != "codehub-role\n":
            await asyncio.sleep(0.01)
    script = f"id -u; cat /proc/{child.pid}/environ > /dev/null && echo open"
    spec = Spec("spy", ("/bin/sh", "-c", script), account, log_file=tmp_path / "log", environment={"PATH": os.defpath})
    await spawn(spec).wait()
    child.kill()
    await child.wait()
    who, *told = (tmp_path / "log").read_text().splitlines()
    assert int(who) == (account.uid if account else os.geteuid())
    assert ("open" in told) is (account is None)


def test_the_supervisor_loads_no_counters_before_it_has_named_their_folder() -> None:
    """They choose between memory and files once, when they are loaded; in memory each role has only its own."""
    look = "import sys; from codehub.supervisor import preflight, serve; sys.exit('codehub.metrics' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", look], check=False).returncode == 0
