"""Installing an IDE: it goes on where it ended, says what goes wrong, and needs no more than a compiler and make."""

import json
import os
import pathlib

import pytest

from codehub.errors import StartError
from codehub.runtimes import code_server, ide_install
from codehub.runtimes.code_server import Step

GYP_OUTPUT = """
gyp info it worked if it ends with ok
../src/kerberos.cc:3:10: fatal error: gssapi/gssapi.h: No such file or directory
gyp ERR! build error
npm error A complete log of this run can be found in: /somewhere
"""


async def test_an_installation_goes_on_where_it_ended(tmp_path: pathlib.Path) -> None:
    aside, log, said = tmp_path / ".ide", tmp_path / "install.log", list[str]()
    env = {"PATH": os.environ["PATH"]}
    first = Step("one", "First", ["sh", "-c", f"echo ran >> {tmp_path}/count; echo working"], env)
    broken = Step("two", "Second", ["sh", "-c", "echo no space left; exit 3"], env)
    with pytest.raises(StartError, match=r"Second failed \(exit code 3\): no space left .*install.log"):
        await ide_install.carry_out([first, broken], aside, log, said.append)
    mended = Step("two", "Second", ["true"], env)
    await ide_install.carry_out([first, mended], aside, log, said.append)
    assert (tmp_path / "count").read_text() == "ran\n"
    assert said == ["First", "Second", "First: done before", "Second"]
    assert log.read_text() == "== First\nworking\n== Second\nno space left\n== Second\n"


def test_a_failure_is_told_by_the_compilers_own_complaint() -> None:
    assert ide_install.reason(GYP_OUTPUT.splitlines()) == GYP_OUTPUT.splitlines()[2]
    assert ide_install.reason(["one", "the last word", ""]) == "the last word"
    assert ide_install.reason([]) == "it said nothing"


async def test_a_missing_compiler_is_said_before_anything_is_fetched(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(
        StartError, match=r"^g\+\+ and make must be installed first \(Debian and Ubuntu: apt-get install"
    ):
        await ide_install.install("code-server", tmp_path / "data", print)
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
    ]
    assert [step.title for step in steps] == ["Building 1 of 2: argon2", "Building 2 of 2: @vscode/spdlog"]
    assert all("--ignore-scripts" in step.command for step in build.fetching()[1:3])


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
        await ide_install.install("emacs", tmp_path, print)
