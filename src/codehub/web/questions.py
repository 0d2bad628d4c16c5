"""The questions of a CHECK as inputs of a page, and what a form says of them. Pure.

`player_view` puts them on a session's page, `player` reads its form.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from codehub import markdown
from codehub.sessions.blueprint import Question
from codehub.web.attempts import Attempt
from codehub.web.forms import Form

MISSING = "ANSWERS_MISSING"  # what the address of a page says after a form that left questions open


@dataclass(frozen=True)
class ChoiceView:
    field: str  # the name of its input
    value: str
    text: Markup
    chosen: bool


@dataclass(frozen=True)
class QuestionView:
    number: int
    field: str
    kind: str
    prompt: Markup
    choices: Sequence[ChoiceView]
    typed: str
    wrong: bool
    feedback: Markup | None
    open: bool  # it was sent without an answer


def field_of(i: int, j: int, question: Question) -> str:
    """The name of the input of the i-th question's j-th choice."""
    return f"q{i}.{j}" if question.kind == "multiple" else f"q{i}"


def answers_of(questions: Sequence[Question], form: Form) -> dict[str, Any]:
    """What the inputs of the page say, by question id; what was left open is not in it."""
    answers: dict[str, Any] = {}
    for i, question in enumerate(questions):
        if question.kind == "multiple":
            fields = (form.get(field_of(i, j, question)) for j in range(len(question.choices)))
            answers[question.id] = [chosen for chosen in fields if chosen is not None]
        elif (given := form.get(f"q{i}")) is not None:
            answers[question.id] = given
    return answers


def is_open(question: Question, answers: Mapping[str, Any]) -> bool:
    """Was nothing said to it? To choose none of several is no answer: each question has a right one."""
    given = answers.get(question.id)
    return not (given.strip() if isinstance(given, str) else given)


def view(i: int, question: Question, attempt: Attempt, *, sent_open: bool) -> QuestionView:
    """`sent_open`: the page answers a form in which questions were left open, and says which."""
    given = attempt.answers.get(question.id)
    several = given if isinstance(given, list) else [given]
    feedback = attempt.feedback.get(question.id)
    choices = [
        ChoiceView(field_of(i, j, question), choice.id, _html(choice.text), choice.id in several)
        for j, choice in enumerate(question.choices)
    ]
    return QuestionView(
        number=i + 1,
        field=f"q{i}",
        kind=question.kind,
        prompt=_html(question.prompt),
        choices=choices,
        typed=given if isinstance(given, str) else "",
        wrong=question.id in (attempt.wrong or ()),
        feedback=_html(feedback) if feedback else None,
        open=sent_open and is_open(question, attempt.answers),
    )


def _html(text: str) -> Markup:
    return Markup(markdown.render(text, headings_from=3))  # noqa: S704 (safe, whatever the text is)
