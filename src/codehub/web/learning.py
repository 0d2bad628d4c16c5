"""The pages of learning: what I learn, what I could take up, and one plan with its sessions; and their forms.

A session's own page is `player`'s. Forms are ordinary POSTs answered by 303, as on the dashboard.
"""

from collections.abc import Awaitable
from datetime import date
from typing import Annotated

from fastapi import APIRouter, Request
from starlette.exceptions import HTTPException
from starlette.responses import Response

from codehub.courses.service import Outline
from codehub.errors import CodeHubError, InvalidRequestError
from codehub.http.access import spend_creation
from codehub.policy.actions import Action
from codehub.policy.model import Principal
from codehub.web import learning_view
from codehub.web.forms import Form, Posted, back
from codehub.web.page_access import may
from codehub.web.player import problem_of
from codehub.web.rendering import render
from codehub.web.services import services_of

router = APIRouter(include_in_schema=False)


@router.get("/learn")
async def show(request: Request, caller: Annotated[Principal, may(Action.PLAN_LIST)]) -> Response:
    reader = learning_view.Reader(request, caller)
    plans, finished = await reader.plans()
    courses = await reader.courses(plans)
    return render(
        request,
        "learn.html",
        caller=caller,
        plans=plans,
        finished=finished,
        courses=[card for card in courses if card.course.withdrawn_at is None],
        withdrawn=[card for card in courses if card.course.withdrawn_at is not None],
        today=reader.today.isoformat(),
        problem=problem_of(request, request.query_params.get("problem")),
        at=request.query_params.get("at"),
    )


@router.get("/plans/{id}")
async def show_plan(request: Request, caller: Annotated[Principal, may(Action.PLAN_SEE)], id: str) -> Response:  # noqa: A002
    view = await learning_view.Reader(request, caller).plan(id)
    query = request.query_params
    return render(
        request,
        "plan.html",
        caller=caller,
        v=view,
        problem=problem_of(request, query.get("problem")),
        at=query.get("at"),
    )


@router.post("/do/courses/{id}/take")
async def take_up(
    request: Request,
    caller: Annotated[Principal, may(Action.COURSE_TAKE)],
    id: str,  # noqa: A002
    form: Posted,
) -> Response:
    """A second click leads to the plan that the first one made."""
    try:
        starts_on = _day(form.get("starts_on", ""))
        await spend_creation(request, caller, "plan")
        plan, _ = await services_of(request).courses.take_up(caller, id, starts_on)
    except CodeHubError as e:
        errors = e.extra.get("errors") or [{"field": ""}]
        return back("/learn", at=id, problem="STARTS_ON" if errors[0]["field"] == "starts_on" else e.code)
    return back(f"/plans/{plan.id}")


@router.post("/do/courses/{id}/withdraw")
async def withdraw(
    request: Request,
    caller: Annotated[Principal, may(Action.COURSE_WITHDRAW)],
    id: str,  # noqa: A002
    form: Posted,
) -> Response:
    return await _set_offered(id, services_of(request).courses.withdraw(caller, id), form)


@router.post("/do/courses/{id}/offer")
async def offer(
    request: Request,
    caller: Annotated[Principal, may(Action.COURSE_WITHDRAW)],
    id: str,  # noqa: A002
    form: Posted,
) -> Response:
    return await _set_offered(id, services_of(request).courses.offer(caller, id), form)


async def _set_offered(id_: str, change: Awaitable[Outline], form: Form) -> Response:
    """Back to the page that the form was on: the course's own, or all courses."""
    page = f"/courses/{id_}" if form.get("then") == "course" else "/learn"
    try:
        found = await change
    except CodeHubError as e:
        return back(page, at=id_, problem=e.code)
    done = "withdrawn" if found.course.withdrawn_at else "offered"
    return back(page, done=done if page != "/learn" else None)


def _day(text: str) -> date | None:
    """None: the form said nothing, and it is today."""
    try:
        return date.fromisoformat(text) if text else None
    except ValueError:
        raise InvalidRequestError("must be a date like 2026-03-02", field="starts_on") from None


@router.post("/do/sessions/{id}/skip")
async def skip(
    request: Request,
    caller: Annotated[Principal, may(Action.SESSION_SKIP)],
    id: str,  # noqa: A002
    form: Posted,
) -> Response:
    return await _close(request, caller, id, form, skip=True)


@router.post("/do/sessions/{id}/cancel")
async def cancel(
    request: Request,
    caller: Annotated[Principal, may(Action.SESSION_CANCEL)],
    id: str,  # noqa: A002
    form: Posted,
) -> Response:
    return await _close(request, caller, id, form, skip=False)


async def _close(request: Request, caller: Principal, id_: str, form: Form, *, skip: bool) -> Response:
    """It cannot be undone, so it asks once: the button stands below what it means."""
    if form.get("sure") != "yes":
        raise HTTPException(400)
    sessions = services_of(request).sessions
    plan_id = (await sessions.session(caller, id_)).plan_id
    page = f"/sessions/{id_}" if form.get("then") == "session" else f"/plans/{plan_id}"
    try:
        await (sessions.skip if skip else sessions.cancel)(caller, id_)
    except CodeHubError as e:
        return back(page, at=id_, problem=e.code)
    return back(page)
