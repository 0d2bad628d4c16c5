"""docs/courses.md: its commands, one after the other on a running platform, and its examples as files."""

import pathlib
import shlex
import textwrap
import time
from collections.abc import Iterator

import pytest

from codehub.courses import folder, questions
from tests.command.running import found, refused, run, said
from tests.platform import Platform
from tests.workspaces.test_lifecycle import lab

PAGE = (pathlib.Path(__file__).parents[2] / "docs" / "courses.md").read_text("utf-8")


@pytest.fixture(scope="module")
def platform() -> Iterator[Platform]:
    with lab() as started:
        yield started


def test_every_command_of_the_page_works(platform: Platform, tmp_path: pathlib.Path) -> None:
    lines = [line.strip() for line in PAGE.splitlines() if line.startswith("    codehub ")]
    assert len(lines) == 7
    for line in lines:
        done = run(platform, *shlex.split(line)[1:], folder=tmp_path)
        assert done.returncode == 0, (line, done.stderr)
    assert folder.load(tmp_path / "copy-of-it") == folder.load(tmp_path / "hello-python")
    listed = found(platform, "course", "list")["items"]
    assert [(c["key"], c["owner"], c["version"]) for c in listed if not c["shipped"]] == [("hello-python", None, 1)]


def test_importing_again_is_a_new_version_only_if_something_changed(platform: Platform, tmp_path: pathlib.Path) -> None:
    said(platform, "user", "add", "kim", "--role", "teacher")
    said(platform, "course", "new", str(tmp_path / "c"), "--language", "ko")
    words = ("course", "import", str(tmp_path / "c"), "--owner", "kim")
    first = found(platform, *words)
    assert (first["version"], first["owner"], first["key"]) == (1, "kim", "c")
    assert (first["outcome"], first["warnings"]) == ("new", [])
    assert found(platform, *words) == {**first, "outcome": "unchanged"}
    assert (
        said(platform, *words)
        == f"나의 강의 ({first['id']}) is as it was: nothing changed, it stays at version 1, 1 session.\n"
    )
    page = tmp_path / "c" / "01-hello" / "session.md"
    page.write_text(page.read_text("utf-8").replace("day: 1", "day: 2"), "utf-8")
    page.write_text(page.read_text("utf-8") + "\n<br>\n", "utf-8")
    warning, done = said(platform, *words).splitlines()
    assert f"{page}:" in warning
    assert done == f"나의 강의 ({first['id']}) has a new version: 2, 1 session with 1 warning."
    said(platform, "course", "export", "c", str(tmp_path / "out"))
    assert folder.load(tmp_path / "out") == folder.load(tmp_path / "c")
    assert "나의 강의" in said(platform, "course", "list", "--language", "ko")


def test_what_only_the_platform_finds_wrong_is_said_by_file_and_line(
    platform: Platform, tmp_path: pathlib.Path
) -> None:
    said(platform, "course", "new", str(tmp_path / "c"))
    page = tmp_path / "c" / "01-hello" / "practice.md"
    page.write_text(page.read_text("utf-8").replace("checks:", "template: no-such\nchecks:", 1), "utf-8")
    told = refused(platform, "course", "import", str(tmp_path / "c"))
    assert f"{page}:2: template: there is no template 'no-such'" in told
    said(platform, "course", "new", str(tmp_path / "d"))
    told = refused(platform, "course", "import", str(tmp_path / "d"), "--owner", "nobody-here")
    assert told == "codehub: there is no such user"


def installed(platform: Platform) -> None:
    """In the background of the start, so it may take a moment."""
    deadline = time.monotonic() + 60
    while len([c for c in found(platform, "course", "list")["items"] if c["shipped"]]) < 4:
        assert time.monotonic() < deadline


def test_what_comes_with_the_product_is_there_and_is_exported(platform: Platform, tmp_path: pathlib.Path) -> None:
    installed(platform)
    two = refused(platform, "course", "export", "git", str(tmp_path / "git"))
    assert "2 courses have the key git: say which by its id" in two
    (english,) = [c for c in found(platform, "course", "list", "--language", "en")["items"] if c["key"] == "git"]
    said(platform, "course", "export", english["id"], str(tmp_path / "git"))
    shipped = pathlib.Path(folder.__file__).parent / "shipped" / "git" / "en"
    assert folder.load(tmp_path / "git") == folder.load(shipped)


def test_the_examples_of_the_page_are_a_course(tmp_path: pathlib.Path) -> None:
    session = tmp_path / "01-hello"
    session.mkdir()
    (tmp_path / "course.md").write_text(_example("course.md"), "utf-8")
    for name in ("session.md", "check.md", "practice.md"):
        (session / name).write_text(_example(name), "utf-8")
    course, problems = folder.examine(tmp_path)
    assert [str(problem) for problem in problems] == []
    assert course is not None
    assert len(course.sessions[0].blueprint.learning_content) == 2
    assert questions.read(_example("check.md")).errors == []


def _example(name: str) -> str:
    section = PAGE.split(f"\n## {name}\n", 1)[1].split("\n## ", 1)[0]
    lines = section.split("\n")
    start = next(n for n, line in enumerate(lines) if line.startswith("    "))
    end = next(n for n in range(start, len(lines)) if lines[n] and not lines[n].startswith("    "))
    return textwrap.dedent("\n".join(lines[start:end])).strip() + "\n"
