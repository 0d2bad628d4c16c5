"""As root, the contract and the isolation are proved a second time as an ordinary user, by the same tests."""

import os
import pathlib
import signal
import subprocess
import sys

import pytest

from codehub.system.privileges import enter, needed_trees, service_account, view_for

ROOT = pathlib.Path(__file__).parents[2]
NAMES = ("isolation", "refusals", "pieces", "disk_share", "process_share", "seccomp", "closed_homes")
ISOLATION = tuple(f"tests/runtimes/test_{name}.py" for name in NAMES)
# What keeps people apart, as it is done by default, every time; the whole contract and the other ways in `make soak`.
OTHER = ("-k", "not bubblewrap and not warm")
PROCESSES = "not docker and not cluster"  # engines need root
FILES = [
    pytest.param((*ISOLATION, *OTHER), id="isolation"),
    pytest.param((*ISOLATION, "tests/contracts"), marks=pytest.mark.soak, id="all"),
]


@pytest.mark.parametrize("files", FILES)
def test_everything_holds_for_an_ordinary_user_too(files: tuple[str, ...]) -> None:
    """Not root: then the files named above have just run as one."""
    account = service_account(None)
    if account is None:
        assert os.geteuid() != 0
        return
    parent = os.getpid()
    view = view_for(account, [*needed_trees(), ROOT])
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "--tb=short", "-m", PROCESSES, *files],
        cwd=ROOT,
        env={"PATH": os.environ["PATH"], "HOME": "/nonexistent", "LANG": "C.UTF-8", "PYTHONDONTWRITEBYTECODE": "1"},
        preexec_fn=lambda: enter(account, view, parent, signal.SIGKILL),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-8000:] + done.stderr[-2000:]
    assert " passed" in done.stdout
