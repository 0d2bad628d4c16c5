"""What workspaces reach: `reach_cases`, on a machine with a small internet around it. To make one takes root and `ip`.

Without them, what needs no internet is shown by `test_isolation`: the machine, its ports and sockets, the neighbours.
"""

import os
import pathlib
import shutil
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).parents[2]
CAN_MAKE_ONE = os.geteuid() == 0 and all(map(shutil.which, ("ip", "openssl", "git")))
WHO = ["root", "ordinary"] if CAN_MAKE_ONE else []


@pytest.mark.parametrize("who", WHO)
def test_inside_reaches_what_it_should_and_nothing_else(who: str) -> None:
    command = [sys.executable, "-m", "pytest", "--tb=short", "tests/runtimes/reach_cases.py"]
    done = subprocess.run(
        [sys.executable, "-m", "tests.runtimes.small_internet", who, *command],
        cwd=ROOT,
        env={"PATH": os.environ["PATH"], "HOME": "/nonexistent", "LANG": "C.UTF-8", "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-8000:] + done.stderr[-2000:]
    assert " passed" in done.stdout
