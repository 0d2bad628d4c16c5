"""A teacher's board: the learners of a class by the sessions of its courses, live; and its forms.

Forms are ordinary POSTs answered by 303. `static/codehub.js` asks for the page again when something of the class
changed, and puts in the rows that differ.
"""

from datetime import date
from typing import Annotated

from fastapi import APIRouter, Request
from starlette.exceptions import HTTPException
from starlette.responses import Response

from codehub.assignments import sheet
from codehub.assignments.progress_api import MESSAGE
from codehub.errors import CodeHubError, InvalidRequestError
from codehub.http.access import spend_creation
from codehub.policy.actions import Action
from codehub.policy.model import Principal
from codehub.web import board_view
from codehub.web.forms import Form, Posted, back
from codehub.web.page_access import may
from codehub.web.player import problem_of
from codehub.web.rendering import locale_for, render
from codehub.web.services import services_of

router = APIRouter(include_in_schema=False)
TYPED, LONGEST_TYPED = ("course_id", "starts_on"), 40  # what comes back when a course is not given
GIVEN = "given"


@router.get("/classes/{id}/board")
async def show(request: Request, caller: Annotated[Principal, may(Action.CLASS_PROGRESS)], id: str) -> Response:  # noqa: A002
    query = request.query_params
    view = await board_view.Reader(request, caller).board(id, query.get("course") or None)
    problem = problem_of(request, query.get("problem"))
    typed = {name: query.get(name, "")[:LONGEST_TYPED] for name in ("at", *TYPED)}
    given = query.get("done") == GIVEN
    return render(
        request, "board.html", caller=caller, v=view, longest=MESSAGE, problem=problem, typed=typed, given=given
    )


@router.get("/classes/{id}/progress.csv")
async def download(request: Request, caller: Annotated[Principal, may(Action.CLASS_PROGRESS)], id: str) -> Response:  # noqa: A002
    """What the API has, in the language and the time zone of the person who reads this page."""
    chosen, locale = request.query_params.get("course") or None, locale_for(request)
    found = await services_of(request).assignments.progress(caller, id, chosen)
    headers = {"content-disposition": 'attachment; filename="progress.csv"', "content-language": locale.language}
    return Response(sheet.written(found, locale), headers=headers, media_type="text/csv; charset=utf-8")


@router.get("/classes/{id}/board/{session_id}")
async def show_session(
    request: Request,
    caller: Annotated[Principal, may(Action.CLASS_PROGRESS)],
    id: str,  # noqa: A002
    session_id: str,
) -> Response:
    """What one learner did in one session: where they are, and what their last tries said."""
    view = await board_view.Reader(request, caller).learner_session(id, session_id)
    problem = problem_of(request, request.query_params.get("problem"))
    return render(request, "board_session.html", caller=caller, v=view, longest=MESSAGE, problem=problem)


@router.post("/do/classes/{id}/assign")
async def assign(
    request: Request,
    caller: Annotated[Principal, may(Action.CLASS_ASSIGN)],
    id: str,  # noqa: A002
    form: Posted,
) -> Response:
    page = f"/classes/{id}/board"
    try:
        await spend_creation(request, caller, "assignment")
        await services_of(request).assignments.assign(caller, id, form.get("course_id", ""), _day(form))
    except CodeHubError as e:
        errors = e.extra.get("errors") or [{"field": ""}]
        code = "STARTS_ON" if errors[0]["field"] == "starts_on" else e.code
        typed = {name: form.get(name, "")[:LONGEST_TYPED] for name in TYPED}
        return back(page, problem=code, at="give", **typed)
    return back(page, done=GIVEN)


@router.post("/do/classes/{id}/assignments/{assignment_id}/end")
async def end(
    request: Request,
    caller: Annotated[Principal, may(Action.CLASS_ASSIGN)],
    id: str,  # noqa: A002
    assignment_id: str,
    form: Posted,
) -> Response:
    if form.get("sure") != "yes":
        raise HTTPException(400)
    page = f"/classes/{id}/board"
    try:
        await services_of(request).assignments.end(caller, id, assignment_id)
    except CodeHubError as e:
        return back(page, problem=e.code)
    return back(page)


@router.post("/do/classes/{id}/hands/{hand_id}/answer")
async def answer(
    request: Request,
    caller: Annotated[Principal, may(Action.CLASS_ANSWER)],
    id: str,  # noqa: A002
    hand_id: str,
    form: Posted,
) -> Response:
    then = form.get("then", "")
    page = f"/classes/{id}/board" + (f"/{then}" if then.isalnum() else "")
    try:
        await services_of(request).hands.answer(
            caller, id, hand_id, " ".join(form.get("message", "").split())[:MESSAGE]
        )
    except CodeHubError as e:
        return back(page, problem=e.code)
    return back(page)


def _day(form: Form) -> date | None:
    text = form.get("starts_on", "")
    try:
        return date.fromisoformat(text) if text else None
    except ValueError:
        raise InvalidRequestError("must be a date like 2026-03-02", field="starts_on") from None
