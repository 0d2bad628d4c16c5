"""Export and import of a course is the identity, whatever its texts say."""

import pathlib
import tempfile
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from codehub.courses import folder, source
from codehub.errors import InvalidRequestError
from tests.sessions.blueprints import FULL, SMALLEST, blueprints, markdown, titles

_keys = st.from_regex(r"[a-z0-9]([a-z0-9-]{0,8}[a-z0-9])?", fullmatch=True)


@st.composite
def courses(draw: st.DrawFn) -> dict[str, Any]:
    keys = draw(st.lists(_keys, min_size=1, max_size=3, unique=True))
    sessions = [
        {"key": key, "title": draw(titles), "day": draw(st.integers(1, 99)), "blueprint": draw(blueprints())}
        for key in keys
    ]
    made: dict[str, Any] = {"title": draw(titles), "language": draw(st.sampled_from(["en", "ko", "pt-BR"]))}
    for name, kind in (("key", _keys), ("author", titles), ("description", markdown)):
        if draw(st.booleans()):
            made[name] = draw(kind)
    return {**made, "sessions": sessions}


@given(courses())
@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_import_after_export_is_the_identity(value: dict[str, Any]) -> None:
    course = source.parse(value)
    with tempfile.TemporaryDirectory() as place:
        target = pathlib.Path(place) / "course"
        folder.write(course, target)
        found, problems = folder.examine(target)
    assert [problem for problem in problems if problem.is_error] == []
    assert found is not None
    assert source.canonical(found) == source.canonical(course)


def test_more_than_a_hundred_sessions_keep_their_order(tmp_path: pathlib.Path) -> None:
    sessions = [{"key": f"s{n}", "title": "T", "day": 1, "blueprint": SMALLEST} for n in range(120)]
    course = source.parse({"title": "Long", "language": "en", "sessions": sessions})
    folder.write(course, tmp_path / "long")
    assert [s.key for s in folder.load(tmp_path / "long").sessions] == [f"s{n}" for n in range(120)]


def practice(files: dict[str, str]) -> dict[str, Any]:
    activity = {"instructions": "Do it.", "files": files}
    return {**SMALLEST, "steps": ["PRACTICE", "COMPLETE"], "practiceActivity": activity}


@pytest.mark.parametrize("path", ["/".join("a" * 100), ".git/config", "__pycache__/x.py", "x.pyc", " a /b "])
def test_a_starter_file_of_any_path_is_carried(tmp_path: pathlib.Path, path: str) -> None:
    sessions = [{"key": "a", "title": "T", "day": 1, "blueprint": practice({path: "x"})}]
    course = source.parse({"title": "Short", "language": "en", "sessions": sessions})
    folder.write(course, tmp_path / "c")
    assert source.canonical(folder.load(tmp_path / "c")) == source.canonical(course)


def test_what_a_folder_cannot_carry_is_no_starter_file() -> None:
    sessions = [{"key": "a", "title": "T", "day": 1, "blueprint": practice({"b/__pycache__/x.pyc": "x"})}]
    with pytest.raises(InvalidRequestError, match="compiled Python"):
        source.parse({"title": "Short", "language": "en", "sessions": sessions})


def test_a_session_of_short_lines_is_carried(tmp_path: pathlib.Path) -> None:
    checks = [{"id": id_, "title": "T", "command": "true", "hint": "a\n" * 38_000 + "b"} for id_ in ("a", "b")]
    blueprint = practice({})
    blueprint["practiceActivity"]["checks"] = checks
    sessions = [{"key": "a", "title": "T", "day": 1, "blueprint": blueprint}]
    course = source.parse({"title": "Short", "language": "en", "sessions": sessions})
    folder.write(course, tmp_path / "c")
    assert source.canonical(folder.load(tmp_path / "c")) == source.canonical(course)


def test_as_many_files_as_a_course_may_have_are_carried(tmp_path: pathlib.Path) -> None:
    files = {f"f{n}": "" for n in range(60)}
    sessions = [{"key": f"s{n}", "title": "T", "day": 1, "blueprint": practice(files)} for n in range(100)]
    course = source.parse({"title": "Many", "language": "en", "sessions": sessions})
    folder.write(course, tmp_path / "c")
    assert source.canonical(folder.load(tmp_path / "c")) == source.canonical(course)


def test_an_export_overwrites_nothing(tmp_path: pathlib.Path) -> None:
    sessions = [{"key": "a", "title": "T", "day": 1, "blueprint": FULL}]
    course = source.parse({"title": "Short", "language": "en", "sessions": sessions})
    (tmp_path / "mine.txt").write_text("mine", encoding="utf-8")
    with pytest.raises(folder.FolderError, match="not an empty folder"):
        folder.write(course, tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]


def test_what_is_written_is_read_well_by_people(tmp_path: pathlib.Path) -> None:
    sessions = [{"key": "hello", "title": "Hello", "day": 1, "blueprint": FULL}]
    course = source.parse({"key": "c", "title": "A course", "language": "en", "sessions": sessions})
    folder.write(course, tmp_path / "c")
    assert (tmp_path / "c" / "course.md").read_text("utf-8") == "---\nkey: c\ntitle: A course\nlanguage: en\n---\n"
    text = (tmp_path / "c" / "01-hello" / "session.md").read_text("utf-8")
    assert text.endswith("---\n\n# One\n\n<!-- next -->\n\n# Two\n")
    check = (tmp_path / "c" / "01-hello" / "check.md").read_text("utf-8")
    assert check.startswith("## loop-count\n\nHow many lines does this print?\n\n```question\nkind: single\nchoices:\n")
    assert (tmp_path / "c" / "01-hello" / "files" / "data" / "a.txt").read_bytes() == b"1\r\n2"
