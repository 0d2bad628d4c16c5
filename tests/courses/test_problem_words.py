"""What is wrong with a folder is said in Korean, too: whatever the reader of folders and those it asks can say."""

import ast
import importlib.resources
import pathlib
import re
import tomllib
from collections.abc import Mapping

import pytest

from codehub import field_errors, markdown, names
from codehub.courses import archive, folder, front_matter, problem_words, questions, source, tree
from codehub.sessions import blueprint, blueprint_model
from tests.courses.archives import COURSE, QUESTION, SESSION, SMALL, zipped

HANGUL = re.compile(r"[가-힣]")
FIELDS = re.compile(r"\{(\w+)\}")
WRONG: Mapping[str, Mapping[str, str | bytes]] = {
    "no head": {**SMALL, "course.md": "text"},
    "colon": {**SMALL, "course.md": COURSE.replace("Small", "a: b")},
    "tab": {**SMALL, "course.md": COURSE.replace("title: Small", "title:\n\t- x")},
    "alias": {**SMALL, "course.md": COURSE.replace("Small", "*x")},
    "twice": {**SMALL, "course.md": COURSE.replace("title: Small", "title: a\ntitle: b")},
    "unknown": {**SMALL, "course.md": COURSE.replace("title:", "titel:")},
    "stranger": {**SMALL, "01-one/cheque.md": "x", "notes.txt": "x"},
    "key": {**SMALL, "course.md": COURSE.replace("key: small", "key: Not Good"), "02-x/session.md": SESSION},
    "day": {**SMALL, "01-one/session.md": SESSION.replace("day: 1", "day: 0")},
    "steps": {**SMALL, "01-one/session.md": SESSION.replace("[LEARN, CHECK, COMPLETE]", "[COMPLETE, READ]")},
    "practice": {**SMALL, "01-one/session.md": SESSION.replace("CHECK", "PRACTICE")},
    "empty": {**SMALL, "01-one/check.md": ""},
    "no block": {**SMALL, "01-one/check.md": "text\n## q\n\nWhich?\n"},
    "answer": {**SMALL, "01-one/check.md": QUESTION.replace("answer: b", "answer: c")},
    "kind": {**SMALL, "01-one/check.md": QUESTION.replace("kind: single", "kind: other")},
    "markdown": {**SMALL, "01-one/session.md": f"{SESSION}\n<b>x</b> ![x](http://x/y.png) [a](javascript:x) [b]()\n"},
    "files": {**SMALL, "01-one/files/x": "x", "01-one/Session.md": "x"},
    "bytes": {**SMALL, "01-one/check.md": b"\0", "01-one/session.md": b"\xff"},
    "nothing": {"readme.txt": "x"},
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_is_told_in_korean(name: str) -> None:
    _, problems = folder.examine_tree(archive.read(zipped(WRONG[name])))
    assert problems
    told = [problem_words.told(problem.what, "ko") for problem in problems]
    assert [said for said in told if not HANGUL.search(said)] == []
    assert [problem_words.told(problem.what, "en") for problem in problems] == [problem.what for problem in problems]


def test_every_sentence_has_the_same_gaps_and_can_be_found_again() -> None:
    file = importlib.resources.files("codehub.courses") / "languages" / "ko.toml"
    for english, korean in tomllib.loads(file.read_text(encoding="utf-8")).items():
        gaps = FIELDS.findall(english)
        assert sorted(gaps) == sorted(FIELDS.findall(korean)), english
        values = {gap: f"‹{gap}›" for gap in gaps}
        assert problem_words.told(english.format(**values), "ko") == korean.format(**values), english


def test_whatever_the_reader_of_folders_says_has_its_sentence() -> None:
    """Looked for in the source: texts that are given to one of these functions, or returned by these."""
    modules = (folder, tree, questions, front_matter, source, blueprint, blueprint_model, field_errors, names)
    said = [text for module in modules for text in _said(pathlib.Path(str(module.__file__)))]
    assert len(said) > 40
    assert [text for text in said if problem_words.told(text, "ko") == text] == []
    assert HANGUL.search(problem_words.told(markdown.TOO_WIDE, "ko"))


NAMED = {"wrong", "warn", "ValueError", "_wrong", "matching"}
LISTED = {"MISSING", "TEXT", "OBJECT", "LIST", "NUMBER", "UNKNOWN", "A_LINK", "NO_FILE", "NO_NAME", "TOO_LONG"}


def _said(path: pathlib.Path) -> list[str]:
    found = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call) and ast.unparse(node.func).rpartition(".")[2] in NAMED:
            begin = "must be " if "matching" in ast.unparse(node.func) else ""
            found += [f"{begin}{text}" for a in node.args[-1:] if (text := _text(a))]
        elif isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) in LISTED and (text := _text(node.value)):
            found.append(text)
        elif isinstance(node, ast.FunctionDef) and "complaint" in node.name:
            found += [
                text for r in ast.walk(node) if isinstance(r, ast.Return) and r.value and (text := _text(r.value))
            ]
    return found


def _text(node: ast.expr) -> str:
    """With something in its gaps; empty: it is no text."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        return "".join(str(v.value) if isinstance(v, ast.Constant) else _gap(v) for v in node.values)
    return ""


def _gap(node: ast.expr) -> str:
    """Names of files are known; what is meant may be left out."""
    inside = ast.unparse(node.value) if isinstance(node, ast.FormattedValue) else ""
    if inside.startswith(("_meant", "meant")):
        return "; did you mean 7?"
    value = getattr(folder, inside, None)
    return value if isinstance(value, str) else "7"
