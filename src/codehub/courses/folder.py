"""A course as a folder of Markdown, and back: teachers write it in an editor. docs/courses.md has the form.

`codehub course` reads and writes folders and sends the API what they say; shipped courses are read by `shipped`. All
problems are found at once, each with file and line. Reading what was written gives the same course.
"""

import difflib
import pathlib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from codehub import markdown
from codehub.courses import front_matter, questions, source, tree
from codehub.courses.source import CourseSession, Source
from codehub.courses.tree import Problem, Tree
from codehub.errors import CodeHubError
from codehub.sessions.blueprint import Activity

COURSE, SESSION, CHECK, PRACTICE, FILES, SOLUTIONS = (
    "course.md", "session.md", "check.md", "practice.md", "files", "solutions",
)  # fmt: skip
NEXT = "<!-- next -->"
_next = re.compile(r"<!-- next -->\s*")
_next_as_text = re.compile(r"<!-- (\\*)next -->\s*")
HEAD = ("key", "title", "language", "author")
SESSION_HEAD = ("key", "title", "day", "steps", "encouragement")
PRACTICE_HEAD = ("template", "checks")
FIELDS = frozenset({*HEAD, "description", "sessions"})


class FolderError(CodeHubError):
    """`problems`: all of them, as `file:line: what`."""

    code = "COURSE_INVALID"
    status = 400
    title = "The course's folder is not valid"


@dataclass(frozen=True)
class Page:
    """A file with front matter."""

    file: str
    head: dict[str, Any]
    at: Mapping[str, int]  # line by path
    body: str
    first: int  # line of the body


@dataclass
class Read:
    value: dict[str, Any] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)
    at: dict[str, tuple[str, int]] = field(default_factory=dict)  # file and line by field
    unreadable: set[str] = field(default_factory=set)  # what is missing in these follows from what was said already

    def wrong(self, file: str, line: int, what: str) -> None:
        self.problems.append(Problem(file, line, what))

    def warn(self, file: str, line: int, what: str) -> None:
        self.problems.append(Problem(file, line, what, is_error=False))


def load(folder: pathlib.Path) -> Source:
    """Raise FolderError with all errors; warnings are for `examine`."""
    found, problems = _result(_read(_walk(folder)))
    if found is None:
        raise FolderError("\n".join(str(problem) for problem in problems if problem.is_error))
    return found


def examine(folder: pathlib.Path) -> tuple[Source | None, list[Problem]]:
    """The course, unless something is wrong with it; and everything that is, with what its author should know."""
    return examine_tree(_walk(folder))


def examine_tree(files: Tree) -> tuple[Source | None, list[Problem]]:
    """The same of what an archive held."""
    found, problems = _result(_read(files))
    _read_markdown(files, warned := Read())
    exact = {problem.file for problem in warned.problems if problem.is_error}  # of the same, by its line
    told = (p for p in problems if not (p.file in exact and p.what.endswith(markdown.TOO_WIDE)))
    return found, sorted({*told, *warned.problems})


def located(folder: pathlib.Path, errors: Iterable[tuple[str, str]]) -> list[Problem]:
    """Where in the folder what is wrong with these fields stands; of those that a folder has."""
    return located_in(_walk(folder), errors)


def located_in(files: Tree, errors: Iterable[tuple[str, str]]) -> list[Problem]:
    """The same in what an archive held."""
    read = _read(files)
    return sorted(_problem(read, field, message) for field, message in errors if field.split(".")[0] in FIELDS)


def _walk(folder: pathlib.Path) -> Tree:
    if not folder.is_dir():
        what = "is no folder: name the one that has the course.md" if folder.exists() else "there is no such folder"
        raise FolderError(f"{folder}: {what}")
    return tree.walk(folder)


def _read(files: Tree) -> Read:
    read = Read(problems=files.problems)  # which reading a file adds to
    _course(files, read)
    read.value["sessions"] = [
        _session(files, name, f"sessions.{number}", read) for number, name in enumerate(_session_folders(files, read))
    ]
    return read


def _result(read: Read) -> tuple[Source | None, list[Problem]]:
    found, errors = source.read(read.value)
    problems = (_problem(read, path, message) for path, message in errors)
    read.problems += (problem for problem in problems if problem.file not in read.unreadable)
    wrong = any(problem.is_error for problem in read.problems)
    return (None if wrong else found), sorted(set(read.problems))


def write(course: Source, folder: pathlib.Path) -> None:
    """Into a folder that is empty, or not there yet."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise FolderError(f"{folder}: is not an empty folder: name another, so that nothing of yours is overwritten")
    for path, text in texts(course).items():
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(text.encode())


def texts(course: Source) -> dict[str, str]:
    """All files of its folder, by path."""
    found = {COURSE: _text(_named(course, HEAD), course.description or "")}
    width = max(2, len(str(len(course.sessions))))
    for number, session in enumerate(course.sessions, 1):
        name = f"{number:0{width}}-{session.key}"
        found |= {f"{name}/{file}": text for file, text in _written(session).items()}
    return found


def _course(files: Tree, read: Read) -> None:
    text = files.markdown(COURSE)
    if text is None:
        read.unreadable.add(COURSE)
        if COURSE not in files.paths:
            read.wrong(COURSE, 1, "is missing: it has the course's key, title and language")
        return
    page = _page(COURSE, text, HEAD, read)
    read.value |= page.head
    if page.body.strip():
        read.value["description"] = page.body
    read.at |= {path: (COURSE, line) for path, line in page.at.items()}
    read.at["description"] = (COURSE, page.first)


def _session_folders(files: Tree, read: Read) -> list[str]:
    names = sorted({path.split("/")[0] for path in files.paths if "/" in path and not path.startswith(".")})
    found = [name for name in names if f"{name}/{SESSION}" in files.paths]
    for name in names:
        if name not in found:
            read.wrong(name, 1, f"has no {SESSION}: each folder of a course is a session")
    for path in files.paths:
        if "/" not in path and path != COURSE and not path.startswith((".", "README", "LICENSE", "CHANGELOG")):
            read.warn(path, 1, f"is not read: a course has {COURSE} and a folder for each session")
    if not names:
        read.wrong(COURSE, 1, "the course has no session: make a folder like 01-hello with a session.md")
    return found


def _session(files: Tree, name: str, at: str, read: Read) -> dict[str, Any]:
    file = f"{name}/{SESSION}"
    page = _page(file, files.markdown(file) or "", SESSION_HEAD, read)
    blueprint: dict[str, Any] = {p: page.head[p] for p in ("steps", "encouragement") if p in page.head}
    session = {part: value for part, value in page.head.items() if part not in blueprint} | {"blueprint": blueprint}
    if "day" in session:
        session["day"] = _number(session["day"])
    read.at |= {at: (file, 1), f"{at}.blueprint": (file, 1), f"{at}.blueprint.learningContent": (file, page.first)}
    for path, line in page.at.items():
        inside = "blueprint." if path.split(".")[0] in blueprint else ""
        read.at[f"{at}.{inside}{path}"] = (file, line)
    chunks = list(_chunks(page.body, page.first))
    blueprint["learningContent"] = [text for _, text in chunks]
    for number, (line, _) in enumerate(chunks):
        read.at[f"{at}.blueprint.learningContent.{number}"] = (file, line)
    _questions(files, name, f"{at}.blueprint", blueprint, read)
    _practice(files, name, f"{at}.blueprint", blueprint, read)
    _strangers(files, name, read)
    return session


def _questions(files: Tree, name: str, at: str, blueprint: dict[str, Any], read: Read) -> None:
    file = f"{name}/{CHECK}"
    text = files.markdown(file)
    if text is None:
        return
    found = questions.read(text)
    for line, what in found.errors:
        read.wrong(file, line, what)
        read.unreadable.add(file)
    blueprint["checkQuestions"] = found.questions
    read.at[f"{at}.checkQuestions"] = (file, 1)
    for path, line in found.at.items():
        read.at[f"{at}.checkQuestions.{path}"] = (file, line)


def _practice(files: Tree, name: str, at: str, blueprint: dict[str, Any], read: Read) -> None:
    file = f"{name}/{PRACTICE}"
    text = files.markdown(file)
    prefix = f"{name}/{FILES}/"
    starters = {path.removeprefix(prefix): path for path in files.paths if path.startswith(prefix)}
    if text is None:
        if starters:
            read.wrong(f"{name}/{FILES}", 1, f"files without a {PRACTICE}: nothing would put them into a workspace")
        return
    page = _page(file, text, PRACTICE_HEAD, read)
    checks = page.head.get("checks")
    for check in checks if isinstance(checks, list) else []:
        if isinstance(check, dict) and "timeoutSeconds" in check:
            check["timeoutSeconds"] = _number(check["timeoutSeconds"])
    texts = {path: text for path, where in starters.items() if (text := files.text(where)) is not None}
    blueprint["practiceActivity"] = {**page.head, "instructions": page.body, "files": texts}
    here = f"{at}.practiceActivity"
    read.at |= {f"{here}.{path}": (file, line) for path, line in page.at.items()}
    read.at |= {here: (file, 1), f"{here}.instructions": (file, page.first), f"{here}.files": (f"{name}/{FILES}", 1)}
    read.at |= {f"{here}.files.{path}": (where, 1) for path, where in starters.items()}


def _strangers(files: Tree, name: str, read: Read) -> None:
    """What a session's folder has that nothing reads: a misspelt name, most likely."""
    parts = (SESSION, CHECK, PRACTICE, FILES, SOLUTIONS)
    inside = {path.split("/")[1] for path in files.paths if path.startswith(f"{name}/")}
    for stranger in sorted(inside - set(parts)):
        if not stranger.startswith((".", "README")):
            read.warn(f"{name}/{stranger}", 1, f"is not read{_meant(stranger, parts)}")


def _page(file: str, text: str, names: Sequence[str], read: Read) -> Page:
    head, body, first = front_matter.split(text)
    if head is None:
        read.wrong(file, 1, f"must begin with a line ---, then {', '.join(names)}, then a line ---")
        read.unreadable.add(file)
        return Page(file, {}, {}, text, 1)
    found = front_matter.read(head, 2)
    for line, what in found.errors:
        read.wrong(file, line, what)
        read.unreadable.add(file)
    for name in found.value:
        if name not in names:
            meant = _meant(name, names) or f"; there are {', '.join(names)}"
            read.wrong(file, found.at[name], f"{name!r} is not known{meant}")
    known = {name: value for name, value in found.value.items() if name in names}
    return Page(file, known, {path: line for path, line in found.at.items() if path}, body, first)


def _chunks(body: str, first: int) -> Iterator[tuple[int, str]]:
    """Of Markdown, each with the line on which it begins; none for an empty body."""
    if not body.strip():
        return
    lines, begun = body.split("\n"), 0
    ends = [number for number, line in enumerate(lines) if _next.fullmatch(line)]
    for end in [*ends, len(lines)]:
        yield first + begun, "\n".join(_plain(line) for line in lines[begun:end])
        begun = end + 1


def _plain(line: str) -> str:
    return line.replace("\\", "", 1) if _next_as_text.fullmatch(line) else line


def _escaped(text: str) -> str:
    lines = text.split("\n")
    return "\n".join(line.replace("next", "\\next", 1) if _next_as_text.fullmatch(line) else line for line in lines)


def _written(session: CourseSession) -> dict[str, str]:
    blueprint = session.blueprint
    head = {"key": session.key, "title": session.title, "day": session.day}
    steps = {"steps": [step.value for step in blueprint.steps], "encouragement": blueprint.encouragement}
    body = f"\n\n{NEXT}\n\n".join(_escaped(chunk) for chunk in blueprint.learning_content)
    texts = {SESSION: _text({**head, **steps}, body)}
    if blueprint.check_questions:
        texts[CHECK] = questions.write(blueprint.check_questions)
    if activity := blueprint.practice_activity:
        texts |= {PRACTICE: _text(_practice_head(activity), activity.instructions)}
        texts |= {f"{FILES}/{path}": text for path, text in activity.files.items()}
    return texts


def _practice_head(activity: Activity) -> dict[str, Any]:
    head: dict[str, Any] = {"template": activity.template} if activity.template else {}
    checks = [check.model_dump(by_alias=True, exclude_none=True) for check in activity.checks]
    return {**head, **({"checks": checks} if checks else {})}


def _text(head: Mapping[str, Any], body: str) -> str:
    matter = front_matter.write(head) if head else ""
    return f"---\n{matter}---\n" + (f"\n{body}\n" if body else "")


def _named(course: Source, names: Iterable[str]) -> dict[str, str]:
    return {name: value for name in names if (value := getattr(course, name)) is not None}


def _read_markdown(files: Tree, read: Read) -> None:
    """What would not be shown as its author meant it."""
    for path in files.paths:
        if path.endswith(".md") and "/files/" not in path and not path.startswith((".", "README", "LICENSE")):
            text = files.markdown(path) or ""
            _, body, first = front_matter.split(text)
            lines = ["" if _next_as_text.fullmatch(line) else line for line in body.split("\n")]
            for line, what in markdown.problems("\n".join(lines)):
                read.problems.append(Problem(path, first + line - 1, what, is_error=what == markdown.TOO_WIDE))


def _place(at: Mapping[str, tuple[str, int]], path: str) -> tuple[str, int]:
    """Of the field, or of what it is a part of."""
    while path and path not in at:
        path = path.rpartition(".")[0]
    return at.get(path, (COURSE, 1))


def _problem(read: Read, path: str, message: str) -> Problem:
    file, line = _place(read.at, path)
    return Problem(file, line, f"{_last_name(path)}{message}")


def _last_name(path: str) -> str:
    names = [name for name in path.split(".") if not name.isdecimal()]
    return f"{names[-1]}: " if names and names[-1] not in {"blueprint", "sessions"} else ""


def _number(text: object) -> object:
    return int(text) if isinstance(text, str) and re.fullmatch("[0-9]{1,9}", text) else text


def _meant(name: str, names: Sequence[str]) -> str:
    close = difflib.get_close_matches(name, names, 1)
    return f"; did you mean {close[0]}?" if close else ""
