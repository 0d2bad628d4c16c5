"""What is wrong with a course's folder is said with file and line, all of it at once."""

import os
import pathlib
import shutil
import sys
from collections import Counter
from collections.abc import Callable

import pytest

from codehub.courses import cli, folder, questions

EXAMPLE = pathlib.Path(str(cli.EXAMPLE)) / "en"
Change = Callable[[pathlib.Path], object]


@pytest.fixture
def course(tmp_path: pathlib.Path) -> pathlib.Path:
    return shutil.copytree(EXAMPLE, tmp_path / "course")


def replaced(file: str, old: str, new: str) -> Change:
    def change(course: pathlib.Path) -> None:
        text = (course / file).read_text("utf-8")
        assert old in text
        (course / file).write_text(text.replace(old, new, 1), "utf-8")

    return change


def written(file: str, content: bytes) -> Change:
    def change(course: pathlib.Path) -> None:
        (course / file).parent.mkdir(parents=True, exist_ok=True)
        (course / file).write_bytes(content)

    return change


def removed(file: str) -> Change:
    return lambda course: (course / file).unlink()


def linked(file: str, to: str) -> Change:
    return lambda course: (course / file).symlink_to(to)


S, C, P = "01-hello/session.md", "01-hello/check.md", "01-hello/practice.md"
WRONG: dict[str, tuple[Change, str]] = {
    "no course.md": (removed("course.md"), "course.md:1: is missing"),
    "no front matter": (written("course.md", b"# Hello"), "course.md:1: must begin with a line ---"),
    "front matter without end": (written("course.md", b"---\ntitle: x\n"), "course.md:1: must begin with a line ---"),
    "not YAML": (replaced("course.md", "language: en", "language: [en"), "course.md:4: is not YAML"),
    "tab in YAML": (replaced("course.md", "language: en", "\tlanguage: en"), "course.md:4: a tab: indent with spaces"),
    "a list as head": (
        replaced("course.md", "key: my-course\ntitle: My course\nlanguage: en", "- a"),
        "course.md:2: must",
    ),
    "unknown key": (
        replaced("course.md", "title:", "titel:"),
        "course.md:3: 'titel' is not known; did you mean",
    ),
    "key twice": (replaced("course.md", "language: en", "title: x"), "course.md:4: 'title' is there twice"),
    "title missing": (replaced("course.md", "title: My course\n", ""), "course.md:1: title: is missing"),
    "language": (
        replaced("course.md", "language: en", "language: English!"),
        "course.md:4: language: must be the code of a language",
    ),
    "alias": (replaced("course.md", "title: My course", "title: &a x\nauthor: *a"), "course.md:2: has an alias"),
    "day is no number": (replaced(S, "day: 1", "day: soon"), f"{S}:4: day: must be a whole number"),
    "day 0": (replaced(S, "day: 1", "day: 0"), f"{S}:4: day: must be 1 or more"),
    "unknown step": (replaced(S, "[LEARN,", "[LERN,"), f"{S}:5: steps: must be LEARN"),
    "unknown step below": (
        replaced(S, "steps: [LEARN, CHECK, PRACTICE, COMPLETE]", "steps:\n  - LEARN\n  - NAP\n  - COMPLETE"),
        f"{S}:7: steps: must be LEARN",
    ),
    "COMPLETE missing": (replaced(S, ", COMPLETE]", "]"), f"{S}:5: steps: COMPLETE is missing"),
    "no encouragement": (replaced(S, "encouragement:", "# "), f"{S}:1: encouragement: is missing"),
    "empty chunk": (
        replaced(S, "<!-- next -->", "<!-- next -->\n<!-- next -->"),
        f"{S}:18: learningContent: must not be empty",
    ),
    "LEARN without text": (
        lambda c: (c / S).write_text((c / S).read_text("utf-8").split("\n\n")[0], "utf-8"),
        f"{S}:8: learningContent: a LEARN step needs",
    ),
    "key of two sessions": (
        lambda c: shutil.copytree(c / "01-hello", c / "02-again"),
        "02-again/session.md:2: key: 'hello' is the key of an earlier session",
    ),
    "CHECK without check.md": (removed(C), f"{S}:1: checkQuestions: a CHECK step needs"),
    "no question": (written(C, b"\n"), f"{C}:1: has no question"),
    "text before questions": (replaced(C, "## how", "Hello\n\n## how"), f"{C}:1: a question begins with"),
    "no block": (replaced(C, "```question", "```"), f"{C}:1: the question 'how-many-lines' has no block"),
    "block not closed": (replaced(C, "python hello.py]\n```", "python hello.py]"), f"{C}:24: the block"),
    "answer is no choice": (replaced(C, "answer: b", "answer: z"), f"{C}:15: answer: 'z' is not one of the choices"),
    "answer missing": (replaced(C, "answer: b\n", ""), f"{C}:10: answer: is missing"),
    "kind": (replaced(C, "kind: single", "kind: simple"), f"{C}:11: kind: must be single, multiple or text"),
    "choices as a list": (replaced(C, "  a: one\n  b: two", "  - one"), f"{C}:12: choices must be lines"),
    "unknown name": (replaced(C, "kind: text", "kind: text\npoints: 3"), f"{C}:26: 'points' is not known"),
    "YAML of a question": (replaced(C, "  a: one", "  a: one: two"), f"{C}:13: the value has a colon in it"),
    "question twice": (replaced(C, "## the-command", "## how-many-lines"), f"{C}:20: id: 'how-many-lines' is the id"),
    "PRACTICE without practice.md": (removed(P), f"{S}:1: practiceActivity: a PRACTICE step needs an activity"),
    "files without practice.md": (removed(P), "01-hello/files:1: files without a practice.md"),
    "no instructions": (
        lambda c: (c / P).write_text((c / P).read_text("utf-8").split("\n\n")[0], "utf-8"),
        f"{P}:13: instructions: must not be empty",
    ),
    "command missing": (replaced(P, "    command: python3 hello.py\n", ""), f"{P}:3: command: is missing"),
    "time-out": (
        replaced(P, "timeoutSeconds: 10", "timeoutSeconds: 600"),
        f"{P}:6: timeoutSeconds: must be 60 or less",
    ),
    "unknown name of a check": (replaced(P, "hint: Mind", "hnit: Mind"), f"{P}:11: hnit: is not known here"),
    "binary": (written("01-hello/files/a.png", b"\x89PNG\x00"), "01-hello/files/a.png:1: is not a text file"),
    "not UTF-8": (written("01-hello/files/a.txt", b"one\ntwo \xe9\n"), "01-hello/files/a.txt:2: is not UTF-8"),
    "Markdown not UTF-8": (written("course.md", b"---\ntitle: \xe9"), "course.md:2: is not UTF-8"),
    "link out": (linked("01-hello/files/passwd", "/etc/passwd"), "01-hello/files/passwd:1: is a link: put"),
    "link up and out": (linked("01-hello/files/x", "../../../x"), "01-hello/files/x:1: is a link: put"),
    "link to nothing": (linked("01-hello/files/x", "y"), "01-hello/files/x:1: is a link: put"),
    "link to a folder": (linked("01-hello/files/x", "../solutions"), "01-hello/files/x:1: is a link: put"),
    "link inside": (linked("01-hello/files/x", "hello.py"), "01-hello/files/x:1: is a link: put"),
    "link to itself": (linked("01-hello/files/x", "x"), "01-hello/files/x:1: is a link: put"),
    "link into version control": (
        lambda c: (written(".git/config", b"secret")(c), linked("01-hello/files/x", "../../.git/config")(c)),
        "01-hello/files/x:1: is a link: put",
    ),
    "link in place of a page": (linked("01-hello/README.md", "session.md"), "01-hello/README.md:1: is a link: put"),
    "pipe": (lambda c: os.mkfifo(c / "01-hello/files/x"), "01-hello/files/x:1: is not an ordinary file"),
    "deep YAML": (replaced("course.md", "title: My", f"title: {'[' * 40}My"), "course.md:3: is not YAML: nested more"),
    "deep YAML in lines": (
        replaced("course.md", "title: My", f"title:\n  {'- ' * 40}My"),
        "course.md:4: is not YAML: nested more than 20 deep",
    ),
    "case alone": (written("01-hello/files/Hello.py", b""), "01-hello/files/hello.py:1: differs from 'Hello.py' only"),
    "too large a file": (written("01-hello/files/a", b"x" * 2**20 + b"x"), "01-hello/files/a:1: has more than 1024 KB"),
    "too large a session": (written("01-hello/files/a", b"x" * 300_000), f"{S}:1: has more than 262144 bytes"),
    "backslash": (written("01-hello/files/a\\b", b""), "01-hello/files/a\\b:1: a\\b: a path has no backslash"),
    "no session": (lambda c: shutil.rmtree(c / "01-hello"), "course.md:1: the course has no session"),
    "folder that is no session": (written("02-more/notes.txt", b""), "02-more:1: has no session.md"),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_is_wrong_is_said_with_file_and_line(course: pathlib.Path, case: str) -> None:
    change, message = WRONG[case]
    change(course)
    found, problems = folder.examine(course)
    assert found is None
    assert [problem for problem in problems if str(problem).startswith(message)], [str(p) for p in problems]
    with pytest.raises(folder.FolderError):
        folder.load(course)


def test_several_errors_are_all_said(course: pathlib.Path) -> None:
    for case in ("language", "day 0", "unknown step", "answer is no choice", "time-out", "not UTF-8"):
        WRONG[case][0](course)
    _, problems = folder.examine(course)
    assert [(p.file, p.line) for p in problems] == [
        ("01-hello/check.md", 15),
        ("01-hello/files/a.txt", 2),
        ("01-hello/practice.md", 6),
        ("01-hello/session.md", 4),
        ("01-hello/session.md", 5),
        ("course.md", 4),
    ]


WARNED: dict[str, tuple[Change, str]] = {
    "raw HTML": (replaced(S, "# How", "<b>x</b>\n\n# How"), f"{S}:19: warning: raw HTML"),
    "no link": (replaced(P, "Open", "[x](javascript:y)\nOpen"), f"{P}:14: warning: a link that is none: javascript:y"),
    "no link in a question": (replaced(C, "How many", "[a](my page) How many"), f"{C}:3: warning: looks like a link"),
    "misspelt file": (
        written("01-hello/chek.md", b"x"),
        "01-hello/chek.md:1: warning: is not read; did you mean check.md?",
    ),
    "file at the top": (written("notes.txt", b"x"), "notes.txt:1: warning: is not read"),
}


@pytest.mark.parametrize("case", WARNED)
def test_what_an_author_should_know_is_a_warning(course: pathlib.Path, case: str) -> None:
    change, message = WARNED[case]
    change(course)
    found, problems = folder.examine(course)
    assert found is not None
    assert {str(problem)[: len(message)] for problem in problems} == {message}


FINE: dict[str, Change] = {
    "as it is": lambda _course: None,
    "Windows": lambda c: [f.write_bytes(f.read_bytes().replace(b"\n", b"\r\n")) for f in c.rglob("*.md")],
    "a byte order mark": lambda c: [f.write_bytes(b"\xef\xbb\xbf" + f.read_bytes()) for f in c.rglob("*.md")],
    "compiled files": written("01-hello/files/__pycache__/hello.cpython-311.pyc", b"\x00\xff"),
    "git": written(".git/objects/aa", b"\x00\xff"),
    "a README": written("README.md", b"# <b>For teachers</b>"),
    "YAML that looks like something else": replaced(C, "  a: one\n  b: two", "  a: no\n  b: 1.10"),
    "a comment in code": replaced(C, 'print("a")', '## a comment\nprint("a")'),
}


@pytest.mark.parametrize("case", FINE)
def test_what_is_fine_is_not_complained_about(course: pathlib.Path, case: str) -> None:
    FINE[case](course)
    found, problems = folder.examine(course)
    assert [str(problem) for problem in problems] == []
    assert found is not None


def test_line_ends_do_not_make_another_course(course: pathlib.Path) -> None:
    before = folder.load(course)
    FINE["Windows"](course)
    assert folder.load(course) == before


def test_a_text_that_looks_like_a_number_stays_a_text(course: pathlib.Path) -> None:
    FINE["YAML that looks like something else"](course)
    question = folder.load(course).sessions[0].blueprint.check_questions[0]
    assert [choice.text for choice in question.choices] == ["no", "1.10"]


def test_a_folder_of_more_than_ten_megabytes_is_refused(course: pathlib.Path) -> None:
    for number in range(11):
        written(f"01-hello/solutions/{number}", b"x" * 2**20)(course)
    _, problems = folder.examine(course)
    assert [p for p in problems if "more than 10 MB" in p.what]


def test_solutions_are_read_by_nobody(course: pathlib.Path) -> None:
    before = folder.load(course)
    written("01-hello/solutions/reference.sh", b"something else")(course)
    assert folder.load(course) == before


@pytest.mark.parametrize(("place", "said"), [("nowhere", "there is no such folder"), ("a-file", "is no folder")])
def test_what_is_no_folder_is_no_course(tmp_path: pathlib.Path, place: str, said: str) -> None:
    (tmp_path / "a-file").write_text("x", "utf-8")
    for read in (folder.examine, folder.load):
        with pytest.raises(folder.FolderError, match=f"^{tmp_path / place}: {said}[^\n]*$"):
            read(tmp_path / place)


def calls(text: str) -> int:
    """That reading these questions makes."""
    made: Counter[str] = Counter()
    sys.setprofile(lambda _frame, event, _what: made.update([event]))
    try:
        questions.read(text)
    finally:
        sys.setprofile(None)
    return made.total()


@pytest.mark.parametrize("line", ["## a\n", "## a\n~~~\n~~~\n", "x\n## a\n"])
def test_twice_as_many_headings_are_twice_the_work(line: str) -> None:
    calls(line)
    assert calls(line * 400) < 2.5 * calls(line * 200)


def test_a_heading_with_a_long_gap_is_read_at_once() -> None:
    found = questions.read(f"## a{' ' * 300_000}b  \n\nHow?\n\n```question\nkind: text\nanswer: x\n```\n")
    assert found.errors == []
    assert found.questions[0]["id"] == f"a{' ' * 300_000}b"
