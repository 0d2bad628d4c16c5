"""The page about the architecture is drawn from the code and up to date; no way through it is longer than it may be."""

import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).parents[1]


def test_the_drawing_is_of_the_code_and_no_way_is_too_long() -> None:
    check = subprocess.run(
        [sys.executable, str(ROOT / "scripts" / "draw-architecture"), "--check"],
        check=False,
        capture_output=True,
        text=True,
    )
    assert check.returncode == 0, check.stderr or "run `make architecture`"
