"""The forms of a class's schedules, which are shown on the class's page (`classes`); answers lead back to it."""

from collections.abc import Awaitable, Callable, Mapping
from datetime import date, datetime, time
from typing import Annotated

from fastapi import APIRouter, Request
from starlette.exceptions import HTTPException
from starlette.responses import RedirectResponse, Response

from codehub.errors import CodeHubError, InvalidRequestError
from codehub.http.access import spend_creation
from codehub.policy import rules as policy
from codehub.policy.actions import Action
from codehub.policy.model import Principal
from codehub.schedules.errors import ScheduleNotFoundError
from codehub.schedules.model import Calendar, Weekday
from codehub.web import once
from codehub.web.forms import Form, Posted, back
from codehub.web.page_access import may
from codehub.web.schedules_view import LONGEST, TYPED
from codehub.web.services import Services, services_of

router = APIRouter(include_in_schema=False)
WHO = "who-"  # before a learner's name


@router.post("/do/classes/{id}/schedules")
async def add(
    request: Request,
    caller: Annotated[Principal, may(Action.CLASS_SCHEDULE)],
    id: str,  # noqa: A002
    form: Posted,
) -> Response:
    page, sent = f"/classes/{id}", once.Once(services_of(request), caller, form)
    if before := await sent.led_to(page):
        return RedirectResponse(before, 303)
    days = [day for day in Weekday if form.get(f"day-{day}")]
    try:
        calendar = _calendar(form, tuple(days))
        await spend_creation(request, caller, "schedule")
        await services_of(request).schedules.create(caller, id, calendar, _learners(form))
    except CodeHubError as e:
        await sent.failed()
        ticked = " ".join(name.removeprefix(WHO) for name in form if name.startswith(WHO))
        typed = {name: form.get(name, "")[:LONGEST] for name in TYPED}
        typed |= {"days": " ".join(days), "ticked": ticked[:LONGEST]}
        return back(page, problem=problem_code(e), at="schedule", **typed)
    answer = back(page, done="schedule")
    await sent.leads_to(answer.headers["location"])
    return answer


@router.post("/do/classes/{id}/schedules/{schedule_id}/{verb}")
async def do(
    request: Request,
    caller: Annotated[Principal, may(Action.CLASS_SCHEDULE)],
    id: str,  # noqa: A002
    schedule_id: str,
    verb: str,
    form: Posted,
) -> Response:
    if verb not in VERBS:
        raise HTTPException(404)
    policy.require_scope(caller, Action.CLASS_SCHEDULE)
    try:
        await VERBS[verb](services_of(request), caller, (id, schedule_id), form)
    except ScheduleNotFoundError:
        if verb != "delete":  # that it is gone is what was asked for
            return back(f"/classes/{id}", problem=ScheduleNotFoundError.code, at="schedules")
    except CodeHubError as e:
        return back(f"/classes/{id}", problem=problem_code(e), at="schedules")
    return back(f"/classes/{id}", done=f"schedule-{verb}")


Which = tuple[str, str]
Act = Callable[[Services, Principal, Which, Form], Awaitable[object]]


def _pause(*, paused: bool) -> Act:
    async def act(services: Services, caller: Principal, which: Which, _form: Form) -> None:
        await services.schedules.pause(caller, *which, paused=paused)

    return act


async def _skip(services: Services, caller: Principal, which: Which, form: Form) -> None:
    try:
        begins_at = datetime.fromisoformat(form.get("begins_at", ""))
    except ValueError as e:
        raise InvalidRequestError("which lesson?", field="begins_at") from e
    await services.schedules.skip(caller, *which, begins_at)


async def _unskip(services: Services, caller: Principal, which: Which, _form: Form) -> None:
    await services.schedules.unskip(caller, *which)


async def _delete(services: Services, caller: Principal, which: Which, _form: Form) -> None:
    await services.schedules.delete(caller, *which)


VERBS: Mapping[str, Act] = {
    "pause": _pause(paused=True),
    "resume": _pause(paused=False),
    "skip": _skip,
    "unskip": _unskip,
    "delete": _delete,
}


def _calendar(form: Form, days: tuple[Weekday, ...]) -> Calendar:
    try:
        clock = time.fromisoformat(form.get("time", "").strip()).replace(second=0, microsecond=0, tzinfo=None)
    except ValueError as e:
        raise InvalidRequestError("a time like 08:55", field="time") from e
    return Calendar(days, clock, form.get("time_zone", ""), _day(form, "first_day"), _day(form, "last_day"))


def _day(form: Form, name: str) -> date | None:
    typed = form.get(name, "").strip()
    try:
        return date.fromisoformat(typed) if typed else None
    except ValueError as e:
        raise InvalidRequestError("a date like 2026-03-02", field=name) from e


def _learners(form: Form) -> list[str] | None:
    """Those that are ticked; of a large class, names that were typed, by spaces or commas. None: all."""
    if form.get("whom") != "some":
        return None
    ticked = [name.removeprefix(WHO) for name in form if name.startswith(WHO)]
    return [*ticked, *form.get("learners", "").replace(",", " ").casefold().split()]


def problem_code(error: CodeHubError) -> str:
    """What `refused_…` of the texts is about: the wrong field where there is one."""
    errors = error.extra.get("errors") or [{"field": ""}]
    fields = {
        "weekdays": "SCHEDULE_DAYS",
        "time": "SCHEDULE_TIME",
        "time_zone": "SCHEDULE_ZONE",
        "learners": "SCHEDULE_LEARNERS",
        "first_day": "SCHEDULE_DATE",
        "last_day": "SCHEDULE_DATE",
    }
    return fields.get(errors[0]["field"], error.code)
