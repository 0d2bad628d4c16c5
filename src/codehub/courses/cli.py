"""`codehub course …`: folders of courses, and by the API the platform's. `new` and `check` need no platform."""

import importlib.resources
import pathlib
import re
import shutil
from typing import Annotated, Any

import typer

from codehub.command import output
from codehub.courses import folder as folders
from codehub.courses.folder import FolderError
from codehub.courses.tree import Problem

app = typer.Typer(help="Write courses as folders of Markdown, and bring them to learners.", no_args_is_help=True)
EXAMPLE = importlib.resources.files("codehub.courses") / "example"
FOLDER = Annotated[pathlib.Path, typer.Argument(help="The course's folder.", show_default=False)]
LANGUAGES = ("en", "ko")


@app.command("new")
def new(
    folder: FOLDER,
    language: Annotated[str, typer.Option(help="Of the example in it: en or ko.")] = "en",
) -> None:
    """Make a folder with a small course to begin with; its name becomes the course's key."""
    if language not in LANGUAGES:
        raise FolderError(f"there is an example in {' and '.join(LANGUAGES)}: choose one, and change `language` later")
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise FolderError(f"{folder}: is not an empty folder: name another, so that nothing of yours is overwritten")
    with importlib.resources.as_file(EXAMPLE / language) as example:
        shutil.copytree(example, folder, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__"))
    head = folder / folders.COURSE
    key = re.sub(r"[^a-z0-9]+", "-", folder.resolve().name.lower()).strip("-")[:63].strip("-")
    if key:
        head.write_text(head.read_text("utf-8").replace("key: my-course", f'key: "{key}"', 1), "utf-8")
    output.say(
        f"Made {folder} with one session. Look at it in an editor, then: codehub course check {folder}",
        {"folder": str(folder), "key": key or "my-course"},
    )


@app.command("check")
def check(folder: FOLDER) -> None:
    """Say everything that is wrong with a course's folder, by file and line. Ends with 1 if something is."""
    course, problems = folders.examine(folder)
    told = "\n".join(f"{folder}/{problem}" for problem in problems)
    if course is None:
        raise FolderError(told, problems=[_shown(problem) for problem in problems])
    sessions = len(course.sessions)
    fine = (
        f"{folder}: a course of {sessions} {'session' if sessions == 1 else 'sessions'}, and nothing is wrong with it."
    )
    result = {"title": course.title, "sessions": sessions, "problems": [_shown(problem) for problem in problems]}
    output.say(told or fine, result)


def _shown(problem: Problem) -> dict[str, Any]:
    return {"file": problem.file, "line": problem.line, "message": problem.what, "error": problem.is_error}
