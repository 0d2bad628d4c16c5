"""REST about how far a class is, and about raised hands."""

from datetime import datetime
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Path, Query, Request, Response
from pydantic import BaseModel, Field

from codehub.assignments import sheet
from codehub.assignments.api import AssignmentOut, shown
from codehub.assignments.hands import Hands
from codehub.assignments.model import Cell, CellState, Hand, LearnerProgress
from codehub.assignments.service import Assignments
from codehub.classes.api import Id
from codehub.http import fields, paging, provide
from codehub.http.access import may, spend_creation
from codehub.http.language import Reader
from codehub.http.problems import documented
from codehub.i18n.locales import Locale
from codehub.policy.actions import Action
from codehub.policy.model import Principal
from codehub.sessions.runs_api import Fence, RunId

router = APIRouter(prefix="/api/v1", tags=["learning"], responses=documented(400, 401, 403, 503))
HandId = Annotated[str, Path(description="A raised hand's id.", max_length=200, pattern=fields.NO_NUL)]
OfAssignment = Annotated[
    str | None, Query(alias="assignment", max_length=63, pattern=fields.NO_NUL, description="Of this course alone.")
]
MESSAGE = 500  # characters: a question, not an essay
Message = Annotated[fields.Line, Field(max_length=MESSAGE)]
CSV: dict[str, Any] = {"content": {"text/csv": {}}}


class CellOut(BaseModel):
    assignment_id: str
    key: str = Field(description="Of the course's session.")
    plan_id: str
    session_id: str
    state: CellState
    run_id: str | None = Field(description="Of the last run.")
    step_index: int | None = Field(description="The step to do next; null: no run goes on.")
    step: str | None = Field(description="Its kind.")
    steps: int | None = Field(description="How many the run has.")
    tries: int = Field(description="That failed at the step it is at.")
    check_tries: int = Field(description="That failed at CHECK steps of the run.")
    practice_tries: int = Field(description="That failed at PRACTICE steps of the run.")
    workspace_id: str | None
    hand_id: str | None = Field(description="The learner asks for help in this run.")
    last_activity_at: datetime | None


class ColumnOut(BaseModel):
    assignment_id: str
    key: str
    title: str


class LearnerOut(BaseModel):
    name: str
    display_name: str
    completed: int
    total: int = Field(description="Sessions.")
    last_activity_at: datetime | None
    cells: list[CellOut] = Field(description="One for each session of their plans.")


class ProgressOut(BaseModel):
    assignments: list[AssignmentOut]
    sessions: list[ColumnOut] = Field(description="Of the assigned courses, in order.")
    learners: list[LearnerOut] = Field(description="By name.")


class HelpIn(fields.Body):
    message: Message = Field(default="", examples=["My loop never ends."])
    fence: Fence | None = Field(default=None, description="Refused where another page has the run. Unset: any.")


class AnswerIn(fields.Body):
    message: Message = Field(default="", description="Empty: you came in person.")


class HandOut(BaseModel):
    id: str
    run_id: str
    session_id: str
    owner: str
    display_name: str
    step_index: int
    message: str
    raised_at: datetime
    ended_at: datetime | None
    answered_by: str | None
    answer: str | None
    workspace_id: str | None


def _cell(cell: Cell) -> CellOut:
    return CellOut(**{name: getattr(cell, name) for name in CellOut.model_fields})


def _learner(found: LearnerProgress) -> LearnerOut:
    names = ("name", "display_name", "completed", "total", "last_activity_at")
    about = {name: getattr(found, name) for name in names}
    return LearnerOut(**about, cells=[_cell(cell) for cell in found.cells.values()])


def _hand(found: Hand) -> HandOut:
    return HandOut(**{name: getattr(found, name) for name in HandOut.model_fields})


def _hands(request: Request) -> Hands:
    return provide.get(request, Hands)


@router.get(
    "/classes/{id}/progress",
    response_model=ProgressOut,
    responses={**documented(404), 200: {"model": ProgressOut, "content": {"text/csv": {}}}},
)
async def get_progress(
    request: Request,
    caller: Annotated[Principal, may(Action.CLASS_PROGRESS)],
    id: Id,  # noqa: A002 (the path's)
    reader: Reader,
    assignment_id: OfAssignment = None,
    form: Annotated[Literal["json", "csv"], Query(alias="format")] = "json",
) -> ProgressOut | Response:
    """People by sessions, one state each. As CSV, the words are in the language that `Accept-Language` asks for."""
    if form == "csv":
        return await _sheet(request, caller, id, reader, assignment_id)
    found = await provide.get(request, Assignments).progress(caller, id, assignment_id)
    return ProgressOut(
        assignments=[shown(one) for one in found.assignments],
        sessions=[ColumnOut(**vars(column)) for column in found.columns],
        learners=[_learner(one) for one in found.learners],
    )


@router.get("/classes/{id}/progress.csv", response_class=Response, responses={**documented(404), 200: CSV})
async def download_progress(
    request: Request,
    caller: Annotated[Principal, may(Action.CLASS_PROGRESS)],
    id: Id,  # noqa: A002 (the path's)
    reader: Reader,
    assignment_id: OfAssignment = None,
) -> Response:
    return await _sheet(request, caller, id, reader, assignment_id)


async def _sheet(request: Request, caller: Principal, id_: str, reader: Locale, assignment_id: str | None) -> Response:
    found = await provide.get(request, Assignments).progress(caller, id_, assignment_id)
    headers = {
        "content-disposition": f'attachment; filename="progress-{id_}.csv"',
        "content-language": reader.language,
        "vary": "accept-language",
    }
    return Response(sheet.written(found, reader), headers=headers, media_type="text/csv; charset=utf-8")


@router.post(
    "/runs/{id}/help",
    status_code=201,
    responses={**documented(404, 409, 413, 429), 200: {"model": HandOut, "description": "You have asked already."}},
)
async def ask_for_help(
    request: Request,
    response: Response,
    caller: Annotated[Principal, may(Action.RUN_HELP)],
    id: RunId,  # noqa: A002 (the path's)
    body: HelpIn | None = None,
) -> HandOut:
    """The teachers of your classes see it first, until one answers or you take it back."""
    await spend_creation(request, caller, "hand")
    asked = body or HelpIn()
    found, made = await _hands(request).raise_hand(caller, id, asked.message, asked.fence)
    response.status_code = 201 if made else 200
    return _hand(found)


@router.get("/runs/{id}/help", responses=documented(404))
async def get_help(
    request: Request,
    caller: Annotated[Principal, may(Action.RUN_SEE)],
    id: RunId,  # noqa: A002 (the path's)
) -> HandOut | None:
    """What was last asked in this run, and the answer; null: nothing was."""
    found = await _hands(request).last(caller, id)
    return _hand(found) if found else None


@router.delete("/runs/{id}/help", status_code=204, responses=documented(404))
async def take_help_back(
    request: Request,
    caller: Annotated[Principal, may(Action.RUN_HELP)],
    id: RunId,  # noqa: A002 (the path's)
) -> None:
    await _hands(request).lower(caller, id)


@router.get("/classes/{id}/hands", responses=documented(404))
async def list_hands(
    request: Request,
    caller: Annotated[Principal, may(Action.CLASS_PROGRESS)],
    id: Id,  # noqa: A002 (the path's)
    limit: paging.Limit = 50,
    cursor: paging.TimeCursor = None,
) -> paging.Page[HandOut]:
    """Of the learners who ask for help, who asked first."""
    found = await _hands(request).raised(caller, id, after=paging.place(cursor), limit=limit + 1)
    return paging.page(found, limit, _hand, lambda h: paging.at(h.raised_at, h.id))


@router.post("/classes/{id}/hands/{hand_id}/answer", responses=documented(404, 409, 413))
async def answer_hand(
    request: Request,
    caller: Annotated[Principal, may(Action.CLASS_ANSWER)],
    id: Id,  # noqa: A002 (the path's)
    hand_id: HandId,
    body: AnswerIn | None = None,
) -> HandOut:
    """The learner sees it at once."""
    return _hand(await _hands(request).answer(caller, id, hand_id, (body or AnswerIn()).message))
