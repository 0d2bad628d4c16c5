"""What an author reads about a mistake: our words, with what to do, at the API and in a folder alike."""

import functools
import pathlib
import re
import shutil
from typing import Any

import pytest

from codehub.courses import cli, folder, front_matter, source
from tests.courses.writing import course, session
from tests.sessions.learning import CHECK, FULL, QUESTION, Learner

UNSEEN = ["\x00", "\x07", "\x1b[31m", "\x7f", "\u202e", "\u2066", "\u200b", "\u2028", "\ufeff", "\U000e0041"]
EXAMPLE = pathlib.Path(str(cli.EXAMPLE)) / "en"
LIBRARY = re.compile(r"Input should|should (?:be|have|match)|Field required|Value error|Extra inputs|pattern '|valid ")
STRANGE: list[Any] = [
    None,
    True,
    0,
    -1,
    1.5,
    10**9,
    "",
    " ",
    "x" * 300,
    "Ä b",
    [],
    [1],
    ["x"] * 3000,
    {},
    {"x": 1},
    {"": {}},
]


def places(value: object, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(place for name, one in inner for place in places(one, (*path, name)))]


def put(value: Any, path: tuple[Any, ...], new: object) -> Any:
    if not path:
        return new
    copy = dict(value) if isinstance(value, dict) else list(value)
    copy[path[0]] = put(copy[path[0]], path[1:], new)
    return copy


def test_no_phrase_of_the_library_is_told_of_any_value_that_is_none() -> None:
    """Each field of a course in turn is each of the strange values, and is left out, and has a field too many."""
    whole = course({**session("one"), "blueprint": FULL}, key="k", description="d", author="a")
    told: dict[str, str] = {}
    for path in places(whole)[1:]:
        for strange in STRANGE:
            told |= {f"{field} of {path}": what for field, what in source.read(put(whole, path, strange))[1]}
        if isinstance(path[-1], str):
            parent = path[:-1]
            at: Any = functools.reduce(lambda value, name: value[name], parent, whole)
            less = {name: one for name, one in at.items() if name != path[-1]}
            for changed in (less, {**at, "zzz": 1}):
                told |= {f"{field} without {path}": what for field, what in source.read(put(whole, parent, changed))[1]}
    assert len(told) > 100
    assert [line for line in told.items() if LIBRARY.search(line[1])] == []


@pytest.mark.parametrize(
    ("text", "line", "said"),
    [
        ("key: a\ntitle: Say: hello", 3, 'the value has a colon in it: put it in quotes, like title: "Say: hello"'),
        ('checks:\n  - hint: Mind: "x"', 3, 'put it in quotes, like hint: "Mind: \\"x\\""'),
        ("title: `print`", 2, 'put it in quotes, like title: "`print`"'),
        ("title: @me", 2, 'put it in quotes, like title: "@me"'),
        ("key: a\n\ttitle: b", 3, "a tab: indent with spaces"),
        ("title: [a", 2, "is not YAML"),
    ],
)
def test_a_value_that_yaml_reads_otherwise_is_said_with_how_to_write_it(text: str, line: int, said: str) -> None:
    ((at, what),) = front_matter.read(text, 2).errors
    assert (at, said in what) == (line, True), what


@pytest.mark.parametrize("name", UNSEEN)
async def test_titles_and_authors_have_no_character_that_is_not_seen(kim: Learner, name: str) -> None:
    one = session("one")
    check = {"id": "a", "title": f"a{name}b", "command": "true"}
    practice = {**FULL, "practiceActivity": {"instructions": "x", "checks": [check]}}
    for field, body in (
        ("title", course(title=f"a{name}b")),
        ("author", course(author=f"a{name}b")),
        ("key", course(key=f"a{name}b")),
        ("sessions.0.title", course({**one, "title": f"a{name}b"})),
        ("sessions.0.key", course({**one, "key": f"a{name}b"})),
        ("sessions.0.blueprint.practiceActivity.checks.0.title", course({**one, "blueprint": practice})),
    ):
        status, problem = await kim.ask("POST", "/courses", body)
        assert (status, problem["errors"][0]["field"]) == (400, field)
    status, problem = await kim.ask("POST", "/plans", {"title": f"a{name}b", "sessions": []})
    assert status == 400
    assert "title" in {e["field"] for e in problem["errors"]}


WIDE = "Before.\n\n|" + "a|" * 3000 + "\n|" + "-|" * 3000 + "\n"


async def test_a_table_that_is_too_wide_is_refused_with_its_place(kim: Learner) -> None:
    for field, blueprint in (
        ("learningContent.0", {**CHECK, "learningContent": [WIDE]}),
        ("checkQuestions.0.prompt", {**CHECK, "checkQuestions": [{**QUESTION, "prompt": WIDE}]}),
        ("checkQuestions.0.feedback.a", {**CHECK, "checkQuestions": [{**QUESTION, "feedback": {"a": WIDE}}]}),
        ("practiceActivity.instructions", {**FULL, "practiceActivity": {"instructions": WIDE}}),
        ("encouragement", {**CHECK, "encouragement": WIDE}),
    ):
        dated = {"title": "One", "scheduled_for_date": "2026-03-02", "blueprint": blueprint}
        for path, body in (
            ("/courses", course({**session("one"), "blueprint": blueprint})),
            ("/plans", {"title": "P", "sessions": [dated]}),
        ):
            status, problem = await kim.ask("POST", path, body)
            assert (status, problem["errors"][0]["field"]) == (400, f"sessions.0.blueprint.{field}")
            assert "line 3 of this text: a table of more than 50 columns" in problem["detail"]
    status, problem = await kim.ask("POST", "/courses", course(description=WIDE))
    assert (status, problem["errors"][0]["field"]) == (400, "description")


def test_a_table_that_is_too_wide_is_an_error_of_its_line(tmp_path: pathlib.Path) -> None:
    written = shutil.copytree(EXAMPLE, tmp_path / "c")
    page = written / "01-hello" / "session.md"
    page.write_text(page.read_text("utf-8") + f"\n{WIDE}", "utf-8")
    line = page.read_text("utf-8").split("\n").index("|" + "a|" * 3000) + 1
    found, problems = folder.examine(written)
    assert found is None
    (problem,) = problems
    assert str(problem).startswith(f"01-hello/session.md:{line}: a table of more than 50 columns")
