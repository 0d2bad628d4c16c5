"""REST about what a class is given to learn."""

from datetime import date, datetime
from typing import Annotated

from fastapi import APIRouter, Path, Request, Response
from pydantic import BaseModel, Field

from codehub.assignments.model import Assignment
from codehub.assignments.service import Assignments
from codehub.classes.api import Id
from codehub.http import fields, paging, provide
from codehub.http.access import may, spend_creation
from codehub.http.problems import documented
from codehub.policy.actions import Action
from codehub.policy.model import Principal
from codehub.sessions.api import Day

router = APIRouter(prefix="/api/v1", tags=["learning"], responses=documented(400, 401, 403, 503))
AssignmentId = Annotated[str, Path(description="An assignment's id.", max_length=200, pattern=fields.NO_NUL)]


class AssignmentIn(fields.Body):
    course_id: str = Field(min_length=1, max_length=63, pattern=fields.NO_NUL, examples=["k3jx7q2mzv5d"])
    starts_on: Day | None = Field(default=None, description="The date of day 1; unset: today.", examples=["2026-03-02"])


class AssignmentOut(BaseModel):
    id: str
    class_id: str
    course_id: str
    title: str = Field(description="Of the course, as it is now.")
    language: str
    starts_on: date
    created_by: str
    created_at: datetime


def shown(found: Assignment) -> AssignmentOut:
    return AssignmentOut(**{name: getattr(found, name) for name in AssignmentOut.model_fields})


def _service(request: Request) -> Assignments:
    return provide.get(request, Assignments)


@router.post(
    "/classes/{id}/assignments",
    status_code=201,
    responses={
        **documented(404, 409, 413),
        200: {"model": AssignmentOut, "description": "The class has it already; nothing changed."},
    },
)
async def assign_course(
    request: Request,
    response: Response,
    caller: Annotated[Principal, may(Action.CLASS_ASSIGN)],
    id: Id,  # noqa: A002 (the path's)
    body: AssignmentIn,
) -> AssignmentOut:
    """Every learner of the class gets a plan with dates; also those who join later."""
    await spend_creation(request, caller, "assignment")
    found, made = await _service(request).assign(caller, id, body.course_id, body.starts_on)
    response.status_code = 201 if made else 200
    return shown(found)


@router.get("/classes/{id}/assignments", responses=documented(404))
async def list_assignments(
    request: Request,
    caller: Annotated[Principal, may(Action.CLASS_SEE)],
    id: Id,  # noqa: A002 (the path's)
    limit: paging.Limit = 50,
    cursor: paging.TimeCursor = None,
) -> paging.Page[AssignmentOut]:
    """Those that go on, oldest first."""
    found = await _service(request).page(caller, id, after=paging.place(cursor), limit=limit + 1)
    return paging.page(found, limit, shown, lambda a: paging.at(a.created_at, a.id))


@router.delete("/classes/{id}/assignments/{assignment_id}", status_code=204, responses=documented(404))
async def end_assignment(
    request: Request,
    caller: Annotated[Principal, may(Action.CLASS_ASSIGN)],
    id: Id,  # noqa: A002 (the path's)
    assignment_id: AssignmentId,
) -> None:
    """Learners keep their plans; who joins later does not get it."""
    await _service(request).end(caller, id, assignment_id)
