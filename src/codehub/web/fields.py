"""Kinds of values that requests of several capabilities have: JSON as it is meant, not what merely resembles it."""

from typing import Annotated, Any

from pydantic import AwareDatetime, BeforeValidator


def _whole(value: object) -> object:
    """JSON has one kind of number: 7.0 is 7."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _text(value: Any) -> Any:
    """A number would be taken for seconds since 1970."""
    if not isinstance(value, str):
        raise ValueError("must be a time like 2026-03-02T18:00:00Z")  # noqa: TRY004 (what pydantic expects)
    return value


Whole = BeforeValidator(_whole)
Moment = Annotated[AwareDatetime, BeforeValidator(_text)]
