"""A session's blueprint: its steps and what they show, ask and run. Pure: validation, canonical form, learner's view.

Called by `Sessions` and `Courses` before anything is stored, by `courses.folder` for what a teacher wrote, and by
`Runs` for what a step holds. The shape itself is in `blueprint_model`; its JSON Schema is published.
"""

import hashlib
import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, TypeVar

from pydantic import ValidationError
from pydantic.json_schema import GenerateJsonSchema
from pydantic_core import ErrorDetails

from codehub import field_errors, markdown, names
from codehub.errors import InvalidRequestError
from codehub.sessions.blueprint_model import (
    ABOUT_STEPS,
    ONE,
    SEVERAL,
    Activity,
    Blueprint,
    Check,
    Choice,
    Question,
    Step,
)

__all__ = ["Activity", "Blueprint", "Check", "Choice", "Question", "Step"]
T = TypeVar("T")
MOST_BYTES = 256 * 1024  # of the canonical form
MOST_STEPS_IN_ALL = 20_000  # of a plan or a course: a hundred in each of 200 sessions
MOST_FILES_IN_ALL = 10_000
MOST_LEVELS = 8  # of lists and objects in each other; the schema has five
NEEDS = {  # what a step needs, and where it stands
    Step.LEARN: ("learningContent", "a LEARN step needs at least one chunk"),
    Step.CHECK: ("checkQuestions", "a CHECK step needs at least one question"),
    Step.PRACTICE: ("practiceActivity", "a PRACTICE step needs an activity"),
}


def parse(value: object, at: str = "blueprint") -> Blueprint:
    """Raise InvalidRequestError with everything that is wrong, each by its field below `at`."""
    blueprint, errors = read(value)
    if blueprint is None:
        named = [(".".join(part for part in (at, field) if part), message) for field, message in errors]
        raise InvalidRequestError.of([(field or "blueprint", message) for field, message in named])
    return blueprint


def parse_new(value: object, at: str = "blueprint") -> Blueprint:
    """The same of one that is being written, which must be showable too."""
    blueprint = parse(value, at)
    if errors := unshowable(blueprint):
        raise InvalidRequestError.of([(f"{at}.{field}", message) for field, message in errors])
    return blueprint


def read(value: object) -> tuple[Blueprint | None, list[tuple[str, str]]]:
    """The blueprint, or what is wrong: fields (empty: all of it) and messages."""
    if complaint := _too_much(value):
        return None, [("", complaint)]
    errors = list(_across(value))
    blueprint = None
    try:
        blueprint = Blueprint.model_validate(value)
    except ValidationError as error:
        errors = [*wrong_fields(error), *errors]
    if blueprint and not errors and len(canonical(blueprint).encode()) > MOST_BYTES:  # defaults may have added to it
        errors = [("", _too_large())]
    return (None, errors) if errors else (blueprint, [])


def unshowable(blueprint: Blueprint) -> list[tuple[str, str]]:
    """What cannot be shown as it is meant: fields and messages. Asked of a new one; what is kept is read as it is."""
    found = [(at, complaint) for at, text in _texts(blueprint) if (complaint := _table_complaint(text))]
    checks = blueprint.practice_activity.checks if blueprint.practice_activity else ()
    for number, check in enumerate(checks):
        if complaint := names.complaint(check.title):
            found.append((f"practiceActivity.checks.{number}.title", complaint))
    return found


def _table_complaint(text: str) -> str | None:
    line = markdown.too_wide(text)
    return None if line is None else f"line {line} of this text: {markdown.TOO_WIDE}"


def _texts(blueprint: Blueprint) -> Iterator[tuple[str, str]]:
    """All Markdown of it, by field."""
    yield from ((f"learningContent.{number}", text) for number, text in enumerate(blueprint.learning_content))
    for number, question in enumerate(blueprint.check_questions):
        at = f"checkQuestions.{number}"
        yield f"{at}.prompt", question.prompt
        yield from ((f"{at}.choices.{n}.text", choice.text) for n, choice in enumerate(question.choices))
        yield from ((f"{at}.feedback.{choice}", text) for choice, text in question.feedback.items())
    if activity := blueprint.practice_activity:
        yield "practiceActivity.instructions", activity.instructions
        for number, check in enumerate(activity.checks):
            yield f"practiceActivity.checks.{number}.hint", check.hint or ""
    yield "encouragement", blueprint.encouragement


def too_many(blueprints: Iterable[object]) -> str | None:
    """Why these cannot be in one plan or course; looked at before any is read. None: they can."""
    steps = files = 0
    for one in blueprints:
        if isinstance(one, dict):
            steps += len(found) if isinstance(found := one.get("steps"), list) else 0
            activity = one.get("practiceActivity")
            found = activity.get("files") if isinstance(activity, dict) else None
            files += len(found) if isinstance(found, dict) else 0
    for count, most, what in ((steps, MOST_STEPS_IN_ALL, "steps"), (files, MOST_FILES_IN_ALL, "starter files")):
        if count > most:
            return f"have {count} {what} together; {most} is the most: make two of it"
    return None


def canonical(blueprint: Blueprint) -> str:
    """The same text for the same blueprint: JSON with sorted names, without spaces, with every default filled in."""
    return _text(blueprint.model_dump(mode="json", by_alias=True))


def digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def view_digest(blueprint: Blueprint) -> str:
    """What learners are told as its hash: of nothing but what they see.

    The digest of the whole would let them try answers until it is the same: on their own machine, and if there were a
    key in it, by making plans of their own with each answer.
    """
    return digest(_text(learners_view(blueprint)))


def learners_view(blueprint: Blueprint) -> dict[str, Any]:
    """What a learner may get: no answers, no feedback, no commands and hints of checks."""
    shown: dict[str, Any] = blueprint.model_dump(mode="json", by_alias=True)
    for question in shown["checkQuestions"]:
        del question["answer"], question["feedback"]
    if activity := shown["practiceActivity"]:
        activity["checks"] = [{"id": check["id"], "title": check["title"]} for check in activity["checks"]]
    return shown


def share(items: Sequence[T], n: int, k: int) -> Sequence[T]:
    """What the k-th (from 0) of n steps of a kind has of its chunks or questions; all of them where there are fewer."""
    if len(items) < n:
        return items
    return items[len(items) * k // n : len(items) * (k + 1) // n]


def json_schema() -> dict[str, Any]:
    """JSON Schema 2020-12. That COMPLETE is last, and that ids differ, is beyond it and said in descriptions."""
    schema = Blueprint.model_json_schema(by_alias=True, schema_generator=_Schema)
    choices = schema["$defs"]["Question"]["properties"]["choices"]
    choices["items"] = {"anyOf": [choices["items"], {"type": "string", "description": "Its own id."}]}
    schema["properties"]["steps"] |= {"contains": {"const": "COMPLETE"}, "maxContains": 1, "description": ABOUT_STEPS}
    schema["allOf"] = [
        {
            "if": {"required": ["steps"], "properties": {"steps": {"contains": {"const": step.value}}}},
            "then": {"required": [field], "properties": {field: _something(schema["properties"][field])}},
        }
        for step, (field, _) in NEEDS.items()
    ]
    head = {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "Blueprint"}
    return {**head, **{name: schema[name] for name in sorted(schema)}}


class _Schema(GenerateJsonSchema):
    def field_title_should_be_set(self, schema: Any) -> bool:  # noqa: ARG002
        """A title would only repeat the name."""
        return False


def _something(of: dict[str, Any]) -> dict[str, Any]:
    return {"minItems": 1} if of.get("type") == "array" else {"type": "object"}


def _too_much(value: object) -> str | None:
    """Before anything looks inside: what is very deep or large is not worth a list of what is wrong in it."""
    level: list[object] = [value]
    for _ in range(MOST_LEVELS):
        level = [inner for outer in level for inner in _inside(outer)]
    if level:
        return f"is nested more than {MOST_LEVELS} levels deep"
    if len(_text(value).encode("utf-8", "replace")) > MOST_BYTES:
        return _too_large()
    return None


def _inside(value: object) -> Iterator[object]:
    if isinstance(value, dict):
        yield from value.values()
    elif isinstance(value, list):
        yield from value


def _too_large() -> str:
    return f"has more than {MOST_BYTES} bytes as JSON: make two sessions of it, or smaller files"


def _text(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":"), default=str)


def _across(value: object) -> Iterator[tuple[str, str]]:
    """What holds between fields, looked at also where a field is wrong in itself: all errors are told at once."""
    if not isinstance(value, dict) or not isinstance(steps := value.get("steps"), list):
        return
    ends = [index for index, step in enumerate(steps) if step == Step.COMPLETE]
    if not ends:
        yield "steps", "COMPLETE is missing: it is the last step"
    for index in ends[:-1]:
        yield f"steps.{index}", "COMPLETE may occur only once"
    if ends and ends[-1] != len(steps) - 1:
        yield f"steps.{ends[-1]}", "COMPLETE must be the last step"
    for step, (field, complaint) in NEEDS.items():
        if step in steps and not value.get(field):
            yield field, complaint
    yield from _twice("checkQuestions", value.get("checkQuestions"))
    activity = value.get("practiceActivity")
    if isinstance(activity, dict):
        yield from _twice("practiceActivity.checks", activity.get("checks"))


def _twice(at: str, items: object) -> Iterator[tuple[str, str]]:
    """Ids that an earlier item has already."""
    seen: set[str] = set()
    for index, item in enumerate(items if isinstance(items, list) else []):
        found = item.get("id") if isinstance(item, dict) else None
        if isinstance(found, str):
            if found in seen:
                yield f"{at}.{index}.id", f"{found!r} is the id of an earlier one"
            seen.add(found)


def wrong_fields(error: ValidationError) -> list[tuple[str, str]]:
    found = error.errors(include_url=False, include_input=False)
    return [(_field(e), field_errors.message(e)) for e in found]


def _field(error: ErrorDetails) -> str:
    """Where in the JSON it is: without the parts that name a case of ours instead of a place."""
    parts = [str(part) for part in error["loc"] if part not in {ONE, SEVERAL, "[key]"}]
    return ".".join([*parts, *([error["ctx"]["field"]] if error["type"] == "invalid" else [])])
