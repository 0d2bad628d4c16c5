"""The modelled database: one row, the product's own SQL on it, and the constraints of the schema.

A transaction is one step: the product locks the row or writes by compare-and-set in it, and waits for nothing else
inside, which is checked here. Timestamps are relative to now: `NOW` is now or earlier, `LATER` is not yet.
"""

import contextlib
import importlib.resources
import re
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, fields
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

from codehub.coordinator.store import sql as lease_sql
from codehub.errors import UnavailableError
from codehub.workspaces import rules, store
from codehub.workspaces.model import Desired, DesiredBy, Health, Observed, Operation, Workspace
from model import statements
from model.asks import Ask, BrokenError
from model.world import ID

NOW = datetime(2026, 1, 1, tzinfo=UTC)
LATER = NOW + timedelta(hours=1)
CHANGED = NOW + timedelta(microseconds=1)
NAMES = [f.name for f in fields(Workspace)]
CHECKS = statements.checks(
    importlib.resources.files("codehub.db.migrations").joinpath("0002_workspaces.sql").read_text(encoding="utf-8")
)
BESIDE = re.compile(r"(?:\s*--[^\n]*\n)*\s*(?:INSERT INTO|SELECT pg_|DELETE FROM workspace_swaps)")
_phase = rules.phase  # the database's own, whatever becomes of the rules


class Info(dict[str, Any]):
    """A JSON value that can be part of a state."""

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(tuple(sorted(self.items())))


def new_row(
    observed: Observed = Observed.PENDING,
    desired: Desired = Desired.RUNNING,
    *,
    archive_key: str | None = None,
    generation: str | None = None,
    op_id: str | None = None,
) -> Workspace:
    record: dict[str, Any] = dict.fromkeys(NAMES)
    record |= {"id": ID, "name": ID, "template": "t", "owner": "mina", "created_at": NOW, "updated_at": NOW}
    record |= {"observed_status": observed, "health_status": Health.OK, "operation": Operation.NONE, "failures": 0}
    record |= {"volume_parked": False, "phase_changed_at": NOW, "desired_by": DesiredBy.USER, "desired_at": NOW}
    record |= {"purge": False, "last_access_at": NOW, "idle_since": NOW, "attention_at": NOW, "desired_state": desired}
    record |= {"archive_key": archive_key, "volume_generation": generation, "op_id": op_id}
    record["phase"] = _phase(observed, Health.OK, archive_key)
    return store.workspace(record)


def _moment(value: Any) -> Any:
    return LATER if isinstance(value, datetime) and value > CHANGED else NOW if isinstance(value, datetime) else value


def settled(record: Mapping[str, Any]) -> Workspace:
    """As the database keeps a row, without what no decision reads: texts of errors, addresses, progress."""
    kept = {name: _moment(value) for name, value in record.items()}
    info = kept["error_info"]
    kept |= {"error_info": Info(reason=str(info["reason"])) if info else None, "address": None, "progress": None}
    kept["phase"] = _phase(Observed(kept["observed_status"]), Health(kept["health_status"]), kept["archive_key"])
    for check in CHECKS:
        if statements.parse_condition(check)(kept, ()) is False:
            raise BrokenError(f"a constraint of the table: {' '.join(check.split())}")
    return store.workspace(kept)


class View(NamedTuple):
    """What a transaction finds, chosen by whoever schedules it."""

    row: Workspace | None  # None: whoever asks has no business with it
    epoch: int  # of whoever leads now
    fresh: str = "o1"  # the id that an operation which begins here gets
    changed: bool = False  # was the row written since it was last looked at?
    unheard: bool = False  # it commits, and its answer is lost


@dataclass
class Connection:
    row: Workspace | None
    epoch: int
    written: bool = False

    async def execute(self, query: str, *args: Any) -> str:
        if BESIDE.match(query) or query == lease_sql.clear_setback:
            return ""  # history, restore points, swaps, notifications: nothing that a decision about this row reads
        self._run(query, args)
        return ""

    async def fetchrow(self, query: str, *args: Any) -> Mapping[str, Any] | None:
        if "count(*) AS everywhere" in query:
            return {"everywhere": 0, "of_owner": 0, "has_swap": False}
        if "FROM restore_points" in query or "FROM workspace_swaps" in query:
            return None
        return self._run(query, args)

    async def fetch(self, query: str, *args: Any) -> list[Mapping[str, Any]]:
        found = self._run(query, args)
        return [] if found is None else [found]

    async def fetchval(self, query: str, *args: Any) -> Any:
        if query == lease_sql.fence:
            return 1 if args[1] == self.epoch else None
        if query == store.sql.next_due:
            return self.row and self.row.attention_at
        if "FROM workspaces w JOIN users u" in query:
            return False  # is its owner an admin?
        if query == store.sql.owner_is_active:
            return True  # who is not puts nothing to sleep but by the same request as a person's own
        raise BrokenError(f"an unknown question: {query}")

    def _run(self, query: str, args: tuple[Any, ...]) -> Mapping[str, Any] | None:
        if self.row is None:
            raise BrokenError(f"an attempt reads the row outside of a transaction: {query}")
        statement = statements.parse(query)
        found = statement.run(vars(self.row), args)
        if found is None or statement.changes is None:
            return found
        self.row, self.written = settled(found), True
        return vars(self.row)


class Database:
    """What the product's `Lease` and services are handed. `committed` is the row after the last transaction."""

    def __init__(self) -> None:
        self.committed: Workspace | None = None
        self.written = False
        self._inside = False

    @contextlib.asynccontextmanager
    async def connection(self) -> AsyncIterator[Connection]:
        view: View = await Ask("read")
        yield Connection(view.row, view.epoch)

    @contextlib.asynccontextmanager
    async def transaction(self) -> AsyncIterator[Connection]:
        if self._inside:
            raise BrokenError("a transaction inside a transaction")
        view: View = await Ask("transaction")
        row = store.workspace({**vars(view.row), "updated_at": CHANGED}) if view.changed else view.row
        connection = Connection(row, view.epoch)
        self._inside = True
        try:
            yield connection
        finally:
            self._inside = False
        if connection.written:
            self.committed, self.written = connection.row, True
        if view.unheard:
            raise UnavailableError("the answer to COMMIT was lost")

    def refuse_inside(self, verb: str) -> None:
        if self._inside:
            raise BrokenError(f"{verb} inside a transaction")
