"""A command in a hint can be typed as it stands, where the platform was started."""

import os
import pathlib
import subprocess

import pytest

from codehub import invocation
from tests.platform import Platform, clean_environment, running


@pytest.fixture
def script(tmp_path: pathlib.Path) -> pathlib.Path:
    path = tmp_path / "lab" / ".venv" / "bin" / "codehub"
    path.parent.mkdir(parents=True)
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    return path


def typed(script: pathlib.Path, folder: pathlib.Path, **environ: str) -> str:
    return invocation.find(script.with_name("python"), folder, {"PATH": "/usr/bin", **environ})


def test_a_hint_is_as_short_as_it_can_be(script: pathlib.Path, tmp_path: pathlib.Path) -> None:
    lab = tmp_path / "lab"
    assert typed(script, lab) == ".venv/bin/codehub"
    assert typed(script, tmp_path / "elsewhere") == str(script)
    assert typed(script, lab, PATH=f"/usr/bin:{script.parent}") == "codehub"
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "codehub").symlink_to(script)
    assert typed(script, lab, PATH=str(tmp_path / "bin")) == "codehub"
    script.unlink()
    assert typed(script, lab) == f"{script.with_name('python')} -m codehub"


def test_another_codehub_on_the_path_is_not_ours(script: pathlib.Path, tmp_path: pathlib.Path) -> None:
    other = tmp_path / "bin" / "codehub"
    other.parent.mkdir()
    other.write_text("#!/bin/sh\n")
    other.chmod(0o755)
    assert typed(script, tmp_path / "lab", PATH=str(other.parent)) == ".venv/bin/codehub"


def test_a_hint_names_the_data_it_is_about_when_the_shell_did(script: pathlib.Path, tmp_path: pathlib.Path) -> None:
    given = typed(script, tmp_path / "lab", CODEHUB_DATA_DIR="/srv/my lab")
    assert given == "CODEHUB_DATA_DIR='/srv/my lab' .venv/bin/codehub"


def test_the_way_in_that_serve_prints_works_in_another_shell(data_dir: pathlib.Path) -> None:
    with running(data_dir) as platform:
        ours = {name: value for name, value in clean_environment().items() if not name.startswith("CODEHUB_")}
        (line,) = [line for line in platform.output().splitlines() if "Run, on this machine:" in line]
        ended = subprocess.run(
            ["sh", "-c", line.partition("machine: ")[2]], env=ours, capture_output=True, text=True, check=True
        )
        assert ended.stdout.startswith(f"{platform.url}/login/")


async def test_pages_name_the_command_that_works_here_and_strangers_learn_no_folder(data_dir: pathlib.Path) -> None:
    with running(data_dir, CODEHUB_TRUSTED_PROXIES="127.0.0.1") as platform:
        here = await _welcome(platform, {})
        assert f"CODEHUB_DATA_DIR={data_dir}" in here
        assert f"{os.sep}codehub user login-link NAME" in here
        far = await _welcome(platform, {"X-Forwarded-For": "203.0.113.9"})
        assert "<code>codehub user login-link NAME" in far
        assert str(data_dir) not in far


async def _welcome(platform: Platform, headers: dict[str, str]) -> str:
    accepted = {"Accept": "text/html", **headers}
    async with platform.client(None) as stranger, stranger.get("/", headers=accepted) as answer:
        return await answer.text()
