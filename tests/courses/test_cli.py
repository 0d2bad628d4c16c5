"""`codehub course new` and `check`, as a teacher types them without a platform."""

import json
import pathlib
import subprocess

import pytest

from tests.platform import CODEHUB, clean_environment


def run(folder: pathlib.Path, *words: str) -> "subprocess.CompletedProcess[str]":
    environment = clean_environment(CODEHUB_DATA_DIR=str(folder / "no-platform-here"))
    return subprocess.run(
        [*CODEHUB, "course", *words],
        env=environment,
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=90,
        check=False,
    )


@pytest.mark.parametrize("language", ["en", "ko"])
def test_a_new_course_is_valid_and_named_after_its_folder(tmp_path: pathlib.Path, language: str) -> None:
    made = run(tmp_path, "new", "My Course 1", "--language", language)
    assert (made.returncode, made.stderr) == (0, "")
    assert 'key: "my-course-1"\n' in (tmp_path / "My Course 1" / "course.md").read_text("utf-8")
    checked = run(tmp_path, "check", "My Course 1")
    assert (checked.returncode, checked.stderr) == (0, "")
    assert "nothing is wrong" in checked.stdout
    assert json.loads(run(tmp_path, "check", "My Course 1", "--json").stdout)["problems"] == []
    assert not (tmp_path / "no-platform-here").exists()


def test_nothing_is_overwritten_and_unknown_languages_are_said(tmp_path: pathlib.Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "x").write_text("x", "utf-8")
    assert "is not an empty folder" in run(tmp_path, "new", "mine").stderr
    assert "choose one" in run(tmp_path, "new", "other", "--language", "xx").stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == ["mine"]


def test_check_says_what_is_wrong_by_file_and_line(tmp_path: pathlib.Path) -> None:
    run(tmp_path, "new", "c")
    session = tmp_path / "c" / "01-hello" / "session.md"
    session.write_text(session.read_text("utf-8").replace("day: 1", "day: one").replace("# How", "<b>"), "utf-8")
    checked = run(tmp_path, "check", "c")
    assert (checked.returncode, checked.stdout) == (1, "")
    first, second, verdict = checked.stderr.splitlines()
    assert first.startswith("codehub: c/01-hello/session.md:4: day: must be a whole number")
    assert second.startswith("codehub: c/01-hello/session.md:19: warning: raw HTML")
    assert verdict == "codehub: c: 1 error with 1 warning: put right what is wrong, and check it again"
    problem = json.loads(run(tmp_path, "check", "c", "--json").stderr)
    assert problem["code"] == "COURSE_INVALID"
    assert [(p["file"], p["line"], p["error"]) for p in problem["problems"]] == [
        ("01-hello/session.md", 4, True),
        ("01-hello/session.md", 19, False),
    ]


def test_a_folder_that_is_not_there_is_said_in_one_line(tmp_path: pathlib.Path) -> None:
    for command in ("check", "import"):
        done = run(tmp_path, command, "nowhere")
        assert (done.returncode, done.stderr) == (1, "codehub: nowhere: there is no such folder\n")
    assert not (tmp_path / "no-platform-here").exists()


def test_warnings_alone_end_with_a_verdict_and_no_error(tmp_path: pathlib.Path) -> None:
    run(tmp_path, "new", "c")
    session = tmp_path / "c" / "01-hello" / "session.md"
    session.write_text(session.read_text("utf-8") + "\n<br>\n\n![x](https://a.example/b.png)\n", "utf-8")
    checked = run(tmp_path, "check", "c")
    assert (checked.returncode, checked.stderr) == (0, "")
    *warnings, verdict = checked.stdout.splitlines()
    assert [line.split(": ")[1] for line in warnings] == ["warning"] * 2
    assert verdict == "c: OK with 2 warnings: a course of 1 session."
