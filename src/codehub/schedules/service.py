"""The use cases about schedules, each one transaction. Called by the API and by pages; `loop` carries them out."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from codehub import ids
from codehub.audit import service as audit
from codehub.audit.codes import Code
from codehub.classes import rules as class_rules
from codehub.classes.service import Classes
from codehub.clock import Clock
from codehub.db import Connection, Database
from codehub.errors import InvalidRequestError
from codehub.policy.actions import Action
from codehub.policy.model import Principal
from codehub.schedules import rules, store
from codehub.schedules.errors import NoLessonError, ScheduleLimitError, ScheduleNotFoundError
from codehub.schedules.model import Calendar, Planned, Schedule
from codehub.schedules.store import sql
from codehub.settings import ScheduleConfig


class Schedules:
    def __init__(self, database: Database, clock: Clock, config: ScheduleConfig, classes: Classes) -> None:
        self._database = database
        self._clock = clock
        self._spread = timedelta(seconds=config.spread_seconds)
        self._classes = classes

    async def create(
        self, caller: Principal, class_id: str, calendar: Calendar, learners: Sequence[str] | None = None
    ) -> Planned:
        """`learners`: their names; None: all of the class, also those who come later."""
        if wrong := rules.complaint(calendar):
            field, why = wrong
            raise InvalidRequestError(why, field=field)
        calendar = replace(calendar, weekdays=rules.in_order(calendar.weekdays))
        id_, now = ids.new(), self._clock.now()
        async with self._database.transaction() as c:
            found = await self._classes.authorized(c, caller, class_id, Action.CLASS_SCHEDULE, lock=True)
            class_rules.check_open(found)
            if await c.fetchval(sql.count, class_id) >= rules.AT_MOST:
                raise ScheduleLimitError(f"{found.title} has {rules.AT_MOST} schedules: delete one of them first")
            await store.add(c, id_, class_id, calendar, for_all=learners is None, by=caller.name, at=now)
            if learners is not None:
                await self._name_learners(c, class_id, id_, learners)
            made = await self._saved(c, await self._locked(c, class_id, id_))
            if made.due_at is None:
                raise NoLessonError("no day of the week lies between the first and the last day, or all are over")
            await audit.record(c, now, caller.origin, Code.SCHEDULE_CREATE, class_id, id=id_, **_told(calendar))
            await self._classes.announce(c, class_id, now)
            return await self._planned(c, made)

    async def _name_learners(self, c: Connection, class_id: str, id_: str, names: Sequence[str]) -> None:
        wanted = list(dict.fromkeys(names))
        found = await store.learner_ids(c, class_id, wanted)
        if missing := [name for name in wanted if name not in found]:
            raise InvalidRequestError(f"{missing[0][:63]} is no learner of this class", field="learners")
        if not found:
            raise InvalidRequestError("name at least one learner, or leave it out for all", field="learners")
        await c.execute(sql.add_learners, id_, list(found.values()))

    async def page(self, caller: Principal, class_id: str, *, after: store.After, limit: int) -> list[Planned]:
        """Oldest first."""
        async with self._database.connection() as c:
            await self._classes.authorized(c, caller, class_id, Action.CLASS_SCHEDULES)
            return [await self._planned(c, found) for found in await store.page(c, class_id, after, limit)]

    async def get(self, caller: Principal, class_id: str, id_: str) -> Planned:
        async with self._database.connection() as c:
            await self._classes.authorized(c, caller, class_id, Action.CLASS_SCHEDULES)
            return await self._planned(c, _of(class_id, await store.find(c, id_), id_))

    async def pause(self, caller: Principal, class_id: str, id_: str, *, paused: bool) -> Planned:
        """While it is paused nothing is started for it; what was missed meanwhile is not made up for."""
        now = self._clock.now()
        async with self._database.transaction() as c:
            found = await self._asked(c, caller, class_id, id_)
            if paused is not (found.paused_at is not None):
                changed = replace(found, paused_at=now if paused else None, done_through=max(found.done_through, now))
                if paused:
                    await self._cancel(c, found, now)
                found = await self._saved(c, changed)
                code = Code.SCHEDULE_PAUSE if paused else Code.SCHEDULE_RESUME
                await self._told(c, caller, code, found, now)
            return await self._planned(c, found)

    async def skip(self, caller: Principal, class_id: str, id_: str, begins_at: datetime | None = None) -> Planned:
        """The next lesson is left out; asked again, the one after it.

        `begins_at`: only if that is the next one, so that a second click does not skip another.
        """
        now = self._clock.now()
        async with self._database.transaction() as c:
            found = await self._asked(c, caller, class_id, id_)
            following = rules.upcoming(found, now)
            if following is None:
                raise NoLessonError("there is no lesson to come that could be skipped")
            if begins_at is None or begins_at == following:
                await c.execute(sql.cancel, id_, following)
                found = await self._saved(c, replace(found, skipped_through=following))
                await self._told(c, caller, Code.SCHEDULE_SKIP, found, now)
            return await self._planned(c, found)

    async def unskip(self, caller: Principal, class_id: str, id_: str) -> Planned:
        """Lessons that were skipped and are still to come take place."""
        now = self._clock.now()
        async with self._database.transaction() as c:
            found = await self._asked(c, caller, class_id, id_)
            if found.skipped_through and found.skipped_through > now:
                passed = max(found.done_through, now)
                found = await self._saved(c, replace(found, skipped_through=None, done_through=passed))
                await self._told(c, caller, Code.SCHEDULE_UNSKIP, found, now)
            return await self._planned(c, found)

    async def delete(self, caller: Principal, class_id: str, id_: str) -> None:
        """What was started for it goes on, and sleeps by its own rules."""
        now = self._clock.now()
        async with self._database.transaction() as c:
            found = await self._asked(c, caller, class_id, id_)
            await c.execute(sql.delete, id_)
            await self._told(c, caller, Code.SCHEDULE_DELETE, found, now)

    # --- how

    async def _asked(self, c: Connection, caller: Principal, class_id: str, id_: str) -> Schedule:
        await self._classes.authorized(c, caller, class_id, Action.CLASS_SCHEDULE, lock=True)
        return await self._locked(c, class_id, id_)

    async def _locked(self, c: Connection, class_id: str, id_: str) -> Schedule:
        return _of(class_id, await store.lock(c, id_) if ids.is_label(id_) else None, id_)

    async def _cancel(self, c: Connection, found: Schedule, now: datetime) -> None:
        await c.execute(sql.cancel, found.id, now + self._spread + rules.GRACE)

    async def _saved(self, c: Connection, schedule: Schedule) -> Schedule:
        saved = replace(schedule, due_at=rules.due_at(schedule, self._spread))
        await store.save(c, saved)
        await c.execute(sql.wake)
        return saved

    async def _planned(self, c: Connection, found: Schedule) -> Planned:
        learners = await store.learners(c, found.id)
        following = rules.upcoming(found, self._clock.now())
        return Planned(found, learners, following, await store.last_lesson(c, found.id))

    async def _told(self, c: Connection, caller: Principal, code: Code, found: Schedule, now: datetime) -> None:
        await audit.record(c, now, caller.origin, Code(code), found.class_id, id=found.id, **_told(found.calendar))
        await self._classes.announce(c, found.class_id, now)


def _of(class_id: str, found: Schedule | None, id_: str) -> Schedule:
    if found is None or found.class_id != class_id:
        raise ScheduleNotFoundError(f"the class has no schedule {id_[:63]}")
    return found


def _told(calendar: Calendar) -> dict[str, object]:
    """For the audit log."""
    return {
        "weekdays": [str(day) for day in calendar.weekdays],
        "time": f"{calendar.local_time:%H:%M}",
        "time_zone": calendar.time_zone,
    }
