"""Blueprints: what is refused, with what words and where; the canonical form; what a learner gets of one."""

import copy
import json
import pathlib
from typing import Any

import jsonschema
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from codehub.errors import InvalidRequestError
from codehub.sessions import blueprint
from tests.sessions.blueprints import FULL, SMALLEST, blueprints

DELETED = object()
SCHEMA = pathlib.Path(__file__).parents[2] / "docs" / "blueprint.schema.json"


def changed(*path: Any, to: Any) -> dict[str, Any]:
    """The full one with one place changed."""
    made = copy.deepcopy(FULL)
    at: Any = made
    for part in path[:-1]:
        at = at[part]
    if to is DELETED:
        del at[path[-1]]
    else:
        at[path[-1]] = to
    return made


QUESTION, CHECK, FILES = ("checkQuestions", 0), ("practiceActivity", "checks", 0), ("practiceActivity", "files")
WRONG: dict[str, tuple[dict[str, Any], str, str]] = {
    "unknown key": (changed("color", to="red"), "color", "is not known here"),
    "unknown key inside": (changed(*QUESTION, "points", to=3), "checkQuestions.0.points", "is not known here"),
    "unknown step": (changed("steps", 1, to="PLAY"), "steps.1", "must be LEARN"),
    "step of another type": (changed("steps", 1, to=["LEARN"]), "steps.1", "must be LEARN"),
    "COMPLETE missing": (changed("steps", to=["LEARN"]), "steps", "COMPLETE is missing"),
    "COMPLETE not last": (changed("steps", to=["COMPLETE", "LEARN"]), "steps.0", "must be the last"),
    "COMPLETE twice": (changed("steps", to=["COMPLETE", "COMPLETE"]), "steps.0", "only once"),
    "no steps": (changed("steps", to=[]), "steps", "must not be empty"),
    "steps missing": (changed("steps", to=DELETED), "steps", "is missing"),
    "too many steps": (changed("steps", to=["LEARN"] * 2000 + ["COMPLETE"]), "steps", "at most 2000"),
    "LEARN without content": (changed("learningContent", to=[]), "learningContent", "at least one chunk"),
    "LEARN, content missing": (changed("learningContent", to=DELETED), "learningContent", "at least one chunk"),
    "blank chunk": (changed("learningContent", 1, to=" \n\t"), "learningContent.1", "must not be empty"),
    "chunk with NUL": (changed("learningContent", 1, to="a\0b"), "learningContent.1", "NUL"),
    "half a surrogate pair": (changed("learningContent", 1, to="a\ud800"), "learningContent.1", "unicode"),
    "CHECK without questions": (changed("checkQuestions", to=[]), "checkQuestions", "at least one question"),
    "question without answer": (changed(*QUESTION, "answer", to=DELETED), "checkQuestions.0.answer", "is missing"),
    "empty answer": (changed("checkQuestions", 2, "answer", to=[]), "checkQuestions.2.answer", "must not be empty"),
    "blank answer": (
        changed("checkQuestions", 2, "answer", to=["  "]),
        "checkQuestions.2.answer.0",
        "must not be empty",
    ),
    "answer is no choice": (changed(*QUESTION, "answer", to="c"), "checkQuestions.0.answer", "'c' is not one of"),
    "answers are no choices": (
        changed("checkQuestions", 1, "answer", to=["t", "x"]),
        "checkQuestions.1.answer",
        "'x' is not one of the choices (t, l, s)",
    ),
    "a list for single": (changed(*QUESTION, "answer", to=["b"]), "checkQuestions.0.answer", "one choice's id"),
    "one for multiple": (changed("checkQuestions", 1, "answer", to="t"), "checkQuestions.1.answer", "a list"),
    "answer twice": (changed("checkQuestions", 1, "answer", to=["t", "t"]), "checkQuestions.1.answer", "twice"),
    "a number as answer": (changed("checkQuestions", 2, "answer", to=3), "checkQuestions.2.answer", "must be a text"),
    "choices of text": (changed("checkQuestions", 2, "choices", to=["a"]), "checkQuestions.2.choices", "has none"),
    "no choices": (changed(*QUESTION, "choices", to=[]), "checkQuestions.0.choices", "needs some"),
    "choices alike": (changed(*QUESTION, "choices", to=["b", "b"]), "checkQuestions.0.choices", "same id"),
    "feedback to no choice": (changed(*QUESTION, "feedback", to={"z": "?"}), "checkQuestions.0.feedback", "'z' is not"),
    "kind": (changed(*QUESTION, "kind", to="essay"), "checkQuestions.0.kind", "must be single"),
    "same question id": (changed("checkQuestions", 1, "id", to="loop-count"), "checkQuestions.1.id", "earlier one"),
    "id with a space": (changed(*QUESTION, "id", to="a b"), "checkQuestions.0.id", "must be 1 to 64 letters"),
    "PRACTICE without activity": (changed("practiceActivity", to=None), "practiceActivity", "needs an activity"),
    "activity without instructions": (
        changed("practiceActivity", "instructions", to=DELETED),
        "practiceActivity.instructions",
        "is missing",
    ),
    "command missing": (changed(*CHECK, "command", to=DELETED), "practiceActivity.checks.0.command", "is missing"),
    "command empty": (changed(*CHECK, "command", to=" \n "), "practiceActivity.checks.0.command", "must not be empty"),
    "same check id": (changed(*CHECK, "id", to="there"), "practiceActivity.checks.1.id", "earlier one"),
    "no time": (
        changed(*CHECK, "timeoutSeconds", to=0),
        "practiceActivity.checks.0.timeoutSeconds",
        "must be 1 or more",
    ),
    "long time": (
        changed(*CHECK, "timeoutSeconds", to=61),
        "practiceActivity.checks.0.timeoutSeconds",
        "must be 60 or less",
    ),
    "half a second": (
        changed(*CHECK, "timeoutSeconds", to=1.5),
        "practiceActivity.checks.0.timeoutSeconds",
        "whole number",
    ),
    "true as time": (changed(*CHECK, "timeoutSeconds", to=True), "practiceActivity.checks.0.timeoutSeconds", "whole"),
    "time as text": (
        changed(*CHECK, "timeoutSeconds", to="5"),
        "practiceActivity.checks.0.timeoutSeconds",
        "whole number",
    ),
    "too many checks": (
        changed("practiceActivity", "checks", to=[FULL["practiceActivity"]["checks"][0]] * 21),
        "practiceActivity.checks",
        "at most 20",
    ),
    "absolute path": (changed(*FILES, to={"/etc/passwd": ""}), "practiceActivity.files./etc/passwd", "relative"),
    "path upwards": (changed(*FILES, to={"a/../../b": ""}), "practiceActivity.files.a/../../b", "no .."),
    "backslash": (changed(*FILES, to={"a\\b": ""}), "practiceActivity.files.a\\b", "backslash"),
    "NUL in a path": (changed(*FILES, to={"a\0b": ""}), "practiceActivity.files.a\0b", "NUL"),
    "line end in a path": (changed(*FILES, to={"a\nb": ""}), "practiceActivity.files.a\nb", "control"),
    "empty path": (changed(*FILES, to={"": ""}), "practiceActivity.files.", "must not be empty"),
    "folder as path": (changed(*FILES, to={"a/": ""}), "practiceActivity.files.a/", "shortest form: a"),
    "dot as path": (changed(*FILES, to={".": ""}), "practiceActivity.files..", "names a file"),
    "long path": (changed(*FILES, to={"가" * 100: ""}), f"practiceActivity.files.{'가' * 100}", "bytes"),
    "case alone": (changed(*FILES, to={"a": "", "A": ""}), "practiceActivity.files", "differ only in case"),
    "file and folder": (changed(*FILES, to={"a": "", "a/b": ""}), "practiceActivity.files", "to be a folder"),
    "too many files": (changed(*FILES, to={str(n): "" for n in range(101)}), "practiceActivity.files", "at most 100"),
    "file that is no text": (changed(*FILES, to={"a": 1}), "practiceActivity.files.a", "must be a text"),
    "template": (
        changed("practiceActivity", "template", to="A b"),
        "practiceActivity.template",
        "must be the name of a template",
    ),
    "no encouragement": (changed("encouragement", to=DELETED), "encouragement", "is missing"),
    "version": (changed("version", to=2), "version", "must be 1"),
    "true as version": (changed("version", to=True), "version", "whole number"),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_is_wrong_is_refused_with_its_place(case: str) -> None:
    value, field, message = WRONG[case]
    with pytest.raises(InvalidRequestError) as refused:
        blueprint.parse(value, "sessions.3.blueprint")
    errors = refused.value.extra["errors"]
    at = f"sessions.3.blueprint.{field}"[:200]
    assert [e for e in errors if e["field"] == at and message in e["message"]], errors
    json.dumps(errors, ensure_ascii=False).encode()


def test_all_errors_are_told_at_once_also_where_a_part_is_wrong_in_itself() -> None:
    value = changed("steps", to=["LEARN", "PLAY"])
    value["learningContent"] = []
    value["practiceActivity"]["checks"][0]["timeoutSeconds"] = 0
    value["checkQuestions"][1]["id"] = "loop-count"
    value["checkQuestions"][2]["answer"] = 3
    with pytest.raises(InvalidRequestError) as refused:
        blueprint.parse(value)
    assert {e["field"] for e in refused.value.extra["errors"]} == {
        "blueprint.steps.1",
        "blueprint.steps",
        "blueprint.learningContent",
        "blueprint.checkQuestions.1.id",
        "blueprint.checkQuestions.2.answer",
        "blueprint.practiceActivity.checks.0.timeoutSeconds",
    }


@pytest.mark.parametrize("value", [None, 3, "x", [], [FULL], True], ids=str)
def test_what_is_no_object_is_refused(value: object) -> None:
    with pytest.raises(InvalidRequestError, match=r"^blueprint: .*must have fields of its own"):
        blueprint.parse(value)


def test_what_is_too_large_or_too_deep_is_refused_before_it_is_looked_into() -> None:
    deep: Any = "x"
    for _ in range(100_000):
        deep = [deep]
    with pytest.raises(InvalidRequestError, match="levels deep"):
        blueprint.parse({**SMALLEST, "learningContent": deep})
    with pytest.raises(InvalidRequestError, match="more than 262144 bytes"):
        blueprint.parse({**SMALLEST, "learningContent": ["가" * 90_000]})
    blueprint.parse({**SMALLEST, "learningContent": ["가" * 80_000]})
    while isinstance(deep, list):  # freed from outside in: in one go it would be as deep a recursion
        deep = deep[0]


def test_the_canonical_form_is_the_same_for_the_same_blueprint() -> None:
    smallest = blueprint.parse(SMALLEST)
    text = blueprint.canonical(smallest)
    shuffled = blueprint.parse({"encouragement": "Well done\n", "version": 1.0, **SMALLEST, "practiceActivity": None})
    assert blueprint.canonical(shuffled) == text
    assert json.loads(text)["version"] == 1
    # Pinned runs have it: it may not change with a release.
    assert blueprint.digest(text) == "d1aae04da7aa76a7c5427529004b861a91474d1b33409c7d30459b24f510f6e9"


def test_choices_may_be_written_as_plain_texts() -> None:
    value = changed("checkQuestions", 0, to={**FULL["checkQuestions"][0], "choices": ["a", "b"]})
    (a, b) = blueprint.parse(value).check_questions[0].choices
    assert (a.id, a.text, b.id, b.text) == ("a", "a", "b", "b")


@given(blueprints())
@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_reading_the_canonical_form_changes_nothing(value: dict[str, Any]) -> None:
    text = blueprint.canonical(blueprint.parse(value))
    assert blueprint.canonical(blueprint.parse(json.loads(text))) == text


@given(blueprints())
@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_the_published_schema_allows_what_we_accept(value: dict[str, Any]) -> None:
    assert jsonschema.Draft202012Validator(blueprint.json_schema()).is_valid(value)


def test_the_published_schema_is_one_and_refuses_most_of_what_we_refuse() -> None:
    assert json.loads(SCHEMA.read_text(encoding="utf-8")) == blueprint.json_schema(), "run `make schema`"
    jsonschema.Draft202012Validator.check_schema(blueprint.json_schema())
    validator = jsonschema.Draft202012Validator(blueprint.json_schema())
    validator.validate(FULL)
    validator.validate(SMALLEST)
    missed = {case for case, (value, _, _) in WRONG.items() if validator.is_valid(value)}
    assert "COMPLETE not last" in missed  # beyond JSON Schema
    assert len(missed) < len(WRONG) / 2, missed


def test_a_learner_gets_no_answers_no_feedback_and_no_commands() -> None:
    view = blueprint.learners_view(blueprint.parse(FULL))
    text = json.dumps(view)
    for secret in ("answer", "feedback", "command", "hint", "timeoutSeconds", "begins at 0", "test -f", "Seoul"):
        assert secret not in text
    assert view["practiceActivity"]["checks"] == [
        {"id": "runs", "title": "It runs"},
        {"id": "there", "title": "It is there"},
    ]
    assert [set(q) for q in view["checkQuestions"]] == [{"id", "kind", "prompt", "choices"}] * 3
    assert view["learningContent"] == ["# One", "# Two"]


@given(st.integers(0, 30), st.integers(1, 12))
@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_the_shares_of_a_kind_are_everything_in_order(count: int, n: int) -> None:
    items = list(range(count))
    shares = [blueprint.share(items, n, k) for k in range(n)]
    if count < n:
        assert all(list(share) == items for share in shares)
    else:
        assert [item for share in shares for item in share] == items
        assert all(shares)
