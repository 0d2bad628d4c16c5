"""Bringing a course in as an archive: choose it, see what it would do, save exactly that.

What was sent is kept as a draft (`courses.drafts`) between the two. An archive with mistakes is answered by the form
again, with all of them by file and line; nothing of it is kept.
"""

import asyncio
from collections.abc import Sequence
from typing import Annotated

from fastapi import APIRouter, Request
from starlette.responses import Response

from codehub.courses import archive, folder
from codehub.courses.archive import ArchiveError
from codehub.courses.drafts import Saved
from codehub.courses.errors import DraftChangedError, DraftNotFoundError
from codehub.courses.model import Course
from codehub.courses.source import MOST_BYTES, Source
from codehub.courses.tree import MOST_ENTRIES, Problem, Tree
from codehub.errors import CodeHubError, ForbiddenError, InvalidRequestError
from codehub.http.access import spend_creation
from codehub.policy import rules as policy
from codehub.policy.actions import Action
from codehub.policy.model import Principal
from codehub.web import courses_view
from codehub.web.forms import Posted, back, read_parts
from codehub.web.page_access import may
from codehub.web.rendering import locale_for, render
from codehub.web.services import services_of

router = APIRouter(include_in_schema=False)
PAGE = "/courses/import"
LARGEST_FORM = archive.LARGEST + 64 * 1024  # with what a form has around its file
LONGEST_ID = 63
LONGEST_SHOWN = 200
MEGABYTE = 1024 * 1024
Author = Annotated[Principal, may(Action.COURSE_CREATE)]


@router.get(PAGE)
async def ask(request: Request, caller: Author) -> Response:
    """`course`: of which it is to be a new version."""
    policy.require(caller, Action.COURSE_CREATE)
    course = await _course(request, caller, request.query_params.get("course", ""))
    problem = "draft_gone" if request.query_params.get("problem") == DraftNotFoundError.code else None
    return _form(request, caller, course, said=locale_for(request).say(problem) if problem else None)


@router.post(PAGE)
async def take(request: Request, caller: Author) -> Response:
    policy.require(caller, Action.COURSE_CREATE)
    await spend_creation(request, caller, "course-draft")
    parts = await read_parts(request, LARGEST_FORM)
    course = await _course(request, caller, parts.get("course", b"").decode("ascii", "replace"))
    try:
        read, found, problems = await asyncio.to_thread(_read, parts.get("file", b""))
        if found is None:
            return _form(request, caller, course, 400, problems=problems)
        kept = await services_of(request).course_drafts.keep(caller, found, problems, course.id if course else None)
    except ArchiveError as e:
        return _form(request, caller, course, e.status, said=_words(request, e))
    except InvalidRequestError as e:
        wrong = [(str(error["field"]), str(error["message"])) for error in e.extra["errors"]]
        located = await asyncio.to_thread(folder.located_in, read, wrong)
        return _form(request, caller, course, e.status, problems=located)
    return back(f"/courses/drafts/{kept}")


def _read(data: bytes) -> tuple[Tree, Source | None, list[Problem]]:
    """Beside the event loop: a large one takes a second."""
    if not data:
        raise ArchiveError("none", "no file was chosen")
    if len(data) > archive.LARGEST:
        raise ArchiveError("large", "the archive is too large")
    read = archive.read(data)
    return read, *folder.examine_tree(read)


async def _course(request: Request, caller: Principal, id_: str) -> Course | None:
    if not id_:
        return None
    return await services_of(request).courses.changeable(caller, id_[:LONGEST_ID])


def _words(request: Request, error: ArchiveError) -> str:
    locale = locale_for(request)
    values = {"where": courses_view.short(error.where), "mb": MOST_BYTES // MEGABYTE, "n": MOST_ENTRIES}
    return locale.say(f"archive_wrong_{error.reason}", **values)


def _form(
    request: Request,
    caller: Principal,
    course: Course | None,
    status: int = 200,
    *,
    said: str | None = None,
    problems: Sequence[Problem] = (),
) -> Response:
    reader = courses_view.Reader(locale_for(request), services_of(request).clock.now())
    errors = sum(problem.is_error for problem in problems)
    return render(
        request,
        "course_import.html",
        status,
        caller=caller,
        course=course,
        problem=said,
        problems=reader.problems(problems),
        errors=reader.counted("course_errors", errors) if problems else "",
        left_out=max(0, len(problems) - courses_view.MOST_PROBLEMS),
        most_bytes=archive.LARGEST,
        most_megabytes=MOST_BYTES // MEGABYTE,
    )


# --- what was sent, and is not saved yet ------------------------------------------------------------------------------


@router.get("/courses/drafts/{id}")
async def show(request: Request, caller: Author, id: str) -> Response:  # noqa: A002
    try:
        found = await services_of(request).course_drafts.show(caller, id)
    except DraftNotFoundError as e:
        return back(PAGE, problem=e.code)
    if isinstance(found, Saved):
        return back(f"/courses/{found.course_id}")
    reader = courses_view.Reader(locale_for(request), services_of(request).clock.now())
    view = await asyncio.to_thread(reader.draft, found)
    problem = _problem(request)
    return render(request, "course_draft.html", caller=caller, v=view, problem=problem)


def _problem(request: Request) -> str | None:
    """What was refused, in words. The address only names a code."""
    code, locale = request.query_params.get("problem"), locale_for(request)
    key = f"refused_{code}".lower()
    return locale.say(key if locale.knows(key) else "refused_other") if code else None


@router.post("/do/courses/drafts/{id}/save")
async def save(request: Request, caller: Author, id: str, form: Posted) -> Response:  # noqa: A002
    """A second click leads where the first one did. What has changed meanwhile is shown before anything is saved."""
    try:
        await spend_creation(request, caller, "course")
        made = await services_of(request).course_drafts.save(caller, id, form.get("shown", "")[:LONGEST_SHOWN])
    except DraftNotFoundError as e:
        return back(PAGE, problem=e.code)
    except DraftChangedError as e:
        return back(f"/courses/drafts/{id}", problem=e.code)
    except ForbiddenError:
        raise
    except CodeHubError as e:
        return back(f"/courses/drafts/{id}", problem=e.code)
    return back(f"/courses/{made}", done="saved")
