"""REST about plans and their sessions. What is learnt in one, as far as its learner may see it, has an `ETag`."""

import asyncio
import re
from collections.abc import Sequence
from datetime import date
from typing import Annotated, Any

from fastapi import APIRouter, Header, Path, Query, Request
from pydantic import BeforeValidator, Field
from starlette.responses import Response

from codehub.errors import InvalidRequestError
from codehub.http import fields, paging, provide
from codehub.http.access import may, spend_creation
from codehub.http.problems import documented
from codehub.policy.actions import Action
from codehub.policy.model import Principal
from codehub.sessions import blueprint, view
from codehub.sessions.service import MOST_SESSIONS, NewPlan, NewSession, Sessions
from codehub.sessions.view import PlanOut, PlanSummary, SessionOut

router = APIRouter(prefix="/api/v1", tags=["learning"], responses=documented(400, 401, 403, 503))
PlanId = Annotated[str, Path(description="A plan's id.", examples=["k3jx7q2mzv5d"])]
SessionId = Annotated[str, Path(description="A session's id.", examples=["k3jx7q2mzv5d"])]
Title = Annotated[fields.Name, Field(examples=["Week 3"])]


DAY = r"[0-9]{4}-[0-9]{2}-[0-9]{2}"


def _day(value: Any) -> Any:
    """A number, also as a text, would be taken for seconds since 1970, and a time for its day."""
    if not isinstance(value, str) or not re.fullmatch(DAY, value):
        raise ValueError("must be a date like 2026-03-02")
    return value


Day = Annotated[date, BeforeValidator(_day), Field(json_schema_extra={"maxLength": 10})]


class SessionIn(fields.Body):
    title: Title
    scheduled_for_date: Day = Field(description="It may be started before and after.")
    blueprint: dict[str, Any] = Field(
        description="What `GET /api/v1/blueprint-schema` describes.",
        json_schema_extra={"x-max-bytes": blueprint.MOST_BYTES},
        examples=[{"steps": ["LEARN", "COMPLETE"], "learningContent": ["# Hello"], "encouragement": "Well done"}],
    )


class PlanIn(fields.Body):
    title: Title
    sessions: list[SessionIn] = Field(min_length=1, max_length=MOST_SESSIONS)
    owner: str | None = Field(
        default=None,
        min_length=1,
        max_length=63,
        pattern=fields.NO_NUL,
        examples=["mina"],
        description="Whose it is; unset: yours. An admin names others, a teacher the learners of their classes.",
    )


def _service(request: Request) -> Sessions:
    return provide.get(request, Sessions)


def _read(sessions: Sequence[SessionIn]) -> list[NewSession]:
    if complaint := blueprint.too_many(s.blueprint for s in sessions):
        raise InvalidRequestError(complaint, field="sessions")
    return [
        NewSession(s.title, s.scheduled_for_date, blueprint.parse_new(s.blueprint, f"sessions.{position}.blueprint"))
        for position, s in enumerate(sessions)
    ]


@router.post("/plans", status_code=201, responses=documented(404, 413, 429))
async def create_plan(request: Request, caller: Annotated[Principal, may(Action.PLAN_CREATE)], plan: PlanIn) -> PlanOut:
    """Dated sessions for one learner. Answers in the blueprints come back to nobody."""
    await spend_creation(request, caller, "plan")
    new = await asyncio.to_thread(_read, plan.sessions)  # a large plan takes long enough for others to notice
    return view.show_plan(await _service(request).create_plan(caller, NewPlan(plan.title, new, plan.owner)))


@router.get("/plans")
async def list_plans(
    request: Request,
    caller: Annotated[Principal, may(Action.PLAN_LIST)],
    owner: Annotated[
        str | None,
        Query(max_length=63, pattern=fields.NO_NUL, description="Of this person; only an admin sees others'."),
    ] = None,
    limit: paging.Limit = 50,
    cursor: paging.TimeCursor = None,
) -> paging.Page[PlanSummary]:
    found = await _service(request).plans(caller, owner=owner, after=paging.place(cursor), limit=limit + 1)
    return paging.page(found, limit, view.list_plan, lambda plan: paging.at(plan.created_at, plan.id))


@router.get("/plans/{id}", responses=documented(404))
async def get_plan(
    request: Request,
    caller: Annotated[Principal, may(Action.PLAN_SEE)],
    id: PlanId,  # noqa: A002
) -> PlanOut:
    return view.show_plan(await _service(request).plan(caller, id))


@router.get("/sessions/{id}", responses=documented(404))
async def get_session(
    request: Request,
    caller: Annotated[Principal, may(Action.SESSION_SEE)],
    id: SessionId,  # noqa: A002
) -> SessionOut:
    return view.show_session(await _service(request).session(caller, id))


@router.get(
    "/sessions/{id}/blueprint",
    response_class=Response,
    responses={
        **documented(404),
        200: {"content": {"application/json": {"schema": {"type": "object"}}}, "description": "Without answers."},
        304: {"description": "As `If-None-Match` says."},
    },
)
async def get_blueprint(
    request: Request,
    caller: Annotated[Principal, may(Action.SESSION_SEE)],
    id: SessionId,  # noqa: A002
    if_none_match: Annotated[str | None, Header(max_length=1000)] = None,
) -> Response:
    """What is learnt in it: no answers, no feedback, no commands of checks. It never changes once a run has begun."""
    lesson = await _service(request).lesson(caller, id)
    tag = f'W/"{lesson.view_hash}"'  # weak, because the answer may be compressed
    headers = {"etag": tag, "cache-control": "private, no-cache"}
    if _names(if_none_match or "", lesson.view_hash):
        return Response(status_code=304, headers=headers)
    return Response(lesson.learners_view, headers=headers, media_type="application/json")


def _names(if_none_match: str, hash_: str) -> bool:
    tags = [tag.strip().removeprefix("W/") for tag in if_none_match.split(",")]
    return f'"{hash_}"' in tags or "*" in tags


@router.post("/sessions/{id}/skip", responses=documented(404, 409))
async def skip_session(
    request: Request,
    caller: Annotated[Principal, may(Action.SESSION_SKIP)],
    id: SessionId,  # noqa: A002
) -> SessionOut:
    """Its running run is abandoned with it."""
    return view.show_session(await _service(request).skip(caller, id))


@router.post("/sessions/{id}/cancel", responses=documented(404, 409))
async def cancel_session(
    request: Request,
    caller: Annotated[Principal, may(Action.SESSION_CANCEL)],
    id: SessionId,  # noqa: A002
) -> SessionOut:
    """Its running run is abandoned with it."""
    return view.show_session(await _service(request).cancel(caller, id))
