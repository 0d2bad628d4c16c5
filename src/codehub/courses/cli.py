"""`codehub course …`: folders of courses, and by the API the platform's own. `new` and `check` need no platform."""

import importlib.resources
import pathlib
import re
import shutil
from collections.abc import Sequence
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
OUTCOMES = {
    "new": "{title} ({id}) is new: version 1",
    "changed": "{title} ({id}) has a new version: {version}",
    "unchanged": "{title} ({id}) is as it was: nothing changed, it stays at version {version}",
}


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
    """Say everything that is wrong with a course's folder, by file and line; the last line is the verdict.

    Ends with 0 if it can be imported, also with warnings; with 1 if it cannot.
    """
    course, problems = _examined(folder)
    sessions = len(course.sessions)
    about = f"a course of {_counted(sessions, 'session')}"
    verdict = f"OK{_warned(problems)}: {about}" if problems else f"OK: {about}, and nothing is wrong with it"
    lines = [*(f"{folder}/{problem}" for problem in problems), f"{folder}: {verdict}."]
    result = {"title": course.title, "sessions": sessions, "problems": [_shown(problem) for problem in problems]}
    output.say("\n".join(lines), result)


def _examined(folder: pathlib.Path) -> tuple[source.Source, list[Problem]]:
    """The course, and what its author should know. Raise FolderError with all that is wrong."""
    course, problems = folders.examine(folder)
    if course is None:
        raise _invalid(folder, problems)
    return course, problems


def _invalid(folder: pathlib.Path, problems: Sequence[Problem]) -> FolderError:
    errors = [problem for problem in problems if problem.is_error]
    warned = _warned([problem for problem in problems if not problem.is_error])
    verdict = f"{folder}: {_counted(len(errors), 'error')}{warned}: put right what is wrong, and check it again"
    lines = [*(f"{folder}/{problem}" for problem in problems), verdict]
    return FolderError("\n".join(lines), problems=[_shown(problem) for problem in problems])


def _warned(problems: Sequence[Problem]) -> str:
    return f" with {_counted(len(problems), 'warning')}" if problems else ""


def _counted(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


@app.command("import")
def import_(
    folder: FOLDER,
    owner: Annotated[str | None, typer.Option(help="Whose it is; unset: the platform's.")] = None,
) -> None:
    """Bring a folder to the platform, and say what that did. One with this key, language and owner gets a new version.

    Ends with 1 if it was refused; nothing was changed then.
    """
    course, problems = _examined(folder)
    with connected() as api:
        try:
            outcome, done = _sent(api, source.as_json(course), owner)
        except ApiError as error:
            raise _located(folder, error) from None
    sessions = f"{_counted(done['session_count'], 'session')}{_warned(problems)}"
    lines = [*(f"{folder}/{problem}" for problem in problems), f"{OUTCOMES[outcome].format(**done)}, {sessions}."]
    if done["withdrawn_at"]:
        lines.append(f"It is withdrawn: codehub course offer {done['id']} lets learners start it again.")
    output.say("\n".join(lines), {**done, "outcome": outcome, "warnings": [_shown(problem) for problem in problems]})


def _sent(api: Api, written: dict[str, Any], owner: str | None) -> tuple[str, Any]:
    """What it did, and the course. On what is there now: what another person sends meanwhile is refused, not lost."""
    try:
        return "new", api.post("courses", **written, owner=owner)
    except ApiError as error:
        if error.code != EXISTS:
            raise
        id_ = str(error.extra["course_id"])
    before = api.get("courses", id_)["version"]
    done = api.put("courses", id_, **written, version=before)
    return ("unchanged" if done["version"] == before else "changed"), done


def _located(folder: pathlib.Path, error: ApiError) -> CodeHubError:
    """What the platform found wrong in the course, by file and line as what `check` finds; else as it was said."""
    found = [(str(e["field"]), str(e["message"])) for e in error.extra.get("errors") or []]
    problems = folders.located(folder, found)
    return _invalid(folder, problems) if problems else error


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


@app.command("ls")
@app.command("list", hidden=True)
def list_(language: Annotated[str | None, typer.Option(help="Only these, as en or ko.")] = None) -> None:
    """List the courses of the platform."""
    with connected() as api:
        found = api.items("courses", language=language)
    names = ("Id", "Key", "Title", "Language", "Owner", "Version", "Sessions", "Withdrawn")
    rows = [
        (
            *(c["id"], c["key"] or "", c["title"], c["language"], _owner(c)),
            *(str(c["version"]), str(c["session_count"]), output.when(c["withdrawn_at"])),
        )
        for c in found
    ]
    output.table(names, rows, found)


@app.command("withdraw")
def withdraw(course: WHICH) -> None:
    """Let nobody start a course any more. Learners who have started it go on; `offer` takes it back."""
    with connected() as api:
        done = api.post("courses", _find(api, course)["id"], "withdraw")
    output.say(f"{done['title']} ({done['id']}) is withdrawn. Learners who have started it go on.", done)


@app.command("offer")
def offer(course: WHICH) -> None:
    """Let learners start a course again that was withdrawn."""
    with connected() as api:
        done = api.post("courses", _find(api, course)["id"], "offer")
    output.say(f"{done['title']} ({done['id']}) is offered: learners can start it.", done)


def _find(api: Api, named: str) -> Any:
    """By its id; else by its key."""
    courses = api.items("courses")
    found = [c for c in courses if c["id"] == named] or [c for c in courses if c["key"] == named]
    if len(found) == 1:
        return found[0]
    if found:
        ids = ", ".join(f"{c['id']} ({c['language']}, {_owner(c)})" for c in found)
        raise CodeHubError(f"{len(found)} courses have the key {named}: say which by its id: {ids}")
    raise CodeHubError(f"there is no course {named}: see `codehub course ls`")


def _owner(course: dict[str, Any]) -> str:
    return course["owner"] or "CodeHub"


def _shown(problem: Problem) -> dict[str, Any]:
    return {"file": problem.file, "line": problem.line, "message": problem.what, "error": problem.is_error}
