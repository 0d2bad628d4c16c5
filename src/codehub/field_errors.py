"""What is wrong with a value that was sent, in our words instead of the validating library's. Pure.

`http.problems`, `sessions.blueprint` and `courses.source` tell it by field; people read it where a command or a course
is wrong, programs in the API's problems.
"""

from collections.abc import Callable, Mapping
from typing import Any

from pydantic_core import ErrorDetails

MISSING = "is missing"
TEXT, OBJECT = "must be a text", "must have fields of its own (lines like `name: value`)"
LIST, NUMBER = "must be a list", "must be a whole number"
UNKNOWN = "is not known here: remove it, or look whether it is misspelt"


def _at_least(ctx: Mapping[str, Any]) -> str:
    least = ctx["min_length"]
    return "must not be empty" if least == 1 else f"must have at least {least} characters"


def _choice(ctx: Mapping[str, Any]) -> str:
    return f"must be {ctx['expected'].replace(chr(39), '')}"


def _too_many(ctx: Mapping[str, Any]) -> str:
    return f"must have at most {ctx['max_length']} entries"


# By the library's kind of error. What a pattern wants is said by who has one (`blueprint_model.matching`).
WORDS: Mapping[str, Callable[[Mapping[str, Any]], str]] = {
    "missing": lambda _: MISSING,
    "extra_forbidden": lambda _: UNKNOWN,
    "string_type": lambda _: TEXT,
    "string_unicode": lambda _: "has half a surrogate pair, which is no character of unicode",
    "string_too_short": _at_least,
    "string_too_long": lambda ctx: f"must have at most {ctx['max_length']} characters",
    "int_type": lambda _: NUMBER,
    "int_from_float": lambda _: NUMBER,
    "int_parsing": lambda _: NUMBER,
    "greater_than_equal": lambda ctx: f"must be {ctx['ge']} or more",
    "less_than_equal": lambda ctx: f"must be {ctx['le']} or less",
    "literal_error": _choice,
    "enum": _choice,
    "list_type": lambda _: LIST,
    "tuple_type": lambda _: LIST,
    "too_short": lambda _: "must not be empty",
    "too_long": _too_many,
    "dict_type": lambda _: OBJECT,
    "model_type": lambda _: OBJECT,
    "model_attributes_type": lambda _: OBJECT,
    "invalid_key": lambda _: "has a name that is no text",
}


def message(error: ErrorDetails) -> str:
    said = WORDS.get(error["type"])
    return said(error.get("ctx", {})) if said else error["msg"].removeprefix("Value error, ")
