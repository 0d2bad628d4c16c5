"""The use cases about plans and sessions, each one transaction. Called by the API, and by courses to take one up."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime

from codehub import ids
from codehub.audit import service as audit
from codehub.audit.codes import Code
from codehub.clock import Clock
from codehub.db import Connection, Database, rows
from codehub.errors import InvalidRequestError, NotFoundError
from codehub.events import outbox
from codehub.policy import rules as policy
from codehub.policy.actions import Action
from codehub.policy.model import Kind, Principal, Resource
from codehub.sessions import blueprint, news, rules, store
from codehub.sessions.authorize import authorize, is_id, no_plan, no_session
from codehub.sessions.blueprint import Blueprint
from codehub.sessions.blueprints import Blueprints, Lesson
from codehub.sessions.errors import PlanLimitError
from codehub.sessions.model import EndReason, Plan, Session, SessionStatus
from codehub.sessions.store import Owned, sql
from codehub.settings import SessionConfig
from codehub.templates.loader import Templates

MOST_SESSIONS = 200  # of a plan
# What a person may make of a session: the action, and what its run says of its end.
CLOSES: Mapping[SessionStatus, tuple[Action, EndReason]] = {
    SessionStatus.SKIPPED: (Action.SESSION_SKIP, EndReason.SESSION_SKIPPED),
    SessionStatus.CANCELED: (Action.SESSION_CANCEL, EndReason.SESSION_CANCELED),
}
AUDITED = {SessionStatus.SKIPPED: Code.SESSION_SKIP, SessionStatus.CANCELED: Code.SESSION_CANCEL}


@dataclass(frozen=True)
class NewSession:
    title: str
    scheduled_for_date: date
    blueprint: Blueprint
    key: str | None = None  # what stays the same over a course's versions; None: by its position


@dataclass(frozen=True)
class NewPlan:
    title: str
    sessions: Sequence[NewSession]
    owner: str | None = None  # None: of who asks
    course_id: str | None = None
    course_version: int | None = None
    starts_on: date | None = None


class Sessions:
    def __init__(
        self,
        database: Database,
        clock: Clock,
        config: SessionConfig,
        templates: Templates,
        blueprints: Blueprints,
        wake: Callable[[], None],
    ) -> None:
        """`wake`: called after a change, for its events to be published."""
        self._database = database
        self._clock = clock
        self._config = config
        self._templates = templates
        self._blueprints = blueprints
        self._wake = wake

    # --- plans

    async def create_plan(self, caller: Principal, new: NewPlan) -> Plan:
        async with self._database.transaction() as c:
            return await self.create_plan_in(c, caller, new)

    async def create_plan_in(self, c: Connection, caller: Principal, new: NewPlan) -> Plan:
        """The same in a transaction of the caller's own: with what a course writes beside it."""
        if new.owner is None and caller.kind is Kind.OPERATOR:
            raise InvalidRequestError("name the person it is for", field="owner")
        if new.owner is not None and not policy.is_self(caller, new.owner):
            policy.require(caller, Action.PLAN_CREATE_FOR, Resource(owner=new.owner))
        else:
            policy.require(caller, Action.PLAN_CREATE)
        self._check(new)
        now, id_, owner = self._clock.now(), ids.new(), new.owner or caller.name
        owner_id = await c.fetchval(sql.active_user, owner) if is_id(owner) else None
        if owner_id is None:
            raise NotFoundError(policy.NO_SUCH_USER)
        await self._check_count(c, caller)
        course = (new.course_id, new.course_version, new.starts_on)
        await c.execute(sql.add_plan, id_, owner_id, new.title, caller.name, now, *course)
        await self._add_sessions(c, id_, new.sessions, now)
        await audit.record(c, now, caller.origin, Code.PLAN_CREATE, id_, owner=owner)
        await outbox.write(c, now, [news.plan_updated(owner_id, id_)])
        made = await store.find_plan(c, id_)
        assert made  # noqa: S101 (just made)
        return made

    def _check(self, new: NewPlan) -> None:
        if not 1 <= len(new.sessions) <= MOST_SESSIONS:
            raise InvalidRequestError(f"a plan has 1 to {MOST_SESSIONS} sessions", field="sessions")
        for position, session in enumerate(new.sessions):
            self.check_template(session.blueprint, f"sessions.{position}.blueprint")

    def check_template(self, of: Blueprint, at: str) -> None:
        """A PRACTICE is done in a workspace, of a template that is there."""
        name = of.practice_activity and of.practice_activity.template
        if name and self._templates.find(name) is None:
            known = ", ".join(template.name for template in self._templates.all())
            field = f"{at}.practiceActivity.template"
            raise InvalidRequestError(f"there is no template {name!r}; there are: {known}", field=field)

    async def _check_count(self, c: Connection, caller: Principal) -> None:
        """Exact: plans that one person makes are made one after the other."""
        most = policy.allowance(caller, self._config.max_plans_per_user)
        if most is None:
            return
        await c.execute(sql.one_plan_at_a_time, caller.name)
        made = await c.fetchval(sql.count_plans, caller.name)
        if made >= most:
            hint = "go on with one of them, or ask an admin to raise CODEHUB_MAX_PLANS_PER_USER"
            raise PlanLimitError(f"{caller.name} has made {made} plans; {most} is the most: {hint}", plans=made)

    async def _add_sessions(self, c: Connection, plan_id: str, new: Sequence[NewSession], now: datetime) -> None:
        texts = [blueprint.canonical(session.blueprint) for session in new]
        hashes = [blueprint.digest(text) for text in texts]
        views = [blueprint.view_digest(session.blueprint) for session in new]
        # In one order: none waits in a circle.
        for hash_, text, view in sorted(set(zip(hashes, texts, views, strict=True))):
            await store.add_blueprint(c, hash_, text, view, now)
        made = [
            Session(
                *(ids.new(), plan_id, position, session.key or str(position + 1), session.title),
                *(session.scheduled_for_date, hash_, SessionStatus.SCHEDULED, now, None),
                view_hash=view,
            )
            for position, (session, hash_, view) in enumerate(zip(new, hashes, views, strict=True))
        ]
        await store.add_sessions(c, plan_id, now, made)

    async def plans(self, caller: Principal, *, owner: str | None, after: store.After, limit: int) -> list[Plan]:
        """One's own; an admin sees all learners', or those of `owner`; a teacher those of a learner of theirs."""
        policy.require(caller, Action.PLAN_LIST)
        may_see = owner is not None and policy.allows(caller, Action.PLAN_SEE, Resource(owner=owner))
        whose = owner if may_see or policy.allows(caller, Action.PLAN_LIST_ALL) else caller.name
        async with self._database.connection() as c:
            return await store.page_plans(c, whose, after, limit)

    async def plan(self, caller: Principal, id_: str) -> Plan:
        async with self._database.connection() as c:
            found = await store.find_plan(c, id_) if is_id(id_) else None
        if found is None:
            raise no_plan(id_)
        authorize(caller, Action.PLAN_SEE, found.owner, no_plan(id_))
        return found

    # --- sessions

    async def session(self, caller: Principal, id_: str) -> Session:
        async with self._database.connection() as c:
            return (await self._owned(c, caller, id_, Action.SESSION_SEE)).session

    async def lesson(self, caller: Principal, id_: str) -> Lesson:
        """What is learnt in it. Its runs have the same: with the first, it stays as it is."""
        async with self._database.connection() as c:
            found = (await self._owned(c, caller, id_, Action.SESSION_SEE)).session
            return await self._blueprints.get(c, found.blueprint_hash)

    async def skip(self, caller: Principal, id_: str) -> Session:
        return await self._close(caller, id_, SessionStatus.SKIPPED)

    async def cancel(self, caller: Principal, id_: str) -> Session:
        return await self._close(caller, id_, SessionStatus.CANCELED)

    async def _close(self, caller: Principal, id_: str, to: SessionStatus) -> Session:
        """Its running run ends with it. On the locked rows: no run can begin meanwhile, and no step be saved in one."""
        action, why = CLOSES[to]
        now = self._clock.now()
        async with self._database.transaction() as c:
            if is_id(id_):
                await c.execute(sql.lock_session, id_)
                await c.execute(sql.lock_running, id_)
            owned = await self._owned(c, caller, id_, action)
            rules.require_move(owned.session, to)
            closed = replace(owned.session, status=to, changed_at=now, run_id=None)
            running = await store.find_run(c, owned.session.run_id) if owned.session.run_id else None
            ended = rules.abandoned(running[0], now, why) if running else None
            await store.close_session(c, id_, to, now, why, news.closed(owned.owner_id, closed, ended))
            await audit.record(c, now, caller.origin, AUDITED[to], id_, owner=owned.owner)
        self._wake()
        return closed

    async def _owned(self, c: Connection, caller: Principal, id_: str, action: Action) -> Owned:
        found = await store.find_session(c, id_) if is_id(id_) else None
        if found is None:
            raise no_session(id_)
        authorize(caller, action, found.owner, no_session(id_))
        return found


@dataclass(frozen=True)
class AtWork:
    """What a learner has begun and not ended, and how far they are."""

    owner_id: str
    session_id: str
    title: str
    step: int  # to be done next, from 1 on
    steps: int
    last_activity_at: datetime


async def at_work(c: Connection, owners: Collection[str]) -> dict[str, AtWork]:
    """Of these learners, by id, those who have a run that goes on: the one they were at last. For their teachers."""
    return {found.owner_id: found for found in rows(AtWork, await c.fetch(sql.at_work, list(owners)))}


async def running(c: Connection, ids_: Collection[str]) -> set[str]:
    """Which of these runs go on: each holds the place that it was started with."""
    return {record["id"] for record in await c.fetch(sql.running, list(ids_))} if ids_ else set()
