"""The use cases about workspaces, each one transaction. The only writer of `desired_state` and `deleted_at`.

Called by the API and the command line for people; in-process by proxy, TTL runner, waiting room and session engine,
which change a workspace in no other way.
"""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, NoReturn

from codehub import ids, metrics, names
from codehub.audit import service as audit
from codehub.audit.codes import Code
from codehub.clock import Clock
from codehub.coordinator import setbacks
from codehub.db import Connection, Database
from codehub.errors import DeactivatedError, InvalidRequestError, NotFoundError
from codehub.policy import rules as policy_rules
from codehub.policy.actions import Action
from codehub.policy.model import Decision, Kind, Principal, Resource
from codehub.settings import LimitsConfig
from codehub.templates.loader import Templates
from codehub.workspaces import admission, authorize, history, repositories, rules, store, swaps, visits
from codehub.workspaces.admission import Admitted, Line, Refused
from codehub.workspaces.errors import (
    DataLostError,
    InErrorError,
    NotInErrorError,
    OperationInProgressError,
    WorkspaceDeletedError,
    WorkspaceLimitError,
)
from codehub.workspaces.history import Record
from codehub.workspaces.model import (
    Desired,
    DesiredBy,
    Health,
    HistoryEntry,
    Operation,
    Phase,
    Reason,
    RestorePoint,
    Workspace,
)
from codehub.workspaces.store import Change, sql

REFUSALS = {
    "OPERATION_IN_PROGRESS": OperationInProgressError,
    "WORKSPACE_IN_ERROR": InErrorError,
    "WORKSPACE_DELETED": WorkspaceDeletedError,
}
# What one has to be allowed to do to ask for a state.
ACTIONS = {
    Desired.RUNNING: Action.WORKSPACE_START,
    Desired.STANDBY: Action.WORKSPACE_SLEEP,
    Desired.ARCHIVED: Action.WORKSPACE_ARCHIVE,
}


@dataclass(frozen=True)
class NewWorkspace:
    name: str
    template: str
    desired_state: Desired = Desired.RUNNING
    standby_ttl_seconds: int | None = None
    archive_ttl_seconds: int | None = None
    owner: str | None = None  # None: of who asks
    reservation_token: str | None = None  # a place that the owner has in the waiting room
    git_url: str | None = None  # of a repository that it begins with
    git_branch: str | None = None  # None: the repository's own


@dataclass(frozen=True)
class Filters:
    owner: str | None = None
    phase: Phase | None = None
    template: str | None = None
    deleted: bool = False
    name: str | None = None
    class_id: str | None = None


class Unset:
    """Not mentioned, as opposed to null."""


UNSET = Unset()


@dataclass(frozen=True)
class Details:
    """What may be changed beside the desired state."""

    name: str | Unset = UNSET
    standby_ttl_seconds: int | Unset | None = UNSET
    archive_ttl_seconds: int | Unset | None = UNSET
    keep_awake_until: datetime | Unset | None = UNSET

    @property
    def actions(self) -> tuple[Action, ...]:
        """What one has to be allowed to do to change this."""
        keeps = not isinstance(self.keep_awake_until, Unset)
        others = (self.name, self.standby_ttl_seconds, self.archive_ttl_seconds)
        changes = not keeps or any(not isinstance(value, Unset) for value in others)
        return (Action.WORKSPACE_KEEP_AWAKE,) * keeps + (Action.WORKSPACE_CHANGE,) * changes


Which = str | Workspace  # by its id, or as it was just read: a page that shows much of one reads it once


class Workspaces:
    def __init__(
        self, database: Database, clock: Clock, limits: LimitsConfig, templates: Templates, line: Line
    ) -> None:
        self._database = database
        self._clock = clock
        self._limits = limits
        self._templates = templates
        self._line = line

    # --- reading

    async def get(self, caller: Principal, which: Which, *actions: Action) -> Workspace:
        """For a principal who may do all of this with it; unless it says otherwise, see it."""
        id_, found = (which.id, which) if isinstance(which, Workspace) else (which, None)
        async with self._database.connection() as c:
            if found is None and ids.is_label(id_):
                found = await store.find(c, id_)
            for action in actions or (Action.WORKSPACE_SEE,):
                await authorize.authorize(c, caller, action, found, id_)
        return found or _missing(id_)

    async def page(self, caller: Principal, filters: Filters, *, after: store.After, limit: int) -> list[Workspace]:
        """One's own; an admin sees all users', and a teacher those of their class's learners."""
        policy_rules.require(caller, Action.WORKSPACE_LIST)
        sees_others = filters.class_id or policy_rules.allows(caller, Action.WORKSPACE_LIST_ALL)
        owner = filters.owner if sees_others else caller.name
        async with self._database.connection() as c:
            if filters.class_id:
                await self._require_teacher(c, caller, filters.class_id)
            narrowed = filters.phase, filters.template, filters.deleted, *after, limit, filters.name, filters.class_id
            return await store.query(c, sql.page, owner, *narrowed)

    async def _require_teacher(self, c: Connection, caller: Principal, class_id: str) -> None:
        """Of a class that is not over; for others there is none."""
        teaches = (
            bool(caller.id) and await c.fetchval(sql.teaches, class_id, caller.id) and policy_rules.is_staff(caller)
        )
        resource = Resource(class_id, is_taught=teaches)
        missing = f"there is no class {class_id[:63]}"
        policy_rules.enforce(policy_rules.decide(caller, Action.CLASS_MEMBERS, resource), missing)

    async def history(
        self, caller: Principal, which: Which, *, before: int, limit: int, codes: Collection[str] | None = None
    ) -> list[HistoryEntry]:
        """Newest first; `codes`: only lines of these."""
        w = await self.get(caller, which, Action.WORKSPACE_HISTORY)
        async with self._database.connection() as c:
            return await store.page_history(c, w.id, before, limit, codes)

    async def restore_points(
        self, caller: Principal, which: Which, *, keep: int, before: store.After | None, limit: int
    ) -> list[RestorePoint]:
        """The last `keep`, newest first, and the one the home goes back to, should it be older."""
        w = await self.get(caller, which, Action.WORKSPACE_POINTS)
        async with self._database.connection() as c:
            return await store.page_points(c, w.id, keep, before, limit)

    async def download_source(
        self, caller: Principal, id_: str, archive_key: str | None
    ) -> tuple[Workspace, str | None]:
        """Where its files are: an archive's key, or None for the home itself. Who took whose home is written down."""
        async with self._database.transaction() as c:
            found = await store.find(c, id_) if ids.is_label(id_) else None
            decision = await authorize.authorize(c, caller, Action.WORKSPACE_DOWNLOAD, found, id_)
            w = found or _missing(id_)
            if archive_key is not None:
                if w.purge or (archive_key != w.archive_key and await store.find_point(c, id_, archive_key) is None):
                    raise NotFoundError(f"this workspace has no restore point {archive_key[:200]}")
                source: str | None = archive_key
            else:
                source, judged = rules.download_source(w)
                if judged.code == "NOT_FOUND":
                    raise NotFoundError("it has no files yet, or none any more")
                if judged.code == "DATA_LOST":
                    hint = "its files are gone: download a restore point by its key"
                    raise DataLostError(hint, archive_key=w.archive_key)
                if judged.code:
                    raise REFUSALS[judged.code](_refusal(w, judged.code))
            detail = {"owner": w.owner, "archive_key": source}
            now = self._clock.now()
            await audit.record(c, now, caller.origin, Code.WORKSPACE_DOWNLOAD, id_, **detail)
            if decision.tells_owner:
                await store.note(c, id_, now, Change(caller.name, history.Downloaded()))
                await visits.tell_owner(c, now, w, caller, visits.Visit.DOWNLOADED)
        return w, source

    async def start_position(self, w: Workspace) -> int | None:
        """How many are to be started before this one; None when it does not wait to be started."""
        waits = w.desired_state is Desired.RUNNING and w.phase not in {Phase.RUNNING, Phase.ERROR, Phase.DELETED}
        if not waits or w.operation is Operation.STARTING or w.deleted_at:
            return None
        async with self._database.connection() as c:
            return int(await c.fetchval(sql.start_position, w.desired_at))

    # --- requesting

    async def create(self, caller: Principal, new: NewWorkspace) -> Workspace | Refused:
        async with self._database.transaction() as c:
            return await self.create_in(c, caller, new)

    async def create_in(
        self, c: Connection, caller: Principal, new: NewWorkspace, *, counted_for: Principal | None = None
    ) -> Workspace | Refused:
        """In a transaction of the caller's, who keeps the id in it. `counted_for`: who asked, where the caller is
        a part of the platform: their limit holds.
        """
        if new.owner is None and caller.kind is Kind.OPERATOR:
            raise InvalidRequestError("name the person it is for", field="owner")
        for_other = new.owner not in {None, caller.name}
        decision = policy_rules.require(caller, Action.WORKSPACE_CREATE_FOR if for_other else Action.WORKSPACE_CREATE)
        self._templates.require(new.template)
        _check_name(new.name)
        repositories.check(new.git_url, new.git_branch)
        self._check_standby(caller, new.standby_ttl_seconds)
        id_, now, owner = ids.new(), self._clock.now(), new.owner or caller.name
        by = authorize.desired_by(caller, decision)
        if for_other and (not ids.is_label(owner) or await c.fetchval(sql.owner_is_active, owner) is None):
            raise NotFoundError(policy_rules.NO_SUCH_USER)
        await self._check_count(c, counted_for or caller)
        uses = Admitted()
        if new.desired_state is Desired.RUNNING:
            _check_owner(owner, active=await c.fetchval(sql.hold_owner, owner))
            outcome = await self._admit(c, owner, id_, new.reservation_token)
            if isinstance(outcome, Refused):
                return outcome
            uses = outcome
        made = await store.update(
            c,
            sql.add,
            *(id_, new.name, new.template, owner, now, new.desired_state, by),
            *(new.standby_ttl_seconds, new.archive_ttl_seconds),
        )
        assert made  # noqa: S101 (an insert that returns)
        await self._redeem(c, uses, id_)
        created = history.Created(new.desired_state)
        await store.note(c, id_, now, Change(caller.name, created, to_state=made.phase))
        if new.git_url:
            await repositories.add(c, id_, new.git_url, new.git_branch, caller.name, now)
        await c.execute(sql.wake_controller)
        return made

    async def request(
        self, caller: Principal, id_: str, wanted: Desired, reservation_token: str | None = None
    ) -> tuple[Workspace, int] | Refused:
        """Ask for a state. 202: it will be; 200: it is so already. The request is recorded; history has what is new."""
        async with self._database.transaction() as c:
            w, decision = await self._lock(c, caller, id_, ACTIONS[wanted])
            by = authorize.desired_by(caller, decision)
            return await self._set_desired(c, w, wanted, by, caller.name, reservation_token)

    async def start_in(
        self, c: Connection, caller: Principal, id_: str, why: Record
    ) -> tuple[Workspace, int] | Refused:
        """An ordinary start in a transaction of the caller's; history says `why`."""
        w, decision = await self._lock(c, caller, id_, Action.WORKSPACE_START)
        by = authorize.desired_by(caller, decision)
        return await self._set_desired(c, w, Desired.RUNNING, by, caller.name, why=why)

    async def stay_awake_in(self, c: Connection, id_: str, until: datetime, reason: str) -> None:
        """Not to sleep before that; what keeps it awake for longer stays. In a transaction of the caller's."""
        await c.execute(sql.stay_awake, id_, until, reason, self._clock.now())

    async def note_in(self, c: Connection, caller: Principal, id_: str, what: Record) -> None:
        """A line of its history, in a transaction of the caller's."""
        await store.note(c, id_, self._clock.now(), Change(caller.name, what))

    async def wake(self, caller: Principal, id_: str, *, asked: bool = False) -> Workspace | Refused:
        """By coming to it, or because it was asked for. Of many who come at once one wakes it."""
        async with self._database.transaction() as c:
            w, decision = await self._lock(c, caller, id_, Action.WORKSPACE_WAKE)
            if not rules.is_asleep(w):
                return w
            by = authorize.desired_by(caller, decision) if asked else DesiredBy.WAKE
            outcome = await self._set_desired(c, w, Desired.RUNNING, by, caller.name)
        if isinstance(outcome, Refused):
            return outcome
        metrics.WAKES.inc()
        return outcome[0]

    async def swap(self, caller: Principal, id_: str, sleep_id: str) -> Workspace | Refused:
        """Put another one of the same owner to sleep, and start this one in its place: no other gets it in between.

        It starts when the other one no longer counts as running; until then nothing is asked of it.
        """
        async with self._database.transaction() as c:
            asked = {id_: Action.WORKSPACE_START, sleep_id: Action.WORKSPACE_SLEEP}
            locked = {each: await self._lock(c, caller, each, asked[each]) for each in sorted(asked)}
            (w, decision), (other, _) = locked[id_], locked[sleep_id]
            if len(locked) < 2 or len({w.owner, other.owner}) > 1:
                raise InvalidRequestError("must be another workspace of the same owner", field="instead_of")
            by = authorize.desired_by(caller, decision)
            if rules.counts_as_running(w) or not rules.counts_as_running(other):
                outcome = await self._set_desired(c, w, Desired.RUNNING, by, caller.name)
                return outcome if isinstance(outcome, Refused) else outcome[0]
            return await self._swap(c, w, other, by, caller.name)

    async def _swap(
        self, c: Connection, w: Workspace, other: Workspace, by: DesiredBy, actor: str
    ) -> Workspace | Refused:
        if code := rules.verdict(w, Desired.RUNNING).code:
            raise REFUSALS[code](_refusal(w, code))
        _check_owner(w.owner, active=await c.fetchval(sql.owner_is_active, w.owner))
        if isinstance(outcome := await admission.admit_swap(c, self._limits, w.owner, w.id), Refused):
            return outcome
        now = self._clock.now()
        slept = await self._set_desired(c, other, Desired.STANDBY, by, actor)
        await swaps.begin(c, w.id, other.id, w.owner, by, actor, now)
        await store.note(c, w.id, now, Change(actor, history.SwapRequested(other.name)))
        if not isinstance(slept, Refused) and rules.counts_as_running(slept[0]):
            return w
        started = await self._set_desired(c, w, Desired.RUNNING, by, actor)  # it had not begun to run yet
        return started if isinstance(started, Refused) else started[0]

    async def swap_of(self, id_: str) -> swaps.Swap | None:
        """The swap by which it is to start, while it waits for the other one."""
        async with self._database.connection() as c:
            found = await swaps.find(c, id_)
        return found if found and found.waits else None

    async def swap_failed_lately(self, id_: str) -> bool:
        async with self._database.connection() as c:
            since = self._clock.now() - swaps.PATIENCE
            return bool(await c.fetchval(swaps.sql.expired_lately, id_, since))

    async def _set_desired(
        self,
        c: Connection,
        w: Workspace,
        wanted: Desired,
        by: DesiredBy,
        actor: str,
        reservation_token: str | None = None,
        why: Record | None = None,
    ) -> tuple[Workspace, int] | Refused:
        now = self._clock.now()
        judged = rules.verdict(w, wanted)
        if judged.code:
            raise REFUSALS[judged.code](_refusal(w, judged.code))
        if wanted is Desired.RUNNING:
            _check_owner(w.owner, active=await c.fetchval(sql.owner_is_active, w.owner))
            swap = await swaps.find(c, w.id)
            if swap and swap.waits:
                return w, 202  # it starts by itself
            outcome = await self._admit_start(c, w, reservation_token)
            if isinstance(outcome, Refused):
                return outcome
            await self._redeem(c, outcome, w.id)
            await swaps.end(c, w.id)
        changed = await store.update(c, sql.set_desired, w.id, wanted, by, now)
        assert changed  # noqa: S101 (the row is locked)
        if wanted is not w.desired_state:
            asked = why or history.requested(wanted, by)
            await store.note(c, w.id, now, Change(actor, asked, w.desired_state, wanted))
        await _look_at_once(c, w.id)
        return changed, judged.status

    async def change(self, caller: Principal, id_: str, details: Details) -> Workspace:
        def pair(value: Any) -> tuple[bool, Any]:
            return (False, None) if isinstance(value, Unset) else (True, value)

        name = None if isinstance(details.name, Unset) else details.name
        _check_name(name or "")
        if not isinstance(details.standby_ttl_seconds, Unset):
            self._check_standby(caller, details.standby_ttl_seconds)
        async with self._database.transaction() as c:
            for action in details.actions:
                await self._lock(c, caller, id_, action)
            changed = await store.update(
                c,
                sql.change_details,
                *(id_, name, *pair(details.standby_ttl_seconds), *pair(details.archive_ttl_seconds)),
                *(*pair(details.keep_awake_until), self._clock.now()),
            )
        assert changed  # noqa: S101 (the row is locked)
        return changed

    def _check_standby(self, caller: Principal, seconds: int | None) -> None:
        """One's own sleep time, within the operator's bound."""
        most = policy_rules.allowance(caller, self._limits.max_standby_seconds)
        if most and not rules.is_standby_allowed(seconds, most):
            raise InvalidRequestError(f"from 1 to {most} seconds", field="standby_ttl_seconds")

    async def delete(self, caller: Principal, id_: str, *, purge: bool) -> Workspace:
        """Into the trash, from which it can come back; with `purge`, gone."""
        now = self._clock.now()
        async with self._database.transaction() as c:
            w, _ = await self._lock(c, caller, id_, Action.WORKSPACE_PURGE if purge else Action.WORKSPACE_DELETE)
            if code := rules.delete_verdict(w).code:
                raise REFUSALS[code](_refusal(w, code))
            if w.deleted_at and (w.purge or not purge) and w.health_status is Health.OK:
                return w  # asked before; one that failed is tried again
            changed = await store.update(c, sql.mark_deleted, id_, now, purge)
            assert changed  # noqa: S101 (the row is locked)
            asked = history.PurgeRequested() if purge else history.DeleteRequested()
            await store.note(c, id_, now, Change(caller.name, asked, w.phase))
            await _look_at_once(c, id_)
        return changed

    async def undelete(self, caller: Principal, id_: str) -> Workspace:
        now = self._clock.now()
        async with self._database.transaction() as c:
            w, decision = await self._lock(c, caller, id_, Action.WORKSPACE_DELETE)
            if w.deleted_at is None:
                return w
            if w.operation is not Operation.NONE:
                raise OperationInProgressError(_refusal(w, "OPERATION_IN_PROGRESS"))
            if w.purge:
                raise NotFoundError("it was purged: nothing is left to bring back")
            by = authorize.desired_by(caller, decision)
            changed = await store.update(c, sql.mark_undeleted, id_, rules.desired_after_undelete(w), by, now)
            assert changed  # noqa: S101 (the row is locked)
            change = Change(caller.name, history.UndeleteRequested(), w.phase, changed.desired_state)
            await store.note(c, id_, now, change)
            await _look_at_once(c, id_)
        return changed

    async def recover(self, caller: Principal, id_: str, *, accept_loss: bool = False) -> Workspace | Refused:
        """Clear an error; the next observation decides the rest."""
        now = self._clock.now()
        async with self._database.transaction() as c:
            w, _ = await self._lock(c, caller, id_, Action.WORKSPACE_RECOVER)
            if w.health_status is not Health.ERROR:
                raise NotInErrorError("this workspace is not in error: there is nothing to recover from")
            if w.operation is not Operation.NONE:  # it is being deleted
                raise OperationInProgressError(_refusal(w, "OPERATION_IN_PROGRESS"))
            lost = (w.error_info or {}).get("reason") == Reason.DATA_LOST
            if lost and not accept_loss:
                point = await store.find_point(c, id_, w.archive_key)
                raise DataLostError(_loss(w, point, now), archive_key=w.archive_key)
            outcome = await self._admit(c, w.owner, id_) if w.desired_state is Desired.RUNNING else Admitted()
            if isinstance(outcome, Refused):
                return outcome
            await self._redeem(c, outcome, id_)
            changed = await store.update(c, sql.mark_recovered, id_, now, w.archive_key)
            assert changed  # noqa: S101 (the row is locked)
            await store.note(c, id_, now, Change(caller.name, history.RecoverRequested(), w.phase, changed.phase))
            await _look_at_once(c, id_)
        return changed

    async def restore(self, caller: Principal, id_: str, archive_key: str) -> Workspace | Refused:
        """Go back to a restore point. What is there now is archived first, and so becomes one itself."""
        now = self._clock.now()
        async with self._database.transaction() as c:
            w, decision = await self._lock(c, caller, id_, Action.WORKSPACE_RESTORE)
            if code := rules.restore_verdict(w).code:
                raise REFUSALS[code](_refusal(w, code))
            point = await store.find_point(c, id_, archive_key)
            if point is None and archive_key != w.archive_key:
                raise NotFoundError(f"this workspace has no restore point {archive_key[:200]}")
            wanted = rules.desired_after_restore(w)
            outcome = await self._admit_start(c, w) if wanted is Desired.RUNNING else Admitted()
            if isinstance(outcome, Refused):
                return outcome
            await self._redeem(c, outcome, id_)
            by = authorize.desired_by(caller, decision)
            changed = await store.update(c, store.points.request_restore, id_, archive_key, wanted, by, now)
            assert changed  # noqa: S101 (the row is locked)
            known = history.RestoreRequested(point.created_at, archive_key) if point else None
            asked = known or history.ArchiveRestoreRequested(archive_key)
            await store.note(c, id_, now, Change(caller.name, asked, w.phase, wanted))
            await _look_at_once(c, id_)
        return changed

    # --- helpers

    async def _lock(self, c: Connection, caller: Principal, id_: str, action: Action) -> tuple[Workspace, Decision]:
        found = await store.lock(c, id_) if ids.is_label(id_) else None
        decision = await authorize.authorize(c, caller, action, found, id_)
        return found or _missing(id_), decision

    async def _check_count(self, c: Connection, caller: Principal) -> None:
        """Exact: creations of one person go one after the other from here to the end of their transaction."""
        most = policy_rules.allowance(caller, self._limits.max_workspaces_per_user)
        if most is None:
            return
        await c.execute(sql.one_at_a_time, caller.name)
        found = await c.fetchrow(sql.count_kept, caller.name)
        assert found  # noqa: S101 (an aggregate always returns a row)
        kept, in_trash = found["kept"], found["in_trash"]
        if kept >= most:
            hint = f"{caller.name} has {kept} workspaces, {in_trash} of them in the trash; {most} is the most"
            raise WorkspaceLimitError(f"{hint}: delete some for good first", workspaces=kept, in_trash=in_trash)

    async def expected(self, caller: Principal, besides: str) -> Admitted | Refused:
        """Would one more of the caller's be started now, besides this one? Nothing is promised by it."""
        async with self._database.connection() as c:
            return await admission.expected(c, self._limits, self._line, caller.name, besides)

    async def _admit(
        self, c: Connection, owner: str, besides: str, reservation_token: str | None = None
    ) -> Admitted | Refused:
        return await admission.admit(c, self._limits, self._line, owner, besides, reservation_token)

    async def _admit_start(self, c: Connection, w: Workspace, token: str | None = None) -> Admitted | Refused:
        """One that counts already needs no place; with a token, it holds the one that it stands for from now on."""
        if not rules.counts_as_running(w):
            return await self._admit(c, w.owner, w.id, token)
        named = await self._line.named(c, w.owner, token) if token is not None else None
        return Admitted((named,) if named and not named.lifts_limit else ())

    async def _redeem(self, c: Connection, outcome: Admitted, id_: str) -> None:
        for reservation in outcome.uses:
            await self._line.redeem(c, reservation, id_)


def _check_name(name: str) -> None:
    if complaint := names.complaint(name):
        raise InvalidRequestError(complaint, field="name")


def _check_owner(name: str, *, active: bool | None) -> None:
    """Nothing of a deactivated user runs, no matter who asks (`leaving`). None: there is no user of that name."""
    if active is False:
        raise DeactivatedError(f"{name} is deactivated, so nothing of theirs runs: activate them first")


async def _look_at_once(c: Connection, id_: str) -> None:
    await setbacks.forget(c, setbacks.WORKSPACE, id_)
    await c.execute(sql.wake_controller)


def _missing(id_: str) -> NoReturn:
    raise NotFoundError(authorize.missing(id_))


def _refusal(w: Workspace, code: str) -> str:
    match code:
        case "OPERATION_IN_PROGRESS":
            return f"{w.operation.lower()} is under way: ask again in a moment"
        case "WORKSPACE_IN_ERROR":
            reason = (w.error_info or {}).get("reason", "an error")
            return f"stopped by {reason}: recover it first, or delete it"
    return "it is in the trash: undelete it first"


def _loss(w: Workspace, point: RestorePoint | None, now: datetime) -> str:
    if w.archive_key is None:
        return "its files are gone and there is no archive: recovering begins with an empty home"
    age = f", which is {_age(now - point.created_at)} old ({point.created_at:%Y-%m-%d %H:%M} UTC)," if point else ""
    return f"its files are gone: recovering goes back to its archive{age} without what was done since"


def _age(passed: timedelta) -> str:
    minutes = int(passed.total_seconds()) // 60
    if minutes < 120:
        return f"{minutes} minutes"
    return f"{minutes // 60} hours" if minutes < 2 * 24 * 60 else f"{minutes // (24 * 60)} days"


async def last_activity(c: Connection, id_: str) -> datetime | None:
    """When a person was last at work in it; None: there is no such workspace. For what goes on while one is."""
    found: datetime | None = await c.fetchval(sql.last_activity, id_)
    return found


async def prune(c: Connection, before: datetime, limit: int) -> int:
    """Remove history past its time; called by housekeeping, a bounded number at a time."""
    status = await c.execute(sql.prune_history, before, limit)
    return int(status.rsplit(" ", 1)[-1])
