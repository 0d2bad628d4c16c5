"""One course, for its owner and admins: its sessions, its versions, its archive, and the classes that have it."""

import asyncio
from datetime import date
from typing import Annotated

from fastapi import APIRouter, Request
from starlette.responses import Response

from codehub.courses import archive, differences, folder, source
from codehub.courses.errors import CourseNotFoundError
from codehub.courses.model import Course
from codehub.courses.source import Source
from codehub.errors import CodeHubError, InvalidRequestError
from codehub.http.access import spend_creation
from codehub.policy import rules as policy
from codehub.policy.actions import Action
from codehub.policy.model import Principal, Resource
from codehub.web import board, courses_view
from codehub.web import learning_presentation as presentation
from codehub.web.courses import as_archive
from codehub.web.forms import Form, Posted, back
from codehub.web.page_access import may
from codehub.web.player import problem_of
from codehub.web.rendering import locale_for, render
from codehub.web.services import services_of

router = APIRouter(include_in_schema=False)
VERSIONS = 20  # on one page
CLASSES = 200
LONGEST_TYPED, LONGEST_NUMBER = 63, 7
DONE = {"saved", "withdrawn", "offered"}
Author = Annotated[Principal, may(Action.COURSE_SOURCE)]


def _reader(request: Request) -> courses_view.Reader:
    return courses_view.Reader(locale_for(request), services_of(request).clock.now())


@router.get("/courses/{id}")
async def show(request: Request, caller: Author, id: str) -> Response:  # noqa: A002
    services, reader, query = services_of(request), _reader(request), request.query_params
    before = _number(query.get("before", ""))
    versions = await services.courses.versions(caller, id, newest=before, limit=VERSIONS + 1)
    outline = await services.courses.get(caller, id)
    used = await services.courses.used(caller, [id]) if policy.allows(caller, Action.COURSE_CREATE) else {}
    called = await services.people.called({version.created_by for version, _ in versions})
    pairs = list(zip(versions, [*versions[1:], None], strict=True))[:VERSIONS]
    done = query.get("done")
    return render(
        request,
        "course.html",
        caller=caller,
        course=outline.course,
        row=reader.row(outline.course, used.get(id, 0), {}),
        outline=reader.lessons(outline.lessons),
        versions=[
            reader.version(new[0], differences.compare_outlines(*old, *new) if old else None, called)
            for new, old in pairs
        ],
        older=versions[VERSIONS][0].version if len(versions) > VERSIONS else None,
        classes=await services.assignments.taught(caller, id, limit=CLASSES),
        may_change=not outline.course.is_shipped
        and policy.allows(caller, Action.COURSE_CHANGE, Resource(id, outline.course.owner)),
        today=presentation.today(reader.now, reader.locale).isoformat(),
        day=lambda on: presentation.day(on, presentation.today(reader.now, reader.locale), reader.locale),
        problem=problem_of(request, query.get("problem")),
        at=query.get("at"),
        typed={name: query.get(name, "")[:LONGEST_TYPED] for name in ("class_id", "starts_on")},
        done=done if done in DONE else None,
    )


@router.get("/courses/{id}/versions/{version}")
async def show_version(request: Request, caller: Author, id: str, version: str) -> Response:  # noqa: A002
    """What exactly changed with it."""
    reader, number = _reader(request), _number(version)
    if number is None:
        raise CourseNotFoundError(f"the course {id[:LONGEST_TYPED]} has no version {version[:LONGEST_NUMBER]}")
    course, new = await source_of(request, caller, id, number)
    before = (await source_of(request, caller, id, number - 1))[1] if number > 1 else None
    found = await asyncio.to_thread(differences.compare, before, new) if before else None
    (told, _), *_ = await services_of(request).courses.versions(caller, id, newest=number, limit=1)
    called = await services_of(request).people.called({told.created_by})
    line = reader.version(told, found, called)
    newest = (await services_of(request).courses.get(caller, id)).course
    return render(
        request, "course_version.html", caller=caller, course=newest, at=course, v=line, outline=reader.outline(new)
    )


@router.get("/courses/{id}/archive.zip")
async def export(request: Request, caller: Author, id: str) -> Response:  # noqa: A002
    """As `codehub course export` writes it, of any version."""
    number = _number(request.query_params.get("version", ""))
    course, found = await source_of(request, caller, id, number)

    def packed() -> bytes:
        texts = folder.texts(found)
        return archive.zipped({path: text.encode() for path, text in texts.items()}, name, course.changed_at)

    name = f"{course.key or course.id}-{course.language.lower()}"
    return as_archive(await asyncio.to_thread(packed), name)


async def source_of(request: Request, caller: Principal, id_: str, version: int | None) -> tuple[Course, Source]:
    """All of a course, for its owner and admins; None: as it is now."""
    course, written = await services_of(request).courses.source(caller, id_, version)
    return course, await asyncio.to_thread(source.parse, written)


@router.post("/do/courses/{id}/assign")
async def assign(
    request: Request,
    caller: Annotated[Principal, may(Action.CLASS_ASSIGN)],
    id: str,  # noqa: A002
    form: Posted,
) -> Response:
    """A second click finds that the class has it, and leads to the same board."""
    class_id = form.get("class_id", "")[:LONGEST_TYPED]
    try:
        starts_on = _day(form)
        await spend_creation(request, caller, "assignment")
        await services_of(request).assignments.assign(caller, class_id, id, starts_on)
    except CodeHubError as e:
        errors = e.extra.get("errors") or [{"field": ""}]
        code = "STARTS_ON" if errors[0]["field"] == "starts_on" else e.code
        typed = {"class_id": class_id, "starts_on": form.get("starts_on", "")[:LONGEST_TYPED]}
        return back(f"/courses/{id}", problem=code, at="assign", **typed)
    return back(f"/classes/{class_id}/board", done=board.GIVEN)


def _day(form: Form) -> date | None:
    text = form.get("starts_on", "")
    try:
        return date.fromisoformat(text) if text else None
    except ValueError:
        raise InvalidRequestError("must be a date like 2026-03-02", field="starts_on") from None


def _number(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdigit() and len(text) < LONGEST_NUMBER else None
