"""Is a CHECK passed? Pure: `Runs` asks before such a step may complete. A malformed answer is a wrong one."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from codehub.sessions.blueprint_model import Question, plain

LONGEST_ANSWER = 1000  # characters that are compared; no accepted one has as many


@dataclass(frozen=True)
class Graded:
    wrong: tuple[str, ...]  # ids of questions, in their order
    feedback: Mapping[str, str]  # by the question's id, where its author wrote some about this answer

    @property
    def passed(self) -> bool:
        return not self.wrong


def grade(questions: Iterable[Question], answers: object) -> Graded:
    """`answers`: what the client sent, of whatever type: it should be an object from question ids to answers."""
    given = answers if isinstance(answers, Mapping) else {}
    wrong = [question for question in questions if not is_right(question, given.get(question.id))]
    said = {question.id: feedback(question, given.get(question.id)) for question in wrong}
    return Graded(tuple(question.id for question in wrong), {id_: text for id_, text in said.items() if text})


def is_right(question: Question, answer: object) -> bool:
    if question.kind == "multiple":
        chosen = _chosen(answer)
        return chosen is not None and sorted(chosen) == sorted(question.answers)
    if not isinstance(answer, str):
        return False
    if question.kind == "single":
        return answer == question.answer
    return len(answer) <= LONGEST_ANSWER and plain(answer) in {plain(accepted) for accepted in question.answers}


def feedback(question: Question, answer: object) -> str:
    """About what was chosen and should not have been; never about what is missing, which would be the answer."""
    if question.kind == "multiple":
        chosen = _chosen(answer) or ()
    else:
        chosen = (answer,) if isinstance(answer, str) and len(answer) <= LONGEST_ANSWER else ()
    if question.kind == "text":
        given = {plain(text) for text in chosen}
        return "\n\n".join(text for about, text in question.feedback.items() if plain(about) in given)
    wrong = [choice for choice in chosen if choice not in question.answers]
    return "\n\n".join(question.feedback[choice] for choice in wrong if choice in question.feedback)


def _chosen(answer: object) -> tuple[str, ...] | None:
    """None: not a list of different texts."""
    if not isinstance(answer, list) or not all(isinstance(item, str) for item in answer):
        return None
    return tuple(answer) if len(set(answer)) == len(answer) else None
