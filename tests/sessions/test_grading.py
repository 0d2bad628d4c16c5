"""Grading a CHECK: right, wrong, malformed; and the feedback that goes with a wrong one."""

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from codehub.sessions import blueprint, grading
from tests.sessions.blueprints import FULL

QUESTIONS = blueprint.parse(FULL).check_questions
RIGHT: dict[str, Any] = {"loop-count": "b", "types": ["s", "t"], "capital": "seoul"}


@pytest.mark.parametrize("capital", ["Seoul", " SEOUL\n", "서울", "\u1109\u1165\u110b\u116e\u11af"])
def test_right_answers_pass_whatever_their_case_and_form(capital: str) -> None:
    graded = grading.grade(QUESTIONS, {**RIGHT, "capital": capital})
    assert graded.passed
    assert graded.feedback == {}


WRONG: dict[str, list[object]] = {
    "loop-count": ["a", "B", " b", "", None, 1, True, ["b"], {"b": 1}, "c", 1.5, "\ud800"],
    "types": [["t"], ["t", "s", "l"], ["t", "t"], [], "t", None, {"t": 1}, ["t", 1], [["t"], ["s"]], ["t", "s", "s"]],
    "capital": ["Busan", "", None, 3, ["Seoul"], "Seoul" + " " * 5000, "\ud800", "\x00"],
}


@pytest.mark.parametrize(("question", "answer"), [(q, a) for q, answers in WRONG.items() for a in answers])
def test_wrong_and_malformed_answers_are_wrong(question: str, answer: object) -> None:
    assert grading.grade(QUESTIONS, {**RIGHT, question: answer}).wrong == (question,)


@pytest.mark.parametrize("answers", [None, [], "x", 3, {}, [RIGHT]], ids=str)
def test_no_answers_are_all_wrong(answers: object) -> None:
    assert grading.grade(QUESTIONS, answers).wrong == ("loop-count", "types", "capital")


def test_feedback_is_about_what_was_chosen_and_never_says_what_is_missing() -> None:
    graded = grading.grade(QUESTIONS, {"loop-count": "a", "types": ["t", "l"], "capital": " busan"})
    assert graded.feedback == {
        "loop-count": "`range(3)` begins at 0",
        "types": "A list can grow",
        "capital": "Larger",
    }
    assert grading.grade(QUESTIONS, {**RIGHT, "types": ["t"]}).feedback == {}


_json = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
)


@given(st.fixed_dictionaries({question.id: _json for question in QUESTIONS}) | _json)
@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_grading_takes_whatever_json_a_client_sends(answers: object) -> None:
    graded = grading.grade(QUESTIONS, answers)
    assert set(graded.wrong) <= {question.id for question in QUESTIONS}
    assert set(graded.feedback) <= set(graded.wrong)


def test_letters_that_folding_takes_apart_are_compared_whole() -> None:
    """U+0130 folds into two characters, and a sharp s into two letters."""
    question = blueprint.Question.model_validate({"id": "x", "kind": "text", "prompt": "?", "answer": "STRAßE İ"})
    assert grading.is_right(question, "strasse i̇")
