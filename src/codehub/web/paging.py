"""Cursor pages: `{"items": […], "next_cursor": …}` with `?limit=&cursor=`. A cursor names the last row of a page."""

import base64
import binascii
import json
import re
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Annotated, Generic, TypeVar

from fastapi import Query
from pydantic import BaseModel

from codehub.errors import InvalidRequestError

# What a cursor may hold is what our rows hold: no control characters, and nothing that is not UTF-8.
PRINTABLE = re.compile(r"[^\x00-\x1f\x7f\ud800-\udfff]*")

T = TypeVar("T")
R = TypeVar("R")
Limit = Annotated[int, Query(ge=1, le=200, description="Items on a page, at most.")]
Cursor = Annotated[str | None, Query(min_length=1, max_length=500, description="`next_cursor` of the page before.")]


class Page(BaseModel, Generic[T]):
    items: list[T]
    next_cursor: str | None


def encode(*parts: str) -> str:
    return base64.urlsafe_b64encode(json.dumps(parts).encode()).rstrip(b"=").decode()


def decode(cursor: str, parts: int) -> list[str]:
    try:
        values = json.loads(base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True))
    except (ValueError, binascii.Error):
        values = None
    if not isinstance(values, list) or len(values) != parts or not all(map(_is_printable, values)):
        raise _bad_cursor()
    return values


def _is_printable(value: object) -> bool:
    return isinstance(value, str) and PRINTABLE.fullmatch(value) is not None


def decode_time_and_id(cursor: str | None) -> tuple[datetime, str]:
    """For lists in order of creation."""
    if cursor is None:
        return datetime.min.replace(tzinfo=UTC), ""
    time, id_ = decode(cursor, 2)
    try:
        return datetime.fromisoformat(time).astimezone(UTC), id_
    except (ValueError, OverflowError):
        raise _bad_cursor() from None


def decode_number(cursor: str | None) -> int | None:
    if cursor is None:
        return None
    try:
        number = int(decode(cursor, 1)[0])
    except ValueError:
        raise _bad_cursor() from None
    return min(max(number, 0), 2**63 - 1)


def page(found: Sequence[R], limit: int, show: Callable[[R], T], key: Callable[[R], tuple[str, ...]]) -> Page[T]:
    """`found` has up to one row more than the page: that row says that there is a next one."""
    items = found[:limit]
    more = encode(*key(items[-1])) if len(found) > limit else None
    return Page(items=[show(item) for item in items], next_cursor=more)


def _bad_cursor() -> InvalidRequestError:
    return InvalidRequestError("not a cursor of this list", field="cursor")
