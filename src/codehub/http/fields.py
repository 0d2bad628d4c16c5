"""Kinds of values that requests of several capabilities have: JSON as it is meant, not what merely resembles it."""

from datetime import datetime
from typing import Annotated, Any

from pydantic import AfterValidator, AwareDatetime, BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from codehub import names

MOST_KEYS = 100  # of one body: each that is unknown is an error of its own, with a place and words
LONGEST_MOMENT = 64  # characters
FIRST_YEAR, LAST_YEAR = 2, 9998  # a day more or less, by time zone, is a date, too
YEARS = "^(?!0000|0001|9999)"  # the same, as the documentation says it
NO_NUL = r"^[^\x00]*$"  # the database cannot store it


class Body(BaseModel):
    """What a request's JSON is read as. Every list and text in one has a greatest length."""

    model_config = ConfigDict(extra="forbid")

    @model_validator(mode="before")
    @classmethod
    def _few_keys(cls, sent: Any) -> Any:
        if isinstance(sent, dict) and len(sent) > MOST_KEYS:
            raise ValueError(f"has more than {MOST_KEYS} fields")
        return sent


def _whole(value: object) -> object:
    """JSON has one kind of number: 7.0 is 7."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _text(value: Any) -> Any:
    """A number would be taken for seconds since 1970."""
    if not isinstance(value, str):
        raise ValueError("must be a time like 2026-03-02T18:00:00Z")  # noqa: TRY004 (what pydantic expects)
    if len(value) > LONGEST_MOMENT:
        raise ValueError(f"must have at most {LONGEST_MOMENT} characters")
    return value


def _convertible(value: datetime) -> datetime:
    """In whichever time zone it is stored or shown, it is a date."""
    if not FIRST_YEAR <= value.year <= LAST_YEAR:
        raise ValueError(f"must be between the years {FIRST_YEAR} and {LAST_YEAR}")
    return value


def _composed(value: Any) -> Any:
    """Before its length is looked at."""
    return names.composed(value) if isinstance(value, str) else value


def _legible(value: str) -> str:
    if complaint := names.complaint(value):
        raise ValueError(complaint)
    return value


Whole = BeforeValidator(_whole)
Composed, Legible = BeforeValidator(_composed), AfterValidator(_legible)
Pattern = Field(json_schema_extra={"pattern": names.PATTERN})
# What people call something: one line, all of which is seen.
Line = Annotated[str, Composed, Legible, Pattern]
# Of something that must have one.
Name = Annotated[str, Field(min_length=1, max_length=100), Composed, Legible, Pattern]
Moment = Annotated[
    AwareDatetime,
    BeforeValidator(_text),
    AfterValidator(_convertible),
    Field(json_schema_extra={"maxLength": LONGEST_MOMENT, "pattern": YEARS}),
]
