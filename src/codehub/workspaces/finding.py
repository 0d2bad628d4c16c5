"""Everybody's workspaces, for admins: found by what is known of them, counted by phase, in several orders.

Called by the page `/workspaces`. The statements are put together here from fixed pieces, so that each has just the
conditions that were asked for, and the index of its order serves it.
"""

from collections.abc import Collection
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from typing import Any

from codehub.db import Connection, Database
from codehub.http import paging
from codehub.policy import rules as policy
from codehub.policy.actions import Action
from codehub.policy.model import Principal
from codehub.workspaces import store
from codehub.workspaces.model import Phase, Workspace

LONGEST = 200  # characters of a cursor


class Shown(StrEnum):
    """What a list is narrowed to: a phase, or what lies in the trash."""

    RUNNING = "RUNNING"
    STANDBY = "STANDBY"
    ARCHIVED = "ARCHIVED"
    PENDING = "PENDING"
    ERROR = "ERROR"
    TRASH = "TRASH"


class Sort(StrEnum):
    NEW = "new"
    NAME = "name"
    CHANGED = "changed"  # the longest in its phase first
    SIZE = "size"


@dataclass(frozen=True)
class Search:
    text: str = ""  # a part of its name or of its owner's, or the beginning of its id
    shown: Shown | None = None
    owner: str = ""
    template: str = ""
    class_id: str = ""
    asleep_since: datetime | None = None  # or earlier


@dataclass(frozen=True)
class Totals:
    of: dict[Shown, int]

    @property
    def all(self) -> int:
        """But for those in the trash."""
        return sum(n for shown, n in self.of.items() if shown is not Shown.TRASH)


@dataclass(frozen=True)
class Order:
    key: str  # what it is sorted by, before the id
    down: bool

    @property
    def words(self) -> str:
        way = " DESC" if self.down else ""
        return f"{self.key}{way}, id{way}"

    def after(self, place: str) -> str:
        return f"({self.key}, id) {'<' if self.down else '>'} {place}"


ORDERS = {
    Sort.NEW: Order("created_at", down=True),
    Sort.NAME: Order("name", down=False),
    Sort.CHANGED: Order("phase_changed_at", down=False),
    Sort.SIZE: Order("coalesce(disk_bytes, -1)", down=True),
}
LIVE, IN_TRASH = "deleted_at IS NULL AND emptied_at IS NULL", "deleted_at IS NOT NULL AND emptied_at IS NULL"
CALLED = "position(lower({0}) IN lower(name)) > 0 OR position(lower({0}) IN lower(display_name)) > 0"
OWNERS = f"SELECT id FROM users WHERE {CALLED}"  # noqa: S608 (fixed pieces)
LEARNERS = "SELECT user_id FROM class_members WHERE class_id = {} AND role = 'learner'"


class Conditions:
    """SQL of fixed pieces; every value is an argument."""

    def __init__(self, search: Search) -> None:
        self.args: list[Any] = []
        self.words = [IN_TRASH if search.shown is Shown.TRASH else LIVE]
        if search.shown not in {None, Shown.TRASH}:
            self.words.append(f"phase = {self.value(search.shown)}")
        if search.template:
            self.words.append(f"template = {self.value(search.template)}")
        if search.owner:
            self.words.append(f"owner_id = (SELECT codehub_user_id({self.value(search.owner)}))")
        if search.class_id:
            self.words.append(f"owner_id IN ({LEARNERS.format(self.value(search.class_id))})")
        if search.asleep_since:
            self.words.append(f"phase = '{Phase.STANDBY}' AND phase_changed_at <= {self.value(search.asleep_since)}")
        if search.text:
            part = f"{self.value(search.text)}::text"
            named = f"position(lower({part}) IN lower(name)) > 0 OR starts_with(id, lower({part}))"
            self.words.append(f"({named} OR owner_id IN ({OWNERS.format(part)}))")

    def value(self, value: Any) -> str:
        self.args.append(value)
        return f"${len(self.args)}"

    @property
    def where(self) -> str:
        return " AND ".join(self.words)


def page_statement(search: Search, sort: Sort, after: tuple[Any, str] | None, limit: int) -> tuple[str, list[Any]]:
    found, order = Conditions(search), ORDERS[sort]
    if after is not None:
        found.words.append(order.after(f"({found.value(after[0])}, {found.value(after[1])})"))
    tail = f"ORDER BY {order.words} LIMIT {found.value(limit)}"
    return f"SELECT *, codehub_user_name(owner_id) AS owner FROM workspaces WHERE {found.where} {tail}", found.args  # noqa: S608 (fixed pieces)


def count_statement(search: Search) -> tuple[str, list[Any]]:
    found = Conditions(search)
    return f"SELECT phase, count(*) AS n FROM workspaces WHERE {found.where} GROUP BY phase", found.args  # noqa: S608


def cursor_of(w: Workspace, sort: Sort) -> str:
    """Names the last row of a page by what the list is sorted by."""
    match sort:
        case Sort.NEW:
            return paging.at(w.created_at, w.id)
        case Sort.CHANGED:
            return paging.at(w.phase_changed_at, w.id)
        case Sort.SIZE:
            return f"{-1 if w.disk_bytes is None else w.disk_bytes}.{w.id}"
        case Sort.NAME:
            return f"{w.name}.{w.id}"


def place_of(cursor: str | None, sort: Sort) -> tuple[Any, str] | None:
    """None for what is no cursor of this order: the list begins at its beginning."""
    value, _, id_ = (cursor or "")[:LONGEST].rpartition(".")
    if not value or not id_:
        return None
    if sort is Sort.NAME:
        return value, id_
    if not value.removeprefix("-").isdecimal() or not value.isascii() or len(value) > 17:
        return None
    if sort is Sort.SIZE:
        return int(value), id_
    return None if value.startswith("-") else paging.place(f"{value}.{id_}")


@dataclass(frozen=True)
class Usage:
    """How much of the limits is used."""

    running: int
    running_of_one: int  # of the person who has the most
    kept_of_one: int
    starting: int
    shares_of_one: int


class AllWorkspaces:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def page(
        self, caller: Principal, search: Search, sort: Sort, *, cursor: str | None, limit: int
    ) -> list[Workspace]:
        policy.require(caller, Action.WORKSPACE_LIST_ALL)
        statement, args = page_statement(search, sort, place_of(cursor, sort), limit)
        async with self._database.connection() as c:
            return await store.query(c, statement, *args)

    async def totals(self, caller: Principal, search: Search) -> Totals:
        """Of what was searched for, whichever of its phases is shown."""
        policy.require(caller, Action.WORKSPACE_LIST_ALL)
        async with self._database.connection() as c:
            live = await self._count(c, replace(search, shown=None))
            trash = await self._count(c, replace(search, shown=Shown.TRASH))
        known = {Shown(phase): n for phase, n in live.items() if phase in set(Shown)}
        return Totals({**dict.fromkeys(Shown, 0), **known, Shown.TRASH: sum(trash.values())})

    async def names(self, caller: Principal, ids: Collection[str]) -> dict[str, str]:
        """Of these, as far as they are still known."""
        policy.require(caller, Action.WORKSPACE_LIST_ALL)
        if not ids:
            return {}
        async with self._database.connection() as c:
            return {row["id"]: row["name"] for row in await c.fetch(store.sql.names_of, list(ids))}

    async def usage(self, caller: Principal) -> Usage:
        policy.require(caller, Action.SETTINGS_READ)
        async with self._database.connection() as c:
            found = await c.fetchrow(store.sql.usage)
        assert found  # noqa: S101 (an aggregate always returns a row)
        return Usage(**found)

    async def _count(self, c: Connection, search: Search) -> dict[str, int]:
        statement, args = count_statement(search)
        return {record["phase"]: record["n"] for record in await c.fetch(statement, *args)}
