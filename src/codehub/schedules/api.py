"""REST about the schedules of a class."""

import re
from datetime import date, datetime, time
from typing import Annotated, Any

from fastapi import APIRouter, Path, Request
from pydantic import BaseModel, BeforeValidator, Field

from codehub.classes.api import Id
from codehub.http import fields, paging, provide
from codehub.http.access import may, spend_creation
from codehub.http.problems import documented
from codehub.policy.actions import Action
from codehub.policy.model import Principal
from codehub.schedules import rules
from codehub.schedules.model import Calendar, Learner, Lesson, Planned, StartOutcome, Weekday
from codehub.schedules.service import Schedules
from codehub.sessions.api import Day

router = APIRouter(prefix="/api/v1", tags=["people"], responses=documented(400, 401, 403, 503))
ScheduleId = Annotated[str, Path(description="A schedule's id.", max_length=200, pattern=fields.NO_NUL)]
CLOCK = r"([01][0-9]|2[0-3]):[0-5][0-9]"
LearnerName = Annotated[str, Field(max_length=63, pattern=fields.NO_NUL)]


def clock(value: Any) -> Any:
    """Seconds and offsets have no place here: the clock on the wall decides."""
    if not isinstance(value, str) or not re.fullmatch(CLOCK, value):
        raise ValueError("must be a time like 08:55")
    return value


Clock = Annotated[
    time, BeforeValidator(clock), Field(json_schema_extra={"format": "clock", "pattern": f"^{CLOCK}$", "maxLength": 5})
]


class ScheduleIn(fields.Body):
    weekdays: list[Weekday] = Field(min_length=1, max_length=7, examples=[["mon", "wed"]])
    time: Clock = Field(description="When the lesson begins, by the clock on the wall.", examples=["08:55"])
    time_zone: str | None = Field(
        default=None,
        max_length=100,
        pattern=fields.NO_NUL,
        description="Of that clock; unset: your own, as your account says it, else UTC.",
        examples=["Asia/Seoul"],
    )
    learners: list[LearnerName] | None = Field(
        default=None,
        min_length=1,
        max_length=200,
        description="Names; unset: all of the class, also those who come later.",
    )
    first_day: Day | None = Field(default=None, examples=["2026-03-02"])
    last_day: Day | None = Field(default=None, examples=["2026-07-17"])


class ScheduleChange(fields.Body):
    paused: bool = Field(strict=True, description="What is missed meanwhile is not made up for.")


class SkipIn(fields.Body):
    begins_at: fields.Moment | None = Field(
        default=None, description="Skip the next lesson only if it is this one; unset: whichever is the next."
    )


class PlannedLearner(BaseModel):
    name: str
    workspace_id: str | None = Field(description="The one that they used last.")
    left_out: StartOutcome | None = Field(description="Why nothing is started for them, as things are now.")


class StartOut(BaseModel):
    name: str
    outcome: StartOutcome | None = Field(description="null: still to be done.")
    workspace_id: str | None


class PreparedLessonOut(BaseModel):
    begins_at: datetime
    missed: bool = Field(description="The platform did not run in time, so nothing was started.")
    starts: list[StartOut]


class ScheduleOut(BaseModel):
    id: str
    class_id: str
    weekdays: list[Weekday]
    time: str
    time_zone: str
    first_day: date | None
    last_day: date | None
    for_all: bool = Field(description="For every learner of the class.")
    paused_at: datetime | None
    skipped_through: datetime | None = Field(description="Lessons that begin until then are left out.")
    next_begins_at: datetime | None = Field(description="null: none is to come, or it is paused.")
    created_by: str
    created_at: datetime
    learners: list[PlannedLearner]
    last: PreparedLessonOut | None = Field(description="The lesson whose starts have begun most recently.")


def _lesson(found: Lesson) -> PreparedLessonOut:
    starts = [StartOut(name=s.name, outcome=s.outcome, workspace_id=s.workspace_id) for s in found.starts]
    return PreparedLessonOut(begins_at=found.begins_at, missed=found.missed, starts=starts)


def _learner(found: Learner) -> PlannedLearner:
    used = found.workspace.id if found.workspace else None
    return PlannedLearner(name=found.name, workspace_id=used, left_out=rules.left_out(found))


def shown(planned: Planned) -> ScheduleOut:
    s, calendar = planned.schedule, planned.schedule.calendar
    return ScheduleOut(
        **{name: getattr(s, name) for name in ("id", "class_id", "for_all", "paused_at", "skipped_through")},
        **{name: getattr(s, name) for name in ("created_by", "created_at")},
        **{name: getattr(calendar, name) for name in ("time_zone", "first_day", "last_day")},
        weekdays=list(calendar.weekdays),
        time=f"{calendar.local_time:%H:%M}",
        next_begins_at=planned.next_begins_at,
        learners=[_learner(one) for one in planned.learners],
        last=_lesson(planned.last) if planned.last else None,
    )


def _service(request: Request) -> Schedules:
    return provide.get(request, Schedules)


@router.post("/classes/{id}/schedules", status_code=201, responses=documented(404, 409, 413, 429))
async def create_schedule(
    request: Request,
    caller: Annotated[Principal, may(Action.CLASS_SCHEDULE)],
    id: Id,  # noqa: A002 (the path's)
    body: ScheduleIn,
) -> ScheduleOut:
    """Before each lesson, the workspace that each learner used last is started. Who has none is left out."""
    await spend_creation(request, caller, "schedule")
    zone = body.time_zone or caller.time_zone or "UTC"
    calendar = Calendar(tuple(body.weekdays), body.time, zone, body.first_day, body.last_day)
    return shown(await _service(request).create(caller, id, calendar, body.learners))


@router.get("/classes/{id}/schedules", responses=documented(404))
async def list_schedules(
    request: Request,
    caller: Annotated[Principal, may(Action.CLASS_SCHEDULES)],
    id: Id,  # noqa: A002 (the path's)
    limit: paging.Limit = 50,
    cursor: paging.TimeCursor = None,
) -> paging.Page[ScheduleOut]:
    """Oldest first."""
    found = await _service(request).page(caller, id, after=paging.place(cursor), limit=limit + 1)
    return paging.page(found, limit, shown, lambda p: paging.at(p.schedule.created_at, p.schedule.id))


@router.get("/classes/{id}/schedules/{schedule_id}", responses=documented(404))
async def get_schedule(
    request: Request,
    caller: Annotated[Principal, may(Action.CLASS_SCHEDULES)],
    id: Id,  # noqa: A002 (the path's)
    schedule_id: ScheduleId,
) -> ScheduleOut:
    return shown(await _service(request).get(caller, id, schedule_id))


@router.patch("/classes/{id}/schedules/{schedule_id}", responses=documented(404, 413))
async def change_schedule(
    request: Request,
    caller: Annotated[Principal, may(Action.CLASS_SCHEDULE)],
    id: Id,  # noqa: A002 (the path's)
    schedule_id: ScheduleId,
    body: ScheduleChange,
) -> ScheduleOut:
    return shown(await _service(request).pause(caller, id, schedule_id, paused=body.paused))


@router.delete("/classes/{id}/schedules/{schedule_id}", status_code=204, responses=documented(404))
async def delete_schedule(
    request: Request,
    caller: Annotated[Principal, may(Action.CLASS_SCHEDULE)],
    id: Id,  # noqa: A002 (the path's)
    schedule_id: ScheduleId,
) -> None:
    """What was started for it goes on."""
    await _service(request).delete(caller, id, schedule_id)


@router.post("/classes/{id}/schedules/{schedule_id}/skip", responses=documented(404, 409, 413))
async def skip_lesson(
    request: Request,
    caller: Annotated[Principal, may(Action.CLASS_SCHEDULE)],
    id: Id,  # noqa: A002 (the path's)
    schedule_id: ScheduleId,
    body: SkipIn,
) -> ScheduleOut:
    """The next lesson is left out; asked again, the one after it."""
    return shown(await _service(request).skip(caller, id, schedule_id, body.begins_at))


@router.delete("/classes/{id}/schedules/{schedule_id}/skip", responses=documented(404))
async def unskip_lessons(
    request: Request,
    caller: Annotated[Principal, may(Action.CLASS_SCHEDULE)],
    id: Id,  # noqa: A002 (the path's)
    schedule_id: ScheduleId,
) -> ScheduleOut:
    """What was skipped and is still to come takes place."""
    return shown(await _service(request).unskip(caller, id, schedule_id))
