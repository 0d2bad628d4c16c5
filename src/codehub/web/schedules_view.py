"""The schedules of a class as its page shows them, in words. Used by `classes` and `schedules`."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime

from fastapi import Request

from codehub.http import paging
from codehub.i18n.locales import Locale, zone
from codehub.policy.model import Principal
from codehub.schedules import rules
from codehub.schedules.model import Lesson, Planned, Weekday
from codehub.web.account_profile import zones
from codehub.web.rendering import locale_for, zone_name
from codehub.web.services import services_of

TYPED = ("time", "time_zone", "first_day", "last_day", "whom", "learners")  # fields of the form
LONGEST = 2000  # characters that come back when it is refused
TICKED_AT_MOST = 80  # a form has at most a hundred fields


@dataclass(frozen=True)
class LeftOut:
    shown: str
    why: str


@dataclass(frozen=True)
class Shown:
    id: str
    title: str  # Monday, Wednesday 08:55
    zone: str | None  # where it is another one than the reader's
    days: str  # from when until when, if that is bounded
    whom: str
    next: str | None
    next_at: str  # for the form: which lesson is meant
    paused: bool
    skipped: str | None  # the last lesson that is left out, while it is to come
    left_out: Sequence[LeftOut]
    last: str | None
    last_left_out: Sequence[LeftOut]


@dataclass(frozen=True)
class Section:
    schedules: Sequence[Shown]
    weekdays: Sequence[Weekday]
    zones: Sequence[str]
    zone: str  # the reader's own
    typed: Mapping[str, str]  # what comes back when the form is refused
    names_at_most: int  # learners to tick; a class of more is typed


async def section(request: Request, caller: Principal, class_id: str) -> Section:
    services, locale = services_of(request), locale_for(request)
    found = await services.schedules.page(caller, class_id, after=paging.place(None), limit=rules.AT_MOST)
    own, now = zone_name(request, caller), services.clock.now()
    offered = zones() if own in zones() else [*zones(), own]
    typed = {name: request.query_params.get(name, "")[:LONGEST] for name in (*TYPED, "days", "ticked")}
    shown = [_shown(locale, one, now, own) for one in found]
    return Section(shown, list(Weekday), offered, own, typed, TICKED_AT_MOST)


def _shown(locale: Locale, planned: Planned, now: datetime, own_zone: str) -> Shown:
    s, calendar = planned.schedule, planned.schedule.calendar
    there = Locale(locale.language, zone(calendar.time_zone), locale.texts)  # lessons are said by their own clock
    every = len(calendar.weekdays) == len(Weekday)
    days = (
        locale.say("schedule_every_day")
        if every
        else ", ".join(locale.say(f"weekday_{day}") for day in calendar.weekdays)
    )
    people = len(planned.learners)
    skipped = s.skipped_through if s.skipped_through and s.skipped_through > now else None
    return Shown(
        id=s.id,
        title=locale.say("schedule_when", days=days, time=f"{calendar.local_time:%H:%M}"),
        zone=None if calendar.time_zone == own_zone else calendar.time_zone,
        days=_bounds(locale, calendar.first_day, calendar.last_day),
        whom=locale.say("schedule_for_all" if s.for_all else "schedule_for_some", n=people),
        next=_lesson_time(there, planned.next_begins_at, now) if planned.next_begins_at else None,
        next_at=planned.next_begins_at.isoformat() if planned.next_begins_at else "",
        paused=s.paused_at is not None,
        skipped=_lesson_time(there, skipped, now) if skipped else None,
        left_out=[
            LeftOut(one.called, locale.say(f"left_out_{why}"))
            for one in planned.learners
            if (why := rules.left_out(one))
        ],
        last=_last(there, planned.last, now),
        last_left_out=[
            LeftOut(start.called, locale.say(f"left_out_{start.outcome}"))
            for start in (planned.last.starts if planned.last else ())
            if start.outcome and start.outcome.is_left_out
        ],
    )


def _lesson_time(there: Locale, at: datetime, now: datetime) -> str:
    """`Monday, 9 Mar, 08:55`; of today and tomorrow the day of the week goes without saying."""
    local, today = at.astimezone(there.zone), now.astimezone(there.zone).date()
    if abs((local.date() - today).days) <= 1:
        return there.time(at, now)
    weekday = there.say(f"weekday_{rules.WEEK[local.weekday()]}")
    return there.say("schedule_on", weekday=weekday, time=there.dated(at))


def _bounds(locale: Locale, first: date | None, last: date | None) -> str:
    if first and last:
        return locale.say("schedule_between", first=first.isoformat(), last=last.isoformat())
    if first:
        return locale.say("schedule_from", first=first.isoformat())
    return locale.say("schedule_until", last=last.isoformat()) if last else ""


def _last(there: Locale, lesson: Lesson | None, now: datetime) -> str | None:
    if lesson is None:
        return None
    when = _lesson_time(there, lesson.begins_at, now)
    if lesson.missed:
        return there.say("schedule_last_missed", when=when)
    done = [start for start in lesson.starts if start.outcome and not start.outcome.is_left_out]
    if any(start.outcome is None for start in lesson.starts):
        return there.say("schedule_under_way", when=when, n=len(done), total=len(lesson.starts))
    return there.say("schedule_last", when=when, n=len(done), total=len(lesson.starts))
