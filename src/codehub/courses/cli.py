"""`codehub course …`: folders of courses, and by the API the platform's own. `new` and `check` need no platform."""

import importlib.resources
import pathlib
import re
import shutil
from typing import Annotated, Any

import typer

from codehub.command import output
from codehub.command.client import Api, ApiError, connected
from codehub.courses import folder as folders
from codehub.courses import source
from codehub.courses.folder import FolderError
from codehub.courses.tree import Problem
from codehub.errors import CodeHubError

app = typer.Typer(help="Write courses as folders of Markdown, and bring them to learners.", no_args_is_help=True)
EXAMPLE = importlib.resources.files("codehub.courses") / "example"
FOLDER = Annotated[pathlib.Path, typer.Argument(help="The course's folder.", show_default=False)]
LANGUAGES = ("en", "ko")
WHICH = Annotated[str, typer.Argument(help="The course's id, or its key when only one has it.", show_default=False)]
EXISTS = "COURSE_EXISTS"


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


@app.command("import")
def import_(
    folder: FOLDER,
    owner: Annotated[str | None, typer.Option(help="Whose it is; unset: the platform's.")] = None,
) -> None:
    """Bring a folder to the platform. One with this key, language and owner gets a new version."""
    written = source.as_json(folders.load(folder))
    with connected() as api:
        try:
            done = api.post("courses", **written, owner=owner)
        except ApiError as error:
            if error.code != EXISTS:
                raise
            done = _new_version(api, str(error.extra["course_id"]), written)
    output.say(f"{done['title']} ({done['id']}) is at version {done['version']}.", done)


def _new_version(api: Api, id_: str, written: dict[str, Any]) -> Any:
    """On what is there now: what another person sends meanwhile is refused, not lost."""
    return api.put("courses", id_, **written, version=api.get("courses", id_)["version"])


@app.command("export")
def export(course: WHICH, folder: FOLDER) -> None:
    """Write a course of the platform into a new folder, as `import` reads it."""
    with connected() as api:
        id_ = _find(api, course)["id"]
        written = api.get("courses", id_, "source")
    found = source.parse({name: value for name, value in written.items() if name not in {"id", "version"}})
    folders.write(found, folder)
    result = {"id": id_, "version": written["version"], "folder": str(folder), "sessions": len(found.sessions)}
    output.say(f"Wrote {found.title}, version {written['version']}, to {folder}.", result)


@app.command("list")
def list_(language: Annotated[str | None, typer.Option(help="Only these, as en or ko.")] = None) -> None:
    """List the courses of the platform."""
    with connected() as api:
        found = api.items("courses", language=language)
    names = ("Id", "Key", "Title", "Language", "Owner", "Version", "Sessions")
    rows = [
        (c["id"], c["key"] or "", c["title"], c["language"], _owner(c), str(c["version"]), str(c["session_count"]))
        for c in found
    ]
    output.table(names, rows, found)


def _find(api: Api, named: str) -> Any:
    found = [c for c in api.items("courses") if named in {c["id"], c["key"]}]
    if len(found) == 1:
        return found[0]
    if found:
        ids = ", ".join(f"{c['id']} ({c['language']}, {_owner(c)})" for c in found)
        raise CodeHubError(f"{len(found)} courses have the key {named}: say which by its id: {ids}")
    raise CodeHubError(f"there is no course {named}: see `codehub course list`")


def _owner(course: dict[str, Any]) -> str:
    return course["owner"] or "CodeHub"


def _shown(problem: Problem) -> dict[str, Any]:
    return {"file": problem.file, "line": problem.line, "message": problem.what, "error": problem.is_error}
