"""What containers with `network = internet` reach: `docker_reach_cases`, with a small internet around the machine."""

import os
import pathlib
import subprocess
import sys

import pytest

from tests import docker_engine as engines

ROOT = pathlib.Path(__file__).parents[2]

pytestmark = [pytest.mark.docker]


def test_containers_reach_the_internet_and_nothing_else(docker_engine: str, tmp_path: pathlib.Path) -> None:
    saved = tmp_path / "images.tar"
    engines.docker(docker_engine, "save", "-o", str(saved), engines.IMAGES["platform"], engines.IMAGES["terminal"])
    command = [sys.executable, "-m", "pytest", "--tb=short", "tests/runtimes/docker_reach_cases.py"]
    own = {engines.SAVED: str(saved), "XDG_CACHE_HOME": str(engines.cache().parent), "HOME": "/nonexistent"}
    done = subprocess.run(
        [sys.executable, "-m", "tests.runtimes.small_internet", "root", *command],
        cwd=ROOT,
        env={"PATH": os.environ["PATH"], "LANG": "C.UTF-8", "PYTHONDONTWRITEBYTECODE": "1", **own},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-8000:] + done.stderr[-2000:]
    assert " passed" in done.stdout
