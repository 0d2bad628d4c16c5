"""Which process is which, and what a crash left behind."""

import os
import pathlib
import signal
import subprocess
import sys

from codehub.system.processes import Identity, Ledger


def sleeper(*, stubborn: bool = False) -> subprocess.Popen[bytes]:
    ignore = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN);" if stubborn else ""
    code = f"{ignore}import time; print(flush=True); time.sleep(60)"
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE)
    assert process.stdout
    process.stdout.readline()
    process.stdout.close()
    return process


def test_a_pid_with_another_start_time_is_another_process() -> None:
    process = sleeper()
    identity = Identity.of(process.pid)
    assert identity
    assert identity.alive()
    impostor = Identity(identity.pid, identity.started - 1, identity.boot)
    assert not impostor.alive()
    impostor.signal(signal.SIGKILL)
    assert process.poll() is None
    process.kill()
    process.wait()
    assert not identity.alive()


def test_a_zombie_is_dead() -> None:
    process = sleeper()
    identity = Identity.of(process.pid)
    os.kill(process.pid, signal.SIGKILL)
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)  # dead, and not yet reaped
    assert identity
    assert not identity.alive()
    process.wait()


def test_leftovers_are_asked_and_then_ended_and_strangers_left_alone(tmp_path: pathlib.Path) -> None:
    polite, stubborn, stopped, stranger = sleeper(), sleeper(stubborn=True), sleeper(), sleeper()
    os.kill(stopped.pid, signal.SIGSTOP)
    ledger = Ledger(tmp_path / "children.json")
    for name, process in (("polite", polite), ("stubborn", stubborn), ("stopped", stopped)):
        ledger.note(name, process.pid, signal.SIGTERM)
    assert Ledger(tmp_path / "children.json").end_leftovers(grace=1.0) == ["polite", "stopped", "stubborn"]
    assert polite.wait(5) == -signal.SIGTERM
    assert stopped.wait(5) == -signal.SIGTERM
    assert stubborn.wait(5) == -signal.SIGKILL
    assert stranger.poll() is None
    stranger.kill()
    stranger.wait()


def test_a_broken_ledger_is_an_empty_one(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "children.json"
    for text in ("", "{", "[]", '{"api": 3}', '{"api": [{"pid": 1}, 15]}'):
        path.write_text(text)
        assert Ledger(path).end_leftovers() == []
