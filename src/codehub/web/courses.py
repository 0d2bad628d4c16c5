"""A teacher's courses: those that one owns (an admin: all of them), and an example to begin with.

What an archive brings is `course_import`'s, one course `course`'s.
"""

import asyncio
import importlib.resources
from importlib.resources.abc import Traversable
from typing import Annotated

from fastapi import APIRouter, Request
from starlette.responses import Response

from codehub.courses import archive
from codehub.http import paging
from codehub.i18n.texts import DEFAULT, LANGUAGES
from codehub.policy import rules as policy
from codehub.policy.actions import Action
from codehub.policy.model import Principal
from codehub.web import courses_view
from codehub.web.page_access import may
from codehub.web.rendering import locale_for, render
from codehub.web.services import services_of

router = APIRouter(include_in_schema=False)
MOST = 200  # courses on one page: what is beyond is in the API
EXAMPLE = importlib.resources.files("codehub.courses") / "example"
EXAMPLE_KEY = "my-course"  # its folder, and the key that it has
LONGEST_CURSOR = 200


@router.get("/courses")
async def show_all(request: Request, caller: Annotated[Principal, may(Action.COURSE_CREATE)]) -> Response:
    policy.require(caller, Action.COURSE_CREATE)
    services, everybodys = services_of(request), policy.allows(caller, Action.COURSE_LIST_WITHDRAWN)
    owner = None if everybodys else caller.name
    place = paging.place(None)
    found = await services.courses.page(caller, language=None, owner=owner, key=None, after=place, limit=MOST)
    used = await services.courses.used(caller, [course.id for course in found])
    called = await services.people.called({course.owner for course in found if course.owner})
    reader = courses_view.Reader(locale_for(request), services.clock.now())
    rows = [reader.row(course, used.get(course.id, 0), called) for course in found]
    return render(
        request,
        "courses.html",
        caller=caller,
        rows=sorted(rows, key=lambda row: (row.course.is_shipped, row.course.title.casefold(), row.course.language)),
        mine=any(course.owner is not None and policy.is_self(caller, course.owner) for course in found),
        everybodys=everybodys,
        is_full=len(found) == MOST,
    )


@router.get("/courses/example.zip")
async def download_example(request: Request, caller: Annotated[Principal, may(Action.COURSE_CREATE)]) -> Response:
    """What `codehub course new` makes, in the reader's language."""
    policy.require(caller, Action.COURSE_CREATE)
    language = locale_for(request).language
    packed = await asyncio.to_thread(_example, language if language in LANGUAGES else DEFAULT)
    return as_archive(archive.zipped(packed, EXAMPLE_KEY, services_of(request).clock.now()), EXAMPLE_KEY)


def _example(language: str) -> dict[str, bytes]:
    found: dict[str, bytes] = {}

    def walk(folder: Traversable, below: str) -> None:
        for entry in sorted(folder.iterdir(), key=lambda entry: entry.name):
            if entry.is_dir() and entry.name != "__pycache__":
                walk(entry, f"{below}{entry.name}/")
            elif entry.is_file():
                found[f"{below}{entry.name}"] = entry.read_bytes()

    walk(EXAMPLE / language, "")
    return found


def as_archive(packed: bytes, name: str) -> Response:
    """`name`: of a–z, 0–9 and - alone."""
    headers = {"content-disposition": f'attachment; filename="{name}.zip"', "cache-control": "no-store"}
    return Response(packed, headers=headers, media_type="application/zip")
