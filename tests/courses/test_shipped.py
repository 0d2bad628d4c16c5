"""Courses that come with the product, and the example that `course new` copies: `check` says nothing about them."""

import importlib.resources
import pathlib

import pytest

from codehub.courses import cli, folder

SHIPPED = pathlib.Path(str(importlib.resources.files("codehub.courses") / "shipped"))
COURSES = [path for path in sorted(SHIPPED.glob("*/*")) if path.is_dir() and path.name != "__pycache__"]
EXAMPLES = [pathlib.Path(str(cli.EXAMPLE)) / language for language in cli.LANGUAGES]


@pytest.mark.parametrize("course", [*COURSES, *EXAMPLES], ids=lambda path: f"{path.parent.name}-{path.name}")
def test_check_says_nothing_about_it(course: pathlib.Path) -> None:
    found, problems = folder.examine(course)
    assert [str(problem) for problem in problems] == []
    assert found is not None
    assert found.language == course.name
    assert found.key == (course.parent.name if course in COURSES else "my-course")


def test_each_is_there_in_both_languages_with_the_same_sessions() -> None:
    assert {path.parent.name for path in COURSES} >= {"git", "python-for-beginners"}
    for name in {path.parent for path in COURSES}:
        english, korean = (folder.load(name / language) for language in ("en", "ko"))
        keys = [[(s.key, s.day, s.blueprint.steps) for s in course.sessions] for course in (english, korean)]
        assert keys[0] == keys[1], name
