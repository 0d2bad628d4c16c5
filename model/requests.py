"""What people and timers ask for: the product's own service, in one step on the modelled row."""

import re
from collections.abc import Awaitable, Callable, Iterator
from datetime import timedelta
from typing import Any

from codehub.errors import CodeHubError
from codehub.policy.model import ALL_SCOPES, Principal, Role
from codehub.settings import LimitsConfig
from codehub.workspaces import idle_store
from codehub.workspaces.model import Desired, Operation, Phase, Workspace
from codehub.workspaces.service import Workspaces
from model import doubles, statements
from model.asks import BrokenError
from model.database import NOW, Database, View, settled
from model.world import ID

MINA = Principal("mina", Role.LEARNER, ALL_SCOPES)
TIMER_STORES = "the timer asks for ARCHIVED"
Request = Callable[[Workspaces], Awaitable[Any]]


def _request(wanted: Desired) -> Request:
    return lambda service: service.request(MINA, ID, wanted)


REQUESTS: dict[str, Request] = {
    "user asks for RUNNING": _request(Desired.RUNNING),
    "user asks for STANDBY": _request(Desired.STANDBY),
    "user asks for ARCHIVED": _request(Desired.ARCHIVED),
    "user deletes": lambda service: service.delete(MINA, ID, purge=False),
    "user purges": lambda service: service.delete(MINA, ID, purge=True),
    "user undeletes": lambda service: service.undelete(MINA, ID),
    "user recovers": lambda service: service.recover(MINA, ID, accept_loss=True),
}


def ask(row: Workspace, request: Request) -> Workspace | None:
    """The row afterwards; None when it was refused or changes nothing."""
    database = Database()
    service = Workspaces(database, doubles.Clock(), LimitsConfig(), doubles.Templates(), doubles.Line())  # type: ignore[arg-type]
    work: Any = request(service)
    try:
        asked = work.send(None)
        while True:
            if asked.verb not in {"transaction", "read"}:
                raise BrokenError(f"the service asks for {asked}")
            asked = work.send(View(row, 0))
    except StopIteration:
        return database.committed
    except CodeHubError:
        return None


# --- timers

# The statements of the TTL runner are about many rows at once; this is their part about one.
ONE_ROW = re.compile(r"UPDATE workspaces w\s+SET (?P<set>.*?)\s+FROM .*?WHERE (?P<where>.*?)\s+RETURNING", re.DOTALL)
EARLIER = NOW - timedelta(hours=1)


def of_one(sql: str) -> str:
    """The same statement, about the one row, with what was decided from as its second argument."""
    found = ONE_ROW.search(sql)
    assert found
    text = f"UPDATE workspaces SET {found['set']} WHERE {found['where']}"  # noqa: S608 (both are the product's)
    text = re.sub(r"\b(?:d|old)\.id\b", "$1", text)
    text = re.sub(r"\b(?:d\.idle_since|old\.phase_changed_at)\b", "$2", text)
    return re.sub(r"\bw\.", "", text)


def may_sleep(row: Workspace) -> bool:
    """Would the TTL runner find it idle?"""
    awake = row.phase is Phase.RUNNING and row.desired_state is Desired.RUNNING
    return awake and row.operation is Operation.NONE and row.deleted_at is None


def put_to_sleep(row: Workspace, *, moved: bool) -> Workspace:
    """What the timer's statement makes of the row; `moved`: somebody did something since it was found idle."""
    return _by_timer(of_one(idle_store.sql.put_to_sleep), row, (ID, EARLIER if moved else NOW, None, NOW))


def store_away(row: Workspace) -> Workspace:
    """Found and written in one statement."""
    return _by_timer(of_one(idle_store.sql.store_away), row, (ID, NOW, NOW, None, None, NOW))


def _by_timer(sql: str, row: Workspace, args: tuple[Any, ...]) -> Workspace:
    found = statements.parse(sql).run(vars(row), args)
    return row if found is None else settled(found)


def every(row: Workspace) -> Iterator[tuple[str, Workspace]]:
    """All that may be asked of this row, with the row afterwards."""
    for label, request in REQUESTS.items():
        if changed := ask(row, request):
            yield label, changed
    yield TIMER_STORES, store_away(row)
