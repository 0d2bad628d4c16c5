"""What a course is made of, as its author wrote it: pure. Read from a request (`api`) or a folder (`folder`).

A version of a course is stored as this; a plan is made from it. Names and texts are bounded like a blueprint's.
"""

import json
from collections.abc import Iterator
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, Field, ValidationError

from codehub import field_errors, markdown, names
from codehub.errors import ERRORS_AT_MOST, InvalidRequestError
from codehub.sessions import blueprint
from codehub.sessions.blueprint import Blueprint
from codehub.sessions.blueprint_model import Line, Markdown, Part, matching, whole

MOST_SESSIONS = 200
MOST_BYTES = 10 * 1024 * 1024  # of a course as JSON, and of its folder
MOST_DAYS = 3650
LONGEST_DESCRIPTION = 20_000  # characters
KEY = r"^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$"
Key = Annotated[
    str,
    Field(
        strict=True,
        max_length=63,
        json_schema_extra={"pattern": KEY},
        description="Stays the same over versions: a–z, 0–9 and -.",
    ),
    matching(KEY, "lower-case letters a–z, digits and -, which begin and end with a letter or a digit"),
]
Day = Annotated[int, Field(strict=True, ge=1, le=MOST_DAYS, description="1: when it starts."), BeforeValidator(whole)]
LANGUAGE = r"^[a-z]{2,3}(?:-[A-Za-z0-9]{2,8}){0,3}$"
Language = Annotated[
    str,
    Field(strict=True, json_schema_extra={"pattern": LANGUAGE}, examples=["en", "ko"], max_length=40),
    matching(LANGUAGE, "the code of a language, like en or ko"),
]


def _legible(text: str) -> str:
    if complaint := names.complaint(text):
        raise ValueError(complaint)
    return text


def _showable(text: str) -> str:
    if (line := markdown.too_wide(text)) is not None:
        raise ValueError(f"line {line} of this text: {markdown.TOO_WIDE}")
    return text


# Shown to others, between other words.
Title = Annotated[Line, AfterValidator(_legible)]


class Head(Part):
    """All of a course but its sessions."""

    key: Annotated[Key | None, Field(description="With the language, names it among its owner's courses.")] = None
    title: Title
    language: Language
    description: Annotated[Markdown, Field(max_length=LONGEST_DESCRIPTION), AfterValidator(_showable)] | None = None
    author: Annotated[Title | None, Field(description="As it is to be shown; its owner is another thing.")] = None


class SessionHead(Part):
    key: Key
    title: Title
    day: Day


class CourseSession(SessionHead):
    blueprint: Blueprint


class Source(Head):
    sessions: tuple[CourseSession, ...]


Errors = list[tuple[str, str]]


def parse(value: object) -> Source:
    """Raise InvalidRequestError with what is wrong, each by its field: as much of it as is told."""
    source, errors = read(value, most_errors=ERRORS_AT_MOST)
    if source is None:
        raise InvalidRequestError.of([(field or "body", message) for field, message in errors])
    return source


def read(value: object, *, most_errors: int | None = None) -> tuple[Source | None, Errors]:
    """The course, or what is wrong with it: fields and messages. After `most_errors` no further session is read."""
    if not isinstance(value, dict):
        return None, [("", "must be an object")]
    given = value.get("sessions")
    head, errors = _model(Head, {name: part for name, part in value.items() if name != "sessions"})
    if not isinstance(given, list) or not 1 <= len(given) <= MOST_SESSIONS:
        return None, [*errors, ("sessions", f"must be a list of 1 to {MOST_SESSIONS} sessions")]
    if complaint := blueprint.too_many(one.get("blueprint") for one in given if isinstance(one, dict)):
        return None, [*errors, ("sessions", complaint)]
    sessions = []
    for number, one in enumerate(given):
        session, wrong = _session(one)
        sessions.append(session)
        errors += [(f"sessions.{number}{field and '.'}{field}", message) for field, message in wrong]
        if most_errors is not None and len(errors) > most_errors:
            return None, errors
    errors += _twice(given)
    if errors or head is None:
        return None, errors
    return Source.model_construct(**dict(head), sessions=tuple(sessions)), []


def canonical(source: Source) -> str:
    """The same text for the same course."""
    return json.dumps(as_json(source), ensure_ascii=False, sort_keys=True, separators=(",", ":"))


def as_json(source: Source) -> dict[str, Any]:
    """What `read` reads as the same."""
    return source.model_dump(mode="json", by_alias=True)


def _session(value: object) -> tuple[CourseSession | None, Errors]:
    if not isinstance(value, dict):
        return None, [("", "must be an object")]
    head, errors = _model(SessionHead, {name: part for name, part in value.items() if name != "blueprint"})
    found, wrong = blueprint.read(value["blueprint"]) if "blueprint" in value else (None, [("", field_errors.MISSING)])
    wrong += blueprint.unshowable(found) if found else []
    errors += [(f"blueprint{field and '.'}{field}", message) for field, message in wrong]
    if errors or head is None or found is None:
        return None, errors
    return CourseSession.model_construct(**dict(head), blueprint=found), []


def _model(kind: type[Any], value: dict[str, Any]) -> tuple[Any, Errors]:
    try:
        return kind.model_validate(value), []
    except ValidationError as error:
        return None, blueprint.wrong_fields(error)


def _twice(sessions: list[Any]) -> Iterator[tuple[str, str]]:
    seen: set[str] = set()
    for number, session in enumerate(sessions):
        key = session.get("key") if isinstance(session, dict) else None
        if isinstance(key, str):
            if key in seen:
                yield f"sessions.{number}.key", f"{key!r} is the key of an earlier session"
            seen.add(key)
