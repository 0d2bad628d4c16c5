"""The start page, logging in by link, the API's documentation, and the files that pages use."""

import importlib.resources
import os
from typing import Annotated

from fastapi import APIRouter, Depends, Request
from starlette.responses import FileResponse, RedirectResponse, Response
from starlette.staticfiles import StaticFiles
from starlette.types import Scope

from codehub.auth.model import Caller
from codehub.errors import UnauthenticatedError
from codehub.web import dashboard, handover, rules
from codehub.web.access import origin_of, set_cookie, visitor
from codehub.web.rendering import render

router = APIRouter(include_in_schema=False)


class Static(StaticFiles):
    """Browsers keep these files, and ask each time whether they are still good: no stale look after an upgrade."""

    def file_response(
        self, full_path: "os.PathLike[str] | str", stat_result: os.stat_result, scope: Scope, status_code: int = 200
    ) -> Response:
        response = super().file_response(full_path, stat_result, scope, status_code)
        response.headers["cache-control"] = "no-cache"
        return response


def static_files() -> StaticFiles:
    return Static(directory=str(importlib.resources.files("codehub.web") / "static"))


async def _visitor_or_none(request: Request) -> Caller | None:
    """A page for somebody whose session ended is the page for somebody who is not logged in."""
    try:
        return await visitor(request)
    except UnauthenticatedError:
        return None


Visitor = Annotated[Caller | None, Depends(_visitor_or_none)]


@router.get("/")
async def home(request: Request, caller: Visitor) -> Response:
    if caller is None:
        return render(request, "welcome.html")
    return await dashboard.show(request, caller)


@router.get("/favicon.ico")
async def favicon() -> Response:
    """Some browsers ask for it whatever a page says."""
    mark = importlib.resources.files("codehub.web") / "static" / "mark.svg"
    return FileResponse(str(mark), media_type="image/svg+xml", headers={"cache-control": "max-age=86400"})


@router.get("/login/{secret}")
async def follow_link(request: Request, secret: str, caller: Visitor) -> Response:
    """Following the link logs in. What merely looks ahead (a preview, a prefetch) must not use it up."""
    if not request.state.head and not rules.looks_ahead(request.headers):
        return await _log_in(request, secret, caller)
    if await request.app.state.services.people.link_works(secret):
        return render(request, "link_preview.html", secret=secret)
    return render(request, "link_used.html", status=410)


@router.post("/login/{secret}")
async def log_in(request: Request, secret: str, caller: Visitor) -> Response:
    """The button of the preview, for a person whom we took for a machine."""
    return await _log_in(request, secret, caller)


async def _log_in(request: Request, secret: str, caller: Caller | None) -> Response:
    services = request.app.state.services
    agent = request.headers.get("user-agent", "")
    try:
        cookie = await services.people.log_in(secret, agent, origin_of(request), instead_of=caller)
    except UnauthenticatedError:
        if caller:  # a double click, or the back button, after it had worked
            return RedirectResponse("/", 303)
        return render(request, "link_used.html", status=410)
    set_cookie(request, services.settings, cookie)
    return handover.after_login(request)


@router.post("/logout")
async def log_out(request: Request, caller: Visitor) -> Response:
    if caller:
        await request.app.state.services.people.log_out(caller)
    set_cookie(request, request.app.state.services.settings, "")
    return RedirectResponse("/", 303)


@router.get("/docs")
async def documentation(request: Request) -> Response:
    base_url = request.app.state.services.base_url(request)
    return render(request, "docs.html", api=request.app.openapi(), base_url=base_url)
