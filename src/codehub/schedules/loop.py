"""A loop of the coordinator: prepares lessons, and starts what is to run before each of them.

Two steps, each its own transaction for each row: a schedule that is due gets a lesson with one start for each learner;
a start that is due is an ordinary start of that learner's workspace, written in the transaction that settles it. So
whatever dies in between, a lesson is prepared once and nobody's workspace is started twice for it.
"""

from dataclasses import replace
from datetime import datetime, timedelta

from codehub import logs
from codehub.clock import Clock
from codehub.coordinator.driver import Loop, Tick
from codehub.coordinator.leader import Lease
from codehub.db import Connection
from codehub.errors import DeactivatedError
from codehub.policy.model import System, system
from codehub.schedules import rules, store
from codehub.schedules.model import DueStart, LastUsed, Schedule, StartOutcome
from codehub.schedules.store import sql
from codehub.settings import ScheduleConfig
from codehub.workspaces import history
from codehub.workspaces.admission import NoPlace, OwnLimit
from codehub.workspaces.errors import InErrorError, OperationInProgressError, WorkspaceDeletedError
from codehub.workspaces.service import Workspaces
from codehub.workspaces.ttl_policy import TtlPolicies

log = logs.get()
NAME = "schedules"
PERIOD_SECONDS = 30.0
SCHEDULES_AT_ONCE = 50  # of one tick
STARTS_AT_ONCE = 100
PAUSE = timedelta(seconds=5)  # before what is busy is asked again
CALLER = system(System.SCHEDULES)


class SchedulesLoop:
    def __init__(
        self, lease: Lease, workspaces: Workspaces, ttl_policies: TtlPolicies, clock: Clock, config: ScheduleConfig
    ) -> None:
        self._lease = lease
        self._workspaces = workspaces
        self._ttl_policies = ttl_policies
        self._clock = clock
        self._spread = timedelta(seconds=config.spread_seconds)

    def loop(self) -> Loop:
        return Loop(NAME, self.tick, period=PERIOD_SECONDS, longest_pause=15.0)

    async def tick(self) -> Tick:
        async with self._lease.database.connection() as c:
            due = await store.due(c, self._clock.now(), SCHEDULES_AT_ONCE)
        prepared = [await self._prepare(id_) for id_ in due]
        async with self._lease.database.connection() as c:
            starts = await store.due_starts(c, self._clock.now(), STARTS_AT_ONCE)
        settled = [await self._settle(start) for start in starts]
        async with self._lease.database.connection() as c:
            following: datetime | None = await c.fetchval(sql.next_due)
        left = None if following is None else max(0.0, (following - self._clock.now()).total_seconds())
        stats = {"lessons": sum(prepared), "started": settled.count(StartOutcome.STARTED), "settled": len(settled)}
        return Tick(stats, again_in=None if left is None else min(left, PERIOD_SECONDS))

    async def _prepare(self, id_: str) -> bool:
        """The schedule as it is now, under its lock. Was there a lesson to prepare?"""
        now = self._clock.now()
        async with self._lease.transaction() as c:
            schedule = await store.lock(c, id_)
            if schedule is None:
                return False
            step = rules.step(schedule, now, self._spread)
            if step.begins_at:
                await self._add_lesson(c, schedule, step, now)
                schedule = replace(schedule, done_through=step.begins_at)
            await store.save(c, replace(schedule, due_at=rules.due_at(schedule, self._spread)))
        return step.begins_at is not None

    async def _add_lesson(self, c: Connection, schedule: Schedule, step: rules.Step, now: datetime) -> None:
        class_ = await c.fetchrow(sql.of_class, schedule.class_id)
        assert class_  # noqa: S101 (the schedule refers to it)
        assert step.begins_at  # noqa: S101 (asked by `_prepare`)
        if class_["archived"] or await c.fetchval(sql.add_lesson, schedule.id, step.begins_at, step.missed) is None:
            return
        if step.missed:
            log.warning("A lesson was not prepared in time", schedule=schedule.id, begins_at=step.begins_at.isoformat())
            return
        people = [learner.user_id for learner in await store.learners(c, schedule.id)]
        times = rules.due_times(len(people), step.begins_at, now, self._spread)
        await store.add_starts(c, schedule.id, step.begins_at, people, times)

    async def _settle(self, due: DueStart) -> StartOutcome | None:
        """None: settled by another one meanwhile, or put off."""
        now, key = self._clock.now(), (due.schedule_id, due.begins_at, due.user_id)
        async with self._lease.transaction() as c:
            if await c.fetchval(sql.lock_start, *key) is None:
                return None
            schedule = await store.find(c, due.schedule_id)
            assert schedule  # noqa: S101 (its starts go with it)
            learner = await store.learner(c, due.schedule_id, due.user_id)
            used, outcome = learner.workspace, rules.left_out(learner)
            if rules.is_too_late(due.begins_at, now):
                outcome = StartOutcome.MISSED
            if outcome is None and used:
                outcome = await self._start(c, schedule, due.begins_at, used)
            if outcome is None:
                await c.execute(sql.put_off, *key, now + PAUSE)
                return None
            if used and outcome in TOLD:
                about = history.LeftOutOfLesson(*await _about(c, schedule, due.begins_at), outcome)
                await self._workspaces.note_in(c, CALLER, used.id, about)
            await c.execute(sql.settle, *key, outcome, used.id if used else None)
        return outcome

    async def _start(
        self, c: Connection, schedule: Schedule, begins_at: datetime, used: LastUsed
    ) -> StartOutcome | None:
        """An ordinary start, by the rules of admission and of the waiting room. None: ask again later."""
        now = self._clock.now()
        title, weekday, time = await _about(c, schedule, begins_at)
        try:
            answer = await self._workspaces.start_in(c, CALLER, used.id, history.StartedForLesson(title, weekday, time))
        except OperationInProgressError:
            return None if now + PAUSE <= begins_at + rules.GRACE else StartOutcome.BUSY
        except InErrorError:
            return StartOutcome.IN_ERROR
        except WorkspaceDeletedError:
            return StartOutcome.NO_WORKSPACE
        except DeactivatedError:
            return StartOutcome.INACTIVE
        match answer:
            case OwnLimit():
                return StartOutcome.OWN_LIMIT
            case NoPlace():
                return StartOutcome.NO_PLACE
            case (w, status):
                if until := rules.awake_until(begins_at, now, self._ttl_policies.standby_seconds(w)):
                    await self._workspaces.stay_awake_in(c, w.id, until, title)
                return StartOutcome.STARTED if status == 202 else StartOutcome.RUNNING


# What the history of a workspace says, which was to be started and was not.
TOLD = frozenset(
    {StartOutcome.IN_ERROR, StartOutcome.NO_PLACE, StartOutcome.OWN_LIMIT, StartOutcome.BUSY, StartOutcome.MISSED}
)


async def _about(c: Connection, schedule: Schedule, begins_at: datetime) -> tuple[str, str, str]:
    """The class's title, and the lesson's day and time on its wall: what history says of it."""
    class_ = await c.fetchrow(sql.of_class, schedule.class_id)
    assert class_  # noqa: S101 (the schedule refers to it)
    calendar = schedule.calendar
    return class_["title"], rules.local_day(calendar, begins_at), rules.local_clock(calendar, begins_at)
