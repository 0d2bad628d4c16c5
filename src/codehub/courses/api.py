"""REST about courses: every person sees what there is, its author and admins what is in it."""

import asyncio
from collections.abc import Sequence
from datetime import date, datetime
from typing import Annotated, Any

from fastapi import APIRouter, Path, Query, Request, Response
from pydantic import BaseModel, Field

from codehub.courses import source
from codehub.courses.model import Course, Lesson
from codehub.courses.service import Courses, Outline
from codehub.http import fields, paging, provide
from codehub.http.access import may, spend_creation
from codehub.http.problems import documented
from codehub.policy.actions import Action
from codehub.policy.model import Principal
from codehub.sessions import blueprint, view
from codehub.sessions.api import Day
from codehub.sessions.view import PlanOut

router = APIRouter(prefix="/api/v1", tags=["learning"], responses=documented(400, 401, 403, 503))
Id = Annotated[str, Path(description="A course's id.", max_length=63, pattern=fields.NO_NUL, examples=["k3jx7q2mzv5d"])]
Description = Annotated[
    str,
    Field(
        min_length=1,
        max_length=source.LONGEST_DESCRIPTION,
        json_schema_extra={"contentMediaType": "text/markdown"},
    ),
]
SMALLEST = {"steps": ["LEARN", "COMPLETE"], "learningContent": ["# Hello"], "encouragement": "Well done"}


class CourseSessionIn(fields.Body):
    key: source.Key = Field(examples=["hello"])
    title: str = Field(min_length=1, max_length=200, examples=["Say hello"])
    day: source.Day = Field(examples=[1])
    blueprint: dict[str, Any] = Field(
        json_schema_extra={"x-max-bytes": blueprint.MOST_BYTES},
        description="What `GET /api/v1/blueprint-schema` describes.",
        examples=[SMALLEST],
    )


class CourseIn(fields.Body):
    """Read by `source`, which says all that is wrong at once, in blueprints too."""

    key: source.Key | None = Field(default=None, description="With the language, names it among its owner's courses.")
    title: str = Field(min_length=1, max_length=200, examples=["Python for beginners"])
    language: source.Language = Field(examples=["en"])
    description: Description | None = None
    author: str | None = Field(default=None, min_length=1, max_length=200, description="As it is to be shown.")
    sessions: list[CourseSessionIn] = Field(min_length=1, max_length=source.MOST_SESSIONS)


class NewCourseIn(CourseIn):
    owner: str | None = Field(
        default=None,
        min_length=1,
        max_length=63,
        pattern=fields.NO_NUL,
        examples=["mina"],
        description="Whose it is; unset: yours. Only an admin names others.",
    )


class CourseChangeIn(CourseIn):
    version: int | None = Field(
        default=None, ge=1, le=1_000_000, strict=True,
        description="The one that was changed: 409 if there is a newer one by now. Unset: on top of whatever is there.",
    )  # fmt: skip


class TakeUpIn(fields.Body):
    starts_on: Day | None = Field(default=None, description="The date of day 1; unset: today.", examples=["2026-03-02"])
    owner: str | None = Field(
        default=None,
        min_length=1,
        max_length=63,
        pattern=fields.NO_NUL,
        examples=["mina"],
        description="Who learns; unset: you. An admin names others, a teacher the learners of their classes.",
    )


class CourseOut(BaseModel):
    id: str
    key: str | None
    title: str
    language: str
    description: str | None
    author: str | None
    owner: str | None = Field(description="Null: the platform's.")
    shipped: bool = Field(description="It came with the product, and changes with it.")
    version: int
    session_count: int
    created_at: datetime
    changed_at: datetime
    withdrawn_at: datetime | None = Field(
        description="Since when it cannot be taken up any more; null: it can. What is withdrawn is listed for its owner"
        " and for admins."
    )


class LessonOut(BaseModel):
    key: str
    title: str
    day: int
    steps: list[str]


class OutlineOut(CourseOut):
    sessions: list[LessonOut]


class SourceSessionOut(BaseModel):
    key: str
    title: str
    day: int
    blueprint: dict[str, Any]


class SourceOut(BaseModel):
    id: str
    version: int
    key: str | None
    title: str
    language: str
    description: str | None
    author: str | None
    sessions: list[SourceSessionOut]


def _service(request: Request) -> Courses:
    return provide.get(request, Courses)


def _shown(course: Course) -> dict[str, Any]:
    names = ("id", "key", "title", "language", "description", "author", "owner", "version")
    times = ("created_at", "changed_at", "withdrawn_at")
    values = {name: getattr(course, name) for name in (*names, *times)}
    return {**values, "shipped": course.is_shipped, "session_count": course.sessions}


def _lessons(lessons: Sequence[Lesson]) -> list[LessonOut]:
    return [LessonOut(key=s.key, title=s.title, day=s.day, steps=list(s.steps)) for s in lessons]


def _outline(found: Outline) -> OutlineOut:
    return OutlineOut(**_shown(found.course), sessions=_lessons(found.lessons))


async def _source(course: CourseIn) -> source.Source:
    """In a thread: a large one takes long enough for others to notice."""
    written = course.model_dump(exclude={"owner", "version"}, exclude_none=True)
    return await asyncio.to_thread(source.parse, written)


@router.post("/courses", status_code=201, responses=documented(404, 409, 413, 429))
async def create_course(
    request: Request, caller: Annotated[Principal, may(Action.COURSE_CREATE)], course: NewCourseIn
) -> OutlineOut:
    """Its first version."""
    await spend_creation(request, caller, "course")
    return _outline(await _service(request).create(caller, await _source(course), course.owner))


@router.get("/courses")
async def list_courses(
    request: Request,
    caller: Annotated[Principal, may(Action.COURSE_LIST)],
    language: Annotated[str | None, Query(max_length=40, pattern=fields.NO_NUL, examples=["en"])] = None,
    owner: Annotated[str | None, Query(max_length=63, pattern=fields.NO_NUL, description="Of this person.")] = None,
    key: Annotated[str | None, Query(max_length=63, pattern=fields.NO_NUL)] = None,
    limit: paging.Limit = 50,
    cursor: paging.TimeCursor = None,
) -> paging.Page[CourseOut]:
    place = paging.place(cursor)
    found = await _service(request).page(caller, language=language, owner=owner, key=key, after=place, limit=limit + 1)
    return paging.page(found, limit, lambda c: CourseOut(**_shown(c)), lambda c: paging.at(c.created_at, c.id))


@router.get("/courses/{id}", responses=documented(404))
async def get_course(
    request: Request,
    caller: Annotated[Principal, may(Action.COURSE_SEE)],
    id: Id,  # noqa: A002
) -> OutlineOut:
    """Its sessions by title and day."""
    return _outline(await _service(request).get(caller, id))


@router.get("/courses/{id}/source", responses=documented(404))
async def get_course_source(
    request: Request,
    caller: Annotated[Principal, may(Action.COURSE_SOURCE)],
    id: Id,  # noqa: A002
    version: Annotated[int | None, Query(ge=1, le=1_000_000, description="Unset: the newest.")] = None,
) -> SourceOut:
    """As it was written, with answers: for its author and admins."""
    found, written = await _service(request).source(caller, id, version)
    return SourceOut(id=found.id, version=found.version, **written)


@router.put("/courses/{id}", responses=documented(404, 409, 413, 429))
async def change_course(
    request: Request,
    caller: Annotated[Principal, may(Action.COURSE_CHANGE)],
    id: Id,  # noqa: A002
    course: CourseChangeIn,
) -> OutlineOut:
    """A new version; the old ones stay. It reaches the sessions of learners' plans that nobody has started."""
    await spend_creation(request, caller, "course")
    return _outline(await _service(request).change(caller, id, await _source(course), course.version))


@router.post("/courses/{id}/withdraw", responses=documented(404))
async def withdraw_course(
    request: Request,
    caller: Annotated[Principal, may(Action.COURSE_WITHDRAW)],
    id: Id,  # noqa: A002
) -> OutlineOut:
    """It cannot be taken up or given any more. Plans of it go on; it can be offered again."""
    return _outline(await _service(request).withdraw(caller, id))


@router.post("/courses/{id}/offer", responses=documented(404))
async def offer_course(
    request: Request,
    caller: Annotated[Principal, may(Action.COURSE_WITHDRAW)],
    id: Id,  # noqa: A002
) -> OutlineOut:
    """What was withdrawn can be taken up again."""
    return _outline(await _service(request).offer(caller, id))


@router.post(
    "/courses/{id}/plans",
    status_code=201,
    responses={
        **documented(404, 409, 429),
        200: {"model": PlanOut, "description": "The plan of it that is there, and not finished."},
    },
)
async def take_course_up(
    request: Request,
    response: Response,
    caller: Annotated[Principal, may(Action.COURSE_TAKE)],
    id: Id,  # noqa: A002
    how: TakeUpIn | None = None,
) -> PlanOut:
    """A plan with dates. While there is one with something left to do, that one is given."""
    await spend_creation(request, caller, "plan")
    starts_on: date | None = how.starts_on if how else None
    plan, created = await _service(request).take_up(caller, id, starts_on, how.owner if how else None)
    response.status_code = 201 if created else 200
    return view.show_plan(plan)
