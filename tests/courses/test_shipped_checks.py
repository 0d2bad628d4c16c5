"""Checks of the shipped courses where a learner writes it otherwise than the reference solution, run by `sh` in a home.

The robot of the soak tests tries the solutions of every session; these are right ones that it does not know.
"""

import os
import pathlib
import shutil
import subprocess

import pytest

from codehub.courses import folder
from tests.courses.test_shipped import SHIPPED

CARD_ON_ONE_LINE = """cat > 01-hello/card.py <<'EOF'
name, city, likes = "Omar", "Lyon", "chess"
line: str = "=" * 20
print(f"{line}\\nName: {name}\\nCity: {city}")
print("Likes: " + likes, line, sep="\\n")
EOF
"""
BREAD_FIRST = ("pumpkin soup with bread", "bread and pumpkin soup")


def refused(course: str, place: str, solution: str, home: pathlib.Path) -> dict[str, str]:
    """What the checks print that this solution, in a home with the session's starter files, does not pass."""
    session = SHIPPED / course / place
    shutil.copytree(session / "files", home, dirs_exist_ok=True)
    places = sorted(path.parent.name for path in (SHIPPED / course).glob("*/session.md"))
    activity = folder.load(SHIPPED / course).sessions[places.index(place)].blueprint.practice_activity
    assert activity is not None
    environment = {"PATH": os.environ["PATH"], "HOME": str(home)}
    subprocess.run(["sh", "-c", solution], cwd=home, env=environment, check=True, capture_output=True)
    ran = {
        check.id: subprocess.run(
            ["sh", "-c", check.command], cwd=home, env=environment, check=False, capture_output=True
        )
        for check in activity.checks
    }
    return {id_: done.stdout.decode() for id_, done in ran.items() if done.returncode}


def test_variables_may_get_their_values_on_one_line(tmp_path: pathlib.Path) -> None:
    assert refused("python-for-beginners/en", "01-hello", CARD_ON_ONE_LINE, tmp_path) == {}


@pytest.mark.parametrize("language", ["en", "ko"])
def test_each_variable_must_come_out_after_its_own_label(language: str, tmp_path: pathlib.Path) -> None:
    course = f"python-for-beginners/{language}"
    swapped = (SHIPPED / course / "01-hello/solutions/wrong-6-variables-swapped.sh").read_text("utf-8")
    assert list(refused(course, "01-hello", swapped, tmp_path)) == ["variables"]


def test_a_conflict_may_be_resolved_in_either_order_of_the_two_wishes(tmp_path: pathlib.Path) -> None:
    reference = (SHIPPED / "git/en/04-remote/solutions/reference.sh").read_text("utf-8")
    assert refused("git/en", "04-remote", reference.replace(*BREAD_FIRST), tmp_path) == {}
