"""Installing an IDE: it goes on where it ended, says what goes wrong, and needs no more than a compiler and make."""

import json
import os
import pathlib
from collections.abc import Mapping
from typing import Any

import pytest

from codehub.errors import StartError
from codehub.runtimes import code_server, ide_build, ide_install
from codehub.runtimes.code_server import Step

GYP_OUTPUT = """
gyp info it worked if it ends with ok
../src/kerberos.cc:3:10: fatal error: gssapi/gssapi.h: No such file or directory
gyp ERR! build error
npm error A complete log of this run can be found in: /somewhere
"""


async def test_an_installation_goes_on_where_it_ended(tmp_path: pathlib.Path) -> None:
    aside, said = tmp_path / ".ide", list[tuple[str, bool]]()
    aside.mkdir()
    log = os.open(tmp_path / "install.log", os.O_RDWR | os.O_CREAT | os.O_APPEND)
    env = {"PATH": os.environ["PATH"]}

    def say(told: Mapping[str, Any]) -> None:
        said.append((told["title"], told["before"]))

    first = Step("one", "First", ["sh", "-c", f"echo ran >> {tmp_path}/count; echo working"], env)
    broken = Step("two", "Second", ["sh", "-c", "echo no space left; exit 3"], env)
    with pytest.raises(ide_build.StepFailedError, match=r"Second failed \(exit code 3\): no space left") as caught:
        await ide_build.carry_out([first, broken], aside, log, say)
    assert caught.value.said == "no space left"
    mended = Step("two", "Second", ["true"], env)
    await ide_build.carry_out([first, mended], aside, log, say)
    os.close(log)
    assert (tmp_path / "count").read_text() == "ran\n"
    assert said == [("First", False), ("Second", False), ("First", True), ("Second", False)]
    assert (tmp_path / "install.log").read_text() == "== First\nworking\n== Second\nno space left\n== Second\n"


def test_a_failure_is_told_by_the_compilers_own_complaint() -> None:
    assert ide_build.reason(GYP_OUTPUT.splitlines()) == GYP_OUTPUT.splitlines()[2]
    assert ide_build.reason(["one", "the last word", ""]) == "the last word"
    assert ide_build.reason([]) == "it said nothing"
    assert len(ide_build.reason(["x" * 10_000])) == ide_build.LONGEST_REASON


async def test_a_missing_compiler_is_said_before_anything_is_fetched(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(
        ide_install.MissingToolsError,
        match=r"^g\+\+ and make must be installed first \(Debian and Ubuntu: apt-get install",
    ) as caught:
        await ide_install.install("code-server", tmp_path / "data", print, 200_000)
    assert caught.value.missing == ["g++", "make"]
    assert not (tmp_path / "data").exists()


def test_every_part_with_native_code_is_built_by_itself_but_those_nothing_needs(tmp_path: pathlib.Path) -> None:
    build = code_server.Build(tmp_path, {"PATH": "/usr/bin"})
    for root, names in (
        (build.app, ["argon2"]),
        (build.vscode, ["kerberos", "cpu-features", "@vscode/spdlog", "plain"]),
    ):
        for name in names:
            folder = root / "node_modules" / name
            folder.mkdir(parents=True)
            (folder / "package.json").write_text(json.dumps({"name": name}))
            if name != "plain":
                (folder / "binding.gyp").touch()
    inner = build.vscode / "node_modules" / "ssh2" / "lib" / "crypto"  # a part of a package, which does without it
    inner.mkdir(parents=True)
    (inner / "binding.gyp").touch()
    steps = build.building()
    assert [(step.command[1], step.command[-1], step.directory) for step in steps] == [
        ("rebuild", "argon2", build.app),
        ("rebuild", "@vscode/spdlog", build.vscode),
        ("run", "postinstall", build.vscode / "extensions"),
    ]
    assert [step.title for step in steps[:2]] == ["Building 1 of 2: argon2", "Building 2 of 2: @vscode/spdlog"]
    assert [dict(step.data) for step in steps[:1]] == [{"n": 1, "of": 2, "name": "argon2"}]
    assert all("--ignore-scripts" in step.command for step in build.fetching()[1:])  # nothing runs while it is fetched


def test_an_installed_ide_appears_whole_and_replaces_an_older_one(tmp_path: pathlib.Path) -> None:
    for version in ("old", "new"):
        aside = tmp_path / ".ide"
        (aside / "cache").mkdir(parents=True)
        (aside / "version").write_text(version)
        ide_install.swap_in(aside, tmp_path / "ide")
        assert (tmp_path / "ide" / "version").read_text() == version
    assert [path.name for path in tmp_path.iterdir()] == ["ide"]


async def test_what_can_not_be_installed_is_said(tmp_path: pathlib.Path) -> None:
    with pytest.raises(StartError, match="emacs cannot be installed"):
        await ide_install.install("emacs", tmp_path, print, 200_000)
