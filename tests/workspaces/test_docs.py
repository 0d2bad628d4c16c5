"""The page of states is drawn from the rules, and up to date."""

import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).parents[2]


def test_the_drawn_states_are_those_of_the_rules() -> None:
    check = subprocess.run([sys.executable, str(ROOT / "scripts" / "draw-states"), "--check"], check=False)
    assert check.returncode == 0, "run `make states`"
