"""Cursor pages: `{"items": […], "next_cursor": …}` with `?limit=&cursor=`. A cursor names the last row of a page.

There is one kind for each order a list can have. Each is text of a shape that the documentation states, so that
whatever has the shape is a place in the list, and anything else is refused before it gets here.
"""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, Generic, TypeVar

from fastapi import Query
from pydantic import BaseModel

T = TypeVar("T")
R = TypeVar("R")
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MICROSECOND = timedelta(microseconds=1)
ABOUT = "`next_cursor` of the page before."

Limit = Annotated[int, Query(ge=1, le=200, description="Items on a page, at most.")]
NameCursor = Annotated[str | None, Query(pattern="^[a-z0-9-]{1,63}$", description=ABOUT)]
NumberCursor = Annotated[str | None, Query(pattern="^[0-9]{1,18}$", description=ABOUT)]
TimeCursor = Annotated[str | None, Query(pattern=r"^[0-9]{1,17}\.[a-z0-9-]{1,63}$", description=ABOUT)]


class Page(BaseModel, Generic[T]):
    items: list[T]
    next_cursor: str | None

    @classmethod
    def model_parametrized_name(cls, params: tuple[Any, ...]) -> str:
        """As the documentation calls it: `WorkspacePage`."""
        return f"{params[0].__name__.removesuffix('Out')}Page"


def page(found: Sequence[R], limit: int, show: Callable[[R], T], cursor: Callable[[R], str]) -> Page[T]:
    """`found` has up to one row more than the page: that row says that there is a next one."""
    items = found[:limit]
    more = cursor(items[-1]) if len(found) > limit else None
    return Page(items=[show(item) for item in items], next_cursor=more)


def at(moment: datetime, id_: str) -> str:
    """A place in a list in order of creation: microseconds, and the id, as several may come in the same one."""
    return f"{(moment - EPOCH) // MICROSECOND}.{id_}"


def place(cursor: str | None) -> tuple[datetime, str]:
    """The reverse of `at`; the beginning of the list when there is no cursor."""
    microseconds, _, id_ = (cursor or "0.").partition(".")
    return EPOCH + int(microseconds) * MICROSECOND, id_
