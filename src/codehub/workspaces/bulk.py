"""One thing asked of many workspaces at once. An admin asks (`BulkActions`, for the pages); the coordinator's loop does
it, one workspace after the other, each through `workspaces.service` and with the rights that the admin has then.

What is busy is asked again until it is not: operations are not interrupted, and no person is sent away for that.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from codehub import ids, logs
from codehub.audit import service as audit
from codehub.audit.codes import Code
from codehub.clock import Clock
from codehub.coordinator.driver import Loop, Tick
from codehub.coordinator.leader import Lease
from codehub.db import Connection, Database, Queries, Row
from codehub.errors import CodeHubError, ForbiddenError, InvalidRequestError, NotFoundError, UnavailableError
from codehub.policy import rules as policy
from codehub.policy.actions import Action
from codehub.policy.model import ALL_SCOPES, Principal, Role, operator
from codehub.workspaces.admission import admitted
from codehub.workspaces.bulk_rules import Outcome, Verb, is_so_already
from codehub.workspaces.errors import BulkLimitError, NotInErrorError, OperationInProgressError
from codehub.workspaces.model import Desired, Phase
from codehub.workspaces.service import Workspaces
from codehub.workspaces.store import sql as workspaces_sql

sql = Queries("codehub.workspaces", "bulk.sql")
log = logs.get()
NAME = "bulk"
PERIOD_SECONDS = 30.0
AT_MOST = 500  # workspaces of one action
OPEN_AT_MOST = 20  # actions
BATCH = 50  # workspaces of one tick
PATIENCE = timedelta(minutes=15)  # how long what is busy is asked again
PAUSE = timedelta(seconds=1)
KEEP = timedelta(days=30)
OPERATOR = "cli:"


@dataclass(frozen=True)
class BulkAction:
    id: str
    verb: Verb
    actor: str
    matched: int
    created_at: datetime
    expires_at: datetime
    finished_at: datetime | None


@dataclass(frozen=True)
class Item:
    workspace_id: str
    name: str
    owner: str
    phase: Phase
    in_trash: bool
    outcome: Outcome | None  # None: still to be done
    code: str | None


@dataclass(frozen=True)
class Due:
    bulk_id: str
    place: int
    workspace_id: str
    verb: Verb
    actor: str  # as it is kept
    expires_at: datetime


def _action(record: Row) -> BulkAction:
    return BulkAction(**{**record, "verb": Verb(record["verb"])})


def _item(record: Row) -> Item:
    words: dict[str, Any] = {
        "phase": Phase(record["phase"]),
        "outcome": Outcome(record["outcome"]) if record["outcome"] else None,
    }
    return Item(**{**record, **words})


def _due(record: Row) -> Due:
    return Due(**{**record, "verb": Verb(record["verb"])})


class BulkActions:
    """What pages ask for."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock

    async def begin(self, caller: Principal, verb: Verb, wanted: Sequence[str], matched: int) -> str:
        """For as many as may be at once; `matched` says how many there were. Returns its id."""
        policy.require(caller, Action.WORKSPACE_BULK)
        if not wanted:
            raise InvalidRequestError("choose at least one", field="workspaces")
        id_, now = ids.new(), self._clock.now()
        async with self._database.transaction() as c:
            await c.execute(sql.one_at_a_time)
            if await c.fetchval(sql.count_open) >= OPEN_AT_MOST:
                raise BulkLimitError(f"{OPEN_AT_MOST} such actions are under way: wait until one of them is over")
            await c.execute(sql.prune, now - KEEP)
            await c.execute(sql.add, id_, verb, caller.name, matched, now, now + PATIENCE)
            await c.execute(sql.add_items, id_, list(dict.fromkeys(wanted))[:AT_MOST], now)
            await audit.record(c, now, caller.origin, Code.WORKSPACE_BULK, id_, verb=verb, count=len(wanted[:AT_MOST]))
            await c.execute(workspaces_sql.wake_controller)
        return id_

    async def get(self, caller: Principal, id_: str) -> tuple[BulkAction, list[Item]]:
        policy.require(caller, Action.WORKSPACE_LIST_ALL)
        async with self._database.connection() as c:
            found = await c.fetchrow(sql.find, id_)
            if found is None:
                raise NotFoundError("there is no such action any more")
            return _action(found), [_item(record) for record in await c.fetch(sql.items, id_)]

    async def newest(self, caller: Principal, limit: int) -> list[BulkAction]:
        policy.require(caller, Action.WORKSPACE_LIST_ALL)
        async with self._database.connection() as c:
            return [_action(record) for record in await c.fetch(sql.newest, limit)]


class BulkLoop:
    def __init__(self, lease: Lease, workspaces: Workspaces, clock: Clock) -> None:
        self._lease = lease
        self._workspaces = workspaces
        self._clock = clock

    def loop(self) -> Loop:
        return Loop(NAME, self.tick, period=PERIOD_SECONDS, longest_pause=15.0)

    async def tick(self) -> Tick:
        async with self._lease.database.connection() as c:
            due = [_due(record) for record in await c.fetch(sql.due, self._clock.now(), BATCH)]
        for item in due:
            await self._settle(item)
        async with self._lease.transaction() as c:
            await c.execute(sql.finish, self._clock.now())
            following: datetime | None = await c.fetchval(sql.next_due)
        left = None if following is None else max(0.0, (following - self._clock.now()).total_seconds())
        return Tick({"due": len(due)}, again_in=left)

    async def _settle(self, item: Due) -> None:
        """Doing it again after a crash changes nothing: each of the verbs finds that it is so already."""
        outcome, code = Outcome.REFUSED, None
        try:
            outcome = await self._perform(item)
        except OperationInProgressError as e:
            if self._clock.now() < item.expires_at:
                async with self._lease.transaction() as c:
                    await c.execute(sql.put_off, item.bulk_id, item.place, self._clock.now() + PAUSE)
                return
            code = e.code
        except UnavailableError:
            raise  # it is not about this one: the loop tries again
        except CodeHubError as e:
            code = "NO_PLACE" if "join_url" in e.extra else e.code
        async with self._lease.transaction() as c:
            await c.execute(sql.settle, item.bulk_id, item.place, outcome, code)

    async def _perform(self, item: Due) -> Outcome:
        async with self._lease.database.connection() as c:
            caller = await _principal(c, item.actor)
        service, id_ = self._workspaces, item.workspace_id
        w = await service.get(caller, id_)
        if is_so_already(w, item.verb):
            return Outcome.SAME
        match item.verb:
            case Verb.START:
                admitted(await service.request(caller, id_, Desired.RUNNING))
            case Verb.SLEEP:
                admitted(await service.request(caller, id_, Desired.STANDBY))
            case Verb.ARCHIVE:
                admitted(await service.request(caller, id_, Desired.ARCHIVED))
            case Verb.DELETE:
                await service.delete(caller, id_, purge=False)
            case Verb.UNDELETE:
                await service.undelete(caller, id_)
            case Verb.RECOVER:
                return await self._recover(caller, id_)
        return Outcome.DONE

    async def _recover(self, caller: Principal, id_: str) -> Outcome:
        try:
            admitted(await self._workspaces.recover(caller, id_))
        except NotInErrorError:
            return Outcome.SAME
        return Outcome.DONE


async def _principal(c: Connection, actor: str) -> Principal:
    """Who asked, as they are now: an admin who is none any more is refused by the policy."""
    if actor.startswith(OPERATOR):
        return operator(actor.removeprefix(OPERATOR))
    found = await c.fetchrow(sql.who, actor)
    if found is None:
        raise ForbiddenError("the person who asked for this is not active any more")
    return Principal(found["name"], Role(found["role"]), ALL_SCOPES, id=actor)
