"""Kinds of values that requests of several capabilities have: JSON as it is meant, not what merely resembles it."""

from typing import Annotated, Any

from pydantic import AfterValidator, AwareDatetime, BeforeValidator, Field

from codehub import names


def _whole(value: object) -> object:
    """JSON has one kind of number: 7.0 is 7."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _text(value: Any) -> Any:
    """A number would be taken for seconds since 1970."""
    if not isinstance(value, str):
        raise ValueError("must be a time like 2026-03-02T18:00:00Z")  # noqa: TRY004 (what pydantic expects)
    return value


def _legible(value: str) -> str:
    if complaint := names.complaint(value):
        raise ValueError(complaint)
    return value


Whole = BeforeValidator(_whole)
# What people call something: one line, all of which is seen.
Line = Annotated[str, AfterValidator(_legible), Field(json_schema_extra={"pattern": names.PATTERN})]
Moment = Annotated[AwareDatetime, BeforeValidator(_text)]
